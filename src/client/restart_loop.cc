#include "client/restart_loop.h"

#include <fmt/format.h>

#include <variant>

#include "base/tell.h"

namespace backstay::client {

namespace {

// True of errors after which an older version may still succeed.
bool passable(Code code) {
  return code == Code::corrupt || code == Code::not_found || code == Code::io ||
         code == Code::format || code == Code::lost;
}

// The one of two reasons that may pass by itself: a read that failed, then nodes that
// are away. Damage stays.
Code more_passing(Code one, Code other) {
  for (const Code code : {Code::io, Code::lost}) {
    if (one == code || other == code) return code;
  }
  return other;
}

// A program that begins afresh needs no older version, so what is wrong with these is no error to
// it.
bool is_of_versions(Code code) {
  return is_damage(code) || code == Code::lost || code == Code::io || code == Code::mismatch ||
         code == Code::rank_count;
}

// Advice for a job of which no version can be brought back. `backstay run` may not have started the
// program.
Error with_advice(const Error& why, const std::string& job) {
  const bool can_be_read_again = is_damage(why.code()) || why.code() == Code::io;
  if (!can_be_read_again && why.code() != Code::lost) return why;
  return {why.code(),
          fmt::format("{}; {}`backstay run --fresh` starts from the beginning, and so does another "
                      "job name (BACKSTAY_JOB=NAME)",
                      why.message(),
                      can_be_read_again
                          ? fmt::format("`backstay verify {}` reads what is there again, ", job)
                          : "")};
}

}  // namespace

Error as_told(const Error& why, const Origin& origin, const std::string& job, bool touched) {
  if (origin.begins_afresh() && is_of_versions(why.code())) return {Code::none, why.message()};
  return touched ? why : with_advice(why, job);
}

void tell_finished(const std::string& job, VersionNumber version) {
  tell_user(
      fmt::format("job {0} had finished; it goes on from version {1} (to start afresh: "
                  "`backstay run --fresh`, or `backstay rm {0} --all` before)",
                  job, version));
}

Error of_undefined_regions(const Error& why) {
  return {Code::io,
          "the regions are in an undefined state and the program must not go on: " + why.message()};
}

Error of_other_ranks(VersionNumber version, std::uint32_t saved_ranks, int ranks) {
  return {Code::mismatch,
          fmt::format("version {} was saved by {} ranks, and this program has {}: start under "
                      "another job name, or with --fresh",
                      version, saved_ranks, ranks == 1 ? "one" : std::to_string(ranks))};
}

Result<VersionNumber> RestartLoop::run(bool& touched) {
  for (Version below;;) {
    BACKSTAY_ASSIGN(const std::optional<Version> newest, newest_below(below));
    if (!newest || newest->number < plan_.from) return none_left(touched);
    if (is_passed_over(*newest)) {
      passed_over_ = true;
      below = {plan_.from + 1, 0, 0, std::nullopt};
      continue;
    }
    below = *newest;
    if (newest->damage) {
      skip(*newest, *newest->damage);
      continue;
    }
    const Status taken = take(*newest, touched);
    if (taken.ok()) {
      saved_by_ = newest->run;
      tell_where_it_goes_on(*newest);
      return newest->number;
    }
    const bool none_left = taken.error().code() == Code::none && skipped_;
    if (none_left) return *skipped_;
    if (touched || agreed_ || !passable(taken.error().code())) return taken.error();
    skip(*newest, taken.error());
  }
}

// It is newer than the version that is wanted, and not of this launch.
bool RestartLoop::is_passed_over(const Version& version) const {
  return plan_.from != 0 && version.number > plan_.from && !version.damage &&
         launch_of(version.run) != plan_.launch;
}

void RestartLoop::tell_where_it_goes_on(const Version& version) const {
  const bool older = passed_over_ && version.number == plan_.from;
  if (group_.rank() != 0 || (!skipped_ && !older && !plan_.names_version)) return;
  tell_user(fmt::format("goes on from version {}{}", version.number,
                        older ? "; newer ones do not count for this command, and stay until "
                                "storage.keep versions have been saved after them"
                              : ""));
}

// One version is wanted, and there may be others.
Error RestartLoop::with_others(const Error& why) const {
  if (plan_.from == 0) return why;
  return {why.code(), why.message() +
                          "; no other version takes the place of the one of --from: "
                          "`backstay ls` lists them"};
}

// On one node the agent may have set versions aside before. Then it says so, and the job must not
// begin again as if there were no version.
Result<VersionNumber> RestartLoop::none_left(bool& touched) {
  if (skipped_) return with_others(*skipped_);
  if (saved_.ranks_agree() && plan_.from != 0) {
    return Error(Code::mismatch, fmt::format("there is no version {}; `backstay ls` lists those "
                                             "that there are",
                                             plan_.from));
  }
  if (saved_.ranks_agree()) return Error(Code::none, "no version of this job exists yet");
  const RestoreOutcome outcome = saved_.restore(plan_.target(), plan_.from, 0, {});
  const Status agreed = group_.agree(outcome.complete ? Status() : outcome.status);
  if (agreed.ok()) {  // the agent has come to know of one since it was asked
    BACKSTAY_TRY(make_ready(/*may_be_base=*/false));
    const Version version{outcome.version, 0, 0, std::nullopt};
    tell_where_it_goes_on(version);
    return version.number;
  }
  BACKSTAY_ASSIGN(const std::int64_t any, group_.maximum(outcome.touched ? 1 : 0));
  touched = touched || any != 0;
  const Code code = agreed.error().code();
  const bool wanted = plan_.from != 0 && code == Code::not_found;
  return wanted ? Error(Code::mismatch, agreed.error().message()) : with_others(agreed.error());
}

void RestartLoop::skip(const Version& version, const Error& why) {
  const std::string text = fmt::format("version {} skipped: {}", version.number, why.message());
  if (group_.rank() == 0) tell_user(text);
  saved_.skipped(version.number, why);
  // An agent knows of the version, so a part that no node has any more was lost with other nodes.
  const Code code = why.code() == Code::not_found ? Code::lost : why.code();
  skipped_ = skipped_
                 ? Error(more_passing(skipped_->code(), code), skipped_->message() + "; " + text)
                 : Error(code, "no version of the job can be brought back: " + text);
}

// The greatest of all ranks' offers. A number of 64 bits is compared in two halves, as the group's
// numbers are signed.
Result<std::optional<RestartLoop::Version>> RestartLoop::newest_below(const Version& below) {
  const auto mine = saved_.newest_below(below.number, below.run);
  BACKSTAY_TRY(group_.agree(mine.ok() ? Status() : Status(mine.error())));
  // An agent offers no more than the number of a version that it knows to be damaged.
  BACKSTAY_ASSIGN(const std::int64_t number,
                  group_.maximum(static_cast<std::int64_t>(mine->version)));
  if (number == 0) {
    const bool unknown = mine->code != Code::none;
    BACKSTAY_TRY(group_.agree(unknown ? Status(Error(mine->code, mine->message)) : Status()));
    return std::optional<Version>();
  }
  Version best;
  best.number = static_cast<VersionNumber>(number);
  const bool knows = mine->version == best.number;
  bool among = knows && mine->code == Code::ok;
  BACKSTAY_ASSIGN(const std::int64_t any, group_.maximum(among ? 1 : 0));
  if (any == 0) {
    const Status damage = group_.agree(knows ? Status(Error(mine->code, mine->message)) : Status());
    best.damage = damage.error();
    return std::optional(best);
  }
  for (const int shift : {32, 0}) {
    const std::int64_t half =
        among ? static_cast<std::int64_t>(mine->run >> shift & 0xffffffff) : -1;
    BACKSTAY_ASSIGN(const std::int64_t greatest, group_.maximum(half));
    best.run |= static_cast<RunId>(greatest) << shift;
    among = among && half == greatest;
  }
  BACKSTAY_ASSIGN(const std::int64_t ranks, group_.maximum(among ? mine->saved_ranks : 0));
  best.saved_ranks = static_cast<std::uint32_t>(ranks);
  return std::optional(best);
}

Status RestartLoop::take(const Version& version, bool& touched) {
  agreed_ = false;
  if (version.saved_ranks == static_cast<std::uint32_t>(group_.ranks())) {
    return restore(version, touched);
  }
  bool taken_in_part = false;
  const Status moved =
      plan_.redistribute(version.number, version.run, version.saved_ranks, taken_in_part);
  touched = touched || (taken_in_part && !moved.ok());
  return moved;
}

Status RestartLoop::restore(const Version& version, bool& touched) {
  const bool agree = saved_.ranks_agree();
  const Restore::Agree ask_all = [this](const Status& mine) { return group_.agree(mine); };
  const RestoreOutcome outcome = saved_.restore(plan_.target(), version.number, version.run,
                                                agree ? ask_all : Restore::Agree());
  if (!outcome.agreed.ok()) return outcome.agreed;
  agreed_ = agree;
  const Status complete = group_.agree(outcome.complete ? Status() : outcome.status);
  if (complete.ok()) {
    BACKSTAY_ASSIGN(const std::int64_t all, group_.minimum(outcome.may_be_base ? 1 : 0));
    may_be_base_ = all != 0;
    return make_ready(may_be_base_);
  }
  BACKSTAY_ASSIGN(const std::int64_t any, group_.maximum(outcome.touched ? 1 : 0));
  touched = touched || any != 0;
  return complete;
}

// A version that was brought back is dropped where this fails, so an older one may take its place.
Status RestartLoop::make_ready(bool may_be_base) {
  if (!plan_.make_ready) return {};
  agreed_ = false;
  return group_.agree(plan_.make_ready(may_be_base));
}

}  // namespace backstay::client
