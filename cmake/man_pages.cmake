# cmake -D PROGRAM=.. -D RELEASE=.. -D OUTPUT=.. -P man_pages.cmake: a page backstay-COMMAND.1 of
# each command of PROGRAM, out of its own `help COMMAND`. Commands in Python have one where .venv
# can start them.
set(ENV{COLUMNS} 1000)
execute_process(COMMAND ${PROGRAM} help OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," all "${all}")  # it would part the list
string(REGEX MATCHALL "\n  [a-z]+  +[^\n]+" commands "${all}")
set(ENV{COLUMNS} 78)
foreach(line IN LISTS commands)
  string(REGEX MATCH "([a-z]+)  +(.*)" line "${line}")
  set(name ${CMAKE_MATCH_1})
  set(summary ${CMAKE_MATCH_2})
  execute_process(COMMAND ${PROGRAM} help ${name} OUTPUT_VARIABLE text RESULT_VARIABLE failed
                  ERROR_QUIET)
  if(failed)
    message(STATUS "no page backstay-${name}(1): `backstay help ${name}` fails")
    continue()
  endif()
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  file(WRITE ${OUTPUT}/backstay-${name}.1
    ".TH BACKSTAY-${name} 1 \"\" \"Backstay ${RELEASE}\"\n.SH NAME\n"
    "backstay-${name} \\- ${summary}\n.SH DESCRIPTION\n.nf\n${text}.fi\n"
    ".SH SEE ALSO\n.BR backstay (1)\n")
endforeach()
