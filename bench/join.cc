// How long the agents of a run take to find each other in their tree, beside a star of the same
// size (paper 001, Table IV).
//
// Each agent is a process of this machine with the network, mesh and tree of a real one
// (agent/group/run_membership.h), and no pool. The time begins when all know all addresses, which
// the ranks give them, and ends when every agent has passed a barrier of all: each is in the tree,
// and the whole tree answers. Then one more barrier is measured, in the complete tree. The star is
// the same with as many children a node as there are agents, so that all connect to one.
//
//   bench/join
//   bench/join --agents 64 --repetitions 3 --heartbeat 0.1
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "agent/group/run_membership.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "net/tcp.h"

namespace backstay::bench {
namespace {

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/join", 5} {}
  std::uint32_t agents = 256;
  std::uint32_t arity = 16;
  double heartbeat_s = 1;
};

template <typename T>
T value_or_die(Result<T> result) {
  if (!result.ok()) die(result.error().to_string());
  return std::move(result).value();
}

// --- one agent -----------------------------------------------------------------------------------

// Counts rounds of the one barrier; what else becomes known does not matter here.
class Owner final : public agent::MembershipOwner, private agent::PeerEvents {
 public:
  void record(tree::RunVersion, Level) override {}
  void announced(tree::RunVersion, Level) override {}
  void membership(const tree::Membership&) override {}
  void released(std::uint64_t, std::uint64_t round) override { rounds = std::max(rounds, round); }
  void fact(const tree::Fact&) override {}
  void reached(NodeId) override { ++connections; }
  void ticked() override {}
  agent::PeerEvents& files() override { return *this; }

  std::uint64_t rounds = 0;
  std::uint64_t connections = 0;

