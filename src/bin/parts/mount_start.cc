#include "bin/parts/mount_start.h"

#include <unistd.h>

#include <cstdlib>

#include "base/folders.h"
#include "base/program.h"
#include "bin/parts/collector.h"
#include "bin/parts/named_job.h"
#include "bin/parts/print.h"
#include "capture/collector/link.h"
#include "client/start.h"

namespace backstay::bin {

Result<std::string> find_mount_program() {
  const std::string path = find_own_program("backstay-mount", "/../capture/mount/");
  if (!path.empty()) return path;
  return Error(Code::unsupported,
               "this build of Backstay cannot mount, as libfuse was missing: install libfuse3-dev "
               "and fuse3 (apt install libfuse3-dev fuse3), then build again");
}

std::string mount_record(const Config& config, const std::string& folder) {
  return mount::record_path(parent_of(client::agent_address(config, "").socket_path), folder);
}

Status start_mount(const Config& config, const std::string& file, const MountPlan& plan) {
  BACKSTAY_ASSIGN(const std::string program, find_mount_program());
  const std::string socket = client::agent_address(config, file).socket_path;
  BACKSTAY_TRY(make_chosen_folder(parent_of(socket), "agent.socket"));
  ::setenv("BACKSTAY_DIR", config.storage.dir.c_str(), 1);
  ::setenv("BACKSTAY_AGENT_SOCKET", socket.c_str(), 1);
  ::setenv("BACKSTAY_MOUNT_PATTERNS", plan.patterns.c_str(), 1);
  const Status collects = set_up_collector(config, file, plan.job);
  if (!collects.ok())
    remark("files go to their places when they are closed: " + collects.error().message());
  return files::start_daemon(
      program, {plan.folder, plan.target, mount_record(config, plan.folder), plan.job});
}

bool end_mount_daemon(const Config& config, const std::string& folder, double timeout_s) {
  return mount::end_daemon(mount_record(config, folder), timeout_s);
}

Result<mount::Record> record_of_mount(const Config& config, const std::string& folder) {
  BACKSTAY_ASSIGN(mount::Record record, mount::read_record(mount_record(config, folder)));
  if (record.folder != folder) return Error(Code::not_found, "it is of another mount");
  return record;
}

void set_collector_variables(const Config& config, const std::string& file,
                             const mount::Record& record) {
  const std::string socket = client::agent_address(config, file).socket_path;
  const std::string& store = record.store.empty() ? config.storage.dir : record.store;
  set_place_variables(config, file, "");
  ::setenv("BACKSTAY_JOB", record.job.c_str(), 1);
  ::setenv("BACKSTAY_DIR", store.c_str(), 1);
  ::setenv("BACKSTAY_AGENT_SOCKET", socket.c_str(), 1);
}

void remove_mount_record(const Config& config, const std::string& folder) {
  (void)::unlink(mount_record(config, folder).c_str());
}

}  // namespace backstay::bin
