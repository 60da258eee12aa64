// Starting the node's agent as a true daemon: the one way, of programs and of tools.
//
// 1. The program is found: agent.program, else backstayd beside the library (or the tool), in
//    ../bin or ., else in PATH.
// 2. Two children, one inside the other: the agent's parent is init, so that the program's own
//    wait() never sees it. They share the program's memory until they execute (clone with
//    CLONE_VFORK), because the program may hold hundreds of gigabytes, threads, and network
//    libraries with fork handlers.
// 3. In between: own process group, no inherited descriptor, /dev/null as stdin and stdout, a pipe
//    as stderr (for its words before its log is open), cwd /, default signals, all CPUs that the
//    control group allows and all memory nodes (launchers pin ranks; to pin the agent, start
//    backstayd by hand), and the caller's environment without the variables of launchers and
//    LD_PRELOAD.
// So no launcher waits for the agent, kills it with the job, or confuses it with a rank.
//
// Not promised: that the agent works. The caller reads its words and tries to connect (start.h).
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace backstay::client {

struct LaunchedAgent {
  int pid = 0;
  // The reading end of its stderr; it ends once the agent has switched to its log, or has ended.
  Fd said;
};

// `configured`: agent.program, may be "".
// Errors: agent_lost (says where it looked).
Result<std::string> find_agent_program(const std::string& configured);

// `arguments` without the program's name. Blocks until the program was executed.
// Errors: agent_lost (could not be executed; says why).
Result<LaunchedAgent> launch_agent(const std::string& program,
                                   const std::vector<std::string>& arguments);

// True for variables by which launchers and debuggers speak to the processes that they start.
bool is_launcher_variable(const std::string& assignment);

}  // namespace backstay::client
