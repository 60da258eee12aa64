// Names of hosts: whether a name is this machine, and whether it is known at all.
#pragma once

#include <string>

namespace backstay::bin {

// "localhost", this machine's name with or without its domain, or one of its addresses; "user@" is
// left out. Asks no name server. Other names of this machine are taken for other machines.
bool is_this_host(const std::string& name);
// Why the name has no address; "" if it has one. Blocks as the resolver does.
std::string why_unknown(const std::string& name);

}  // namespace backstay::bin
