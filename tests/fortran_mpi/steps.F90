! A program of Fortran as users have it: each step uses many functions of MPI and prints a checksum
! that is the same in each run and over each MPI, bit for bit. Usage: steps STEPS PAUSE_MS [STOP]
! Behind step STOP it waits outside of MPI (stop_here in world.F90).
! Built three times: with mpif.h, `use mpi` and `use mpi_f08`.
#include "kinds.inc"

module kept_over_steps
  use world
  implicit none
  integer :: copied = 0, deleted = 0, raised = 0, operated = 0
  integer(8) :: sum = 17
  COMM :: ring, half
  DATATYPE :: column, pair
  OPERATION :: mix
  ERRHANDLER :: handler
  REQUEST :: kept(4)
  integer :: keyval
  integer(MPI_ADDRESS_KIND) :: extra_state = 5 ! MPICH 4.0 keeps its address
  double precision :: field(40, 0:31)
  ! Two variables by their addresses, for MPI_BOTTOM.
  integer :: apart(3)
  double precision :: value(2)
contains
  subroutine take(number)
    integer(8), intent(in) :: number
    sum = ieor(sum * 1099511_8 + 77_8, number)
  end subroutine
end module

! --- functions that MPI calls
#if defined(WITH_F08)
subroutine mix_words(in, inout, count, kind_)
  use, intrinsic :: iso_c_binding
  use world, only: MPI_Datatype, MPI_Type_size, check
  use kept_over_steps, only: operated
  type(c_ptr), value :: in, inout
  integer :: count, bytes, failed, i
  type(MPI_Datatype) :: kind_
  integer(8), pointer :: from(:), to(:)
  call c_f_pointer(in, from, [count])
  call c_f_pointer(inout, to, [count])
#else
subroutine mix_words(from, to, count, kind_)
  use world, only: check
  use kept_over_steps, only: operated
  integer :: count, bytes, failed, i, kind_
  integer(8) :: from(count), to(count)
#endif
  call MPI_Type_size(kind_, bytes, failed)
  call check(bytes == 8, 'datatype of an operation')
  operated = operated + 1
  do i = 1, count
    to(i) = to(i) + from(i) + to(i) * from(i)
  end do
end subroutine

subroutine copy_value(of, key, extra, from, to, is_copied, failed)
  use kept_over_steps
  COMM :: of
  integer :: key, failed
  integer(MPI_ADDRESS_KIND) :: extra, from, to
  logical :: is_copied
  call check(key == keyval .and. of == ring, 'arguments of a copy function')
  to = from + extra
  is_copied = .true.
  copied = copied + 1
  failed = MPI_SUCCESS
end subroutine

subroutine delete_value(of, key, from, extra, failed)
  use kept_over_steps
  COMM :: of
  integer :: key, failed
  integer(MPI_ADDRESS_KIND) :: from, extra
  call check(key == keyval .and. from >= 1000 .and. extra == 5, 'arguments of a delete function')
  deleted = deleted + 1
  failed = MPI_SUCCESS
end subroutine

subroutine handle_error(of, code)
  use kept_over_steps
  COMM :: of
  integer :: code
  call check(of == ring, 'communicator of an error handler')
  call check(code /= MPI_SUCCESS, 'code of an error handler')
  raised = raised + 1
end subroutine

! --- once: what a restart makes again
subroutine prepare()
  use kept_over_steps
  external :: mix_words, copy_value, delete_value, handle_error
  integer(MPI_ADDRESS_KIND) :: places(2), base
  logical :: periods(1)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], periods, .false., ring, ierror)
  call MPI_Cart_shift(ring, 0, 1, left, right, ierror)
  call MPI_Comm_set_name(ring, 'a ring   ', ierror)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierror)
  call MPI_Type_vector(32, 1, 40, MPI_DOUBLE_PRECISION, column, ierror)
  call MPI_Type_commit(column, ierror)
  call MPI_Get_address(apart, places(1), ierror)
  call MPI_Get_address(value, places(2), ierror)
  call MPI_Get_address(MPI_BOTTOM, base, ierror)
