// How fast bulk data goes from one host to another, against a plain TCP stream between the same
// two.
//
// Three ways, in turn: `stream` (one socket, large writes and reads), `tcp` (offers of 4 MiB that
// the receiver fetches, eight at a time, over the connection itself), `ucx` (the same with the
// payload moved by UCX over TCP, where it was built). The time is the receiver's: from the
// connection to the last byte. Every process is a new one.
//
//   bench/net                                                       two processes of this machine
//   bench/net --device eth0 --sender-on "tests/cluster/mini exec n0 --" --receiver-on
//   "tests/cluster/mini exec n1 --"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "net/address.h"
#include "net/tcp.h"
#include "net/ucx.h"

namespace backstay::bench {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t piece_bytes = 4 * mebibyte;
constexpr std::size_t pieces_at_once = 8;

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/net", 5} {}
  std::size_t mib = 1024;
  std::string device = "lo";
  std::string sender_on, receiver_on;  // commands that run the rest of their line on a host
  // Options of the processes that this one starts.
  std::string role, way, to;
};

double seconds_since(std::uint64_t start_ns) {
  return static_cast<double>(system_clock().monotonic_ns() - start_ns) / 1e9;
}

template <typename T>
T value_or_die(Result<T> result) {
  if (!result.ok()) die(result.error().to_string());
  return std::move(result).value();
}

// --- a plain stream ------------------------------------------------------------------------------

void announce(const std::string& address) {
  std::printf("%s\n", address.c_str());
  std::fflush(stdout);
}

double receive_stream(const Options& options) {
  const auto device = value_or_die(net::address_of_device(options.device));
  const Fd listener = value_or_die(net::listen_at(&device, 0));
  announce(net::own_address(listener.get()).text());
  pollfd waiting{listener.get(), POLLIN, 0};
  ::poll(&waiting, 1, -1);
  const Fd socket(::accept(listener.get(), nullptr, nullptr));
  const std::uint64_t start = system_clock().monotonic_ns();
  std::vector<char> memory(pieces_at_once * piece_bytes);
  std::size_t total = 0;
  for (ssize_t count = 1; count > 0;) {
    const std::size_t at = total % memory.size();
    count = ::recv(socket.get(), memory.data() + at, std::min(mebibyte, memory.size() - at), 0);
    total += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  if (total != options.mib * mebibyte) die("the stream broke");
  return seconds_since(start);
}

void send_stream(const Options& options) {
  const auto parts = value_or_die(net::split_address(options.to));
  auto to = value_or_die(net::address_of_device(options.device));
  if (::inet_pton(AF_INET, parts.host.c_str(),
                  &reinterpret_cast<sockaddr_in&>(to.storage).sin_addr) != 1)
    die("no IPv4 address: " + options.to);
  to.set_port(static_cast<std::uint16_t>(std::stoi(parts.port)));
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), to.get(), to.length) != 0) die("the receiver cannot be reached");
  const std::vector<char> memory(pieces_at_once * piece_bytes, 'x');
  for (std::size_t left = options.mib * mebibyte, at = 0; left > 0;) {
    const ssize_t count =
        ::send(socket.get(), memory.data() + at, std::min({left, mebibyte, memory.size() - at}), 0);
    if (count < 0) die("the stream broke");
    left -= static_cast<std::size_t>(count);
    at = (at + static_cast<std::size_t>(count)) % memory.size();
  }
}

// --- ours ----------------------------------------------------------------------------------------

std::unique_ptr<net::Transport> make_transport(const Options& options) {
  net::TcpOptions ours{.secret = value_or_die(net::Secret::from_hex(std::string(64, 'a'))),
                       .identity = options.role,
                       .device = options.device};
  if (options.way == "ucx")
    ours.bulk = value_or_die(net::make_ucx({.devices = options.device, .transports = "tcp"}));
  return value_or_die(net::make_tcp(std::move(ours)));
}

std::vector<net::Event> wait_for_events(net::Transport& transport) {
  for (;;) {
    auto events = transport.progress();
    if (!events.empty()) return events;
    pollfd waiting{transport.facts().descriptor, POLLIN, 0};
    ::poll(&waiting, 1, -1);
  }
}

double receive_ours(const Options& options) {
  std::vector<std::byte> memory(pieces_at_once * piece_bytes);
  const auto transport = make_transport(options);
  announce(transport->facts().address);
  const std::size_t pieces = options.mib * mebibyte / piece_bytes;
  std::uint64_t start = 0;
  std::size_t done = 0;
  while (done < pieces) {
    for (const auto& event : wait_for_events(*transport)) {
      if (std::holds_alternative<net::Connected>(event)) start = system_clock().monotonic_ns();
      if (const auto* offered = std::get_if<net::Offered>(&event)) {
        const std::size_t slot = offered->offer % pieces_at_once;  // the one eight before has ended
        const auto status =
            transport->fetch(offered->peer, offered->offer,
                             std::span(memory).subspan(slot * piece_bytes, piece_bytes));
        if (!status.ok()) die(status.error().to_string());
      }
      if (const auto* fetched = std::get_if<net::Fetched>(&event)) {
        if (!fetched->status.ok()) die(fetched->status.error().to_string());
        ++done;
      }
      if (std::holds_alternative<net::Closed>(event)) die("the connection broke");
    }
  }
  const double seconds = seconds_since(start);
  for (bool closed = false; !closed;) {  // the sender hears of the last piece, then goes
    for (const auto& event : wait_for_events(*transport))
      closed = std::holds_alternative<net::Closed>(event);
  }
  return seconds;
}

