# What `cmake --install` puts where: libraries, headers, CMake package, pkg-config files, programs,
# man pages, completion, examples, licence. A part that was not built (an MPI that is absent, say)
# is left out.
include(CMakePackageConfigHelpers)
set(BACKSTAY_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/backstay)
set(BACKSTAY_SHARE_DIR ${CMAKE_INSTALL_DATADIR}/backstay)

# backstay_install_library(TARGET EXPORT_NAME): one of the libraries that programs link.
function(backstay_install_library target export_name)
  if(NOT TARGET ${target})
    return()
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})
  install(TARGETS ${target} EXPORT backstay LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# backstay_install_pkgconfig(NAME TARGET LIBS REQUIRES DESCRIPTION): NAME.pc, relocatable through
# ${pcfiledir}.
function(backstay_install_pkgconfig name target libs requires description)
  if(NOT TARGET ${target})
    return()
  endif()
  set(PC_NAME ${name})
  set(PC_LIBS ${libs})
  set(PC_REQUIRES ${requires})
  set(PC_DESCRIPTION ${description})
  configure_file(cmake/backstay.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

backstay_install_library(backstay backstay)
backstay_install_library(backstay_mpich mpich)
backstay_install_library(backstay_openmpi openmpi)
if(TARGET backstay_files)  # no program links it: `backstay exec` loads it
  install(TARGETS backstay_files LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# For LD_PRELOAD alone: nobody links it.
install(TARGETS backstay_files LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

file(RELATIVE_PATH PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
backstay_install_pkgconfig(backstay backstay "-lbackstay" ""
  "Checkpoints for long-running programs")
backstay_install_pkgconfig(backstay-mpich backstay_mpich "-lbackstay_mpich" "backstay"
  "Backstay for programs of MPICH")
backstay_install_pkgconfig(backstay-openmpi backstay_openmpi "-lbackstay_openmpi" "backstay"
                           "Backstay for programs of Open MPI")

install(DIRECTORY include/backstay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.f90")

if(TARGET backstay)
  install(EXPORT backstay NAMESPACE backstay:: FILE backstayTargets.cmake DESTINATION
    ${BACKSTAY_CMAKE_DIR})
  configure_package_config_file(cmake/backstayConfig.cmake.in
    ${PROJECT_BINARY_DIR}/backstayConfig.cmake
                                INSTALL_DESTINATION ${BACKSTAY_CMAKE_DIR} PATH_VARS
                                  CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/backstayConfigVersion.cmake COMPATIBILITY
    SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/backstayConfig.cmake
    ${PROJECT_BINARY_DIR}/backstayConfigVersion.cmake
          DESTINATION ${BACKSTAY_CMAKE_DIR})
endif()

# The programs carry a path to the libraries that is relative to themselves, so a prefix may be
# moved.
file(RELATIVE_PATH BACKSTAY_BIN_TO_LIB "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
foreach(program backstay_program backstayd)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${BACKSTAY_BIN_TO_LIB}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
# What `backstay run --transparent`, `backstay exec --capture-files` and `backstay mount` start: no
# commands of users.
foreach(program backstay_companion backstay_boot backstay_collector backstay_mount)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/backstay)
  endif()
endforeach()
# The lower half and our MPI libraries, for unmodified programs: the target backstay_mpi_folder.
install(DIRECTORY ${PROJECT_BINARY_DIR}/mpi/
        DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/backstay/mpi
        USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN "backstay-lower" PATTERN "lib*.so.*"
        PATTERN "backstay-*-abi.so")
foreach(library backstay_mpich backstay_openmpi)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
  endif()
endforeach()

# Man pages: the guide is the manual, behind a line of its own for `whatis`.
find_program(PANDOC_PROGRAM pandoc)
if(PANDOC_PROGRAM)
  set(BACKSTAY_MAN_PAGES)
  # backstay_man(PAGE SECTION SOURCES...): docs/man/PAGE.SECTION.md and then the pages that it
  # introduces.
  function(backstay_man page section)
    set(output ${PROJECT_BINARY_DIR}/man/${page}.${section})
    set(sources ${PROJECT_SOURCE_DIR}/docs/man/${page}.${section}.md)
    foreach(source IN LISTS ARGN)
      if(EXISTS ${PROJECT_SOURCE_DIR}/${source})
        list(APPEND sources ${PROJECT_SOURCE_DIR}/${source})
      endif()
    endforeach()
    add_custom_command(OUTPUT ${output} DEPENDS ${sources} COMMENT "Man page ${page}(${section})"
      COMMAND ${PANDOC_PROGRAM} --standalone --from markdown --to man --metadata title=${page}
              --metadata section=${section} --metadata "footer=Backstay ${PROJECT_VERSION}" --output
                ${output} ${sources})
    install(FILES ${output} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    set(BACKSTAY_MAN_PAGES ${BACKSTAY_MAN_PAGES} ${output} PARENT_SCOPE)
  endfunction()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
  backstay_man(backstay 1 docs/guide/cli.md)
  backstay_man(backstayd 1)
  backstay_man(backstay 3)
  backstay_man(backstay.toml 5 docs/guide/configuration.md)
  add_custom_target(man ALL DEPENDS ${BACKSTAY_MAN_PAGES})
else()
  message(STATUS "pandoc is missing: no man pages")
endif()

# Completion, and a man page for each command, come from the parser itself.
if(TARGET backstay_program)
  set(stamp ${PROJECT_BINARY_DIR}/man-commands.stamp)
  add_custom_command(OUTPUT ${stamp} DEPENDS backstay_program cmake/man_pages.cmake
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:backstay_program>
            -D RELEASE=${PROJECT_VERSION} -D OUTPUT=${PROJECT_BINARY_DIR}/man-commands -P
            ${PROJECT_SOURCE_DIR}/cmake/man_pages.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp} COMMENT "Man pages of the commands")
  add_custom_target(man_commands ALL DEPENDS ${stamp})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man-commands/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
  foreach(shell bash zsh)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/completion/backstay.${shell}
      COMMAND backstay_program completion ${shell} >
        ${PROJECT_BINARY_DIR}/completion/backstay.${shell}
      DEPENDS backstay_program COMMENT "Completion for ${shell}")
  endforeach()
  add_custom_target(completion ALL DEPENDS ${PROJECT_BINARY_DIR}/completion/backstay.bash
                                           ${PROJECT_BINARY_DIR}/completion/backstay.zsh)
  install(FILES ${PROJECT_BINARY_DIR}/completion/backstay.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME backstay)
  install(FILES ${PROJECT_BINARY_DIR}/completion/backstay.zsh
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _backstay)
endif()

# The Python parts of the command line, next to which bin/backstay looks for them.
if(EXISTS ${PROJECT_SOURCE_DIR}/python/backstay)
  install(DIRECTORY python/backstay DESTINATION ${BACKSTAY_SHARE_DIR}/python
          FILES_MATCHING PATTERN "*.py" PATTERN "*.toml" PATTERN "*.js" PATTERN "*.css" PATTERN
            "__pycache__" EXCLUDE)
endif()
# Their packages, in an environment of their own: the commands work with no activation and whatever
# the user's python3 is.
if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  install(CODE "
    set(environment \"\${CMAKE_INSTALL_PREFIX}/lib/backstay/venv\")
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python
      ${PROJECT_SOURCE_DIR}/cmake/private_python.py
                            \"\$ENV{DESTDIR}\${environment}\" ${PROJECT_SOURCE_DIR}/pyproject.toml
                    OUTPUT_VARIABLE made RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      message(FATAL_ERROR
        \"the packages of the commands in Python could not be installed below \${environment}\")
    endif()
    string(REPLACE \"\n\" \";\" made \"\${made}\")
    string(LENGTH \"\$ENV{DESTDIR}\" staged)
    foreach(file IN LISTS made)
      string(SUBSTRING \"\${file}\" \${staged} -1 file)
      list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${file}\")
    endforeach()
  ")
else()
  message(STATUS
    ".venv is missing (scripts/setup makes it): an installation looks for its Python packages in python3")
endif()
install(DIRECTORY examples DESTINATION ${BACKSTAY_SHARE_DIR} USE_SOURCE_PERMISSIONS PATTERN
  "__pycache__" EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
