! Calls many functions of MPI from Fortran and looks at what each gives, twice, with objects that it
! has made before. Usage: functions FILE [1: it waits outside of MPI between]
! Each rank prints how many checks it has made; FILE is a file of MPI that is written and removed.
! Parts: attributes.F90, datatypes.F90, messages.F90, groups.F90, opened.F90.
#include "kinds.inc"

program functions
  use world
  character(1000) :: file
  character(20) :: stops
  integer :: round, level, length, major, minor
  logical :: flag
  character(MPI_MAX_PROCESSOR_NAME) :: host
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: library
  call get_command_argument(1, file)
  call get_command_argument(2, stops)
  call MPI_Initialized(flag, ierror)
  call check(.not. flag, 'MPI_Initialized before MPI_Init')
  call MPI_Init_thread(MPI_THREAD_FUNNELED, level, ierror)
  call check(level >= MPI_THREAD_FUNNELED .and. level <= MPI_THREAD_MULTIPLE, 'MPI_Init_thread')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call prepare_attributes()
  call prepare_datatypes()
  call prepare_groups()
  do round = 1, 2
    call MPI_Initialized(flag, ierror)
    call check(flag, 'MPI_Initialized')
    call MPI_Finalized(flag, ierror)
    call check(.not. flag, 'MPI_Finalized')
    call MPI_Query_thread(length, ierror)
    call check(length == level, 'MPI_Query_thread')
    call MPI_Is_thread_main(flag, ierror)
    call check(flag, 'MPI_Is_thread_main')
    call MPI_Get_processor_name(host, length, ierror)
    call check(length > 0 .and. len_trim(host) == length, 'MPI_Get_processor_name')
    call MPI_Get_version(major, minor, ierror)
    call check(major >= 3 .and. minor >= 0, 'MPI_Get_version')
    call MPI_Get_library_version(library, length, ierror)
    call check(length > 0 .and. len_trim(library(1:length)) > 0, 'MPI_Get_library_version')
    call check(MPI_Wtick() > 0 .and. MPI_Wtick() < 1, 'MPI_Wtick')
    call attributes(round)
    call errors()
    call datatypes()
    call own_datatypes()
    call collective_calls()
    call messages(round)
    call groups()
    call infos()
    if (round == 1 .and. stops == '1') call stop_here(1)
  end do
  call opened(trim(file))
  print '(a, i0, a, i0, a)', 'rank ', rank, ': ', checked, ' checks'
  call MPI_Finalize(ierror)
end program
