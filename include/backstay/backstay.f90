! Backstay for Fortran 2008: a module over backstay.h; link libbackstay (backstay_mpi.f90 adds MPI).
!
!   call backstay_init()                               ! or backstay_init_mpi(comm) of backstay_mpi
!   call backstay_protect('u', u, stat)                ! any rank 0 to 4
!   call backstay_restart(version)                     ! version 0: nothing saved yet
!   ... if (backstay_due()) call backstay_checkpoint()
!   call backstay_finalize()
!
! Errors. `stat` is BACKSTAY_OK or one of the codes of backstay.h, `message` says what to do. If
! stat is left out, an error ends the program with its message, as for allocate(). Two calls are
! milder, because the job must not die of them: backstay_restart() then reports "nothing saved yet"
! by version 0 alone, and backstay_checkpoint() writes its message and the program goes on.
!
! Data. Declare what you protect with the TARGET (or POINTER) attribute: Backstay keeps its address
! until backstay_unprotect() or backstay_finalize(). It must be contiguous; a section that is not is
! refused with BACKSTAY_EINVALID. Dimensions are written reversed, so that a file reads the same in
! C and Python: u(columns, rows) is u[rows][columns]. Names lose trailing blanks.
! LOGICAL data: protect an integer copy.
!
! Threads and collective calls: as in backstay.h.
module backstay
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64, error_unit
  use backstay_codes
  use backstay_regions, only: backstay_protect
  implicit none
  private

  public :: backstay_init, backstay_finalize, backstay_protect, backstay_unprotect
  public :: backstay_due, backstay_stop_requested, backstay_checkpoint, backstay_version
  public :: backstay_test, backstay_wait, backstay_restart, backstay_read_region
  public :: backstay_route_file, backstay_release

  public :: &
    BACKSTAY_OK, BACKSTAY_ENONE, BACKSTAY_EAGAIN, BACKSTAY_ETIMEOUT, &
    BACKSTAY_EINVALID, BACKSTAY_ESTATE, BACKSTAY_ECONFIG, BACKSTAY_EBUSY, &
    BACKSTAY_EUNSUPPORTED, BACKSTAY_EDUPLICATE, BACKSTAY_ETOOLARGE, BACKSTAY_EPROTOCOL, &
    BACKSTAY_EPORT, BACKSTAY_EUNREACHABLE, BACKSTAY_EFEWNODES, BACKSTAY_ENULL, BACKSTAY_ELONGPATH, &
    BACKSTAY_EMISMATCH, BACKSTAY_ERANKS, BACKSTAY_ENOTFOUND, BACKSTAY_EIO, &
    BACKSTAY_ENOSPACE, BACKSTAY_EPERMISSION, BACKSTAY_EAGENT, BACKSTAY_ERANKLOST, &
    BACKSTAY_ECORRUPT, BACKSTAY_EFORMAT, BACKSTAY_ELOST, BACKSTAY_EINTERNAL, BACKSTAY_CAPTURED, &
    BACKSTAY_LOCAL, BACKSTAY_PROTECTED, BACKSTAY_DURABLE

  ! call backstay_read_region(version, name, data [, stat] [, message]): rank-1 data or a scalar.
  interface backstay_read_region
    module procedure read_i1_0, read_i4_0, read_i8_0, read_r4_0, read_r8_0, read_c4_0, read_c8_0
    module procedure read_i1_1, read_i4_1, read_i8_1, read_r4_1, read_r8_1, read_c4_1, read_c8_1
  end interface

