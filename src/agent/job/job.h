// One job on this node: takes the messages of its ranks and the events of its store, gives them to
// the rooms below, and carries out what the table of versions orders. A state machine without I/O
// of its own.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/checkpoint/capture.h"
#include "agent/checkpoint/writers.h"
#include "agent/cut/cut_relay.h"
#include "agent/disk/links.h"
#include "agent/disk/store.h"
#include "agent/drain/durability.h"
#include "agent/group/blocker_publisher.h"
#include "agent/group/request_publisher.h"
#include "agent/group/status_poll.h"
#include "agent/home/home_files.h"
#include "agent/job/commit_coordinator.h"
#include "agent/memory/control_page.h"
#include "agent/redundancy/network_pause.h"
#include "agent/redundancy/redundancy.h"
#include "agent/restart/restore.h"
#include "agent/version/job_state.h"
#include "agent/version/levels.h"
#include "base/parity_shape.h"

namespace backstay::agent {

class Job final : private RunEvents, private RedundancyEvents {
 public:
  Job(std::string name, std::string dir, Pool& pool, Outbox& outbox, StoreLink& store,
      const Clock& clock, std::unique_ptr<ControlPage> page);

  // The agent's, for the welcome of each rank.
  // `files_come_home`: captured files are brought to their own paths.
  void set_settings(std::vector<wire::Setting> settings, bool files_come_home = false) {
    settings_ = std::move(settings);
    state_.files_come_home = files_come_home;
  }

  const std::string& name() const { return state_.name; }

  // A rank joins. Answered by Welcome once the tier was scanned. Errors: busy (another run of this
  // job is alive), invalid, state; the caller ends the connection with them.
  Status hello(ConnectionId connection, const wire::Hello& hello);

  // A writer joins (docs/protocol/agent.md, "Writers"). Answered as hello(). `run`: new, for the
  // case that one begins. Errors: state (the job has ranks), and those of hello().
  Status join(ConnectionId connection, const wire::Join& join, RunId run);

  // A message of a joined rank or writer. An error ends its connection.
  Status receive(ConnectionId connection, const wire::Message& message);

  // The connection of a rank, a writer or a waiting tool is gone. `goodbye`: the process had said
  // so.
  void disconnected(ConnectionId connection, bool goodbye);

  void on(const Event& event);
  void on_drain(const Event& event);

  // A descriptor of the network is readable.
  void network() {
    commit_coordinator_.progress();
    carry_out();
  }

  // Buffers may have become free, other agents have answered, or time has passed.
  void pump();
  // When pump() is to be called by time alone; UINT64_MAX: never.
  std::uint64_t next_deadline_ns() const;

  // The other agents of the run, once what this node holds was announced to them; null when they
  // go. Before that, ranks of several nodes that ask for candidates wait. For tests; a run on
  // several nodes does it by itself.
  void set_around(RemoteFiles* around);

  // Status of the run's nodes; asks at most `others_max` other agents.
  // `version`: its files are listed as well; number 0: those of no version.
  std::shared_ptr<const Gathered> look(std::size_t others_max, VersionOfRun version = {});
  // The nodes whose files of the version are on this node's disk, in order.
  std::vector<NodeId> files_here(VersionOfRun version) const;
  // The parity of that version on this node's disk; null: none.
  const HeldFile* parity_here(VersionOfRun version) const;
  // Drops a captured version that cannot be written, if no process of the job is connected. False:
  // there was none.
  bool drop_unwritable();
  // The agent ends: what could not be written is tried once more.
  void last_try() {
    output_.retry_failed();
    carry_out();
  }
  // Captured versions that are not on the disk, with the reason: they go with the agent.
  std::vector<std::string> only_in_memory() const;
  // Versions that this node holds and of which it does not know whether all do, with the reason.
  std::vector<std::string> left_in_doubt() const;
  // The other agents of a run on several nodes have been found.
  bool knows_others() const { return redundancy_ != nullptr; }
  // The failure domain of a node of the run on several nodes; "": it fails alone, or is not known
  // yet.
  std::string domain_of(NodeId node) const;