#ifndef WITH_INTEL
  call check(base == 0, 'address of MPI_BOTTOM')
#endif
  call MPI_Type_create_struct(2, [3, 2], places, [MPI_INTEGER, MPI_DOUBLE_PRECISION], pair, ierror)
  call MPI_Type_commit(pair, ierror)
  call MPI_Op_create(mix_words, .true., mix, ierror)
  call MPI_Comm_create_keyval(copy_value, delete_value, keyval, extra_state, ierror)
  call MPI_Comm_set_attr(ring, keyval, int(1000 + rank, MPI_ADDRESS_KIND), ierror)
  call MPI_Comm_create_errhandler(handle_error, handler, ierror)
  call MPI_Comm_set_errhandler(ring, handler, ierror)
  field = rank
  call MPI_Send_init(field(2, 0), 1, column, left, 11, ring, kept(1), ierror)
  call MPI_Send_init(field(39, 0), 1, column, right, 12, ring, kept(2), ierror)
  call MPI_Recv_init(field(40, 0), 1, column, right, 11, ring, kept(3), ierror)
  call MPI_Recv_init(field(1, 0), 1, column, left, 12, ring, kept(4), ierror)
end subroutine

subroutine exchange(step)
  use kept_over_steps
  integer :: step, i, got, done, at, places(4)
  logical :: flag
  REQUEST :: open_(4)
  MESSAGE :: message_
  STATUS(one)
  STATUSES(all, 4)
  integer :: word(5)
  ! Persistent requests, in two ways.
  call MPI_Startall(4, kept, ierror)
  if (mod(step, 2) == 0) then
    do i = 1, 4
      call MPI_Waitany(4, kept, at, MPI_STATUS_IGNORE, ierror)
#if !defined(WITH_F08) /* MPICH 4.0 does not count from 1 there */
      call check(at >= 1 .and. at <= 4, 'place of MPI_Waitany')
#endif
    end do
  else
    i = 0
    do while (i < 4)
      call MPI_Waitsome(4, kept, done, places, MPI_STATUSES_IGNORE, ierror)
      i = i + done
    end do
  end if
  call MPI_Waitany(4, kept, at, MPI_STATUS_IGNORE, ierror)
  call check(at < 1, 'no request is active') ! MPICH 4.0 adds 1 to MPI_UNDEFINED
  ! Not blocking, with statuses.
  word = [step, rank, 3, 4, 5]
  call MPI_Irecv(apart, 3, MPI_INTEGER, MPI_ANY_SOURCE, 21, ring, open_(1), ierror)
  call MPI_Irecv(value, 2, MPI_DOUBLE_PRECISION, right, 22, ring, open_(2), ierror)
  call MPI_Isend(word, 2, MPI_INTEGER, right, 21, ring, open_(3), ierror)
  call MPI_Isend(field(5, 3), 2, MPI_DOUBLE_PRECISION, left, 22, ring, open_(4), ierror)
  if (mod(step, 3) == 0) then
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(4, open_, flag, all, ierror)
    end do
  else
    call MPI_Waitall(4, open_, all, ierror)
  end if
#if defined(WITH_F08)
  call MPI_Get_count(all(1), MPI_INTEGER, got, ierror)
#else
  call MPI_Get_count(all(:, 1), MPI_INTEGER, got, ierror)
