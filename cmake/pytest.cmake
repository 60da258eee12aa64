# Tests written in Python: which interpreter, and the one way to declare a file of pytest.

# For tests that need the standard library only.
find_program(BACKSTAY_PYTHON_SYSTEM NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(BACKSTAY_PYTHON_SYSTEM NAMES python3 REQUIRED)

# For the others: .venv's where there is one.
set(BACKSTAY_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)
if(NOT EXISTS ${BACKSTAY_PYTHON})
  set(BACKSTAY_PYTHON ${BACKSTAY_PYTHON_SYSTEM})
endif()

# backstay_pytests(PREFIX plan_ LABELS plan NEEDS numpy typer NAMES interval ..): test_interval.py
# as the test plan_interval. Without Python 3.11 or a module of NEEDS they are left out, with a
# line; under a sanitizer too. ENVIRONMENT: instead of a PYTHONPATH to the package and
# tests/support.
function(backstay_pytests)
  cmake_parse_arguments(arg "" "PREFIX;LABELS" "NEEDS;NAMES;ENVIRONMENT" ${ARGN})
  if(BACKSTAY_SANITIZE)
    return()
  endif()
  list(JOIN arg_NEEDS ", " needed)
  execute_process(COMMAND ${BACKSTAY_PYTHON} -c "import tomllib, pytest, ${needed}"
                  RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing)
    message(STATUS
      "Python 3.11, pytest or one of ${needed} is missing: the tests of ${CMAKE_CURRENT_SOURCE_DIR} are left out")
    return()
  endif()
  if(NOT arg_ENVIRONMENT)
    set(arg_ENVIRONMENT
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/python:${PROJECT_SOURCE_DIR}/tests/support")
  endif()
  foreach(name IN LISTS arg_NAMES)
    add_test(NAME ${arg_PREFIX}${name}
             COMMAND ${BACKSTAY_PYTHON} -m pytest -q -p no:cacheprovider
               ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.py)
    set_tests_properties(${arg_PREFIX}${name} PROPERTIES LABELS ${arg_LABELS} TIMEOUT 300
      ENVIRONMENT "${arg_ENVIRONMENT};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()
