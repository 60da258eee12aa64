#include "capture/companion/rank.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/program_name.h"
#include "base/tell.h"
#include "capture/companion/agreed_cut.h"
#include "capture/companion/call_limits.h"
#include "capture/companion/command_note.h"
#include "capture/companion/ended_rank.h"
#include "capture/companion/image_source.h"
#include "capture/companion/image_target.h"
#include "capture/companion/inherited.h"
#include "meet/launcher_mpi.h"

namespace backstay::image {
namespace {

using client::Session;

constexpr int exit_failed = 1;
constexpr int exit_refused = 78;  // as the boot program's
constexpr int terminated = 128 + SIGTERM;

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

}  // namespace

Rank::Rank(Options options)
    : options_(std::move(options)), command_(command_text(options_.words)) {}

int Rank::run() {
  if (options_.launcher) keep_from_program();
  signals_ = block_signals();
  if (const Status ready = start_session(); !ready.ok()) return give_up(ready.error());
  Status status = bring_back();
  if (!status.ok() && status.error().code() == Code::none) status = begin();
  if (status.ok()) return serve();
  objects_->refuse(status.error());
  return give_up(status.error());
}

Status Rank::start_session() {
  BACKSTAY_TRY(company_.meet(options_.launcher));
  BACKSTAY_ASSIGN(session_, Session::start(company_.group(), nullptr, client::Copier::another));
  objects_.emplace(*session_);
  full_every_.emplace(session_->config().checkpoint.full_every);
  choice_.emplace(session_->config().checkpoint.snapshot);
  return {};
}

// The first rank speaks for all; where there is no company yet, each for itself. Some launchers end
// all ranks once one has ended: the others wait for it.
int Rank::give_up(const Error& why) {
  if (company_.is_first()) {
    tell_user(told(company_.cause(why)));
  } else {
    company_.wait_for_first();
  }
  boot_.reset();
  const int code = refused_code_ != 0 ? refused_code_ : objects_ ? exit_refused : exit_failed;
  company_.leave(code);
  if (session_) session_->leave_silently();
  return code;
}

std::string Rank::told(const Error& why) const {
  const std::string& text = why.message();
  return company_.several() && !text.starts_with("rank ") ? "rank 0: " + text : text;
}

// Errors: none (there is no version to go on from).
Status Rank::bring_back() {
  std::unique_ptr<ImageTarget> target;
  bool refused = false;
  std::optional<std::uint32_t> watched;  // its chain
  const auto version = objects_->restart(
      [&](client::Connection& agent, const client::Origin& origin) -> client::ObjectTarget& {
        refused = refused || (target && target->refused());
        target.reset();
        target = std::make_unique<ImageTarget>(origin, agent, new_life(), company_.is_first());
        return *target;
      },
      [&](bool may_keep) {
        watched = may_keep ? target->chain() : std::nullopt;
        if (watched && !(full_every_->may_follow(*watched) && target->watch())) watched.reset();
        return target->make_ready();
      });
  if (!version.ok()) return none_fits(version.error(), refused || (target && target->refused()));
  if (watched) full_every_->restarted(*watched);
  target->go();
  boot_ = target->take();
  ended_ = boot_ == nullptr;
  if (target->command().empty() || target->command() == command_) return {};
  if (company_.is_first()) {
    tell_user(
        fmt::format("goes on with the command that was saved: {}. For {} start afresh "
                    "(--fresh), or give it another name (--job)",
                    target->command(), command_));
  }
  command_ = target->command();
  return {};
}

// Collective. Where all versions are damaged, or a rank has refused one, another try would end the
// same way.
Error Rank::none_fits(const Error& why, bool refused) {
  const Error final_one(Code::mismatch, why.message());
  if (is_damage(why.code())) return final_one;
  if (why.code() != Code::lost && why.code() != Code::io) return why;
  const auto any = company_.group().maximum(refused ? 1 : 0);
  return any.ok() && *any != 0 ? final_one : why;
}

Status Rank::begin() {
  const Status mine = start_program();
  if (!mine.ok()) refused_code_ = boot_ ? boot_->wait() : exit_refused;
  return company_.group().agree(mine);
}

// The pool is lent now, as ranks that are held in a cut would wait for its pages. The answer also
// says whether the program can be saved at all.
Status Rank::start_program() {
  BACKSTAY_ASSIGN(boot_, BootProcess::start(options_.words, new_life()));
  const Status lent =
      objects_->agent() != nullptr ? boot_->lend(objects_->agent()->pool()) : Status();
  if (lent.ok() || lent.error().code() != Code::mismatch) return {};  // the first cut says more
  return lent;
}

// The life before has ended.
LifeOptions Rank::new_life() {
  LifeOptions life;
  life.contents = options_.contents;
  if (options_.mpi.empty()) return life;
  auto channel = CutChannel::make();
  channel_ = channel.ok() ? std::move(channel).value() : nullptr;
  life.mpi = options_.mpi;
  if (options_.launcher) life.launcher_mpi = meet::mpi_of_launcher(*options_.launcher);
  if (channel_) life.channel = channel_->path();
  return life;
}

int Rank::serve() {
  if (channel_) {
    moments_ = std::make_unique<AgreedCut>(company_, *session_, channel_->memory());
  } else {
    moments_ = std::make_unique<Lockstep>(company_, *session_);
  }
  for (;;) {
    wait_a_moment();
    if (const auto code = failure()) {
      company_.leave(*code);
      session_->leave_silently();
      return *code;
    }
    const bool wants_stop = stop_asked_ && !stop_tried_;
    const Orders orders = moments_->next({asked_, wants_stop, ended_, {}});
    if (company_.is_over()) return serve_alone();
    if (orders.all_ended) return end();
    look_whether_due(orders);
  }
}

// Nobody saves the program any more; it ends by itself. Where `backstay run` is gone the agent goes
// on knowing this process, so that another one can end it (--take-over).
int Rank::serve_alone() {
  if (company_.lost_run() && company_.is_first()) {
    tell_user("`backstay run` is gone: the program runs on, and is not saved any more");
  }
  moments_->leave();
  if (!company_.lost_run()) session_->leave_silently();
  const int code = wait_for_program();
  session_->leave_silently();
  return code;
}

int Rank::wait_for_program() {
  if (!boot_) return stopped_ ? terminated : 0;
  if (stop_asked_) boot_->signal(SIGTERM);
  stop_tried_ = true;  // each further SIGTERM is the program's
  for (;;) {
    if (const auto code = boot_->reap()) return stopped_ ? terminated : *code;
    wait_a_moment();
  }
}

void Rank::wait_a_moment() {
  const auto timeout = static_cast<int>(look_every_s() * 1000);
  pollfd look{signals_.get(), POLLIN, 0};
  ::poll(&look, 1, std::max(timeout, 1));
  take_signals();
}

double Rank::look_every_s() const {
  if (moments_ && moments_->is_hurried()) return 0.001;
  const auto& checkpoint = session_->config().checkpoint;
  constexpr double longest_s = 0.05;
  if (checkpoint.policy != "interval") return longest_s;
  return std::clamp(checkpoint.interval_s / 20, 0.001, longest_s);
}

void Rank::take_signals() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number == SIGUSR1) asked_ = true;
    if (number == SIGTERM && stop_tried_ && boot_) boot_->signal(SIGTERM);
    if (number == SIGTERM) stop_asked_ = true;
    const bool passed_on = number == SIGINT || number == SIGHUP || number == SIGQUIT;
    if (passed_on && boot_) boot_->signal(number);
  }
}

