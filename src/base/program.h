// Programs as files: what may be executed, and where it is found.
// Any thread. Blocks on the file system.
#pragma once

#include <string>

namespace backstay {

// A regular file that we may execute.
bool is_program(const std::string& path);

// `name` itself where it holds a slash, else the first such program in PATH; "" where there is
// none.
std::string find_program(const std::string& name);

// As one that is started in `folder` ("": here) finds it: a relative path may begin there.
std::string find_program_from(const std::string& folder, const std::string& name);
bool is_program_from(const std::string& folder, const std::string& name);

// The folder that this process's program lies in, links followed.
std::string program_folder();
// A program of ours beside it. Installed: in libexec; else in this folder of a build tree. "": it
// is not there.
std::string find_own_program(const std::string& name, const std::string& built_in);

}  // namespace backstay
