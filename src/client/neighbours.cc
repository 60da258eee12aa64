#include "client/neighbours.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/domain.h"
#include "base/machine.h"

namespace backstay::client {

namespace {

constexpr std::size_t secret_bytes = 32;
constexpr std::size_t secret_digits = 2 * secret_bytes;

Status fill_with_digits(std::array<char, secret_digits>& digits) {
  std::array<unsigned char, secret_bytes> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return errno_error("make a secret", errno);
  }
  constexpr char hex[] = "0123456789abcdef";
  for (std::size_t i = 0; i < random.size(); ++i) {
    digits[2 * i] = hex[random[i] >> 4];
    digits[2 * i + 1] = hex[random[i] & 15];
  }
  return {};
}

// The message of a node's first rank to all others.
struct Card {
  std::array<char, 320> address{};
  std::array<char, 128> domain{};
  std::array<char, 256> host{};
};

Status fill(Card& card, const std::string& address, const Config& config) {
  if (address.empty() || address.size() >= card.address.size()) {
    return Error(Code::invalid, "the agent's address '" + address + "' is empty or too long");
  }
  std::memcpy(card.address.data(), address.data(), address.size());
  BACKSTAY_ASSIGN(const std::string domain, domain_of(config, host_name()));
  if (domain.size() >= card.domain.size()) {
    return Error(Code::config, "the failure domain '" + domain +
                                   "' (protect.domain, protect.domain_file) is longer than " +
                                   std::to_string(card.domain.size() - 1) + " bytes");
  }
  std::memcpy(card.domain.data(), domain.data(), domain.size());
  host_name().copy(card.host.data(), card.host.size() - 1);
  return {};
}

template <std::size_t size>
std::string text_of(const std::array<char, size>& field) {
  return {field.data(), ::strnlen(field.data(), size)};
}

}  // namespace

Result<std::string> agree_on_secret(const Group& group) {
  if (group.nodes() == 1) return std::string();
  std::array<char, secret_digits> digits{};
  BACKSTAY_TRY(group.agree(group.rank() == 0 ? fill_with_digits(digits) : Status()));
  BACKSTAY_TRY(group.broadcast(digits.data(), digits.size()));
  return std::string(digits.data(), digits.size());
}

Status Reach::add(const std::string& host, const std::string& address) {
  // A bridge of virtual machines, for example, has the same address on every host.
  const auto at = host_at_.emplace(address.substr(0, address.rfind(':')), host).first;
  if (!address.empty() && at->second != host && unreachable_.empty()) {
    return Error(Code::config, "network.device: the agents of " + at->second + " and " + host +
                                   " have one address, " + at->first +
                                   "; name the device of the network between the hosts");
  }
  if (first_host_.empty()) first_host_ = host;
  several_hosts_ = several_hosts_ || host != first_host_;
  const bool loopback = address.starts_with("127.") || address.starts_with("[::1]:");
  if (loopback && unreachable_.empty()) unreachable_ = host + " (" + address + ")";
  if (!several_hosts_ || unreachable_.empty()) return {};
  return Error(Code::config,
               "network.device: no other host can reach the agent of " + unreachable_ +
                   "; name the device of the network between the hosts, or leave the key empty");
}

Status introduce_agents(const Group& group, Connection& agent, const Config& config) {
  if (group.nodes() == 1) return {};
  Card mine;
  BACKSTAY_TRY(group.agree(fill(mine, agent.welcomed().address, config)));
  wire::Neighbours all;
  Status told;
  Reach reach;
  for (int node = 0; node < group.nodes(); ++node) {
    BACKSTAY_ASSIGN(const int root, group.first_rank_of(node));
    Card card = mine;
    BACKSTAY_TRY(group.broadcast(&card, sizeof card, root));
    BACKSTAY_TRY(reach.add(text_of(card.host), text_of(card.address)));  // the same on all ranks
    all.neighbours.push_back(
        {static_cast<NodeId>(node), text_of(card.address), text_of(card.domain)});
    all.last = node + 1 == group.nodes();
    constexpr std::size_t in_one_message = 100;  // of at most 460 bytes: 64 KiB
    if (!all.last && all.neighbours.size() < in_one_message) continue;
    if (group.local_rank() == 0 && told.ok()) told = agent.send(all);
    all.neighbours.clear();
  }
  return group.agree(told);
}

}  // namespace backstay::client
