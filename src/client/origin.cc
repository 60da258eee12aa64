#include "client/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/ids.h"
#include "base/program_name.h"

namespace backstay::client {

namespace {

std::string& given_name() {
  static std::string name;
  return name;
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words;
  for (std::size_t at = 0; at < bytes.size(); at += words.back().size() + 1)
    words.emplace_back(bytes.c_str() + at);
  return words;
}

// The script's name if an interpreter runs us, else the program's.
std::string program_here() {
  if (!given_name().empty()) return given_name();
  const std::string program = program_invocation_short_name;
  if (!is_interpreter(program)) return program;
  const auto line = program_of_line(command_line(), [](const std::string&) { return true; });
  return line.name.empty() ? program : line.name;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The text in the form that a note may hold.
std::string note_text(const std::string& text) {
  const bool good = format::check_region_name(text).ok() && text.size() <= format::note_text_max;
  return good ? text : job_name_of(text);
}

constexpr std::size_t text_max = format::note_text_max;

struct Shared {
  char program[text_max + 1] = {};
  char fresh[text_max + 1] = {};
  bool named = true;
  bool begins = false;
};

void put(char (&to)[text_max + 1], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), text_max));
}

// The first life of the program under `backstay run --fresh`. A job that Slurm has queued again was
// begun by an earlier one.
bool has_just_begun_afresh() {
  const std::string queued_again = environment("SLURM_RESTART_COUNT");
  return !environment("BACKSTAY_FRESH").empty() && environment("BACKSTAY_ATTEMPT") == "0" &&
         (queued_again.empty() || queued_again == "0");
}

}  // namespace

void set_program_name(const std::string& name) { given_name() = name; }

std::string default_job_name() { return job_name_of(program_here()); }

Result<Origin> Origin::agree(const Group& group, const Config& config, bool named) {
  Shared shared;
  const std::string program = environment("BACKSTAY_PROGRAM");
  put(shared.program, note_text(program.empty() ? program_here() : program));
  put(shared.fresh, note_text(environment("BACKSTAY_FRESH")));
  shared.named = named && environment("BACKSTAY_DEFAULT_JOB") != config.job.name;
  shared.begins = has_just_begun_afresh();
  BACKSTAY_TRY(group.broadcast(&shared, sizeof shared));
  Origin origin;
  origin.program_ = shared.program;
  origin.fresh_ = shared.fresh;
  origin.named_ = shared.named;
  origin.begins_ = shared.begins;
  origin.job_ = config.job.name;
  return origin;
}

std::vector<format::Note> Origin::notes() const {
  std::vector<format::Note> notes;
  const auto add = [&notes](std::string_view key, const std::string& text) {
    if (!text.empty()) notes.push_back({std::string(key), text});
  };
  add(format::note_program, program_);
  add(format::note_fresh, fresh_);
  return notes;
}

Status Origin::check(const format::Table& saved) const {
  if (!fresh_.empty() && saved.note(format::note_fresh) != fresh_) {
    return Error(Code::none, "this run started afresh and has saved no version yet");
  }
  const std::string_view saved_by = saved.note(format::note_program);
  if (named_ || saved_by.empty() || saved_by == program_) return {};
  return Error(Code::mismatch,
               fmt::format("the versions of job {0} were saved by the program '{1}', and this is "
                           "'{2}': give this one a name of its own with `backstay run --job NAME` "
                           "(BACKSTAY_JOB; --job {0} goes on from them anyway), start afresh with "
                           "`backstay run --fresh`, or remove the versions with `backstay rm {0} "
                           "--all`",
                           job_, saved_by, program_));
}

}  // namespace backstay::client
