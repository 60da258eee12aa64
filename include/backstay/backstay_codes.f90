! The lowest of Backstay's Fortran modules: codes, the C functions, text between both languages.
! Programs use `backstay` (backstay.f90), which passes the codes on.
module backstay_codes
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  public

  integer, parameter, public :: &
    BACKSTAY_OK = 0, BACKSTAY_ENONE = 1, BACKSTAY_EAGAIN = 2, BACKSTAY_ETIMEOUT = 3, &
    BACKSTAY_EINVALID = 4, BACKSTAY_ESTATE = 5, BACKSTAY_ECONFIG = 6, BACKSTAY_EBUSY = 7, &
    BACKSTAY_EUNSUPPORTED = 8, BACKSTAY_EDUPLICATE = 9, BACKSTAY_ETOOLARGE = 10, BACKSTAY_EPROTOCOL = 11, &
    BACKSTAY_EPORT = 12, BACKSTAY_EUNREACHABLE = 13, BACKSTAY_EFEWNODES = 14, BACKSTAY_ENULL = 15, BACKSTAY_ELONGPATH = 16, &
    BACKSTAY_EMISMATCH = 20, BACKSTAY_ERANKS = 21, BACKSTAY_ENOTFOUND = 22, BACKSTAY_EIO = 30, &
    BACKSTAY_ENOSPACE = 31, BACKSTAY_EPERMISSION = 32, BACKSTAY_EAGENT = 40, BACKSTAY_ERANKLOST = 41, &
    BACKSTAY_ECORRUPT = 50, BACKSTAY_EFORMAT = 51, BACKSTAY_ELOST = 52, BACKSTAY_EINTERNAL = 90
  integer, parameter, public :: &
    BACKSTAY_CAPTURED = 1, BACKSTAY_LOCAL = 2, BACKSTAY_PROTECTED = 3, BACKSTAY_DURABLE = 4
  integer(c_int), parameter :: &
    BACKSTAY_INT8 = 2, BACKSTAY_INT32 = 4, BACKSTAY_INT64 = 5, BACKSTAY_FLOAT = 10, &
    BACKSTAY_DOUBLE = 11, BACKSTAY_COMPLEX64 = 12, BACKSTAY_COMPLEX128 = 13
  integer, parameter :: dims_max = 8

  type, bind(C) :: array_c
    integer(c_int) :: dims
    integer(c_int64_t) :: shape(dims_max), global_shape(dims_max), global_offset(dims_max)
  end type

  interface
    function init_c(config) bind(C, name="backstay_init") result(code)
      import
      type(c_ptr), value :: config
      integer(c_int) :: code
    end function
    function protect_array_c(name, data, array, type) bind(C, name="backstay_protect_array") result(code)
      import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      type(array_c), intent(in) :: array
      integer(c_int), value :: type
      integer(c_int) :: code
    end function
    function unprotect_c(name) bind(C, name="backstay_unprotect") result(code)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: code
    end function
    function due_c() bind(C, name="backstay_due") result(code)
      import
      integer(c_int) :: code
    end function
    function stop_requested_c() bind(C, name="backstay_stop_requested") result(code)
      import
      integer(c_int) :: code
    end function
    function checkpoint_c() bind(C, name="backstay_checkpoint") result(code)
      import
      integer(c_int) :: code
    end function
    function version_c() bind(C, name="backstay_version") result(code)
      import
      integer(c_int64_t) :: code
    end function
    function test_c(version, level) bind(C, name="backstay_test") result(code)
      import
      integer(c_int64_t), value :: version
      integer(c_int), intent(out) :: level
      integer(c_int) :: code
    end function
    function wait_c(version, level, timeout_s) bind(C, name="backstay_wait") result(code)
      import
      integer(c_int64_t), value :: version
      integer(c_int), value :: level
      real(c_double), value :: timeout_s
      integer(c_int) :: code
    end function
    function restart_c(version) bind(C, name="backstay_restart") result(code)
      import
      integer(c_int64_t), intent(inout) :: version
      integer(c_int) :: code
    end function
    function read_region_c(version, name, data, bytes) bind(C, name="backstay_read_region") result(code)
      import
      integer(c_int64_t), value :: version
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function
    function route_file_c(name, path, path_bytes) bind(C, name="backstay_route_file") result(code)
      import
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: path(*)
      integer(c_size_t), value :: path_bytes
      integer(c_int) :: code
    end function
    function finalize_c() bind(C, name="backstay_finalize") result(code)
      import
      integer(c_int) :: code
    end function
    function error_message_c() bind(C, name="backstay_error_message") result(code)
      import
      type(c_ptr) :: code
    end function
    function release_c() bind(C, name="backstay_release") result(code)
      import
      type(c_ptr) :: code
    end function
    function strlen_c(text) bind(C, name="strlen") result(length)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! Codes and text -----------------------------------------------------------------------------

  ! Hands a code to the caller, or ends the program where the caller did not ask for it.
  subroutine backstay_report(code, stat, message)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    if (code /= BACKSTAY_OK .and. present(message)) message = error_text()
    if (present(stat)) then
      stat = code
    else if (code /= BACKSTAY_OK) then
      write (error_unit, '(2a)') 'backstay: ', error_text()
      error stop 1
    end if
  end subroutine

  ! Without trailing blanks, with the final zero that C wants.
  pure function backstay_c_text(text) result(out)
    character(*), intent(in) :: text
    character(kind=c_char) :: out(len_trim(text) + 1)
    integer :: i
    do i = 1, len_trim(text)
      out(i) = text(i:i)
    end do
    out(size(out)) = c_null_char
  end function

  function error_text() result(text)
    character(:), allocatable :: text
    text = from_c(error_message_c())
  end function

  function from_c(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i, length
    length = int(strlen_c(pointer))
    call c_f_pointer(pointer, bytes, [length])
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = bytes(i)
    end do
  end function

end module backstay_codes
