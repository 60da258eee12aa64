! The Fortran module with a real agent: types, ranks, places, refusals. Ends with "stop 1" on a failure.
program fortran_test
  use, intrinsic :: iso_fortran_env
  use backstay
  use backstay_streams
  use, intrinsic :: iso_c_binding, only: c_loc
  implicit none
  integer(int8), target :: i1(3)
  integer(int32), target :: i4
  integer(int64), target :: i8(2, 3)
  real(real32), target :: r4(2, 2, 2)
  real(real64), target :: r8(3, 4)
  complex(real32), target :: c4(2)
  complex(real64), target :: c8(2, 1, 2, 1)
  real(real64), allocatable, target :: none(:)
  real(real64) :: old(12)
  integer(int64) :: version, first
  integer :: stat, level, i
  character(200) :: message, path

  allocate (none(0))
  call session()
  call expect(backstay_release() /= '', 'release')
  call backstay_restart(version)
  call expect(version == 0, 'nothing is saved at first, and that does not end the program')
  call backstay_restart(version, stat)
  call expect(stat == BACKSTAY_ENONE, 'nothing is saved at first, as a code')
  call refusals()

  call expect(.not. backstay_due(), 'due: every second call')
  call expect(backstay_due(), 'due: every second call')
  call expect(.not. backstay_stop_requested(), 'no stop was requested')
  call set(1)
  message = ''
  call backstay_checkpoint(stat, message)
  call expect(stat == BACKSTAY_OK, 'checkpoint: ' // trim(message))
  first = backstay_version()
  call backstay_wait(first, BACKSTAY_LOCAL, 60.0_real64, stat, message)
  call expect(stat == BACKSTAY_OK, 'wait: ' // trim(message))
  call backstay_test(first, level)
  call expect(level >= BACKSTAY_LOCAL, 'test')
  call set(5)
  call backstay_checkpoint()
  call backstay_read_region(first, 'r8', old, stat, message)
  call expect(stat == BACKSTAY_OK, 'read_region: ' // trim(message))
  call expect(all(nint(old) == [(1 + i, i = 1, 12)]), 'a region of an old version')
  call backstay_finalize()

  call set(0)
  call session()
  call backstay_restart(version, stat, message)
  call expect(stat == BACKSTAY_OK, 'restart: ' // trim(message))
  call expect(version == backstay_version() .and. version > first, 'the newest version')
  call check(5)
  call streams()
  call backstay_route_file('a file', path, stat, message)
  call expect(stat == BACKSTAY_EINVALID, 'a name with a blank')
  call backstay_route_file('a.txt   ', path)
  call expect(index(trim(path), 'a.txt', back=.true.) == len_trim(path) - 4, 'a path, trimmed')
  call backstay_finalize()
  print '(a)', 'fortran_test: passed'

contains

  subroutine streams()
    integer(int64) :: stream, count, bytes, taken
    real(real64) :: x(1000), back(1000)
    integer(int32) :: numbers(3)
    integer(int64), target :: one
    character(200) :: name
    integer :: k
    x = [(0.5_real64 * k, k = 1, 1000)]
    one = 77
    call backstay_stream_open('cell 1   ', stream)
    do k = 1, 10
      call backstay_stream_write(stream, x(100 * k - 99:100 * k))
    end do
    call backstay_stream_close(stream)
    call backstay_stream_write(stream, x, stat)
    call expect(stat == BACKSTAY_ESTATE, 'a stream that is closed')
    call backstay_stream_open('cell 2', stream)
    call backstay_stream_write(stream, [1_int32, 2_int32, 3_int32])
    call backstay_stream_write(stream, c_loc(one), 8_int64)
    call backstay_checkpoint(stat, message)
    call expect(stat == BACKSTAY_ESTATE .and. index(message, 'cell 2') > 0, 'a stream that is open')
    call backstay_stream_open('cell 1', stream)
    call backstay_stream_write(stream, x)
    call backstay_stream_close(stream)
    call backstay_stream_open('cell 2', stream)
    call backstay_stream_write(stream, [1_int32, 2_int32, 3_int32])
    call backstay_stream_write(stream, c_loc(one), 8_int64)
    call backstay_stream_close(stream)
    call backstay_checkpoint(stat, message)
    call expect(stat == BACKSTAY_OK, 'a checkpoint with streams: ' // trim(message))
    taken = backstay_version()
    call backstay_stream_count(taken, count)
    call expect(count == 2, 'two streams')
    call backstay_stream_at(taken, 2_int64, name, bytes)
    call expect(name == 'cell 2' .and. bytes == 20, 'name and length')
    call backstay_stream_bytes(taken, 'cell 1', bytes)
    call expect(bytes == 8000, 'length by name')
    call backstay_stream_read(taken, 'cell 1', back)
    call expect(all(back == x), 'what was written to cell 1')
    call backstay_stream_read(taken, 'cell 2', numbers)
    call expect(all(numbers == [1, 2, 3]), 'what was written to cell 2')
    one = 0
    call backstay_stream_read(taken, 'cell 2', c_loc(one), 8_int64, offset=12_int64)
    call expect(one == 77, 'the number behind it')
    call backstay_stream_read(taken, 'cell 3', back, stat=stat)
    call expect(stat == BACKSTAY_ENOTFOUND, 'no such stream')
  end subroutine

  subroutine session()
    call backstay_init()
    call backstay_protect('i1  ', i1)
    call backstay_protect('i4', i4)
    call backstay_protect('i8', i8)
    call backstay_protect('r4', r4)
    call backstay_protect('r8', r8, global_shape=[3_int64, 8_int64], global_offset=[0_int64, 4_int64])
    call backstay_protect('c4', c4)
    call backstay_protect('c8', c8)
    call backstay_protect('none', none)
  end subroutine

  subroutine refusals()
    message = ''
    call backstay_protect('r8', r8, stat, message)
    call expect(stat == BACKSTAY_EDUPLICATE .and. message /= '', 'a name twice')
    call backstay_protect('holes', r8(1:3:2, :), stat, message)
    call expect(stat == BACKSTAY_EINVALID .and. index(message, 'contiguous') > 0, 'a section with holes')
    call backstay_protect('flat', r8(:, 2), stat, message, [3_int64, 4_int64], [0_int64, 0_int64])
    call expect(stat == BACKSTAY_EINVALID, 'a place of another rank')
    call backstay_protect('half', r8, stat, message, global_offset=[0_int64, 4_int64])
    call expect(stat == BACKSTAY_EINVALID .and. index(message, 'give both, or none') > 0, 'an offset alone')
    call backstay_protect('outside', r8(:, 1:2), stat, message, [3_int64, 4_int64], [0_int64, 3_int64])
    call expect(stat == BACKSTAY_EINVALID, 'a block outside')
    call backstay_unprotect('i4')
    call backstay_unprotect('i4', stat)
    call expect(stat == BACKSTAY_ENOTFOUND, 'unprotect twice')
    call backstay_protect('i4', i4)
  end subroutine

  subroutine set(base)
    integer, intent(in) :: base
    integer :: k
    i1 = int(base + [1, 2, 3], int8)
    i4 = base
    i8 = reshape([(int(base + k, int64), k = 1, 6)], [2, 3])
    r4 = reshape([(real(base + k, real32), k = 1, 8)], [2, 2, 2])
    r8 = reshape([(real(base + k, real64), k = 1, 12)], [3, 4])
    c4 = [(cmplx(base, k, real32), k = 1, 2)]
    c8 = reshape([(cmplx(base, k, real64), k = 1, 4)], [2, 1, 2, 1])
  end subroutine

  subroutine check(base)
    integer, intent(in) :: base
    integer :: k
    call expect(all(i1 == base + [1, 2, 3]), 'int8')
    call expect(i4 == base, 'int32')
    call expect(all(i8 == reshape([(int(base + k, int64), k = 1, 6)], [2, 3])), 'int64')
    call expect(all(nint(r4) == reshape([(base + k, k = 1, 8)], [2, 2, 2])), 'real32')
    call expect(all(nint(r8) == reshape([(base + k, k = 1, 12)], [3, 4])), 'real64')
    call expect(all(nint(aimag(c4)) == [1, 2]) .and. all(nint(real(c4)) == base), 'complex64')
    call expect(all(nint(aimag(c8)) == reshape([1, 2, 3, 4], [2, 1, 2, 1])), 'complex128')
  end subroutine

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    write (error_unit, '(2a)') 'fortran_test: failed: ', what
    stop 1
  end subroutine

end program fortran_test