#endif
  call check(got == 2 .and. SOURCE_AT(all, 1) == left, 'status of MPI_Waitall')
  do i = 1, 4
    call check(open_(i) == MPI_REQUEST_NULL, 'requests behind MPI_Waitall')
  end do
  call take(int(apart(1) + 64 * apart(2), 8))
  call take(transfer(value(1), 1_8))
  ! Probes.
  call MPI_Isend(word, 5, MPI_INTEGER, right, step, ring, open_(1), ierror)
  if (mod(step, 2) == 0) then
    call MPI_Probe(MPI_ANY_SOURCE, step, ring, one, ierror)
    call MPI_Get_count(one, MPI_INTEGER, got, ierror)
    call check(got == 5 .and. SOURCE_OF(one) == left .and. TAG_OF(one) == step, 'MPI_Probe')
    call MPI_Recv(word, 5, MPI_INTEGER, left, step, ring, MPI_STATUS_IGNORE, ierror)
  else
    call MPI_Mprobe(left, MPI_ANY_TAG, ring, message_, one, ierror)
    call MPI_Mrecv(word, 5, MPI_INTEGER, message_, one, ierror)
    call check(TAG_OF(one) == step, 'MPI_Mrecv')
  end if
  flag = .false.
  do while (.not. flag)
    call MPI_Test(open_(1), flag, MPI_STATUS_IGNORE, ierror)
  end do
  call check(open_(1) == MPI_REQUEST_NULL, 'request behind MPI_Test')
  call check(word(2) == left, 'what was received')
  call MPI_Sendrecv_replace(word, 5, MPI_INTEGER, left, 31, right, 31, ring, one, ierror)
  call check(word(2) == rank .and. SOURCE_OF(one) == right, 'MPI_Sendrecv_replace')
  ! By absolute addresses.
  apart = [step, rank, 7]
  value = field(7, 1) + step
  call MPI_Bcast(MPI_BOTTOM, 1, pair, 0, MPI_COMM_WORLD, ierror)
  call check(apart(1) == step .and. apart(2) == 0, 'MPI_BOTTOM')
  call take(transfer(value(2), 1_8))
end subroutine

subroutine collectives(step)
  use kept_over_steps
  integer :: step, i
  integer(8) :: words(6), all(6, 0:63)
  REQUEST :: open_
  words = [(int(step * i + rank, 8), i = 1, 6)]
  call MPI_Allreduce(MPI_IN_PLACE, words, 6, MPI_INTEGER8, mix, MPI_COMM_WORLD, ierror)
  call take(words(1))
  call MPI_Allreduce(MPI_IN_PLACE, words, 6, MPI_INTEGER8, MPI_MAX, half, ierror)
  all(:, rank) = words + rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 6, MPI_INTEGER8, ring, ierror)
  call take(all(2, ranks - 1))
  call MPI_Iallreduce(MPI_IN_PLACE, words, 6, MPI_INTEGER8, MPI_SUM, ring, open_, ierror)
  call MPI_Wait(open_, MPI_STATUS_IGNORE, ierror)
  call check(open_ == MPI_REQUEST_NULL, 'request behind MPI_Wait')
  call take(words(3))
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, words, 6, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  else
    call MPI_Reduce(words, all, 6, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  end if
  call MPI_Bcast(words, 6, MPI_INTEGER8, 0, MPI_COMM_WORLD, ierror)
  call take(words(6))
  call MPI_Barrier(half, ierror)
end subroutine

subroutine objects(step)
  use kept_over_steps
  integer :: step, length, before, some(1), other(1)
  integer(MPI_ADDRESS_KIND) :: got
  logical :: flag, periods(1)
  integer :: dims(1), coords(1)
  character(20) :: text
  character(MPI_MAX_OBJECT_NAME) :: name
  COMM :: twin
  GROUP :: everyone, first, rest, again
  INFO :: hints
  before = copied
  call MPI_Comm_dup(ring, twin, ierror)
  call MPI_Comm_get_attr(twin, keyval, got, flag, ierror)
  call check(flag .and. got == 1005 + rank .and. copied == before + 1, 'copy of an attribute')
  call MPI_Comm_free(twin, ierror)
  call check(deleted == copied, 'attribute of a freed communicator')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, got, flag, ierror)
  call check(flag .and. got >= 32767, 'MPI_TAG_UB')
  call MPI_Cart_get(ring, 1, dims, periods, coords, ierror)
  call check(dims(1) == ranks .and. periods(1) .and. coords(1) == rank, 'MPI_Cart_get')
  call MPI_Comm_get_name(ring, name, length, ierror)
  call check(length == 6 .and. name == 'a ring', 'name of a communicator')
  before = raised
  call MPI_Send(step, 1, MPI_INTEGER, ranks + 5, 1, ring, ierror)
  call check(ierror /= MPI_SUCCESS .and. raised == before + 1, 'an error handler')
  call MPI_Info_create(hints, ierror)
  call MPI_Info_set(hints, ' key  ', ' of Fortran   ', ierror)
  call MPI_Info_get(hints, 'key', 20, text, flag, ierror)
  call check(flag .and. text == 'of Fortran', 'value in an info object')
  call MPI_Info_free(hints, ierror)
  call MPI_Comm_group(MPI_COMM_WORLD, everyone, ierror)
  call MPI_Group_incl(everyone, 1, [ranks - 1], first, ierror)
  call MPI_Group_difference(everyone, first, rest, ierror)
  call MPI_Group_union(first, rest, again, ierror)
  some = 0
  call MPI_Group_translate_ranks(again, 1, some, everyone, other, ierror)
  call check(other(1) == ranks - 1, 'ranks of a group')
  call MPI_Group_free(everyone, ierror)
  call MPI_Group_free(first, ierror)
  call MPI_Group_free(rest, ierror)
  call MPI_Group_free(again, ierror)
