    ! A part of backstay.f90: what all procedures do that read a region.
    integer(int64), intent(in) :: version
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call backstay_report(read_region_c(version, backstay_c_text(name), c_loc(data), &
                         storage_size(data, c_size_t) / 8 * product(shape(data, c_size_t))), stat, message)
