! Backstay for Fortran programs with MPI; see backstay.f90 for the rules. Link the library of the MPI
! that the program uses, libbackstay_mpich or libbackstay_openmpi, besides libbackstay.
module backstay_mpi
  use, intrinsic :: iso_c_binding
  use backstay_codes
  implicit none
  private
  public :: backstay_init_mpi

  interface
    function init_mpi_c(comm, config) bind(C, name="backstay_init_mpi_f") result(code)
      import
      integer(c_int), value :: comm
      type(c_ptr), value :: config
      integer(c_int) :: code
    end function
  end interface

contains

  ! Collective over `comm`: MPI_COMM_WORLD of `use mpi`, or comm%MPI_VAL of `use mpi_f08`.
  subroutine backstay_init_mpi(comm, config, stat, message)
    integer, intent(in) :: comm
    character(*), intent(in), optional :: config
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    character(kind=c_char), allocatable, target :: text(:)
    if (present(config)) then
      allocate (text, source=backstay_c_text(config))
      call backstay_report(init_mpi_c(int(comm, c_int), c_loc(text)), stat, message)
    else
      call backstay_report(init_mpi_c(int(comm, c_int), c_null_ptr), stat, message)
    end if
  end subroutine

end module backstay_mpi
