# Tests written in Python, with the interpreter of .venv where there is one. None for the sanitizers.

# backstay_pytests(PREFIX plan_ LABELS plan NEEDS numpy typer NAMES interval ..): test_interval.py as the test plan_interval.
# Without Python 3.11 or a module of NEEDS they are left out, with a line. ENVIRONMENT: instead of a PYTHONPATH to the package and tests/support.
function(backstay_pytests)
  cmake_parse_arguments(arg "" "PREFIX;LABELS" "NEEDS;NAMES;ENVIRONMENT" ${ARGN})
  if(BACKSTAY_SANITIZE)
    return()
  endif()
  if(NOT DEFINED Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  find_package(Python 3.11 COMPONENTS Interpreter)
  list(JOIN arg_NEEDS ", " needed)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import pytest, ${needed}" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(NOT Python_FOUND OR missing)
    message(STATUS "Python 3.11, pytest or one of ${needed} is missing: the tests of ${CMAKE_CURRENT_SOURCE_DIR} are left out")
    return()
  endif()
  if(NOT arg_ENVIRONMENT)
    set(arg_ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/python:${PROJECT_SOURCE_DIR}/tests/support")
  endif()
  foreach(name IN LISTS arg_NAMES)
    add_test(NAME ${arg_PREFIX}${name}
             COMMAND ${Python_EXECUTABLE} -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.py)
    set_tests_properties(${arg_PREFIX}${name} PROPERTIES LABELS ${arg_LABELS} TIMEOUT 300
      ENVIRONMENT "${arg_ENVIRONMENT};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()
