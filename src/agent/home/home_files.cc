#include "agent/home/home_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "base/log.h"

namespace backstay::agent {

namespace {

constexpr std::size_t warnings_max = 8;
constexpr std::size_t known_max = 65'536;
constexpr std::size_t at_once_max = 32;  // each has a thread while it is synced

}  // namespace

void HomeFiles::begin_run() {
  if (!state_.files_come_home || std::exchange(began_, true)) return;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.good()) {
      plan_.recorded(row.disk->record, state_.node, /*before=*/true);
    } else {
      at_home_.push_back(number);  // nothing can be brought of what is damaged
    }
  }
}

void HomeFiles::local(const StoredVersion& stored) {
  if (began_) plan_.recorded(stored.record, state_.node);
}

void HomeFiles::gone(VersionNumber version) {
  if (began_) plan_.gone(version);
}

void HomeFiles::settle(ConnectionId connection, const wire::BringHome& wanted) {
  if (!began_) {
    state_.outbox.send(connection,
                       wire::AtHome{wanted.path, Code::unsupported,
                                    "this agent leaves captured files in the store; get them with "
                                    "`backstay export`"},
                       {});
    return;
  }
  expect_captured();
  askers_[++ticket_] = {connection, wanted.path};
  plan_.settle(ticket_, wanted.path, state_.clock.monotonic_ns());
  pump();
}

void HomeFiles::move(ConnectionId connection, const wire::MoveHome& wanted) {
  expect_captured();
  const Status done = moved(wanted);
  const bool busy = !done.ok() && done.error().code() == Code::busy;
  if (busy && wanted.to.empty()) {
    movers_.push_back({connection, wanted});
  } else {
    answer(connection, wanted, done);
  }
  pump();
}

Status HomeFiles::moved(const wire::MoveHome& wanted) {
  if (!began_) return Error(Code::unsupported, "this agent leaves captured files in the store");
  const auto home = were_at_home_.find(wanted.version);
  if (home != were_at_home_.end() && home->second == wanted.run) {
    return Error(Code::state, "the file was at its path");
  }
  if (!is_of(wanted.version, wanted.run)) {
    return Error(Code::not_found, "this version is of another run");
  }
  return plan_.move(wanted.version, wanted.from, wanted.to, wanted.placed_ns);
}

void HomeFiles::answer(ConnectionId connection, const wire::MoveHome& wanted, const Status& moved) {
  wire::MovedHome answer{wanted.version, wanted.to, Code::ok, ""};
  if (moved.ok()) {
    spdlog::debug("{} job={} version={} from={} to={}",
                  wanted.to.empty() ? "a file was called back" : "a file was renamed", state_.name,
                  wanted.version, wanted.from, wanted.to);
  } else {
    answer.code = moved.error().code();
    answer.message = moved.error().message();
    spdlog::info("a file was not renamed job={} version={} from={} to={} why=\"{}\"", state_.name,
                 wanted.version, wanted.from, wanted.to, answer.message);
  }
  state_.outbox.send(connection, std::move(answer), {});
}

// Before the thread gets its next orders: each question may make it look at a held file once more.
void HomeFiles::answer_movers() {
  std::erase_if(movers_, [&](const Mover& mover) {
    const Status done = moved(mover.wanted);
    const bool busy = !done.ok() && done.error().code() == Code::busy;
    if (!busy) answer(mover.connection, mover.wanted, done);
    return !busy;
  });
}

// An agent before this one may have given the number to a version that was lost with it.
bool HomeFiles::is_of(VersionNumber version, RunId run) const {
  const VersionRow* row = state_.versions.find(version);
  const bool on_disk = row != nullptr && row->disk.has_value();
  return run == 0 || (on_disk ? row->is_of(run) : run == state_.run);
}

// What is in the pool may be what is asked for.
void HomeFiles::expect_captured() {
  for (const auto& [number, version] : state_.memory) {
    if (!version.captured || state_.is_local(version)) continue;
    plan_.captured(number);
    if (version.failed) plan_.failed(number, *version.failed);
  }
}