// The exit code of a program that has ended otherwise than in order.
std::optional<int> Rank::failure() {
  const auto code = boot_ ? boot_->reap() : std::nullopt;
  if (!code) return std::nullopt;
  ended_ = stopped_ || *code == 0;
  return ended_ ? std::nullopt : code;
}

void Rank::look_whether_due(const Orders& orders) {
  asked_ = false;
  if (orders.stop && !stop_tried_) return stop();
  if (orders.save && !stopped_) save();
}

std::string Rank::notes_of_image(const client::Origin& origin) const {
  auto notes = origin.notes();
  if (const auto chain = full_every_->chain(); chain > 0) {
    notes.push_back({std::string(note_chain), std::to_string(chain)});
  }
  notes.push_back({std::string(note_command), command_});
  return text_of(notes);
}

Result<std::unique_ptr<ImageSource>> Rank::cut(client::Connection& agent,
                                               const client::Origin& origin) {
  if (limits_its_calls(boot_->pid())) {
    return Error(Code::unsupported, "it limits its own system calls (seccomp)");
  }
  const VersionNumber base = objects_->base();
  const FullEvery::Cut next = full_every_->next(base != 0);
  ImageSource::What what{notes_of_image(origin), has_child_, next, base};
  if (!stop_tried_) what.choice = &*choice_;
  what.ends = stop_tried_;
  what.attend = [this] { return attend(); };
  return ImageSource::begin(*boot_, agent, what, record_);
}

