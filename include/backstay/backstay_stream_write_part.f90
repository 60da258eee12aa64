    ! A part of backstay_streams.f90: what all procedures do that write an array.
    integer(int64), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: message
    call write_any(stream, c_loc(data), storage_size(data, int64) / 8 * size(data, kind=int64), &
                   stat, message)
