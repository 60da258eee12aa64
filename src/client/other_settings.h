// Settings that a program has configured and that its agent, which was started before, does not
// have.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "wire/message.h"

namespace backstay::client {

// A sentence for the program's users; "" if nothing differs. A key that the program leaves at its
// default does not count, nor with one node those of the network between nodes.
std::string other_settings(const Config& own, const std::vector<wire::Setting>& agents,
                           bool several_nodes);

}  // namespace backstay::client
