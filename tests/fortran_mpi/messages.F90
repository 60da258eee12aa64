! Messages and collective calls.
#include "kinds.inc"

! The second one of two: it does not commute.
#if defined(WITH_F08)
subroutine last_of_two(in, inout, count, kind_)
  use, intrinsic :: iso_c_binding
  use world
  type(c_ptr), value :: in, inout
  integer :: count
  type(MPI_Datatype) :: kind_
  call check(kind_ == MPI_INTEGER .and. count == 1, 'arguments of an operation')
end subroutine
#else
subroutine last_of_two(from, to, count, kind_)
  use world
  integer :: count, kind_
  integer :: from(count), to(count)
  call check(kind_ == MPI_INTEGER .and. count == 1, 'arguments of an operation')
end subroutine
#endif

subroutine messages(round)
  use, intrinsic :: iso_c_binding
  use world
  integer :: round, word(4), other(4), got, bytes, i
  integer(MPI_ADDRESS_KIND) :: first, second
#if defined(WITH_MPIFH) && defined(WITH_MPICH) /* MPICH 4.0's mpif.h does not declare them */
  integer(MPI_ADDRESS_KIND), external :: MPI_Aint_diff, MPI_Aint_add
#endif
  character, save :: room(10000)
#if defined(WITH_F08)
  type(c_ptr) :: given
#else
  integer(MPI_ADDRESS_KIND) :: given
