! heat.c in Fortran 2008. mpirun -n 4 ./heat_f [steps] [rows] [columns]
program heat
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  use backstay
  use backstay_mpi
  implicit none
  integer :: rank, ranks, ierr, rows, cols, all_rows, first
  integer(int64), target :: n
  integer(int64) :: steps, version
  integer :: stat
  real(real64), allocatable, target :: u(:,:)  ! (column, row), one row more above and below
  real(real64), allocatable :: next(:,:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  steps = argument(1, 1000)
  all_rows = argument(2, 512)
  cols = argument(3, 512)
  first = int(int(all_rows, int64) * rank / ranks)
  rows = int(int(all_rows, int64) * (rank + 1) / ranks) - first
  allocate (u(cols, 0:rows + 1), next(cols, 0:rows + 1), source=0.0_real64)
  if (rank == 0) u(:, 0) = 100  ! the hot edge above row 1
  n = 0

  call backstay_init_mpi(MPI_COMM_WORLD)
  call backstay_protect('n', n)
  call backstay_protect('u', u(:, 1:rows), global_shape=int([cols, all_rows], int64), &
                        global_offset=int([0, first], int64))
  call backstay_restart(version)
  if (version /= 0) call say('restart version')

  do while (n < steps)
    if (backstay_stop_requested()) exit
    call step()
    n = n + 1
    if (backstay_due()) then
      call backstay_checkpoint(stat)
      if (stat == BACKSTAY_OK) call say('version')
    end if
  end do
  call finish()
  call backstay_finalize()
  call MPI_Finalize(ierr)

contains

  subroutine step()
    integer :: up, down, i, j
    up = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    down = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(u(1, 1), cols, MPI_DOUBLE_PRECISION, up, 0, u(1, rows + 1), cols, &
                      MPI_DOUBLE_PRECISION, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(u(1, rows), cols, MPI_DOUBLE_PRECISION, down, 1, u(1, 0), cols, &
                      MPI_DOUBLE_PRECISION, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do i = 1, rows
      do j = 2, cols - 1
        next(j, i) = u(j, i) + 0.1_real64 * (((u(j, i - 1) + u(j, i + 1)) &
                     + (u(j - 1, i) + u(j + 1, i))) - 4.0_real64 * u(j, i))
      end do
    end do
    u(:, 1:rows) = next(:, 1:rows)
  end subroutine

  ! The bits of all elements added up, modulo 2**64: in halves, because integers must not overflow.
  subroutine finish()
    integer(int64) :: bits, halves(2), low
    integer :: i, j
    halves = 0
    do i = 1, rows
      do j = 1, cols
        bits = transfer(u(j, i), bits)
        halves = halves + [iand(bits, int(z'ffffffff', int64)), ishft(bits, -32)]
      end do
    end do
    call MPI_Allreduce(MPI_IN_PLACE, halves, 2, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
    low = iand(halves(1), int(z'ffffffff', int64))
    halves(2) = iand(halves(2) + ishft(halves(1), -32), int(z'ffffffff', int64))
    if (rank == 0) print '(a,i0,a,z8.8,z8.8)', 'done step ', n, ' checksum ', halves(2), low
  end subroutine

  subroutine say(what)
    character(*), intent(in) :: what
    if (rank == 0) print '(a,1x,i0,a,i0)', what, backstay_version(), ' step ', n
    flush (6)
  end subroutine

  integer function argument(position, otherwise)
    integer, intent(in) :: position, otherwise
    character(32) :: text
    argument = otherwise
    if (command_argument_count() < position) return
    call get_command_argument(position, text)
    read (text, *) argument
  end function

end program heat