 private:
  void message(NodeId, const wire::peer::Message&) override {}
  void offered(NodeId, std::uint64_t, std::uint64_t, agent::OfferFrom) override {}
  void lost(NodeId, const Error&) override {}
};

// A line to the parent process: fits a pipe at once.
void say(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
}

// Serves the fleet until `round`; the parent that goes ends it.
void serve_until(agent::RunMembership& run_membership, const Owner& owner, std::uint64_t round,
                 int from) {
  while (owner.rounds < round) {
    pollfd waiting[] = {{run_membership.descriptor(), POLLIN, 0}, {from, 0, 0}};
    ::poll(waiting, 2, run_membership.has_news() ? 0 : -1);
    if (waiting[1].revents != 0) ::_exit(1);
    run_membership.progress();
  }
}

// Serves it until the parent writes a byte; false where it has gone.
bool serve_until_told(agent::RunMembership& run_membership, int from) {
  for (;;) {
    pollfd waiting[] = {{run_membership.descriptor(), POLLIN, 0}, {from, POLLIN, 0}};
    ::poll(waiting, 2, run_membership.has_news() ? 0 : -1);
    run_membership.progress();
    char byte = 0;
    if (waiting[1].revents != 0) return ::read(from, &byte, 1) == 1;
  }
}

std::string read_line(int from) {
  std::string line;
  for (char byte = 0; ::read(from, &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

// `from`: the addresses of all, in one line; then a byte for each barrier. `to`: our address, a
// line for each barrier.
[[noreturn]] void be_agent(const Options& options, NodeId node, std::uint32_t arity,
                           const net::Secret& secret, int from, int to) {
  spdlog::set_level(spdlog::level::err);
  const agent::MemberId self{1, node, 1};
  Owner owner;
  auto run_membership = value_or_die(agent::RunMembership::create(
      {self, options.agents, options.heartbeat_s, arity},
      value_or_die(net::make_tcp({.secret = secret, .identity = self.text(), .device = "lo"})), {},
      owner));
  say(to, run_membership->address());
  wire::Neighbours all;
  for (const auto& address : nlohmann::json::parse(read_line(from)))
    all.neighbours.push_back(
        {static_cast<NodeId>(all.neighbours.size()), address.get<std::string>(), ""});
  if (const Status status = run_membership->know(all); !status.ok())
    die(status.error().to_string());
  for (std::uint64_t round = 1; round == 1 || serve_until_told(*run_membership, from); ++round) {
    run_membership->enter(1, round);
    serve_until(*run_membership, owner, round, from);
    say(to, std::to_string(owner.connections));
  }
  ::_exit(0);
}

// --- all of them ---------------------------------------------------------------------------------

struct Child {
  pid_t pid = 0;
  int to = -1;
  int from = -1;
};

std::vector<Child> start_all(const Options& options, std::uint32_t arity) {
  const net::Secret secret = value_or_die(net::Secret::from_hex(std::string(64, 'a')));
  std::vector<Child> children;
  for (NodeId node = 0; node < options.agents; ++node) {
    int down[2], up[2];
    if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) die("no pipe");
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) die("no process");
    if (pid == 0) {
      for (const Child& other : children) {
        ::close(other.to);
        ::close(other.from);
      }
      ::close(down[1]);
      ::close(up[0]);
      be_agent(options, node, arity, secret, down[0], up[1]);
    }
    ::close(down[0]);
    ::close(up[1]);
    children.push_back({pid, down[1], up[0]});
  }
  return children;
}

std::vector<std::string> line_of_each(const std::vector<Child>& children) {
  std::vector<std::string> lines;
  for (const Child& child : children) {
    lines.push_back(read_line(child.from));
    if (lines.back().empty()) die("an agent has ended");
  }
  return lines;
}

void tell(const std::vector<Child>& children, const std::string& text) {
  for (const Child& child : children) {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = ::write(child.to, text.data() + at, text.size() - at);
      if (count < 0) die("an agent has ended");
      at += static_cast<std::size_t>(count);
    }
  }
}

double seconds_since(std::uint64_t start_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
}

void measure(const Options& options, const std::string& shape, std::uint32_t arity,
             Samples& samples) {
  const std::vector<Child> children = start_all(options, arity);
  const std::string addresses = nlohmann::json(line_of_each(children)).dump();
  const std::uint64_t began = system_clock().monotonic_ns();
  tell(children, addresses + "\n");
  const auto connections = line_of_each(children);
  samples.add(shape + "_join_s", seconds_since(began));
  double most = 0;
  for (const std::string& count : connections) most = std::max(most, std::stod(count));
  samples.add(shape + "_connections_max", most);
  const std::uint64_t again = system_clock().monotonic_ns();
  tell(children, "b");
  line_of_each(children);
  samples.add(shape + "_barrier_s", seconds_since(again));
  for (const Child& child : children) {
    ::close(child.to);
    ::close(child.from);
  }
  for (const Child& child : children) ::waitpid(child.pid, nullptr, 0);
}

nlohmann::json run(const Options& options) {
  Samples samples;
  for (int i = 0; i < options.repetitions; ++i) {
    std::fprintf(stderr, "join: repetition %d of %d\n", i + 1, options.repetitions);
    measure(options, "tree", options.arity, samples);
    measure(options, "star", options.agents - 1, samples);
  }
  nlohmann::json json = {{"benchmark", "join"},
                         {"repetitions", options.repetitions},
                         {"agents", options.agents},
                         {"arity", options.arity},
                         {"heartbeat_s", options.heartbeat_s}};
  samples.write_to(json);
  return json;
}

void print_table(const nlohmann::json& json) {
  std::printf("%u agents as processes of this machine, medians of %d, a tick each %g s\n",
              json["agents"].get<unsigned>(), json["repetitions"].get<int>(),
              json["heartbeat_s"].get<double>());
  std::printf("%-16s %10s %14s %24s\n", "shape", "join s", "barrier s", "connections of one, max");
  for (const char* shape : {"tree", "star"}) {
    const std::string name = shape;
    const std::string text =
        name == "tree" ? "tree of " + std::to_string(json["arity"].get<unsigned>()) : name;
    std::printf("%-16s %10.2f %14.2f %24.0f\n", text.c_str(), json[name + "_join_s"].get<double>(),
                json[name + "_barrier_s"].get<double>(),
                json[name + "_connections_max"].get<double>());
  }
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) {
  using namespace backstay::bench;
  Options options;
  const Program program{
      [&](CLI::App& app) {
        app.add_option("--agents", options.agents, "processes")->check(CLI::Range(3, 1024));
        app.add_option("--arity", options.arity, "children of a node in the tree")
            ->check(CLI::Range(2, 1023));
        app.add_option("--heartbeat", options.heartbeat_s, "seconds of a tick")
            ->check(CLI::Range(0.01, 60.0));
      },
      [&] { return run(options); }, print_table};
  return run_program("How long agents take to join, in a tree and in a star", options, argc, argv,
                     program);
}