void send_ours(const Options& options) {
  const std::vector<std::byte> memory(pieces_at_once * piece_bytes, std::byte{'x'});
  const auto transport = make_transport(options);
  const net::PeerId peer = transport->connect(options.to);
  const std::size_t pieces = options.mib * mebibyte / piece_bytes;
  std::size_t offered = 0, taken = 0;
  const auto offer = [&] {
    if (offered == pieces) return;
    const std::size_t slot = ++offered % pieces_at_once;
    value_or_die(
        transport->offer(peer, {}, Bytes(memory).subspan(slot * piece_bytes, piece_bytes)));
  };
  while (taken < pieces) {
    for (const auto& event : wait_for_events(*transport)) {
      if (std::holds_alternative<net::Connected>(event))
        for (std::size_t i = 0; i < pieces_at_once; ++i) offer();
      if (std::holds_alternative<net::Taken>(event)) {
        ++taken;
        offer();
      }
      if (const auto* closed = std::get_if<net::Closed>(&event))
        die(closed->status.error().to_string());
    }
  }
}

// --- both, many times ----------------------------------------------------------------------------

std::string command(const Options& options, const std::string& way, const std::string& role) {
  char self[PATH_MAX] = "";
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) die("who am I?");
  return (role == "send" ? options.sender_on : options.receiver_on) + " " + self + " --role " +
         role + " --way " + way + " --device " + options.device + " --mib " +
         std::to_string(options.mib);
}

double measure(const Options& options, const std::string& way) {
  std::FILE* receiver = ::popen(command(options, way, "receive").c_str(), "r");
  char address[256] = "";
  if (!receiver || std::fscanf(receiver, "%255s", address) != 1) die("no receiver: " + way);
  if (std::system((command(options, way, "send") + " --to " + address).c_str()) != 0)
    die("the sender failed: " + way);
  double seconds = 0;
  if (std::fscanf(receiver, "%lf", &seconds) != 1 || ::pclose(receiver) != 0)
    die("the receiver failed: " + way);
  return seconds;
}

nlohmann::json run(const Options& options) {
  if (!options.role.empty()) {
    const bool plain = options.way == "stream";
    if (options.role == "receive")
      announce(std::to_string(plain ? receive_stream(options) : receive_ours(options)));
    else if (plain)
      send_stream(options);
    else
      send_ours(options);
    std::exit(0);
  }
  const bool has_ucx = net::make_ucx({.devices = "lo", .transports = "tcp"}).ok();
  Samples samples;
  std::vector<Ratio> ratios = {{"tcp_over_stream", "tcp_s", "stream_s", 1 / 0.9}};
  if (has_ucx) ratios.push_back({"ucx_over_stream", "ucx_s", "stream_s", 1 / 0.9});
  for (int i = 0; i < options.repetitions; ++i) {
    for (const std::string way : {"stream", "tcp", "ucx"}) {
      if (way == "ucx" && !has_ucx) continue;
      std::fprintf(stderr, "net: %s, repetition %d of %d\n", way.c_str(), i + 1,
                   options.repetitions);
      samples.add(way + "_s", measure(options, way));
    }
  }
  nlohmann::json json = {{"benchmark", "net"},
                         {"repetitions", options.repetitions},
                         {"bytes", options.mib * mebibyte},
                         {"device", options.device},
                         {"sender_on", options.sender_on},
                         {"receiver_on", options.receiver_on}};
  samples.write_to(json);
  json["ratios"] = compare(samples, ratios);
  return json;
}

void print_table(const nlohmann::json& json) {
  const double bytes = json["bytes"].get<double>();
  std::printf("%.0f MiB, device %s, medians of %d\n", bytes / mebibyte,
              json["device"].get<std::string>().c_str(), json["repetitions"].get<int>());
  std::printf("%-8s %10s %10s %18s\n", "way", "s", "MB/s", "of a plain stream");
  for (const char* way : {"stream", "tcp", "ucx"}) {
    const std::string key = std::string(way) + "_s";
    if (!json.contains(key)) continue;
    const double seconds = json[key].get<double>();
    std::printf("%-8s %10.3f %10.0f %18.2f\n", way, seconds, bytes / seconds / 1e6,
                json["stream_s"].get<double>() / seconds);
  }
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) {
  using namespace backstay::bench;
  Options options;
  const Program program{
      [&](CLI::App& app) {
        app.add_option("--mib", options.mib, "to move each time")->check(CLI::Range(32, 1 << 20));
        app.add_option("--device", options.device, "network device of both hosts");
        app.add_option("--sender-on", options.sender_on,
                       "command that runs the rest of its line on the sending host");
        app.add_option("--receiver-on", options.receiver_on, "the same for the receiving host");
        app.add_option("--role", options.role)->group("");
        app.add_option("--way", options.way)->group("");
        app.add_option("--to", options.to)->group("");
      },
      [&] { return run(options); }, print_table};
  return run_program("Bulk data between two hosts, against a plain TCP stream", options, argc, argv,
                     program);
}
