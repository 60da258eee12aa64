// backstay-companion: the one rank of a job that is an unmodified program
// (docs/guide/transparent.md).
//
//   backstay-companion -- PROGRAM ARGUMENTS...
//   backstay-companion --check      prints why a program cannot be saved here, else nothing
//
// `backstay run --transparent` starts it with the variables that a program's library would read. It
// goes on from the job's newest version, else starts the program; saves it when the settings say
// so, or when asked; and ends as it ends.
//
// Signals. SIGUSR1: a checkpoint. The first SIGTERM: a checkpoint, then the end; where that cannot
// be, and the second one: SIGTERM to the program. SIGINT, SIGHUP and SIGQUIT go to the program.
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/tell.h"
#include "capture/companion/command_note.h"
#include "capture/companion/image_source.h"
#include "capture/companion/image_target.h"
#include "client/mapping.h"
#include "client/object_session.h"

namespace backstay::image {
namespace {

using client::Session;

constexpr int exit_failed = 1;
constexpr int exit_refused = 78;  // as the boot program's
constexpr int terminated = 128 + SIGTERM;

class Companion {
 public:
  explicit Companion(std::vector<std::string> words)
      : words_(std::move(words)), command_(command_text(words_)) {}
  // An exit code.
  int run();

 private:
  Status bring_back();
  Status begin();
  int serve();
  void take_signals();
  void look_whether_due();
  void save();
  void tell_why_not(const Error& why);
  void stop();
  int end(int code);
  double look_every_s() const;

  std::string notes_of_image(const client::Origin& origin) const;

  const std::vector<std::string> words_;
  std::string command_;  // of the program that runs: that of its first start
  client::Group group_;
  std::unique_ptr<Session> session_;
  std::optional<client::ObjectSession> objects_;
  std::unique_ptr<BootProcess> boot_;
  Fd signals_;
  bool asked_ = false;       // by SIGUSR1, or a cut is to be tried again
  bool has_child_ = false;   // at the last try, and was told
  bool stop_asked_ = false;  // by SIGTERM or the agent
  bool stop_tried_ = false;
  bool stopped_ = false;  // saved and ended, as asked
  std::string cannot_;    // why the program could not be saved at the last try
};

Fd block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1}) {
    ::sigaddset(&set, number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int Companion::run() {
  signals_ = block_signals();
  auto session = Session::start(group_, nullptr);
  if (!session.ok()) {
    tell_user(session.error().message());
    return exit_failed;
  }
  session_ = std::move(session).value();
  objects_.emplace(*session_);
  Status status = bring_back();
  if (!status.ok() && status.error().code() == Code::none) status = begin();
  if (status.ok()) return serve();
  tell_user(status.error().message());
  objects_->refuse(status.error());
  const int code = boot_ ? boot_->wait() : exit_refused;
  session_->leave_silently();
  return code;
}

// Errors: none (there is no version to go on from).
Status Companion::bring_back() {
  std::unique_ptr<ImageTarget> target;
  BACKSTAY_TRY(objects_->restart(
      [&](client::Connection& agent, const client::Origin& origin) -> client::ObjectTarget& {
        return *(target = std::make_unique<ImageTarget>(origin, agent));
      }));
  boot_ = target->take();
  if (!target->command().empty() && target->command() != command_) {
    tell_user(
        fmt::format("goes on with the command that was saved: {}. For {} start afresh "
                    "(--fresh), or give it another name (--job)",
                    target->command(), command_));
    command_ = target->command();
  }
  return {};
}

// A request that changes nothing: its answer says whether the program can be saved at all.
Status Companion::begin() {
  BACKSTAY_ASSIGN(boot_, BootProcess::start(words_));
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::resume);
  const auto runs = boot_->ask(request);
  if (runs.ok() || runs.error().code() != Code::mismatch) return {};  // the first cut says more
  return runs.error();
}

int Companion::serve() {
  for (;;) {
    const auto timeout = static_cast<int>(look_every_s() * 1000);
    pollfd look{signals_.get(), POLLIN, 0};
    ::poll(&look, 1, std::max(timeout, 1));
    take_signals();
    if (const auto code = boot_->reap()) return end(*code);
    look_whether_due();
  }
}

double Companion::look_every_s() const {
  const auto& checkpoint = session_->config().checkpoint;
  constexpr double longest_s = 0.05;
  if (checkpoint.policy != "interval") return longest_s;
  return std::clamp(checkpoint.interval_s / 20, 0.001, longest_s);
}

void Companion::take_signals() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number == SIGUSR1) asked_ = true;
    if (number == SIGTERM && stop_tried_) boot_->signal(SIGTERM);
    if (number == SIGTERM) stop_asked_ = true;
    if (number == SIGINT || number == SIGHUP || number == SIGQUIT) boot_->signal(number);
  }
}

