// The agent's main loop: one thread that never blocks on a disk.
//
// It accepts programs and tools on the local socket, gives their messages to the jobs, and takes
// the events of the jobs' store threads. All state of the agent belongs to this thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/disk/disk_threads.h"
#include "agent/disk/links.h"
#include "agent/disk/mailbox.h"
#include "agent/disk/store.h"
#include "agent/job/job.h"
#include "agent/memory/pool.h"
#include "agent/server/metrics_page.h"
#include "agent/server/socket_path_watch.h"
#include "base/fd.h"
#include "store/job_lock.h"
#include "wire/socket.h"

namespace backstay::io {
class FileSystem;
}

namespace backstay::agent {

using ReportDisk = std::function<void(const DiskFacts&)>;

// What the agent needs of the machine around it.
class ServerWorld {
 public:
  using OpenedTier = Result<std::unique_ptr<tier::Tier>>;
  virtual ~ServerWorld() = default;
  // Makes the tier of `job`, which keeps its versions below `dir`. Called in a store's thread.
  virtual OpenedTier make_tier(const std::string& dir, const std::string& job, Pool& pool,
                               const ReportDisk& report) = 0;
  // Opens a directory that exists, to copy from and to. Called in threads of jobs.
  virtual OpenedTier open_tier(const std::string& dir) = 0;
  // The same where other agents may write the same names.
  virtual OpenedTier open_shared(const std::string& dir) = 0;
  // What the agents of a run on several nodes talk over. Called in the main loop's thread.
  virtual Result<Network> make_network(const MemberId& self, const std::string& secret) = 0;
};

struct ServerOptions {
  std::string socket_path;
  std::vector<wire::Setting> settings;  // sent to each rank with its welcome
  double idle_exit_s = 600;             // 0: never
  // A job without ranks is closed after so long, or once nothing of it is in the pool any more.
  double job_idle_s = 600;
  // After SIGTERM copies to the durable directory go on, and other nodes are waited for, for so
  // long at most.
  double copy_stop_s = 60;
  // Buffers, of the pool's size, for other agents of a run.
  std::uint32_t staging_buffers = 8;
  // Where metrics are served (docs/guide/metrics.md); port 0: nowhere.
  std::string metrics_address = "127.0.0.1";
  std::uint16_t metrics_port = 0;
  ServerWorld* world = nullptr;  // outlives the server
  // The file systems to whose paths captured files are brought; null: they stay in the store. Used
  // by home threads, and outlives the server.
  io::FileSystem* paths = nullptr;
};

struct StatusInput;

class Server final : public Outbox {
 public:
  // Listens at once. Errors: busy (an agent listens there already), long_path, permission, io.
  static Result<std::unique_ptr<Server>> create(ServerOptions options, std::unique_ptr<Pool> pool);
  ~Server() override;

  // Serves until SIGTERM or SIGINT (after draining), a Shutdown message, or idleness.
  // Precondition: these signals are blocked in every thread.
  Status run();

  // run() has ended without waiting for captured versions: a second signal, or Shutdown without
  // drain. The destructor waits for the disk, which may hang: the owner ends the process
  // instead.
  bool gave_up() const { return stop_now_; }

  // New programs do not find this agent any more. Leaves the socket of another agent that listens
  // there by now.
  void remove_socket() const;

  void send(ConnectionId to, wire::Message message, std::vector<int> descriptors) override;
  void close(ConnectionId connection) override;

 private:
  struct Outgoing {
    wire::Message message;
    std::vector<int> descriptors;
  };
  struct Connection {
    Fd socket;
    Fd process;               // pidfd of the peer, where the system has one
    bool peer_ended = false;  // what it had sent still counts
    Job* job = nullptr;       // of a rank or a writer
    bool admin = false;
    bool goodbye = false;
    bool closing = false;  // once everything is sent
    bool broken = false;
    bool awaits_room = false;  // the loop tells when the socket takes more
    std::deque<Outgoing> outgoing;
  };
  struct Slot;  // a job with its store and lock
  struct SharedDiskFacts;

