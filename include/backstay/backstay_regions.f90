! backstay_protect for every type and rank. Programs use `backstay` (backstay.f90).
module backstay_regions
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64, error_unit
  use backstay_codes
  implicit none
  private
  public :: backstay_protect

  ! call backstay_protect(name, data [, stat] [, message] [, global_shape, global_offset])
  ! For arrays, global_shape and global_offset give the place in a global array, in the order of
  ! the Fortran dimensions; offsets count from 0.
  interface backstay_protect
    module procedure protect_i1_0, protect_i4_0, protect_i8_0, protect_r4_0, protect_r8_0, protect_c4_0, protect_c8_0
    module procedure protect_i1_1, protect_i4_1, protect_i8_1, protect_r4_1, protect_r8_1, protect_c4_1, protect_c8_1
    module procedure protect_i1_2, protect_i4_2, protect_i8_2, protect_r4_2, protect_r8_2, protect_c4_2, protect_c8_2
    module procedure protect_i1_3, protect_i4_3, protect_i8_3, protect_r4_3, protect_r8_3, protect_c4_3, protect_c8_3
    module procedure protect_i1_4, protect_i4_4, protect_i8_4, protect_r4_4, protect_r8_4, protect_c4_4, protect_c8_4
  end interface

contains

  ! The one way to C: everything below only finds address, shape and type.
  subroutine protect_any(name, address, contiguous_, extents, type, stat, message, global_shape, &
                         global_offset)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    logical, intent(in) :: contiguous_
    integer(int64), intent(in) :: extents(:)
    integer(c_int), intent(in) :: type
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer(int64), intent(in), optional :: global_shape(:), global_offset(:)
    type(array_c) :: array
    if (.not. contiguous_) then
      call refuse('the data of "' // trim(name) // '" is not contiguous', stat, message)
      return
    end if
    array%dims = size(extents)
    array%shape = reversed(extents)
    array%global_shape = 0
    array%global_offset = 0
    if (present(global_shape) .neqv. present(global_offset)) then
      call refuse('"' // trim(name) // '" has one of global_shape and global_offset: give both, or none', &
                  stat, message)
      return
    end if
    if (present(global_shape)) then
      if (size(global_shape) /= size(extents) .or. size(global_offset) /= size(extents)) then
        call refuse('the place of "' // trim(name) // '" has another rank than it', stat, message)
        return
      end if
      array%global_shape = reversed(global_shape)
      array%global_offset = reversed(global_offset)
    end if
    call backstay_report(protect_array_c(backstay_c_text(name), address, array, type), stat, message)
  end subroutine

  pure function reversed(extents) result(out)
    integer(int64), intent(in) :: extents(:)
    integer(c_int64_t) :: out(dims_max)
    out = 0
    out(1:size(extents)) = extents(size(extents):1:-1)
  end function

  subroutine refuse(text, stat, message)
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    if (present(message)) message = text
    if (present(stat)) then
      stat = BACKSTAY_EINVALID
    else
      write (error_unit, '(2a)') 'backstay: ', text
      error stop 1
    end if
  end subroutine

  ! One procedure for each type and rank, all alike: Fortran 2008 has no other way to take arrays of
  ! any rank, and a wrong type is a mistake at compile time.

  subroutine protect_i1_0(name, data, stat, message)
    integer(int8), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_INT8, stat, message)
  end subroutine

  subroutine protect_i1_1(name, data, stat, message, global_shape, global_offset)
    integer(int8), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT8, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i1_2(name, data, stat, message, global_shape, global_offset)
    integer(int8), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT8, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i1_3(name, data, stat, message, global_shape, global_offset)
    integer(int8), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT8, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i1_4(name, data, stat, message, global_shape, global_offset)
    integer(int8), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT8, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i4_0(name, data, stat, message)
    integer(int32), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_INT32, stat, message)
  end subroutine

  subroutine protect_i4_1(name, data, stat, message, global_shape, global_offset)
    integer(int32), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT32, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i4_2(name, data, stat, message, global_shape, global_offset)
    integer(int32), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT32, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i4_3(name, data, stat, message, global_shape, global_offset)
    integer(int32), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT32, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i4_4(name, data, stat, message, global_shape, global_offset)
    integer(int32), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT32, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i8_0(name, data, stat, message)
    integer(int64), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_INT64, stat, message)
  end subroutine

  subroutine protect_i8_1(name, data, stat, message, global_shape, global_offset)
    integer(int64), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i8_2(name, data, stat, message, global_shape, global_offset)
    integer(int64), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i8_3(name, data, stat, message, global_shape, global_offset)
    integer(int64), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_i8_4(name, data, stat, message, global_shape, global_offset)
    integer(int64), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_INT64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r4_0(name, data, stat, message)
    real(real32), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_FLOAT, stat, message)
  end subroutine

  subroutine protect_r4_1(name, data, stat, message, global_shape, global_offset)
    real(real32), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_FLOAT, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r4_2(name, data, stat, message, global_shape, global_offset)
    real(real32), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_FLOAT, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r4_3(name, data, stat, message, global_shape, global_offset)
    real(real32), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_FLOAT, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r4_4(name, data, stat, message, global_shape, global_offset)
    real(real32), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_FLOAT, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r8_0(name, data, stat, message)
    real(real64), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_DOUBLE, stat, message)
  end subroutine

  subroutine protect_r8_1(name, data, stat, message, global_shape, global_offset)
    real(real64), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_DOUBLE, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r8_2(name, data, stat, message, global_shape, global_offset)
    real(real64), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_DOUBLE, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r8_3(name, data, stat, message, global_shape, global_offset)
    real(real64), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_DOUBLE, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_r8_4(name, data, stat, message, global_shape, global_offset)
    real(real64), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_DOUBLE, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c4_0(name, data, stat, message)
    complex(real32), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_COMPLEX64, stat, message)
  end subroutine

  subroutine protect_c4_1(name, data, stat, message, global_shape, global_offset)
    complex(real32), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c4_2(name, data, stat, message, global_shape, global_offset)
    complex(real32), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c4_3(name, data, stat, message, global_shape, global_offset)
    complex(real32), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c4_4(name, data, stat, message, global_shape, global_offset)
    complex(real32), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX64, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c8_0(name, data, stat, message)
    complex(real64), target, intent(inout) :: data
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call protect_any(name, c_loc(data), .true., [1_int64], BACKSTAY_COMPLEX128, stat, message)
  end subroutine

  subroutine protect_c8_1(name, data, stat, message, global_shape, global_offset)
    complex(real64), target, intent(inout) :: data(:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX128, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c8_2(name, data, stat, message, global_shape, global_offset)
    complex(real64), target, intent(inout) :: data(:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX128, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c8_3(name, data, stat, message, global_shape, global_offset)
    complex(real64), target, intent(inout) :: data(:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX128, stat, message, &
                     global_shape, global_offset)
  end subroutine

  subroutine protect_c8_4(name, data, stat, message, global_shape, global_offset)
    complex(real64), target, intent(inout) :: data(:,:,:,:)
    include 'backstay_protect_part.f90'
    if (size(data) > 0) address = c_loc(data(1, 1, 1, 1))
    call protect_any(name, address, is_contiguous(data), shape(data, int64), BACKSTAY_COMPLEX128, stat, message, &
                     global_shape, global_offset)
  end subroutine

end module backstay_regions
