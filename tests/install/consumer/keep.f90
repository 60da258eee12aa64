! keep.c with the Fortran module.
program keep
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use backstay
  implicit none
  integer(int64), target :: lives
  integer(int64) :: version
  lives = 0
  call backstay_init()
  call backstay_protect('lives', lives)
  call backstay_restart(version)
  lives = lives + 1
  call backstay_checkpoint()
  call backstay_wait(backstay_version(), BACKSTAY_LOCAL, 60.0_real64)
  call backstay_finalize()
  print '(a, i0)', 'lives ', lives
end program keep
