// The allocation of Slurm that this process runs in.
#pragma once

#include <string>
#include <vector>

#include "bin/run/hosts.h"

namespace backstay::bin {

bool in_slurm();
// Nodes of a list as Slurm writes it ("n[0-3]"); blocks until scontrol has answered. Errors:
// not_found, io, timeout.
Result<std::vector<std::string>> slurm_nodes(const std::string& list);
// All nodes of the allocation, with its CPUs as slots. Errors: as above.
Result<std::vector<Host>> slurm_hosts();
// The tasks that were asked for; 0: not said.
unsigned slurm_tasks();
unsigned slurm_tasks_per_node();
// Puts the job back into the queue, if it runs: not if it was cancelled. Errors: io, timeout,
// state.
Status slurm_requeue();
// Slurm has taken the node that the job's script ran on out of the running job, which goes on
// without it (--no-kill). Only the first tasks of a step ask.
bool slurm_lost_first_node();

// "2(x3),4" is 2, 2, 2, 4. Empty if it cannot be read.
std::vector<unsigned> parse_counts(const std::string& text);

}  // namespace backstay::bin