contains

  ! Session ------------------------------------------------------------------------------------

  subroutine backstay_init(config, stat, message)
    character(*), intent(in), optional :: config  ! path of the TOML file
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    character(kind=c_char), allocatable, target :: text(:)
    if (present(config)) then
      allocate (text, source=backstay_c_text(config))
      call backstay_report(init_c(c_loc(text)), stat, message)
    else
      call backstay_report(init_c(c_null_ptr), stat, message)
    end if
  end subroutine

  subroutine backstay_finalize(stat, message)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call backstay_report(finalize_c(), stat, message)
  end subroutine

  subroutine backstay_unprotect(name, stat, message)
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call backstay_report(unprotect_c(backstay_c_text(name)), stat, message)
  end subroutine

  ! Versions -----------------------------------------------------------------------------------

  logical function backstay_due()
    backstay_due = due_c() /= 0
  end function

  logical function backstay_stop_requested()
    backstay_stop_requested = stop_requested_c() /= 0
  end function

  subroutine backstay_checkpoint(stat, message)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer :: code
    code = checkpoint_c()
    if (code /= BACKSTAY_OK .and. .not. present(stat)) then
      write (error_unit, '(2a)') 'backstay: no checkpoint: ', error_text()
    else
      call backstay_report(code, stat, message)
    end if
  end subroutine

  integer(int64) function backstay_version()
    backstay_version = version_c()
  end function

  subroutine backstay_test(version, level, stat, message)
    integer(int64), intent(in) :: version
    integer, intent(out) :: level
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer(c_int) :: found, code
    found = 0
    code = test_c(version, found)
    level = found
    call backstay_report(code, stat, message)
  end subroutine

  subroutine backstay_wait(version, level, timeout_s, stat, message)
    integer(int64), intent(in) :: version
    integer, intent(in) :: level
    real(real64), intent(in), optional :: timeout_s  ! left out: without limit
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    real(c_double) :: limit
    limit = -1
    if (present(timeout_s)) limit = timeout_s
    call backstay_report(wait_c(version, int(level, c_int), limit), stat, message)
  end subroutine

  subroutine backstay_restart(version, stat, message)
    integer(int64), intent(out) :: version  ! 0 if nothing was brought back
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer(c_int) :: code
    version = 0
    code = restart_c(version)
    if (code /= BACKSTAY_OK) version = 0
    if (code == BACKSTAY_ENONE .and. .not. present(stat)) return
    call backstay_report(code, stat, message)
  end subroutine

  ! The path at which the program shall write its file `name`; trailing blanks fill `path`.
  subroutine backstay_route_file(name, path, stat, message)
    character(*), intent(in) :: name
    character(*), intent(inout) :: path
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    character(kind=c_char) :: text(len(path) + 1)
    integer(c_int) :: code
    integer :: i
    code = route_file_c(backstay_c_text(name), text, int(size(text), c_size_t))
    if (code == BACKSTAY_OK) then
      path = ''
      do i = 1, len(path)
        if (text(i) == c_null_char) exit
        path(i:i) = text(i)
      end do
    end if
    call backstay_report(code, stat, message)
  end subroutine

  function backstay_release() result(text)
    character(:), allocatable :: text
    text = from_c(release_c())
  end function

  ! Read a region -------------------------------------------------------------------------------

  subroutine read_i1_0(version, name, data, stat, message)
    integer(int8), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_i1_1(version, name, data, stat, message)
    integer(int8), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_i4_0(version, name, data, stat, message)
    integer(int32), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_i4_1(version, name, data, stat, message)
    integer(int32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_i8_0(version, name, data, stat, message)
    integer(int64), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_i8_1(version, name, data, stat, message)
    integer(int64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_r4_0(version, name, data, stat, message)
    real(real32), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_r4_1(version, name, data, stat, message)
    real(real32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_r8_0(version, name, data, stat, message)
    real(real64), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_r8_1(version, name, data, stat, message)
    real(real64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_c4_0(version, name, data, stat, message)
    complex(real32), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_c4_1(version, name, data, stat, message)
    complex(real32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_c8_0(version, name, data, stat, message)
    complex(real64), target, intent(inout) :: data
    include 'backstay_read_part.f90'
  end subroutine

  subroutine read_c8_1(version, name, data, stat, message)
    complex(real64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_read_part.f90'
  end subroutine

end module backstay
