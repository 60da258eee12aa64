    ! A part of backstay_streams.f90: what all procedures do that read an array.
    integer(int64), intent(in) :: version
    character(*), intent(in) :: name
    integer(int64), intent(in), optional :: offset
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call read_any(version, name, c_loc(data), &
                  storage_size(data, int64) / 8 * size(data, kind=int64), offset, stat, message)