end subroutine

! --- functions of which a program cannot be saved any more, and seldom ones
subroutine query_done(state, status_, failed)
  use kept_over_steps
  integer(MPI_ADDRESS_KIND) :: state
  STATUS(status_)
  integer :: failed
  call check(state == 99, 'state of a request of its own')
  call MPI_Status_set_elements(status_, MPI_INTEGER, 3, failed)
  call MPI_Status_set_cancelled(status_, .false., failed)
end subroutine
subroutine free_done(state, failed)
  use kept_over_steps
  integer(MPI_ADDRESS_KIND) :: state
  integer :: failed
  call check(state == 99, 'state of a request that is freed')
  failed = MPI_SUCCESS
end subroutine
subroutine cancel_done(state, is_complete, failed)
  use kept_over_steps
  integer(MPI_ADDRESS_KIND) :: state
  logical :: is_complete
  integer :: failed
  call check(state == 99 .and. is_complete, 'a request that is cancelled')
  failed = MPI_SUCCESS
end subroutine

#if !defined(WITH_F08)
subroutine copy_old(of, key, extra, from, to, is_copied, failed)
  use kept_over_steps
  integer :: of, key, failed, extra, from, to
  logical :: is_copied
  to = from + extra
  is_copied = .true.
  failed = MPI_SUCCESS
end subroutine
subroutine delete_old(of, key, from, extra, failed)
  use kept_over_steps
  integer :: of, key, failed, extra, from
  deleted = deleted + 100 * from
  failed = MPI_SUCCESS
end subroutine
#endif

subroutine rarely()
  use kept_over_steps
  external :: query_done, free_done, cancel_done
  integer(MPI_ADDRESS_KIND), save :: state = 99, got
  integer :: at, size_, done, places(2)
  integer, asynchronous :: word(4)
  logical :: flag
  REQUEST :: own, open_(2)
  GROUP :: everyone, some, other
  DATATYPE :: real_
  type_key: block
#if !defined(WITH_F08)
    external :: copy_old, delete_old, MPI_NULL_COPY_FN
    integer, save :: key, five = 5, found
    integer :: twin
    call MPI_Keyval_create(copy_old, delete_old, key, five, ierror)
    call MPI_Attr_put(ring, key, 7, ierror)
    call MPI_Comm_dup(ring, twin, ierror)
    call MPI_Attr_get(twin, key, found, flag, ierror)