void Companion::look_whether_due() {
  const bool due = session_->due() || asked_;
  stop_asked_ = stop_asked_ || session_->stop_requested();
  asked_ = false;
  if (stop_asked_ && !stop_tried_) return stop();
  if (due) save();
}

std::string Companion::notes_of_image(const client::Origin& origin) const {
  auto notes = origin.notes();
  notes.push_back({std::string(note_command), command_});
  return text_of(notes);
}

// Tells each reason once; the program goes on in any case. One that has a child is saved when that
// has ended: until then each look tries it, which stops nothing.
void Companion::save() {
  const Status saved =
      objects_->checkpoint([this](client::Connection& agent, const client::Origin& origin) {
        return ImageSource::begin(*boot_, agent, notes_of_image(origin), has_child_);
      });
  const bool child = !saved.ok() && saved.error().code() == Code::busy;
  asked_ = asked_ || child;
  const bool known = child && has_child_;
  has_child_ = child;
  if (saved.ok() || saved.error().code() == Code::rank_lost) return cannot_.clear();
  if (!known) tell_why_not(saved.error());
}

void Companion::tell_why_not(const Error& why) {
  if (why.message() == cannot_) return;
  cannot_ = why.message();
  if (why.code() != Code::unsupported && why.code() != Code::busy) {
    return tell_user(fmt::format("the program was not saved: {}; it runs on", cannot_));
  }
  objects_->cannot_save(cannot_);
  tell_user(fmt::format("the program cannot be saved now, because {}; it runs on", cannot_));
}

// What the program does after the cut is done again by the run that goes on from it.
void Companion::stop() {
  stop_tried_ = true;
  const VersionNumber before = session_->version();
  save();
  stopped_ = session_->version() != before;
  boot_->signal(stopped_ ? SIGKILL : SIGTERM);
}

int Companion::end(int code) {
  if (stopped_) code = terminated;
  if (code != 0 && !stopped_) {
    session_->leave_silently();
    return code;
  }
  if (const Status finished = session_->finish(); !finished.ok()) {
    tell_user(finished.error().message());
  }
  return code;
}

// `backstay doctor`: saves a small program here, and forgets it.
Status check() {
  constexpr std::size_t pool_bytes = 4096;
  const Fd memory(::memfd_create("backstay-check", MFD_CLOEXEC));
  if (::ftruncate(memory.get(), pool_bytes) != 0) return errno_error("take memory", errno);
  BACKSTAY_ASSIGN(const auto mapped, client::Mapping::of(memory, pool_bytes, true));
  BACKSTAY_ASSIGN(const auto boot, BootProcess::start({"/bin/sleep", "60"}));
  BACKSTAY_TRY(boot->lend({memory.get(), mapped.bytes(), {}}));
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::cut);
  BACKSTAY_TRY(boot->ask(request));
  request.kind = static_cast<std::uint32_t>(Ask::fill);
  request.bytes = pool_bytes;
  BACKSTAY_TRY(boot->ask(request));
  return {};
}

int print_check() {
  const Status good = check();
  if (!good.ok()) fmt::print("{}\n", good.error().message());
  return 0;
}

}  // namespace
}  // namespace backstay::image

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "--check") == 0) return backstay::image::print_check();
  const bool good = count > 2 && std::strcmp(words[1], "--") == 0;
  if (!good) {
    backstay::tell_user("backstay-companion is started by `backstay run --transparent`");
    return 2;
  }
  return backstay::image::Companion({words + 2, words + count}).run();
}
