! What the programs of this folder share: one of MPI's three interfaces, who we are, and checks.
#include "kinds.inc"

module world
#if defined(WITH_F08)
  use mpi_f08
#elif defined(WITH_MODULE)
  use mpi
#endif
  implicit none
#if !defined(WITH_F08) && !defined(WITH_MODULE)
  include 'mpif.h'
#endif
  integer :: rank, ranks, left, right, ierror
  integer :: checked = 0
  interface
    subroutine sleep_us(microseconds) bind(c, name='usleep')
      integer, value :: microseconds
    end subroutine
  end interface
contains
  subroutine check(right_, what)
    logical, intent(in) :: right_
    character(*), intent(in) :: what
    checked = checked + 1
    if (right_) return
    print '(a, i0, 2a)', 'rank ', rank, ': wrong: ', what
    flush (6)
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine

  ! Outside of MPI, until there is a file $STOPS/go.STOP.
  subroutine stop_here(stop_)
    integer, intent(in) :: stop_
    character(1000) :: folder, name
    integer :: unit
    logical :: goes_on
    call get_environment_variable('STOPS', folder)
    write (name, '(2a, i0, a, i0)') trim(folder), '/at.', rank, '.', stop_
    open (newunit=unit, file=trim(name))
    close (unit)
    write (name, '(2a, i0)') trim(folder), '/go.', stop_
    goes_on = .false.
    do while (.not. goes_on)
      call sleep_us(1000)
      inquire (file=trim(name), exist=goes_on)
    end do
  end subroutine
end module
