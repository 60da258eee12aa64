// How much memory captured files may take in this process: the machine's, and that of the control
// groups that the process is in (Slurm, containers), whose end is the end of the program.
#pragma once

#include <cstdint>
#include <string_view>

namespace backstay::files {

// A quarter of what is free now, divided among the ranks that a launcher started on this node.
// Called once, at start.
std::uint64_t memory_for_files();

// Whether the control groups have so much left beside what their page cache could give back. True
// where none has a limit. After memory_for_files().
bool control_group_has(std::uint64_t bytes);

// For tests: the number behind `name` in a text of lines "NAME NUMBER ..."; 0 if it is not there.
std::uint64_t number_behind(std::string_view text, std::string_view name);

}  // namespace backstay::files