// While a version is taken of a program that runs on: what serve() sees to otherwise, but for what
// all ranks do together.
int Rank::attend() {
  take_signals();
  if (!std::exchange(fixed_, true)) moments_->fixed();
  moments_->attend();
  return static_cast<int>(look_every_s() * 1000);
}

// A program may end at any moment; then it is saved as one that has ended.
Result<std::unique_ptr<client::ObjectSource>> Rank::take_image(client::Connection& agent,
                                                               const client::Origin& origin) {
  using Source = std::unique_ptr<client::ObjectSource>;
  BACKSTAY_TRY(moments_->may_save());
  if (ended_) return Source(std::make_unique<EndedRank>(origin, objects_->base()));
  const auto shares = options_.launcher ? shared_.why_not(boot_->pid()) : std::string();
  if (!shares.empty()) return Error(Code::unsupported, shares);
  auto image = cut(agent, origin);
  const auto mpi = image.ok() ? mpi_library_of(boot_->pid(), options_.mpi) : std::string();
  if (!mpi.empty() && !moments_->settles_mpi()) {
    return Error(Code::unsupported,
                 fmt::format("the program uses MPI ({}): such a program cannot be saved yet", mpi));
  }
  if (image.ok() && record_.forked && !std::exchange(fixed_, true)) moments_->fixed();
  if (image.ok()) return Source(std::move(*image));
  if (image.error().code() != Code::rank_lost || !company_.several()) return image.error();
  if (boot_->wait() == 0) return Source(std::make_unique<EndedRank>(origin, objects_->base()));
  return image.error();
}

// Tells each reason once; the program goes on in any case. One that has a child is saved when that
// has ended: until then each look tries it, which stops nothing.
void Rank::save() {
  record_ = CutRecord();
  fixed_ = false;
  const Status saved = objects_->checkpoint(
      [this](client::Connection& agent, const client::Origin& origin) {
        return take_image(agent, origin);
      },
      /*keeps=*/!ended_ && full_every_->wants_base());
  moments_->saved(saved);
  learn(saved);
  const bool child = !saved.ok() && saved.error().code() == Code::busy;
  asked_ = asked_ || child;
  const bool known = child && has_child_;
  has_child_ = child;
  if (saved.ok() || saved.error().code() == Code::rank_lost) return cannot_.clear();
  if (!known) tell_why_not(saved.error());
}

void Rank::learn(const Status& saved) {
  tell_no_snapshot();
  if (record_.bytes == 0) return;
  if (saved.ok()) tell_not_in_image();
  if (saved.ok()) learn_contents();
  const std::uint64_t copied = record_.bytes - record_.kept_bytes;
  saved.ok() ? full_every_->taken(record_.bytes, record_.kept_bytes) : full_every_->failed();
  if (record_.killed) choice_->killed();
  if (record_.all_copied) choice_->forked(record_.fork_s, record_.slow_down_s);
  if (saved.ok() && !record_.forked) choice_->copied(copied, record_.copy_s);
}

// Once for each reason. Where the machine has none to give, or where nothing else was wanted.
void Rank::tell_no_snapshot() {
  if (!record_.no_snapshot || company_.is_over()) return;
  if (record_.no_snapshot->code() == Code::rank_lost) return;  // the program has ended
  const bool wanted = session_->config().checkpoint.snapshot == "fork";
  const std::string& why = record_.no_snapshot->message();
  const bool machine = record_.no_snapshot->code() == Code::again;
  if ((!machine && !wanted) || why == no_snapshot_ || !company_.is_first()) return;
  no_snapshot_ = why;
  tell_user(fmt::format("the program stood still while its memory was copied, because {}", why));
}

