! Files, windows, memory of MPI: a program is not saved while it has such.
#include "kinds.inc"

subroutine opened(name)
  character(*) :: name
  call file(name)
  call window()
end subroutine

subroutine file(name)
  use world
  character(*) :: name
  integer :: words(4), others(4), got, mode
  integer(MPI_OFFSET_KIND) :: bytes, at
  FILE_ :: open_
  DATATYPE :: every_other
  REQUEST :: request_
  STATUS(one)
  call MPI_File_open(MPI_COMM_WORLD, name, &
                     MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                     MPI_INFO_NULL, open_, ierror)
  call check(ierror == MPI_SUCCESS, 'MPI_File_open')
  words = [rank, 2, 3, 4]
  call MPI_File_write_at_all(open_, int(16 * rank, MPI_OFFSET_KIND), words, 4, MPI_INTEGER, one, &
                             ierror)
  call MPI_Get_count(one, MPI_INTEGER, got, ierror)
  call check(got == 4, 'MPI_File_write_at_all')
  call MPI_File_get_amode(open_, mode, ierror)
  call check(iand(mode, MPI_MODE_RDWR) /= 0 .and. iand(mode, MPI_MODE_RDONLY) == 0, &
             'MPI_File_get_amode')
  call MPI_File_sync(open_, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_get_size(open_, bytes, ierror)
  call check(bytes == 16 * ranks, 'MPI_File_get_size')
  call MPI_File_seek(open_, int(16 * right, MPI_OFFSET_KIND), MPI_SEEK_SET, ierror)
  call MPI_File_read(open_, others, 2, MPI_INTEGER, one, ierror)
  call MPI_File_get_position(open_, at, ierror)
  call check(others(1) == right .and. at == 16 * right + 8, 'MPI_File_read')
  call MPI_File_iread_at(open_, int(16 * left, MPI_OFFSET_KIND), others, 4, MPI_INTEGER, &
                         request_, ierror)
  call MPI_Wait(request_, one, ierror)
  call check(others(1) == left .and. others(4) == 4, 'MPI_File_iread_at')
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, every_other, ierror)
  call MPI_Type_commit(every_other, ierror)
  call MPI_File_set_view(open_, int(16 * rank, MPI_OFFSET_KIND), MPI_INTEGER, every_other, &
                         'native', &
                         MPI_INFO_NULL, ierror)
  call MPI_File_read_all(open_, others, 2, MPI_INTEGER, one, ierror)
  call check(others(1) == rank .and. others(2) == 3, 'MPI_File_set_view')
  call MPI_Type_free(every_other, ierror)
  call MPI_File_close(open_, ierror)
  call check(open_ == MPI_FILE_NULL, 'MPI_File_close')
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, open_, mode)
  call MPI_Error_class(mode, got, ierror)
  call check(got == MPI_ERR_NO_SUCH_FILE, 'MPI_ERR_NO_SUCH_FILE')
end subroutine

subroutine window()
  use world
  integer, asynchronous :: words(8), got
  integer(MPI_ADDRESS_KIND) :: value, base
  logical :: flag
  WINDOW :: open_
  GROUP :: of_window
  words = rank
  call MPI_Win_create(words, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, open_, ierror)
  call MPI_Win_get_attr(open_, MPI_WIN_BASE, value, flag, ierror)
  call MPI_Get_address(words, base, ierror)
  call check(flag .and. value == base, 'MPI_WIN_BASE')
  call MPI_Win_get_attr(open_, MPI_WIN_SIZE, value, flag, ierror)
  call check(flag .and. value == 32, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(open_, MPI_WIN_DISP_UNIT, value, flag, ierror)
  call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(open_, MPI_WIN_CREATE_FLAVOR, value, flag, ierror)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
  call MPI_Win_get_attr(open_, MPI_WIN_MODEL, value, flag, ierror)
  call check(flag .and. (value == MPI_WIN_UNIFIED .or. value == MPI_WIN_SEPARATE), 'MPI_WIN_MODEL')
  call MPI_Win_set_name(open_, 'a window', ierror)
  call MPI_Win_fence(0, open_, ierror)
  call MPI_Put([1000 + rank], 1, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, open_, &
               ierror)
  call MPI_Accumulate([5], 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, &
                      open_, ierror)
  call MPI_Win_fence(0, open_, ierror)
  call check(words(4) == 1000 + left, 'MPI_Put')
  if (rank == 0) call check(words(1) == 5 * ranks, 'MPI_Accumulate')
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, open_, ierror)
  call MPI_Fetch_and_op([1], got, MPI_INTEGER, 0, 7_MPI_ADDRESS_KIND, MPI_SUM, open_, ierror)
  call MPI_Win_unlock(0, open_, ierror)
  call check(got >= 0 .and. got < ranks, 'MPI_Fetch_and_op')
  call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, open_, ierror)
  call MPI_Get(got, 1, MPI_INTEGER, right, 4_MPI_ADDRESS_KIND, 1, MPI_INTEGER, open_, ierror)
  call MPI_Win_unlock(right, open_, ierror)
  call check(got == right, 'MPI_Get')
  call MPI_Win_get_group(open_, of_window, ierror)
  call MPI_Group_free(of_window, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Win_free(open_, ierror)
  call check(open_ == MPI_WIN_NULL, 'MPI_Win_free')
end subroutine
