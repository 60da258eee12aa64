// backstay-collector SOCKET: the collector of one job on this node. Started by `backstay exec` and,
// where it is gone, by the library in the programs; the configuration and the job's name come from
// the environment (bin/parts/named_job.h).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/config.h"
#include "base/folders.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/tell.h"
#include "capture/collector/collector.h"
#include "capture/collector/server.h"
#include "wire/socket.h"

namespace backstay::files {
namespace {

// The process that started this one reads stderr up to its end.
void say_that_it_listens() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int number : {0, 1, 2}) ::dup2(null, number);
  if (null > 2) ::close(null);
}

Status run(const std::string& socket) {
  BACKSTAY_ASSIGN(const std::string file, find_config(""));
  BACKSTAY_ASSIGN(const Config config, load_config(file));
  auto list = PendingList::open(socket);
  if (!list.ok() && list.error().code() == Code::busy) return {};  // another one is as good
  if (!list.ok()) return list.error();
  BACKSTAY_TRY(open_log(parent_of(socket) + "/collector.log", config.agent.log_level));
  BACKSTAY_ASSIGN(Fd listener, wire::listen_at(socket));
  BACKSTAY_ASSIGN(const wire::FileId id, wire::file_at(socket));
  say_that_it_listens();
  spdlog::info("collector listens job={} socket={}", config.job.name, socket);
  Collector collector(client::writer_settings(config, file), std::move(*list),
                      memory_left().bytes / 4);
  Server server(collector);
  server.serve(listener.get());
  wire::remove_name(socket, id);
  listener.reset();
  server.finish();
  collector.note_written();
  (void)::unlink((socket + ".lock").c_str());  // of the listener; the page's lock still holds
  collector.end();
  spdlog::info("collector ends job={}", config.job.name);
  return {};
}

}  // namespace
}  // namespace backstay::files

int main(int count, char** words) {
  if (count != 2) {
    backstay::tell_user("backstay-collector is started by `backstay exec --capture-files`");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  (void)backstay::lift_limits();  // two descriptors a file, and files as large as any program's
  const backstay::Status done = backstay::files::run(words[1]);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message().c_str());
  return done.ok() ? 0 : 1;
}
