// A job of an unmodified program that is cut again and again, with the shipped coordinator and the
// shipped members, and a socket between them in place of agents.
//
//   cut_job lead SOCKET RANKS CUTS SEED -- COMMAND...     starts it, and cuts it at random moments
//   cut_job rank SOCKET BOOT FOLDER -- PROGRAM...         what COMMAND starts for each rank
//
// At each cut it checks that all ranks stand outside of MPI, that all members of a communicator
// have the same clock, and for each pair of ranks that as many messages were taken in as were sent.
// The result is 0 where every cut has come, before its deadline.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/fd.h"
#include "capture/companion/cut_channel.h"
#include "capture/companion/cut_member.h"
#include "cut/coordinator.h"

namespace {

using namespace backstay;
using Words = std::vector<std::uint64_t>;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr auto deadline = 40s;

// --- messages: words, the first says what it is
// -------------------------------------------------

enum Kind : std::uint64_t { hello, report, order, standing, refused, who };

void put(int fd, const Words& words) {
  const auto bytes = words.size() * sizeof words[0];
  if (::send(fd, words.data(), bytes, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET) {
    fmt::print(stderr, "send: {}\n", std::strerror(errno));
  }
}

// Empty: the other side has gone.
Words next(int fd) {
  Words words(65536);
  const ssize_t got = ::recv(fd, words.data(), words.size() * sizeof words[0], 0);
  words.resize(got > 0 ? static_cast<std::size_t>(got) / sizeof words[0] : 0);
  return words;
}

void put_needs(Words& to, const std::vector<cut::Need>& needs) {
  to.push_back(needs.size());
  for (const cut::Need& one : needs) {
    to.insert(to.end(), {one.waiting, one.peer, static_cast<std::uint64_t>(one.what), one.count});
  }
}

std::vector<cut::Need> take_needs(const Words& from, std::size_t& at) {
  std::vector<cut::Need> needs(from.at(at++));
  for (cut::Need& one : needs) {
    one.waiting = static_cast<cut::RankNumber>(from.at(at));
    one.peer = static_cast<cut::RankNumber>(from.at(at + 1));
    one.what = static_cast<cut::Need::What>(from.at(at + 2));
    one.count = from.at(at + 3);
    at += 4;
  }
  return needs;
}

Words words_of(const cut::Report& one) {
  Words words{report,     one.cut,   one.round, one.ranks, one.reached,  one.standing,
              one.closed, one.saved, one.ended, one.sent,  one.taken_in, one.clocks.size()};
  for (const cut::Clock& clock : one.clocks) {
    words.insert(words.end(), {clock.communicator, clock.least, clock.most});
  }
  put_needs(words, one.needs);
  return words;
}

cut::Report report_of(const Words& words) {
  cut::Report one;
  const auto small = [&](std::size_t i) { return static_cast<std::uint32_t>(words.at(i)); };
  one.cut = words.at(1);
  one.round = small(2);
  one.ranks = small(3);
  one.reached = small(4);
  one.standing = small(5);
  one.closed = small(6);
  one.saved = small(7);
  one.ended = small(8);
  one.sent = words.at(9);
  one.taken_in = words.at(10);
  std::size_t at = 12;
  for (std::uint64_t i = 0; i < words.at(11); ++i, at += 3) {
    one.clocks.push_back({words.at(at), words.at(at + 1), words.at(at + 2)});
  }
  one.needs = take_needs(words, at);
  return one;
}

Words words_of(const cut::Order& one) {
  Words words{order, one.cut, static_cast<std::uint64_t>(one.what), one.round, one.targets.size()};
  for (const auto& target : one.targets) {
    words.insert(words.end(), {target.communicator, target.clock});
  }
  put_needs(words, one.needs);
  return words;
}

cut::Order order_of(const Words& words) {
  cut::Order one;
  one.cut = words.at(1);
  one.what = static_cast<cut::Order::What>(words.at(2));
  one.round = static_cast<std::uint32_t>(words.at(3));
  std::size_t at = 5;
  for (std::uint64_t i = 0; i < words.at(4); ++i, at += 2) {
    one.targets.push_back({words.at(at), words.at(at + 1)});
  }
  one.needs = take_needs(words, at);
  return one;
}

Words text(Kind kind, std::uint64_t number, const std::string& text) {
  Words words{kind, number, text.size()};
  words.resize(3 + (text.size() + 7) / 8);
  std::memcpy(&words[3], text.data(), text.size());
  return words;
}
std::string text_of(const Words& words) {
  return {reinterpret_cast<const char*>(&words.at(3)), words.at(2)};
}

sockaddr_un address_of(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

// --- one rank
// -----------------------------------------------------------------------------------

class OneRank {
 public:
  OneRank(int link, image::CutChannel& channel) : link_(link), channel_(channel) {}

  // Until the program has ended.
  int run(pid_t program) {
    for (;;) {
      int status = 0;
      if (::waitpid(program, &status, WNOHANG) == program) {
        member_.look();
        member_.ended();
        hand_on();
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      turn();
    }
  }

 private:
  // News of the library are waited for; orders then wait for a part of a millisecond.
  void turn() {
    const std::uint32_t seen = channel_.told();
    pollfd one{link_, POLLIN, 0};
    if (::poll(&one, 1, member_.is_busy() ? 0 : 10) > 0) hear();
    member_.look();
    hand_on();
    if (member_.is_busy()) channel_.wait(seen, 300us);
  }

  void hear() {
    const Words words = next(link_);
    if (words.empty()) {
      member_.lose_coordinator();
      link_ = -1;
    } else if (words[0] == order) {
      member_.receive(order_of(words));
    } else if (words[0] == who) {
      put(link_, text(who, channel_.memory().rank, describe()));
    }
  }

  std::string describe() {
    const lower::Channel& channel = channel_.memory();
    std::string all = fmt::format("{} (order {}, open {}, busy {})", member_.describe(),
                                  channel.order, channel.open_collectives, member_.is_busy());
    for (std::uint32_t i = 0; i < lower::callers_in(channel); ++i) {
      const lower::Caller& one = channel.caller[i];
      all += fmt::format(" (calls {}, situation {}, wish {} granted {}, in {})", one.calls,
                         one.situation, one.wish_number, one.granted, one.in_collective);
    }
    for (std::uint32_t i = 0; i < channel.communicators; ++i) {
      all += fmt::format(" {:x}:{}", channel.clock[i].number, channel.clock[i].begun);
    }
    for (std::uint32_t i = 0; i < channel.ranks; ++i) {
      const lower::PeerCounts& peer = lower::peers_in(channel_.memory())[i];
      all += fmt::format(" [{}: {} {} {}]", i, peer.sent, peer.taken_in, peer.taken);
    }
    return all;
  }

  void hand_on() {
    for (auto all = member_.take(); !all.empty(); all = member_.take()) hand_on(all);
  }

  void hand_on(const std::vector<image::CutMember::Output>& all) {
    for (const auto& one : all) {
      if (const auto* said = std::get_if<cut::Report>(&one)) {
        put(link_, words_of(*said));
      } else if (std::holds_alternative<image::CutMember::TakeImage>(one)) {
        put(link_, counts());
        member_.saved();
      } else if (const auto* no = std::get_if<image::CutMember::Refused>(&one)) {
        put(link_, text(refused, no->cut, no->why));
      }
    }
  }

  // Where an image would be taken.
  Words counts() {
    lower::Channel& channel = channel_.memory();
    Words words{standing, channel.rank, lower::is_outside(channel) ? 0U : 1U};
    for (std::uint32_t i = 0; i < channel.ranks; ++i) {
      words.push_back(lower::peers_in(channel)[i].sent);
      words.push_back(lower::peers_in(channel)[i].taken_in);
    }
    for (std::uint32_t i = 0; i < channel.communicators; ++i) {
      if (channel.clock[i].number == 0) continue;
      words.insert(words.end(), {channel.clock[i].number, channel.clock[i].begun});
    }
    return words;
  }

  int link_;
  image::CutChannel& channel_;
  image::CutMember member_{channel_.memory()};
};

int be_rank(char** words) {
  const Fd link(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(words[2]);
  if (::connect(link.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return 3;
  }
  auto channel = image::CutChannel::make();
  if (!channel.ok()) return 4;
  const std::string path = (*channel)->path();
  const pid_t program = ::fork();
  if (program == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<const char*> all{words[3], "--mpi", words[4], "--channel", path.c_str()};
    for (char** one = words + 5; *one != nullptr; ++one) all.push_back(*one);
    all.push_back(nullptr);
    ::execv(words[3], const_cast<char**>(all.data()));
    ::_exit(127);
  }
  return OneRank(link.get(), **channel).run(program);
}

// --- the lead
// -----------------------------------------------------------------------------------

class Lead {
 public:
  Lead(std::uint32_t ranks, int cuts, unsigned seed)
      : ranks_(ranks), cuts_left_(cuts), random_(seed), coordinator_(ranks) {}

  int run(const char* path, char** command) {
    const Fd listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(path);
    ::unlink(path);
    if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listening.get(), 128) != 0) {
      return 5;
    }
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      ::execvp(command[0], command);
      ::_exit(127);
    }
    for (std::uint32_t i = 0; i < ranks_; ++i) {
      links_.push_back(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    plan();
    while (!links_.empty() && !has_failed_) turn();
    int status = 0;
    if (has_failed_) ::kill(launcher, SIGTERM);
    ::waitpid(launcher, &status, 0);
    fmt::print(stderr, "cuts: {} saved, {} given up because {}; rounds at most {}\n", saved_,
               given_up_, why_, rounds_most_);
    fmt::print(stderr, "from the request to the cut, ms: at most {:.1f}, mean {:.1f}\n",
               slowest_ms_, saved_ > 0 ? all_ms_ / saved_ : 0);
    if (has_failed_) return 6;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
  }

 private:
  void plan() { next_ = Clock::now() + std::chrono::microseconds(random_() % 30000); }

  void turn() {
    std::vector<pollfd> polled;
    for (const int link : links_) polled.push_back({link, POLLIN, 0});
    const auto until = coordinator_.is_idle() && cuts_left_ > 0 ? next_ : Clock::now() + 100ms;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    ::poll(polled.data(), polled.size(), std::max<int>(0, static_cast<int>(left.count())));
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) hear(static_cast<std::uint32_t>(i));
    }
    if (ended_ == ranks_) links_.clear();
    act();
  }

  void act() {
    const auto now = Clock::now();
    if (coordinator_.is_idle() && cuts_left_ > 0 && now >= next_ && ended_ == 0) {
      --cuts_left_;
      counts_.clear();
      began_ = now;
      coordinator_.request();
    }
    hand_on();
    if (!coordinator_.is_idle() && !asked_ && now > began_ + deadline) {
      asked_ = true;
      for (const int link : links_) put(link, {who});
    }
    if (asked_ && now > began_ + deadline + 2s) fail("a cut does not come");
  }

  void hear(std::uint32_t rank) {
    const Words words = next(links_[rank]);
    if (words.empty()) {
      if (links_[rank] < 0) return;
      ::close(links_[rank]);
      links_[rank] = -1;
      ++ended_;
      coordinator_.give_up("a rank has ended");
    } else if (words[0] == report) {
      reports_.put(rank, report_of(words));
      coordinator_.receive(reports_.joined());
    } else if (words[0] == standing) {
      counts_[static_cast<std::uint32_t>(words.at(1))] = words;
      if (counts_.size() == ranks_) check();
    } else if (words[0] == refused) {
      coordinator_.give_up(text_of(words));
    } else if (words[0] == who) {
      fmt::print(stderr, "rank {}: {}\n", words.at(1), text_of(words));
    }
    hand_on();
  }

  // All members of a communicator have begun as many collective calls on it.
  void check_clocks() {
    std::map<std::uint64_t, std::uint64_t> clocks;
    for (const auto& [rank, words] : counts_) {
      for (std::size_t at = 3 + 2 * ranks_; at < words.size(); at += 2) {
        const auto [known, is_new] = clocks.emplace(words[at], words[at + 1]);
        if (is_new || known->second == words[at + 1]) continue;
        fail(fmt::format("rank {} has begun {} calls on {:x}, another one {}", rank, words[at + 1],
                         words[at], known->second));
      }
    }
  }

  // As many messages were taken in as were sent, for each pair; and no rank is in MPI.
  void check() {
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began_).count();
    slowest_ms_ = std::max(slowest_ms_, ms);
    all_ms_ += ms;
    check_clocks();
    for (std::uint32_t from = 0; from < ranks_; ++from) {
      if (counts_[from].at(2) != 0) fail(fmt::format("rank {} is in a call of MPI", from));
      for (std::uint32_t to = 0; to < ranks_; ++to) {
        const std::uint64_t sent = counts_[from].at(3 + 2 * to);
        const std::uint64_t taken_in = counts_[to].at(4 + 2 * from);
        if (sent != taken_in) {
          fail(
              fmt::format("{} sent {} messages to {}, which took {} in", from, sent, to, taken_in));
        }
      }
    }
  }

  void hand_on() {
    for (const cut::CoordinatorOutput& one : coordinator_.take()) {
      if (const auto* said = std::get_if<cut::Order>(&one)) {
        for (const int link : links_) {
          if (link >= 0) put(link, words_of(*said));
        }
        rounds_most_ = std::max(rounds_most_, said->round);
        continue;
      }
      const auto& end = std::get<cut::Ended>(one);
      if (end.saved) {
        ++saved_;
      } else {
        // Before MPI_Init there is nothing to be cut.
        if (end.why.find("MPI_Init") != std::string::npos) ++cuts_left_;
        ++given_up_;
        why_ = end.why;
        if (end.why.find("went on") != std::string::npos) fail(end.why);
      }
      plan();
    }
  }

  void fail(const std::string& why) {
    fmt::print(stderr, "FAILED: {}\n", why);
    has_failed_ = true;
  }

  const std::uint32_t ranks_;
  int cuts_left_;
  std::mt19937 random_;
  cut::Coordinator coordinator_;
  cut::Reports reports_;
  std::vector<int> links_;
  std::map<std::uint32_t, Words> counts_;
  Clock::time_point next_, began_;
  std::uint32_t ended_ = 0, rounds_most_ = 0;
  int saved_ = 0, given_up_ = 0;
  double slowest_ms_ = 0, all_ms_ = 0;
  std::string why_ = "-";
  bool asked_ = false, has_failed_ = false;
};

}  // namespace

int main(int, char** words) {
  const std::string what = words[1];
  if (what == "rank") return be_rank(words);
  Lead lead(static_cast<std::uint32_t>(std::stoul(words[3])), std::stoi(words[4]),
            static_cast<unsigned>(std::stoul(words[5])));
  return lead.run(words[2], words + 7);
}
