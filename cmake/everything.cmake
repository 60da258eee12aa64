# The target `everything`: what `all` builds, and every program of the examples, tests and
# benchmarks. `everything_to_test`: the same without the benchmarks.

# backstay_targets_below(RESULT DIRECTORY): the targets of a folder and of those in it.
function(backstay_targets_below result directory)
  get_property(found DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    backstay_targets_below(more ${folder})
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

backstay_targets_below(targets ${PROJECT_SOURCE_DIR})
add_custom_target(everything DEPENDS ${targets})
if(BACKSTAY_BUILD_BENCH)
  backstay_targets_below(benchmarks ${PROJECT_SOURCE_DIR}/bench)
  list(REMOVE_ITEM targets ${benchmarks})
endif()
add_custom_target(everything_to_test DEPENDS ${targets})
