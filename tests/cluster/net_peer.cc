// One end of a connection between two hosts, for test_net.py. Prints a line for each thing that
// happens.
//
//   net_peer serve OPTIONS            fetches whatever it is offered, until the connection has
//   ended
//   net_peer call ADDRESS OPTIONS     offers pieces (--pieces: in all; 0: none, stays idle), eight
//   at once
//
// Lines: "pid P", "address A", "connected", "moving" (the first piece has arrived), "done", "lost
// N" (requests that ended with an error), "closed CODE MESSAGE", "cpu C of W" (seconds since the
// connection).
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "net/tcp.h"
#include "net/ucx.h"

namespace {

using namespace backstay;

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t pieces_at_once = 8;

struct Options {
  std::string command, address, device = "eth0";
  std::uint16_t port = 0;
  double dead_after_s = 10;
  std::uint64_t pieces = 0;
  bool ucx = false;
};

template <typename... T>
void print(const char* format, T... values) {
  std::printf(format, values...);
  std::fflush(stdout);
}

double cpu_s() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double now_s() { return static_cast<double>(system_clock().monotonic_ns()) / 1e9; }

class Peer {
 public:
  Peer(net::Transport& transport, const Options& options)
      : transport_(transport), options_(options) {}

  // Until the connection has ended.
  void live() {
    if (options_.command == "call") peer_ = transport_.connect(options_.address);
    while (!closed_) {
      for (const auto& event : transport_.progress())
        std::visit([this](const auto& one) { see(one); }, event);
      pollfd waiting{transport_.facts().descriptor, POLLIN, 0};
      if (!closed_) ::poll(&waiting, 1, -1);
    }
  }

 private:
  void see(const net::Connected& connected) {
    peer_ = connected.peer;
    start_s_ = now_s();
    start_cpu_s_ = cpu_s();
    print("connected\n");
    for (std::size_t i = 0; options_.command == "call" && i < pieces_at_once; ++i) offer();
  }
  void offer() {
    if (offered_ == options_.pieces) return;
    ++offered_;
    if (!transport_
             .offer(peer_, {},
                    Bytes(memory_).subspan(offered_ % pieces_at_once * piece_bytes, piece_bytes))
             .ok())
      ++lost_;
  }
  void see(const net::Offered& offered) {
    const auto slot = offered.offer % pieces_at_once * piece_bytes;
    if (!transport_.fetch(peer_, offered.offer, std::span(memory_).subspan(slot, piece_bytes)).ok())
      ++lost_;
  }
  void see(const net::Taken& taken) {
    if (!taken.status.ok()) {
      ++lost_;
      return;
    }
    if (++moved_ == 1) print("moving\n");
    if (moved_ == options_.pieces) {
      print("done\n");
      transport_.close(peer_);
    }
    offer();
  }
  void see(const net::Fetched& fetched) {
    if (!fetched.status.ok())
      ++lost_;
    else if (++moved_ == 1)
      print("moving\n");
  }
  void see(const net::Closed& closed) {
    closed_ = true;
    print("cpu %.3f of %.3f\n", cpu_s() - start_cpu_s_, now_s() - start_s_);
    print("lost %zu\n", lost_);
    print("closed %s\n", closed.status.ok() ? "ok" : closed.status.error().to_string().c_str());
  }
  void see(const net::Message&) {}
  void see(const net::Ready&) {}

  net::Transport& transport_;
  const Options& options_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(pieces_at_once * piece_bytes);
  net::PeerId peer_ = 0;
  std::uint64_t offered_ = 0, moved_ = 0;
  std::size_t lost_ = 0;
  double start_s_ = 0, start_cpu_s_ = 0;
  bool closed_ = false;
};

Status run(const Options& options) {
  BACKSTAY_ASSIGN(const net::Secret secret, net::Secret::from_hex(std::string(64, 'a')));
  net::TcpOptions ours{.secret = secret,
                       .identity = options.command,
                       .device = options.device,
                       .port = options.port,
                       .dead_after_s = options.dead_after_s};
  if (options.ucx) {
    BACKSTAY_ASSIGN(ours.bulk, net::make_ucx({.devices = options.device, .transports = "tcp"}));
  }
  BACKSTAY_ASSIGN(const auto transport, net::make_tcp(std::move(ours)));
  print("pid %d\naddress %s\n", ::getpid(), transport->facts().address.c_str());
  Peer(*transport, options).live();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app;
  app.require_subcommand(1);
  app.add_option("--device", options.device);
  app.add_option("--port", options.port);
  app.add_option("--dead-after", options.dead_after_s);
  app.add_option("--pieces", options.pieces);
  app.add_flag("--ucx", options.ucx);
  app.fallthrough();
  app.add_subcommand("serve")->fallthrough();
  auto* call = app.add_subcommand("call")->fallthrough();
  call->add_option("address", options.address)->required();
  CLI11_PARSE(app, argc, argv);
  options.command = call->parsed() ? "call" : "serve";
  const Status status = run(options);
  if (!status.ok()) print("failed %s\n", status.error().to_string().c_str());
  return status.ok() ? 0 : 1;
}
