# Flags of every target of ours, and the one way to declare a folder's library.

# ccache is used where it exists; a build without it is only slower.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # NOHASHDIR, BASEDIR: what one folder below build/ has compiled serves the others, and other
  # clones.
  set(ccache ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
endif()

add_library(backstay_compile INTERFACE)
target_compile_options(backstay_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wcast-align
    -Wunused
  $<$<BOOL:${BACKSTAY_WERROR}>:-Werror>)
target_include_directories(backstay_compile INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_definitions(backstay_compile INTERFACE BACKSTAY_VERSION="${PROJECT_VERSION}")

if(BACKSTAY_SANITIZE)
  add_compile_options(-fsanitize=${BACKSTAY_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BACKSTAY_SANITIZE})
endif()

# BACKSTAY_UNITY compiles several files of a target as one, in less than half of the time; names in
# unnamed namespaces are then those of the target. The debug preset compiles each alone; `make lint`
# looks at files as it does, so that each includes what it needs. CMake's UNITY_BUILD writes
# absolute paths, with which no clone could use what another one has compiled (ccache).
option(BACKSTAY_UNITY "Compile several files of a library or a test at once" OFF)
# backstay_several_at_once(NAME MOST): more files at once take fewer seconds of the processor, and
# are more often stale.
function(backstay_several_at_once name most)
  if(NOT BACKSTAY_UNITY)
    return()
  endif()
  get_target_property(sources ${name} SOURCES)
  set(joined "")
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(source MATCHES "^[^/$]*[.]cc$" AND NOT alone)
      list(APPEND joined ${source})
    endif()
  endforeach()
  list(LENGTH joined count)
  if(count LESS 2)
    return()
  endif()
  list(REMOVE_ITEM sources ${joined})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  math(EXPR files "(${count} + ${most} - 1) / ${most}")
  math(EXPR each "(${count} + ${files} - 1) / ${files}")
  set(number 0)
  while(joined)
    list(SUBLIST joined 0 ${each} part)
    list(REMOVE_ITEM joined ${part})
    list(TRANSFORM part REPLACE "(.+)" "#include \"${folder}/\\1\"\n")
    list(JOIN part "" part)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.unity/${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${part}" @ONLY)
    list(APPEND sources ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set_target_properties(${name} PROPERTIES SOURCES "${sources}")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # A warning meant for headers; here all files look like one.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# backstay_library(NAME SOURCES a.cc b.cc DEPS backstay_base fmt::fmt [STEERS]): a folder's static
# library. STEERS: it decides and waits, and leaves the work on bytes to other folders; its flags
# may save time in building.
set(BACKSTAY_STEERING_OPTIONS "" CACHE STRING "Flags for the folders that steer")
function(backstay_library name)
  cmake_parse_arguments(ARG "STEERS" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC backstay_compile ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
  backstay_several_at_once(${name} 16)
  if(ARG_STEERS)
    target_compile_options(${name} PRIVATE ${BACKSTAY_STEERING_OPTIONS})
  endif()
endfunction()

# The programs that the sanitizers run: tests with label `unit`; the thread sanitizer, those with
# label `threads`; those with label `foreign` read bytes that others wrote (files, messages, foreign
# programs' calls), and `make test` runs them under the address sanitizer.
add_custom_target(unit_tests)
add_custom_target(threaded_tests)
add_custom_target(foreign_tests)

# backstay_test(NAME SOURCES a_test.cc DEPS backstay_base [LABELS unit] [FOREIGN] [TIMEOUT s]): a
# GoogleTest program.
# Label `unit`: no agent, no MPI, safe beside others. Label `soak`: long, only in make soak.
# THREADS: it starts threads, itself or in what it tests; without it that is an error
# (tests/support/no_threads.cc).
# COST: seconds under a sanitizer, of the long ones: they begin first, so that none is left to run
# alone at the end.
# COMPUTES: it handles so much data that it is better compiled with the flags of the libraries.
set(BACKSTAY_TEST_OPTIONS "" CACHE STRING
  "Flags for the files of tests: they are compiled more often than they run")
function(backstay_test name)
  cmake_parse_arguments(ARG "COMPUTES;FOREIGN;THREADS" "TIMEOUT;COST" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE backstay_compile ${ARG_DEPS} GTest::gtest GTest::gmock
    GTest::gtest_main)
  backstay_several_at_once(${name} 8)
  if(NOT ARG_COMPUTES)
    target_compile_options(${name} PRIVATE ${BACKSTAY_TEST_OPTIONS})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(BACKSTAY_SANITIZE)  # five to fifteen times slower, and the machine may be busy
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  if("unit" IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
    if(ARG_FOREIGN)
      add_dependencies(foreign_tests ${name})
      list(APPEND ARG_LABELS foreign)
    endif()
    if(ARG_THREADS)
      add_dependencies(threaded_tests ${name})
      list(APPEND ARG_LABELS threads)
    elseif(NOT BACKSTAY_SANITIZE)  # sanitizers have threads and a pthread_create() of their own
      target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/no_threads.cc)
    endif()
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
endfunction()
