// Host files and lists of hosts as mpirun reads them: text to structs and back. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace backstay::bin {

enum class LauncherKind { openmpi, mpich, slurm };

struct Host {
  std::string name;    // as the launcher wants it, "user@" included
  unsigned slots = 0;  // 0: not given
  std::string more;    // the rest of its line, for the launcher

  bool operator==(const Host&) const = default;
};

// Both ways of writing, "name slots=2 .." and "name:2 ..", comments after '#'. A host that is named
// several times has the sum of its slots; a time without a number counts as one. `file` is for
// messages.
// Errors: invalid (no host; not a name; slots that are no number).
Result<std::vector<Host>> parse_host_file(std::string_view text, const std::string& file);
// "a,b:2,c": one slot where no number is given. Errors: as above.
Result<std::vector<Host>> parse_host_list(std::string_view text);

// A host file for mpirun. Not for Slurm, which takes names.
std::string host_file_text(const std::vector<Host>& hosts, LauncherKind kind);
std::string names_text(const std::vector<Host>& hosts, std::string_view between = ", ");
unsigned slots_of(const std::vector<Host>& hosts);  // 0: not known for all of them

}  // namespace backstay::bin
