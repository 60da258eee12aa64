// A home plan whose home thread the test plays.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/home/home_plan.h"

namespace backstay::agent {
inline constexpr std::uint64_t second = 1'000'000'000;

// A version as it lies in the store, and what the thread would say of it.
struct Stored {
  FilesFound found;
  std::map<std::string, std::string> refused = {};  // path -> why it cannot be brought
};

class HomePlanTest : public ::testing::Test {
 protected:
  void store(VersionNumber version, std::vector<FileInVersion> files) {
    store_[version].found.files = std::move(files);
    plan_.captured(version);
    plan_.recorded(record_of(version), 0);
  }
  format::CommitRecord record_of(VersionNumber version) {
    format::CommitRecord record;
    record.job = "j.files.h";
    record.version = version;
    record.level = Level::local;
    record.captured_ns = captured_ns_.contains(version) ? captured_ns_[version] : 100 + version;
    return record;
  }

  // One order, carried out. What was done, in words; "" : there was none.
  std::string step() {
    const HomeOrders orders = plan_.next(now_);
    return orders.empty() ? "" : carry_out(orders.front());
  }
  std::string carry_out(const HomeOrder& order) {
    if (const auto* look = std::get_if<LookAtFiles>(&order)) return carry_out(*look);
    if (const auto* bring = std::get_if<BringFile>(&order)) return carry_out(*bring);
    return carry_out(std::get<MarkHome>(order));
  }
  // Several orders at a time: what was done, with a line for each time.
  std::vector<std::string> run_at_once(std::size_t most) {
    std::vector<std::string> all;
    for (HomeOrders orders = plan_.next(now_, most); !orders.empty();
         orders = plan_.next(now_, most)) {
      std::string line;
      for (const HomeOrder& order : orders) line += (line.empty() ? "" : "; ") + carry_out(order);
      all.push_back(line);
    }
    return all;
  }
  std::vector<std::string> run() {
    std::vector<std::string> all;
    for (std::string one = step(); !one.empty(); one = step()) all.push_back(one);
    return all;
  }

  std::string carry_out(const LookAtFiles& look) {
    const VersionNumber version = look.record.version;
    const auto trouble = unreadable_.find(version);
    if (trouble != unreadable_.end()) {
      plan_.on(FilesLookedAt{version, trouble->second}, now_);
      return "cannot look at " + std::to_string(version);
    }
    FilesFound found = store_.at(version).found;
    plan_.on(FilesLookedAt{version, found}, now_);
    return "look at " + std::to_string(version);
  }

  std::string carry_out(const BringFile& bring) {
    std::string what = bring.path + " of " + std::to_string(bring.version);
    if (bring.to != bring.path) what += " to " + bring.to;
    const auto& refused = store_.at(bring.version).refused;
    if (held_.contains(bring.version)) {
      plan_.on(FileBrought{bring.version, bring.to, Brought::held, "a program has it open"}, now_);
      return "hold " + what;
    }
    if (kept_.contains(bring.to)) {
      plan_.on(FileBrought{bring.version, bring.to, Brought::kept, "newer"}, now_);
      return "keep " + what;
    }
    if (const auto why = refused.find(bring.path); why != refused.end()) {
      plan_.on(FileBrought{bring.version, bring.to, Brought::failed, why->second, Code::not_found},
               now_);
      return "fail " + what;
    }
    home_[bring.to] = bring.version;
    plan_.on(FileBrought{bring.version, bring.to}, now_);
    return "bring " + what;
  }

  std::string carry_out(const MarkHome& mark) {
    const std::string what = std::to_string(mark.version);
    if (const auto why = mark_errors_.find(mark.version); why != mark_errors_.end()) {
      plan_.on(HomeMarked{mark.version, Error(Code::no_space, why->second)}, now_);
      return "cannot mark " + what;
    }
    HomeMarked done{mark.version, {}};
    for (const std::string& folder : unsynced_) {
      done.unsynced.emplace(folder, Error(Code::io, "not synced"));
    }
    unsynced_.clear();
    if (done.unsynced.empty()) {
      store_[mark.version].found.marked = true;
      store_[mark.version].found.not_home = mark.files;
    }
    plan_.on(done, now_);
    std::string text = "mark " + what;
    for (const auto& file : mark.files) text += " not " + file.path;
    return text;
  }

  // The answers since the last call, by ticket: "ok", or the error.
  std::map<std::uint64_t, std::string> answers() {
    std::map<std::uint64_t, std::string> all;
    HomeNews news = plan_.take_news();
    for (const auto& one : news.answers) {
      all[one.ticket] = one.status.ok() ? "ok" : one.status.error().message();
    }
    for (const VersionNumber version : news.at_home) at_home_.push_back(version);
    for (const auto& one : news.warnings) warnings_.push_back(one.path + ": " + one.why);
    return all;
  }

  using Answers = std::map<std::uint64_t, std::string>;
  using Steps = std::vector<std::string>;
  HomePlan plan_;
  std::uint64_t now_ = 100 * second;
  std::map<VersionNumber, Stored> store_;
  std::map<VersionNumber, std::uint64_t> captured_ns_;
  std::map<VersionNumber, Error> unreadable_;
  std::set<std::string> kept_;
  std::set<VersionNumber> held_;  // a program has them open
  std::set<std::string> unsynced_;
  std::map<VersionNumber, std::string> mark_errors_;
  std::map<std::string, VersionNumber> home_;
  std::vector<VersionNumber> at_home_;
  std::vector<std::string> warnings_;
};

}  // namespace backstay::agent