  Server(ServerOptions options, std::unique_ptr<Pool> pool, Fd listener);
  Status open_loop();
  void look_after_name();
  Status listen_again();
  Status watch(int fd, std::uint64_t what, bool also_writable, bool modify);
  void dispatch(std::uint64_t what, std::uint32_t events);
  void accept_all();
  bool refuse_for_want_of_descriptors();
  void watch_process(ConnectionId id, Connection& connection);
  void receive_all(ConnectionId id);
  void receive_one(ConnectionId id, wire::Message message);
  Status rank_message(ConnectionId id, Connection& connection, const wire::Message& message);
  Status forget(const wire::Forget& forget);
  wire::Answer end_ranks(const wire::EndRanks& end);
  void admin_message(ConnectionId id, const wire::Message& message);
  Status join(ConnectionId id, Connection& connection, const wire::Hello& hello);
  Status join(ConnectionId id, Connection& connection, const wire::Join& join);
  Result<Job*> job_for(const Connection& connection, const std::string& job,
                       const std::string& dir);
  Error refusal_while_ending() const;
  Status watch_network(std::uint64_t slot, int descriptor);
  void network_event(std::uint64_t slot);
  Slot* open_slot(const std::string& job, const std::string& dir);
  Result<Slot*> open_job(const std::string& job, const std::string& named_dir);
  std::unique_ptr<Store> make_store(const Slot& slot);
  std::unique_ptr<Drain> make_drain(const Slot& slot);
  std::unique_ptr<Home> make_home(const Slot& slot);
  std::unique_ptr<PeerFileThread> make_peer_files(Slot& slot);
  void refuse(ConnectionId id, const Error& error);
  void flush(ConnectionId id, Connection& connection);
  void bury();
  void store_events();
  void pump();
  void close_unused_jobs();
  bool in_use(const Job& job) const;
  bool may_close(Slot& slot);
  void begin_drain();
  bool drained() const;
  bool copies() const;
  bool in_doubt() const;
  bool may_be_decided() const;
  bool stores_settled();
  void say_what_is_not_durable() const;
  void say_what_is_lost();
  void tell_who_asked(Code code, const char* what, const std::vector<std::string>& versions);
  bool finished();
  int timeout_ms() const;
  std::uint64_t next_deadline_ns() const;
  bool quiet() const;
  // A tool's look at this agent, and through it at the others of its jobs; answered once they have,
  // or in a second.
  struct Look {
    ConnectionId tool = 0;
    std::optional<format::CommitRecord> where;  // only whose disks have that version
    Level level = Level::none;                  // of it
    std::map<std::uint64_t, std::shared_ptr<const Gathered>> members;  // by the job's slot
    bool done() const;
  };
  void begin_look(ConnectionId tool);
  Status begin_look(ConnectionId tool, const wire::Where& where);
  void open_metrics();
  StatusInput status_input() const;
  void answer_looks();
  std::string status_json(const Look& look) const;

  ServerOptions options_;
  std::unique_ptr<Pool> pool_;
  Fd listener_;
  wire::FileId socket_;  // the listener's name, as long as it is ours
  SocketPathWatch socket_path_watch_;
  bool unreachable_ = false;  // the name has gone for good
  Fd epoll_;
  Fd signals_;
  Fd reserve_;  // given up for a moment to tell a peer that no descriptor is left for it
  std::uint64_t started_ns_;
  std::shared_ptr<SharedDiskFacts> disk_facts_;
  DiskTraffic traffic_;
  std::uint64_t quiet_since_ns_ = 0;
  bool draining_ = false;
  std::uint64_t waits_until_ns_ = 0;  // while draining, once drained; 0: not yet
  bool refused_while_ending_ = false;
  bool stop_now_ = false;
  std::vector<ConnectionId> asked_to_end_;  // tools, after a drain
  ConnectionId next_id_ = 16;               // smaller numbers are the loop's own sources
  std::map<ConnectionId, Connection> connections_;
  struct Posted {
    std::uint64_t slot = 0;
    Event event;
    bool from_drain = false;
    PeerFileEvent from_peer_files = {};  // instead of an event
  };
  Mailbox<Posted> events_;
  std::uint64_t next_slot_ = 1;
  std::vector<Look> looks_;
  std::unique_ptr<MetricsPage> metrics_;
  std::string metrics_error_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> slots_;
};

}  // namespace backstay::agent
