// The record of a durable version as agents send it to each other. No I/O.
#pragma once

#include <string>
#include <vector>

#include "agent/group/peers.h"
#include "agent/version/stored.h"

namespace backstay::agent {

wire::peer::Durable as_message(const format::CommitRecord& record);
format::CommitRecord as_record(const wire::peer::Durable& message, const std::string& job);

std::vector<wire::peer::Need> as_message(const std::vector<format::Need>& needs);
std::vector<format::Need> as_needs(const std::vector<wire::peer::Need>& message);

}  // namespace backstay::agent
