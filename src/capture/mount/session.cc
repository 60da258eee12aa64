#include "capture/mount/session.h"

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/folders.h"
#include "base/log.h"
#include "capture/mount/file_system.h"
#include "capture/mount/kernel_link.h"
#include "capture/mount/mounts.h"

namespace backstay::mount {

namespace {

struct Served {
  FileSystem fs;  // the first: it is what libfuse's calls get
  const std::function<void()>& answers;
};

void init(void* data, fuse_conn_info* connection) {
  auto& served = *static_cast<Served*>(data);
  if (served.fs.write_back && (connection->capable & FUSE_CAP_WRITEBACK_CACHE) != 0)
    connection->want |= FUSE_CAP_WRITEBACK_CACHE;
  served.answers();
}

fuse_lowlevel_ops table_of_calls() {
  fuse_lowlevel_ops calls{};
  calls.init = init;
  add_name_calls(calls);
  add_attribute_calls(calls);
  add_open_calls(calls);
  add_file_calls(calls);
  add_folder_calls(calls);
  return calls;
}

// A comma would end the option.
std::string option_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ',' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// The kernel shall look a path up again. Its folder is not known to the kernel: nor is the path.
void lose_entry(fuse_session* session, Nodes& nodes, const std::string& path) {
  struct stat folder = {};
  if (path.empty() || ::stat(parent_of(path).c_str(), &folder) != 0) return;
  const auto node = nodes.at({folder.st_dev, folder.st_ino});
  if (node == nullptr) return;
  const auto ino = node == nodes.root() ? FUSE_ROOT_ID : reinterpret_cast<fuse_ino_t>(node.get());
  const std::string name = path.substr(path.rfind('/') + 1);
  fuse_lowlevel_notify_inval_entry(session, ino, name.c_str(), name.size());
}

// The kernel's number of the mount at this folder; "": none is there.
std::string number_at(const std::string& folder) {
  std::string number;
  for (const Mount& one : mounts())
    if (one.folder == folder) number = one.id;
  return number;
}

struct End {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

int loop(fuse_session* session) {
  constexpr unsigned threads_max = 64;  // one that closes or settles a file waits for the disk
  const std::unique_ptr<fuse_loop_config, End> config(fuse_loop_cfg_create());
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  fuse_loop_cfg_set_max_threads(config.get(), threads_max);
  return fuse_session_loop_mt(session, config.get());
}

}  // namespace

Status serve(const SessionSettings& settings, const std::function<void()>& answers) {
  Fd target(::open(settings.target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!target.valid()) return errno_error("open " + settings.target, errno);
  const std::string target_path = path_of(target.get());
  Nodes nodes(std::move(target));
  fuse_session* kernel = nullptr;
  Keeper keeper(nodes, settings.keeper,
                [&](const std::string& path) { lose_entry(kernel, nodes, path); });
  Served served{{nodes, keeper, target_path, settings.patterns, settings.write_back}, answers};
  const fuse_lowlevel_ops calls = table_of_calls();
  std::string name = "backstay-mount";
  std::string flag = "-o";
  std::string options = "subtype=backstay,fsname=" + option_text(settings.target);
  char* words[] = {name.data(), flag.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const std::unique_ptr<fuse_session, End> session(
      fuse_session_new(&arguments, &calls, sizeof calls, &served));
  fuse_opt_free_args(&arguments);
  if (session == nullptr) return Error(Code::unsupported, "libfuse takes no session");
  kernel = session.get();
  if (fuse_set_signal_handlers(kernel) != 0) return Error(Code::io, "signals cannot be handled");
  if (fuse_session_mount(kernel, settings.folder.c_str()) != 0) {
    fuse_remove_signal_handlers(kernel);
    return Error(Code::unsupported, settings.folder + " could not be mounted");
  }
  const std::string number = number_at(settings.folder);
  if (const int error = use_kernel_link(kernel)) spdlog::warn("writes are slow errno={}", error);
  spdlog::info("mounted folder={} target={}", settings.folder, settings.target);
  const int ended = loop(kernel);
  spdlog::info("no longer mounted folder={} ended={}", settings.folder, ended);
  // Where it is unmounted already, that would take what lies below it.
  if (number_at(settings.folder) == number) fuse_session_unmount(kernel);
  keeper.finish();
  // Not before: `backstay unmount` tells a daemon to end that may have seen the end by itself.
  fuse_remove_signal_handlers(kernel);
  return {};
}

}  // namespace backstay::mount