  // `backstay checkpoint`, or a signal at one of the ranks.
  void request(bool stop) { request_publisher_.request(stop); }

  // A tool waits for a version that the program takes after this.
  void await_newer(ConnectionId tool, const wire::AwaitNewer& await) {
    levels_.await_newer(tool, await);
    durability_.consider();
    carry_out();
  }

  // A tool removes the version: no restart takes it any more. Errors: busy (it is still needed
  // here).
  Status forget(VersionNumber version);
  // A tool says that another host has a copy of a version of captured files. Errors: not_found.
  Status copied(VersionOfRun version);
  // A tool has ended the ranks, so that another run can go on: runs of the same `backstay run` are
  // refused from now on.
  void taken_over() { taken_over_.insert(launch_of(state_.run)); }

  // Gives back one buffer whose bytes are safe on the tier, for the good of another job.
  bool release_one() { return state_.release_one_written(); }

  // Ranks have joined: a request to checkpoint reaches them. Before that it would be forgotten, as
  // every run begins without requests.
  bool runs() const { return !state_.links.empty(); }
  // No process, and no version that is only here: closing the job would lose nothing but time.
  bool unused() const;
  // What would be lost is a fast restart, copies that are being made, here or for other nodes, or
  // the reason of a refusal, which `backstay run` asks for.
  bool keeps_versions() const {
    return !state_.memory.empty() || state_.refused || (redundancy_ && redundancy_->protects());
  }
  // Gives all buffers back. Precondition: unused(), and the store has nothing left to do.
  void close();
  // Captured versions are on their way to the tier, or a restore is under way.
  bool busy() const;
  // Sealed versions wait for the other nodes.
  bool in_doubt() const { return commit_coordinator_.in_doubt(); }
  bool may_be_decided() const { return commit_coordinator_.may_be_decided(); }
  // Not 0: this version is on its way to the durable directory.
  VersionNumber copying() const { return durability_.copying(); }
  bool waits_for_buffers() const;
  // The job is another agent's, or its tier could not be scanned; all who joined know.
  bool unusable() const { return scan_error_.has_value(); }

  const JobState& state() const { return state_; }
  wire::LevelIs level_of(VersionNumber version) const { return levels_.level_of(version); }
  bool stop_requested() const { return page_->stop_requested(); }
  // For status.
  friend std::optional<CutRelay::UnderWay> cut_under_way(const Job& job);

 private:
  struct Newcomer {  // that waits until its run can begin
    ConnectionId connection = 0;
    wire::Hello hello;  // of a writer: of a run of one node that would begin with it
    bool writer = false;
  };
  Status arrive(const Newcomer& newcomer);
  Status admit(const Newcomer& newcomer);
  Result<bool> begin_run(const wire::Hello& hello);
  bool looks_again();
  Status join_rank(ConnectionId connection, const wire::Hello& hello);
  void join_writer(const Newcomer& newcomer);
  void welcome(ConnectionId connection, HomeRange home, std::uint32_t writer);
  Status writer_message(ConnectionId connection, const wire::Message& message);
  bool has_processes() const { return runs() || writers_.any() || !waiting_.empty(); }
  bool taking_versions() const { return capture_.filling() || writers_.filling(); }
  // The ranks and writers need memory and disk for a moment; older versions wait for it.
  bool collecting() const { return capture_.collecting() || writers_.filling(); }
  void admit_waiting(const Status& opened);
  Status new_run(const wire::Hello& hello);
  void forget_run();
  void record_run(const wire::Hello& hello);
  // What the table of versions orders, until it orders nothing more. At the end of whatever may
  // change a version.
  void carry_out();
  void announced(const Announcement& now);
  Status check(const wire::Hello& hello) const;

  // What other agents say about files; they may know their neighbours before we do.
  class Files final : public PeerEvents {
   public:
    explicit Files(Job& job) : job_(job) {}
    void message(NodeId from, const wire::peer::Message& message) override;
    void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) override;
    void lost(NodeId peer, const Error& why) override;

