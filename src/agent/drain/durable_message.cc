#include "agent/drain/durable_message.h"

namespace backstay::agent {

namespace peer = wire::peer;

std::vector<peer::Need> as_message(const std::vector<format::Need>& needs) {
  std::vector<peer::Need> all;
  for (const format::Need& need : needs) all.push_back({need.version, need.run});
  return all;
}

std::vector<format::Need> as_needs(const std::vector<peer::Need>& needs) {
  std::vector<format::Need> all;
  for (const peer::Need& need : needs) all.push_back({need.version, need.run});
  return all;
}

peer::Durable as_message(const format::CommitRecord& record) {
  return {record.version,     record.run,           record.nodes,
          record.ranks,       record.payload_bytes, record.manifests_sum,
          record.captured_ns, record.committed_ns,  as_message(record.needs)};
}

format::CommitRecord as_record(const peer::Durable& what, const std::string& job) {
  return {job,
          Level::durable,
          what.version,
          what.run,
          what.nodes,
          what.ranks,
          what.payload_bytes,
          what.manifests_sum,
          what.captured_ns,
          what.committed_ns,
          as_needs(what.needs)};
}

}  // namespace backstay::agent