// Once for each file. Ranks may map different ones: the first one of each node tells.
void Rank::tell_not_in_image() {
  if (record_.not_in_image.empty() || record_.not_in_image == not_in_image_ || company_.is_over())
    return;
  if (company_.group().local_rank() != 0) return;
  not_in_image_ = record_.not_in_image;
  const std::string who =
      company_.several() ? fmt::format("rank {}", company_.group().rank()) : "the program";
  tell_user(
      fmt::format("{} maps {} shared, to be read, and can make it writable (mprotect): a restart "
                  "does not undo what it writes there. With --capture-files it does, where the "
                  "file is open for writing",
                  who, not_in_image_));
}

// With the first version of each life. Of a command that is given again in another folder, patterns
// are those of that folder. Of several processes another one may have such files.
void Rank::learn_contents() {
  const bool first = contents_ == 0;
  contents_ = std::max(contents_, record_.contents > 0 ? 2 : 1);
  if (!first || contents_ == 2 || options_.contents.empty() || company_.several()) return;
  const std::string pattern = options_.contents.substr(0, options_.contents.find('\n'));
  const bool more = pattern.size() + 1 < options_.contents.size();
  tell_user(
      fmt::format("this version has no contents of files: none that the program has open for "
                  "writing fits --capture-files ({}{})",
                  pattern, more ? ", ..." : ""));
}

// Collective. A pattern may be mistyped.
void Rank::tell_unfitting() {
  if (options_.contents.empty()) return;
  const auto most = company_.group().maximum(contents_);
  if (!most.ok() || *most != 1 || !company_.is_first()) return;
  tell_user(
      "no file fits --capture-files of those that the program had open for writing when it was "
      "saved: the versions have no contents of files");
}

void Rank::tell_why_not(const Error& why) {
  const std::string wrapper =
      why.code() == Code::busy ? waits_for_child(options_.words) : std::string();
  const std::string text =
      wrapper.empty() ? told(why)
                      : fmt::format("{}: put {} before `backstay run`", told(why), wrapper);
  if (company_.group().local_rank() != 0 || text == cannot_ || company_.is_over()) return;
  cannot_ = text;
  const bool program_is_why = why.code() == Code::unsupported || why.code() == Code::busy;
  if (program_is_why) objects_->cannot_save(cannot_);
  if (!company_.is_first()) return;
  const char* what = program_is_why ? "cannot be saved now, because" : "was not saved:";
  tell_user(fmt::format("the program {} {}; it runs on", what, cannot_));
}

// The program stands still from the cut until we end it: a restart does again all that it would do
// here. An MPI that sees other ranks end would end the job with another exit code.
void Rank::stop() {
  stop_tried_ = true;
  const VersionNumber before = session_->version();
  save();
  stopped_ = session_->version() != before;
  if (!stopped_) let_go_on();
  if (tries_a_whole_one()) return;
  if (boot_) boot_->signal(stopped_ ? SIGKILL : SIGTERM);
}

// Also where it was not stopped, or has ended.
void Rank::let_go_on() {
  Request request{};
  request.kind = static_cast<std::uint32_t>(Ask::resume);
  if (boot_) (void)boot_->ask(request);
}

// Collective. The last version fails if the older one that it needs is gone. Then one that needs
// nothing is tried, once: as if the order to stop had come again.
bool Rank::tries_a_whole_one() {
  if (std::exchange(whole_one_tried_, true)) return false;
  const auto any = company_.group().maximum(!stopped_ && objects_->base() != 0 ? 1 : 0);
  if (!any.ok() || *any == 0) return false;
  stopped_ = stop_tried_ = false;
  stop_asked_ = true;
  return true;
}

int Rank::end() {
  // A launcher that ends its ranks by SIGTERM, as one of them died, has told no agent: the job has
  // been saved, and has not finished.
  tell_unfitting();
  const bool ended_from_outside = stopped_ && !session_->stop_requested();
  const Status finished = session_->finish(ended_from_outside);
  if (!finished.ok() && company_.is_first()) {
    tell_user(told(finished.error()));
  }
  company_.leave(0);
  return stopped_ ? terminated : 0;
}

}  // namespace backstay::image