void HomeFiles::disconnected(ConnectionId connection) {
  std::erase_if(movers_, [&](const Mover& one) { return one.connection == connection; });
  std::erase_if(askers_, [&](const auto& entry) {
    if (entry.second.connection != connection) return false;
    plan_.forget(entry.first);
    return true;
  });
}

void HomeFiles::on(const Event& event) {
  if (!began_) return;
  if (const auto* failed = std::get_if<VersionFailed>(&event)) {
    plan_.failed(failed->version, failed->error);
    pump();
  } else if (const auto* looked = std::get_if<FilesLookedAt>(&event)) {
    answered(*looked);
  } else if (const auto* brought = std::get_if<FileBrought>(&event)) {
    answered(*brought);
  } else if (const auto* marked = std::get_if<HomeMarked>(&event)) {
    answered(*marked);
  }
}

void HomeFiles::answered(const HomeAnswer& answer) {
  plan_.on(answer, state_.clock.monotonic_ns());
  answer_movers();
  pump();
}

void HomeFiles::pump() {
  if (!began_) return;
  HomeOrders orders = plan_.next(state_.clock.monotonic_ns(), at_once_max);
  if (!orders.empty()) state_.store.post_home(std::move(orders));
  tell(plan_.take_news());
  const HomePlan::Counts counts = plan_.counts();
  state_.not_home.waiting = counts.waiting;
  state_.not_home.waiting_bytes = counts.waiting_bytes;
  state_.not_home.failed = counts.failed;
  state_.not_home.kept = counts.kept;
  state_.not_home.on_its_way = plan_.on_its_way();
  forget_warnings();
}

// Of what has come to its path since.
void HomeFiles::forget_warnings() {
  std::vector<std::string>& all = state_.not_home.warnings;
  for (std::size_t index = all.size(); index-- > 0;) {
    if (plan_.is_left(warned_[index])) continue;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
    warned_.erase(warned_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

bool HomeFiles::busy() const {
  return began_ && (plan_.works() || plan_.wakes_at_ns() <= state_.clock.monotonic_ns());
}

void HomeFiles::tell(const HomeNews& news) {
  for (const HomeNews::Warning& warning : news.warnings) warn(warning);
  for (const VersionNumber version : news.at_home) {
    state_.record("home", {{"version", version}});
    at_home_.push_back(version);
    const VersionRow* row = state_.versions.find(version);
    if (row != nullptr && row->disk) were_at_home_[version] = row->disk->record.run;
    if (were_at_home_.size() > known_max) were_at_home_.erase(were_at_home_.begin());
  }
  for (const HomeNews::Answer& answer : news.answers) {
    const auto asker = askers_.find(answer.ticket);
    if (asker == askers_.end()) continue;
    wire::AtHome at_home{asker->second.path, Code::ok, answer.kept};
    if (!answer.status.ok()) {
      at_home.code = answer.status.error().code();
      at_home.message = answer.status.error().message();
    }
    state_.outbox.send(asker->second.connection, std::move(at_home), {});
    askers_.erase(asker);
  }
}

void HomeFiles::warn(const HomeNews::Warning& warning) {
  std::string text = fmt::format("{} of version {} not at {} yet: {}",
                                 warning.path.empty() ? "the files" : warning.path, warning.version,
                                 warning.path.empty() ? "their paths" : "its path", warning.why);
  spdlog::warn("{} job={}", text, state_.name);
  state_.record("not_home",
                {{"version", warning.version}, {"file", warning.path}, {"why", warning.why}});
  std::vector<std::string>& all = state_.not_home.warnings;
  if (all.size() == warnings_max) {
    all.erase(all.begin());
    warned_.erase(warned_.begin());
  }
  all.push_back(std::move(text));
  warned_.push_back(warning.version);
}

}  // namespace backstay::agent
