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

# A test whose script, in this folder, runs such programs of this folder: lower_half's driver is the
# example. CROSS: under the launcher of the other MPI; there is no test without that, or without an
# adapter. FOLDER has our MPI libraries.
#   backstay_mpi_script(NAME script.py mpi [CROSS] [SOAK] [TIMEOUT s] [COST n] [FOLDER folder]
#                       [ARGUMENTS more...] [ENVIRONMENT NAME=value...])
function(backstay_mpi_script name script mpi)
  cmake_parse_arguments(of "CROSS;SOAK" "TIMEOUT;COST;FOLDER" "ARGUMENTS;ENVIRONMENT" ${ARGN})
  if(NOT of_FOLDER)
    set(of_FOLDER ${CMAKE_BINARY_DIR}/mpi)
  endif()
  list(APPEND of_ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  set(label mpi)
  if(of_SOAK)
    set(label soak)
    list(APPEND of_ENVIRONMENT BACKSTAY_SOAK=1)
  endif()
  if(of_CROSS)
    set(other openmpi)
    if(mpi STREQUAL "openmpi")
      set(other mpich)
    endif()
    find_program(BACKSTAY_MPIRUN_${other} NAMES mpirun.${other} mpiexec.${other})
    if(NOT BACKSTAY_MPI_ADAPTERS OR NOT BACKSTAY_MPIRUN_${other})
      return()
    endif()
    list(PREPEND of_ARGUMENTS ${BACKSTAY_MPIRUN_${other}})
  endif()
  add_test(NAME ${name}
           COMMAND ${BACKSTAY_PYTHON_SYSTEM} ${CMAKE_CURRENT_SOURCE_DIR}/${script}
             $<TARGET_FILE:backstay_boot> ${BACKSTAY_MPIRUN_${mpi}} ${of_FOLDER}
             ${CMAKE_CURRENT_BINARY_DIR} ${mpi} ${of_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${of_TIMEOUT} RESOURCE_LOCK mpi
    ENVIRONMENT "${of_ENVIRONMENT}")
  if(of_COST)
    set_tests_properties(${name} PROPERTIES COST ${of_COST})
  endif()
endfunction()