#endif
  logical :: flag
  REQUEST :: open_(2), one_more
  MESSAGE :: message_
  STATUS(one)
  STATUSES(all_, 2)
  word = [rank, round, 3, 4]
  call MPI_Recv(other, 4, MPI_INTEGER, MPI_PROC_NULL, 5, MPI_COMM_WORLD, one, ierror)
  call MPI_Get_count(one, MPI_INTEGER, got, ierror)
  call check(SOURCE_OF(one) == MPI_PROC_NULL .and. TAG_OF(one) == MPI_ANY_TAG .and. got == 0, &
             'MPI_PROC_NULL')
  call MPI_Isend(word, 4, MPI_INTEGER, right, 1, MPI_COMM_WORLD, one_more, ierror)
  flag = .false.
  do while (.not. flag)
    call MPI_Iprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, flag, one, ierror)
  end do
  call check(SOURCE_OF(one) == left .and. TAG_OF(one) == 1, 'MPI_Iprobe')
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, flag, message_, one, ierror)
  end do
  call MPI_Imrecv(other, 4, MPI_INTEGER, message_, open_(1), ierror)
  call check(message_ == MPI_MESSAGE_NULL, 'MPI_Imrecv')
  call MPI_Wait(open_(1), one, ierror)
  call check(other(1) == left .and. other(2) == round .and. SOURCE_OF(one) == left, &
             'what MPI_Imrecv received')
  call MPI_Wait(one_more, MPI_STATUS_IGNORE, ierror)
  call MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, flag, message_, one, ierror)
  call check(flag .and. message_ == MPI_MESSAGE_NO_PROC, 'MPI_MESSAGE_NO_PROC')
  call MPI_Mrecv(other, 4, MPI_INTEGER, message_, one, ierror)
  call check(SOURCE_OF(one) == MPI_PROC_NULL .and. message_ == MPI_MESSAGE_NULL, &
             'MPI_Mrecv of no process')
  call MPI_Irecv(other, 4, MPI_INTEGER, left, 2, MPI_COMM_WORLD, open_(1), ierror)
  call MPI_Issend(word, 4, MPI_INTEGER, right, 2, MPI_COMM_WORLD, open_(2), ierror)
  call MPI_Waitall(2, open_, all_, ierror)
  call check(other(2) == round .and. SOURCE_AT(all_, 1) == left, 'MPI_Issend')
  call MPI_Irecv(other, 4, MPI_INTEGER, left, 3, MPI_COMM_WORLD, open_(1), ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Rsend(word, 3, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierror)
  flag = .false.
  do while (.not. flag)
    call MPI_Request_get_status(open_(1), flag, one, ierror)
  end do
  call check(open_(1) /= MPI_REQUEST_NULL, 'MPI_Request_get_status')
  call MPI_Wait(open_(1), one, ierror)
  call MPI_Get_count(one, MPI_INTEGER, got, ierror)
  call check(got == 3, 'MPI_Rsend')
  call MPI_Irecv(other, 4, MPI_INTEGER, left, 4, MPI_COMM_WORLD, open_(1), ierror)
  call MPI_Cancel(open_(1), ierror)
  call MPI_Wait(open_(1), one, ierror)
  call MPI_Test_cancelled(one, flag, ierror)
  call check(flag, 'MPI_Test_cancelled')
  call MPI_Buffer_attach(room, 10000, ierror)
  call MPI_Bsend(word, 4, MPI_INTEGER, right, 6, MPI_COMM_WORLD, ierror)
  call MPI_Recv(other, 4, MPI_INTEGER, left, 6, MPI_COMM_WORLD, one, ierror)
  call check(other(1) == left, 'MPI_Bsend')
  call MPI_Buffer_detach(given, bytes, ierror)
  call check(bytes == 10000, 'MPI_Buffer_detach')
  call MPI_Ssend_init(word, 4, MPI_INTEGER, right, 7, MPI_COMM_WORLD, open_(1), ierror)
  call MPI_Recv_init(other, 4, MPI_INTEGER, left, 7, MPI_COMM_WORLD, open_(2), ierror)
  do i = 1, 2
    word(3) = i
    call MPI_Start(open_(2), ierror)
    call MPI_Start(open_(1), ierror)
    call MPI_Waitall(2, open_, MPI_STATUSES_IGNORE, ierror)
    call check(other(3) == i, 'MPI_Ssend_init')
  end do
  call MPI_Request_free(open_(1), ierror)
  call MPI_Request_free(open_(2), ierror)
  call check(open_(1) == MPI_REQUEST_NULL, 'MPI_Request_free')
  call MPI_Get_address(word(1), first, ierror)
  call MPI_Get_address(word(2), second, ierror)
  call check(MPI_Aint_diff(second, first) == 4, 'MPI_Aint_diff')
  call check(MPI_Aint_add(first, 4_MPI_ADDRESS_KIND) == second, 'MPI_Aint_add')
end subroutine

subroutine collective_calls()
  use world
  integer :: all_(64), some(64), one(2), i, counts(0:63), places(0:63)
  REQUEST :: open_
  OPERATION :: own
  logical :: commutes
  external :: last_of_two
  counts = 2
  places = [(2 * (63 - i), i = 0, 63)]
  places(0:ranks - 1) = [(2 * (ranks - 1 - i), i = 0, ranks - 1)]
  one = [rank, 50 + rank]
  call MPI_Gather(one, 2, MPI_INTEGER, all_, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) call check(all_(2 * ranks) == 49 + ranks, 'MPI_Gather')
  call MPI_Gatherv(one, 2, MPI_INTEGER, all_, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                   ierror)
  if (rank == 0) call check(all_(1) == ranks - 1, 'MPI_Gatherv')
  all_ = [(i, i = 1, 64)]
  if (rank == 0) then
    call MPI_Scatter(all_, 2, MPI_INTEGER, MPI_IN_PLACE, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    one = all_(1:2)
  else
    call MPI_Scatter(all_, 2, MPI_INTEGER, one, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  end if
  call check(one(2) == 2 * rank + 2, 'MPI_Scatter in place')
  call MPI_Scatterv(all_, counts, places, MPI_INTEGER, one, 2, MPI_INTEGER, ranks - 1, &
                    MPI_COMM_WORLD, ierror)
  call check(one(1) == 2 * (ranks - 1 - rank) + 1, 'MPI_Scatterv')
  call MPI_Allgatherv(one, 2, MPI_INTEGER, some, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                      ierror)
  call check(all(some(1:2 * ranks) == all_(1:2 * ranks)), 'MPI_Allgatherv')
  all_ = rank
  call MPI_Alltoall(all_, 1, MPI_INTEGER, some, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(some(ranks) == ranks - 1, 'MPI_Alltoall')
  call MPI_Alltoallv(all_, counts, places, MPI_INTEGER, some, counts, places, MPI_INTEGER, &
                     MPI_COMM_WORLD, ierror)
  call check(some(1) == ranks - 1, 'MPI_Alltoallv')
  call MPI_Reduce_scatter_block(all_, one, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
  call check(one(1) == ranks - 1, 'MPI_Reduce_scatter_block')
  call MPI_Reduce_scatter(all_, one, counts, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, ierror)
  call check(one(2) == 0, 'MPI_Reduce_scatter')
  call MPI_Scan([rank], one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(one(1) == rank * (rank + 1) / 2, 'MPI_Scan')
  one(1) = 0
  call MPI_Exscan([rank], one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(one(1) == rank * (rank - 1) / 2, 'MPI_Exscan')
  call MPI_Op_create(last_of_two, .false., own, ierror)
  call MPI_Op_commutative(own, commutes, ierror)
  call check(.not. commutes, 'MPI_Op_commutative')
  call MPI_Allreduce([rank + 3], one, 1, MPI_INTEGER, own, MPI_COMM_WORLD, ierror)
  call check(one(1) == ranks + 2, 'an operation that does not commute')
  call MPI_Op_free(own, ierror)
  call check(own == MPI_OP_NULL, 'MPI_Op_free')
  one = rank
  call MPI_Ibcast(one, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, open_, ierror)
  call MPI_Wait(open_, MPI_STATUS_IGNORE, ierror)
  call check(one(2) == ranks - 1, 'MPI_Ibcast')
  call MPI_Igather([rank], 1, MPI_INTEGER, all_, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, open_, ierror)
  call MPI_Wait(open_, MPI_STATUS_IGNORE, ierror)
  if (rank == 0) call check(all_(ranks) == ranks - 1, 'MPI_Igather')
  call MPI_Ibarrier(MPI_COMM_WORLD, open_, ierror)
  call MPI_Wait(open_, MPI_STATUS_IGNORE, ierror)
  call check(open_ == MPI_REQUEST_NULL, 'MPI_Ibarrier')
end subroutine
