// What a version says of where it comes from, and whether this run may go on from it (docs/format/object.md, "Note").
//
// Rank 0's is all ranks': they agree on it when the session starts.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "client/group.h"
#include "format/object.h"

namespace backstay::client {

// What default job names are made of, instead of what the command line says.
void set_program_name(const std::string& name);

// The job's name where none is configured.
std::string default_job_name();

class Origin {
 public:
  Origin() = default;
  // Collective. Of this process: BACKSTAY_PROGRAM, BACKSTAY_DEFAULT_JOB and BACKSTAY_FRESH, which `backstay run` sets, and
  // the command line. `named`: the user chose the job's name. `config`: with the name of the job.
  static Result<Origin> agree(const Group& group, const Config& config, bool named);

  // For each object of a version that this run takes.
  std::vector<format::Note> notes() const;
  // Errors: none (this run began afresh after it was saved), mismatch (another program saved it, and the job's name is a
  // default one).
  Status check(const format::Table& saved) const;

 private:
  std::string job_;
  std::string program_;
  std::string fresh_;
  bool named_ = true;
};

}  // namespace backstay::client