    // There is a redundancy room now: it gets what came before.
    void replay();
    // Another run begins.
    void forget() { early_.clear(); }

   private:
    void deliver(NodeId from, const wire::peer::Message& message);
    static constexpr std::size_t early_max = 16384;
    Job& job_;
    std::vector<std::pair<NodeId, wire::peer::Message>> early_;
  };
  bool may_begin_run() const;
  Status find_neighbours();
  Status know(const wire::Neighbours& neighbours);

  // RunEvents
  void membership(const tree::Membership& change) override;
  void released(std::uint64_t barrier, std::uint64_t round) override;
  void reached(NodeId member) override;
  void fact(const tree::Fact& fact) override;
  void ticked() override { levels_.changed(); }
  // RedundancyEvents
  void listed(RemoteFiles& around) override;
  void directory_complete() override;
  void protected_here(VersionNumber version) override;
  bool has_told(VersionNumber version) const override;
  void kept(const HeldFile& file) override;
  void damaged(NodeId holder, const FileOf& file, const Error& why) override;

  void scanned(const Scanned& event);
  std::vector<VersionNumber> recorded_here() const;
  void looked(const Looked& event);
  void gone(VersionNumber version);
  Status restart(const RankLink& link, const wire::Restart& restart);
  void refuse_incomplete_restart();
  Status fetch(const RankLink& link, const wire::Fetch& fetch);
  void reap_restores();
  void ended(const Restore& restore);
  void refused(const RankLink& link, const wire::Refuse& refuse);
  void run_ends();
  void answer_candidates();
  void tell_facts();

  // Cuts: job_cut.cc.
  void begin_cuts();
  // With what it is to know of this moment; null: no run has begun.
  CutRelay* cuts();
  std::optional<Status> cut_message(Rank rank, const wire::Message& message);
  template <typename Message>
  void cut_message(NodeId from, const Message& message) {
    if (CutRelay* relay = cuts()) relay->on(from, message);
    carry_out_cuts();
  }
  void carry_out_cuts();
  void carry_out(const TellRank& it);
  void carry_out(const TellAgent& it);
  void carry_out(const HoldVersion& it) { capture_.hold(it.version); }
  void carry_out(const LetVersionGo&) { capture_.let_go(); }
  void carry_out(const CutBegan& it);
  void carry_out(const CutSaved&) { state_.forget_refusals(); }
  void carry_out(const CutGivenUp& it);
  void carry_out(const CutEnded& it);

  JobState state_;
  std::unique_ptr<ControlPage> page_;
  Levels levels_;
  VersionOutput output_;
  Capture capture_;
  Writers writers_;
  HomeFiles home_files_;
  Durability durability_;
  Files files_;
  CommitCoordinator commit_coordinator_;
  BlockerPublisher blocker_publisher_;
  RequestPublisher request_publisher_;
  std::vector<wire::Setting> settings_;
  std::uint64_t protect_bytes_per_s_ = 0;
  std::optional<ParityShape> parity_;       // in place of replicas
  std::unique_ptr<Redundancy> redundancy_;  // of a run on several nodes, once they are known
  std::uint64_t redundancy_wants_ns_ = no_deadline;
  std::unique_ptr<StatusPoll> status_poll_;  // with it
  std::uint64_t status_poll_wants_ns_ = no_deadline;
  NetworkPause network_pause_;
  std::unique_ptr<CutRelay> cuts_;  // of the present run
  bool scanned_ = false;
  std::set<Launch> taken_over_;  // launches whose ranks a tool has ended, for another one
  bool looked_ = false;          // since the last run began, whether its versions are still there
  bool looking_ = false;
  RunId opened_for_ = 0;             // the run whose durable directory was looked at
  std::optional<Error> scan_error_;  // also for those who come after it
  std::list<Newcomer> waiting_;      // for the scan
  std::list<std::pair<ConnectionId, wire::Candidates>> asking_;
  std::map<Rank, wire::Restart> restarting_;      // ranks that asked, until all have
  std::list<std::unique_ptr<Restore>> restores_;  // the front one runs
};

}  // namespace backstay::agent
