! Streams for Fortran 2008: a module over backstay_streams.h, beside the module `backstay`.
!
!   use backstay; use backstay_streams
!   call backstay_stream_open('cell 17', stream)
!   call backstay_stream_write(stream, x)               ! rank 1 of any kind; as often as you like
!   call backstay_stream_close(stream)
!   call backstay_checkpoint()                          ! takes them
!   ...
!   call backstay_stream_count(version, count)
!   do i = 1, count                                     ! streams are counted from 1 here
!     call backstay_stream_at(version, i, name, bytes)
!     call backstay_stream_read(version, name, x, offset=0_int64)
!
! A stream is bytes: lengths and offsets are in bytes, and types are the program's business. What is
! no array of rank 1 goes with its address and length:
!   call backstay_stream_write(stream, c_loc(record), storage_size(record, int64) / 8)
! Errors (stat, message), blanks in names and threads: as in backstay.f90. What the calls promise:
! backstay_streams.h.
module backstay_streams
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
  use backstay_codes, only: backstay_report, backstay_c_text
  implicit none
  private

  public :: backstay_stream_open, backstay_stream_write, backstay_stream_close
  public :: backstay_stream_count, backstay_stream_at, backstay_stream_bytes, backstay_stream_read

  ! call backstay_stream_write(stream, data [, stat] [, message]), or with address and bytes.
  interface backstay_stream_write
    module procedure write_any, write_i1, write_i4, write_i8, write_r4, write_r8, write_c4, write_c8
  end interface

  ! call backstay_stream_read(version, name, data [, offset] [, stat] [, message]), or with address
  ! and bytes. All of `data` is read.
  interface backstay_stream_read
    module procedure read_any, read_i1, read_i4, read_i8, read_r4, read_r8, read_c4, read_c8
  end interface

  interface
    function open_c(name, stream) bind(C, name="backstay_stream_open") result(code)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(inout) :: stream
      integer(c_int) :: code
    end function
    function write_c(stream, data, bytes) bind(C, name="backstay_stream_write") result(code)
      import
      integer(c_int64_t), value :: stream
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function
    function close_c(stream) bind(C, name="backstay_stream_close") result(code)
      import
      integer(c_int64_t), value :: stream
      integer(c_int) :: code
    end function
    function count_c(version, count) bind(C, name="backstay_stream_count") result(code)
      import
      integer(c_int64_t), value :: version
      integer(c_int64_t), intent(inout) :: count
      integer(c_int) :: code
    end function
    function at_c(version, index, name, name_bytes, bytes) bind(C, name="backstay_stream_at") &
        result(code)
      import
      integer(c_int64_t), value :: version, index
      character(kind=c_char), intent(inout) :: name(*)
      integer(c_size_t), value :: name_bytes
      integer(c_int64_t), intent(inout) :: bytes
      integer(c_int) :: code
    end function
    function bytes_c(version, name, bytes) bind(C, name="backstay_stream_bytes") result(code)
      import
      integer(c_int64_t), value :: version
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(inout) :: bytes
      integer(c_int) :: code
    end function
    function read_c(version, name, offset, data, bytes) bind(C, name="backstay_stream_read") &
        result(code)
      import
      integer(c_int64_t), value :: version
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function
  end interface

contains

  subroutine backstay_stream_open(name, stream, stat, message)
    character(*), intent(in) :: name
    integer(int64), intent(out) :: stream  ! 0 after an error
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    stream = 0
    call backstay_report(open_c(backstay_c_text(name), stream), stat, message)
  end subroutine

  subroutine backstay_stream_close(stream, stat, message)
    integer(int64), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call backstay_report(close_c(stream), stat, message)
  end subroutine

  subroutine backstay_stream_count(version, count, stat, message)
    integer(int64), intent(in) :: version
    integer(int64), intent(out) :: count
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    count = 0
    call backstay_report(count_c(version, count), stat, message)
  end subroutine

  ! `index`: 1 to the count. Blanks fill `name`, which needs 200 characters for the longest.
  subroutine backstay_stream_at(version, index, name, bytes, stat, message)
    integer(int64), intent(in) :: version, index
    character(*), intent(inout) :: name
    integer(int64), intent(out) :: bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    character(kind=c_char) :: text(len(name) + 1)
    integer(c_int) :: code
    integer :: i
    bytes = 0
    code = at_c(version, index - 1, text, int(size(text), c_size_t), bytes)
    if (code == 0) then
      name = ''
      do i = 1, len(name)
        if (text(i) == c_null_char) exit
        name(i:i) = text(i)
      end do
    end if
    call backstay_report(code, stat, message)
  end subroutine

  subroutine backstay_stream_bytes(version, name, bytes, stat, message)
    integer(int64), intent(in) :: version
    character(*), intent(in) :: name
    integer(int64), intent(out) :: bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    bytes = 0
    call backstay_report(bytes_c(version, backstay_c_text(name), bytes), stat, message)
  end subroutine

  ! Write --------------------------------------------------------------------------------------

  subroutine write_any(stream, address, bytes, stat, message)
    integer(int64), intent(in) :: stream
    type(c_ptr), intent(in) :: address
    integer(int64), intent(in) :: bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call backstay_report(write_c(stream, address, int(bytes, c_size_t)), stat, message)
  end subroutine

  subroutine write_i1(stream, data, stat, message)
    integer(int8), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_i4(stream, data, stat, message)
    integer(int32), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_i8(stream, data, stat, message)
    integer(int64), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_r4(stream, data, stat, message)
    real(real32), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_r8(stream, data, stat, message)
    real(real64), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_c4(stream, data, stat, message)
    complex(real32), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  subroutine write_c8(stream, data, stat, message)
    complex(real64), target, contiguous, intent(in) :: data(:)
    include 'backstay_stream_write_part.f90'
  end subroutine

  ! Read ---------------------------------------------------------------------------------------

  subroutine read_any(version, name, address, bytes, offset, stat, message)
    integer(int64), intent(in) :: version
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    integer(int64), intent(in) :: bytes
    integer(int64), intent(in), optional :: offset  ! left out: from the begin
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer(int64) :: first
    first = 0
    if (present(offset)) first = offset
    call backstay_report(read_c(version, backstay_c_text(name), first, address, &
                                int(bytes, c_size_t)), stat, message)
  end subroutine

  subroutine read_i1(version, name, data, offset, stat, message)
    integer(int8), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_i4(version, name, data, offset, stat, message)
    integer(int32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_i8(version, name, data, offset, stat, message)
    integer(int64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_r4(version, name, data, offset, stat, message)
    real(real32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_r8(version, name, data, offset, stat, message)
    real(real64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_c4(version, name, data, offset, stat, message)
    complex(real32), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

  subroutine read_c8(version, name, data, offset, stat, message)
    complex(real64), target, contiguous, intent(inout) :: data(:)
    include 'backstay_stream_read_part.f90'
  end subroutine

end module backstay_streams
