# Programs of MPI as users have them: nothing of ours is linked, and no sanitizer.

# backstay_plain_mpi_program(PREFIX SOURCE MPI): the target PREFIX_name_MPI, for a source name.c or
# name.cc, which builds name.MPI in the current folder. Sets `target` where it is called.
function(backstay_plain_mpi_program prefix source mpi)
  get_filename_component(program ${source} NAME_WE)
  set(target ${prefix}_${program}_${mpi})
  add_executable(${target} ${source})
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_include_directories(${target} SYSTEM PRIVATE ${${mpi}_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE PkgConfig::${mpi} Threads::Threads)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-std=gnu11> -O1 -Wall -Wextra
    -fno-sanitize=all)
  target_link_options(${target} PRIVATE -fno-sanitize=all)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program}.${mpi})
  set(target ${target} PARENT_SCOPE)
endfunction()
