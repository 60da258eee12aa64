# Flags of every target of ours, and the one way to declare a folder's library.

# ccache is used where it exists; a build without it is only slower.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(backstay_compile INTERFACE)
target_compile_options(backstay_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wcast-align -Wunused
  $<$<BOOL:${BACKSTAY_WERROR}>:-Werror>)
target_include_directories(backstay_compile INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_definitions(backstay_compile INTERFACE BACKSTAY_VERSION="${PROJECT_VERSION}")

if(BACKSTAY_SANITIZE)
  add_compile_options(-fsanitize=${BACKSTAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BACKSTAY_SANITIZE})
endif()

# backstay_library(NAME SOURCES a.cc b.cc DEPS backstay_base fmt::fmt): a folder's static library.
function(backstay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC backstay_compile ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
endfunction()

# Everything that the sanitizers run: the programs of the tests with label `unit`.
add_custom_target(unit_tests)

# backstay_test(NAME SOURCES a_test.cc DEPS backstay_base [LABELS unit] [TIMEOUT s]): a GoogleTest program.
# Label `unit`: no agent, no MPI, safe beside others. Label `soak`: long, only in make soak.
function(backstay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE backstay_compile ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if("unit" IN_LIST ARG_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