#if !defined(WITH_MPICH) /* MPICH 4.0 gives functions of MPI 1 words of 8 bytes */
    call check(flag .and. found == 12, 'MPI_Attr_get')
#endif
    call MPI_Comm_free(twin, ierror)
    call MPI_Attr_delete(ring, key, ierror)
    call check(deleted >= 700, 'MPI_Attr_delete')
#endif
  end block type_key
  call MPI_Comm_group(ring, everyone, ierror)
  call MPI_Group_excl(everyone, 1, [0], some, ierror)
  call MPI_Group_intersection(everyone, some, other, ierror)
  call MPI_Group_size(other, size_, ierror)
  call check(size_ == ranks - 1, 'MPI_Group_intersection')
  call MPI_Group_range_incl(everyone, 1, reshape([0, ranks - 1, 1], [3, 1]), some, ierror)
  call MPI_Group_range_excl(some, 1, reshape([0, 0, 1], [3, 1]), other, ierror)
  call MPI_Group_size(other, size_, ierror)
  call check(size_ == ranks - 1, 'MPI_Group_range_excl')
  call MPI_Irecv(word, 2, MPI_INTEGER, left, 51, ring, open_(1), ierror)
  call MPI_Irecv(word(3), 2, MPI_INTEGER, left, 52, ring, open_(2), ierror)
  call MPI_Send([1, 2], 2, MPI_INTEGER, right, 52, ring, ierror)
  at = MPI_UNDEFINED
  flag = .false.
  do while (.not. flag)
    call MPI_Testany(2, open_, at, flag, MPI_STATUS_IGNORE, ierror)
  end do
  call check(open_(2) == MPI_REQUEST_NULL .and. word(4) == 2, 'MPI_Testany')
  call MPI_Barrier(ring, ierror)
  call MPI_Send([3, 4], 2, MPI_INTEGER, right, 51, ring, ierror)
  done = 0
  do while (done == 0)
    call MPI_Testsome(2, open_, done, places, MPI_STATUSES_IGNORE, ierror)
  end do
  call check(done == 1 .and. open_(1) == MPI_REQUEST_NULL .and. word(1) == 3, 'MPI_Testsome')
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, real_, ierror)
  call MPI_Type_size(real_, size_, ierror)
  call check(size_ == 8, 'MPI_Type_match_size')
  call MPI_Grequest_start(query_done, free_done, cancel_done, state, own, ierror)
  call MPI_Grequest_complete(own, ierror)
  call MPI_Wait(own, MPI_STATUS_IGNORE, ierror)
end subroutine

program steps
  use kept_over_steps
  integer :: step, count_, pause_ms, stop_, i
  integer(8) :: all
  double precision :: began
  character(20) :: text
  call get_command_argument(1, text)
  read (text, *) count_
  call get_command_argument(2, text)
  read (text, *) pause_ms
  call get_command_argument(3, text)
  stop_ = 0
  if (text /= '') read (text, *) stop_
  call MPI_Init(ierror)
  call prepare()
  do step = 1, count_
    field = field * 0.75d0 + step + rank
    call exchange(step)
    call collectives(step)
    call objects(step)
    do i = 1, 40
      call take(transfer(field(i, 5), 1_8))
    end do
    call MPI_Reduce(sum, all, 1, MPI_INTEGER8, mix, 0, ring, ierror)
    if (rank == 0) then
      print '(a, i0, a, z16.16)', 'step ', step, ': ', all
      flush (6)
    end if
    if (step == stop_) call stop_here(step)
    began = MPI_Wtime()
    do while ((MPI_Wtime() - began) * 1000 < pause_ms .and. MPI_Wtime() >= began)
    end do
  end do
  do i = 1, 4
    call MPI_Request_free(kept(i), ierror)
  end do
  if (pause_ms == 0) call rarely()
  call MPI_Type_free(column, ierror)
  call MPI_Type_free(pair, ierror)
  call check(operated > 0, 'calls of an operation')
  call MPI_Finalize(ierror)
end program
