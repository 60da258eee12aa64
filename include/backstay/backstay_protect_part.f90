    ! A part of backstay_regions.f90: the arguments of all procedures that protect an array.
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    integer(int64), intent(in), optional :: global_shape(:), global_offset(:)
    type(c_ptr) :: address
    address = c_null_ptr
