// The program that saved a version, as the version records it, and whether this run may go on from
// it (docs/format/object.md, "Note").
//
// All ranks take that of rank 0: they agree on it when the session starts.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "client/group.h"
#include "format/object.h"

namespace backstay::client {

// Sets the name from which default job names are made, instead of the one on the command line.
void set_program_name(const std::string& name);

// The job's name if none is configured.
std::string default_job_name();

class Origin {
 public:
  Origin() = default;
  // Collective. Reads BACKSTAY_PROGRAM, BACKSTAY_DEFAULT_JOB, BACKSTAY_FRESH and BACKSTAY_ATTEMPT,
  // which `backstay run` sets, and the command line of this process. `named`: the user chose the
  // job's name. `config`: with the name of the job.
  static Result<Origin> agree(const Group& group, const Config& config, bool named);

  // The notes for each object of a version that this run takes.
  std::vector<format::Note> notes() const;
  // Errors: none (this run began afresh after it was saved), mismatch (another program saved it,
  // and the job's name is a default one).
  Status check(const format::Table& saved) const;
  // `backstay run --fresh` has just started the program: it wants no version.
  bool begins_afresh() const { return begins_; }

 private:
  std::string job_;
  std::string program_;
  std::string fresh_;
  bool named_ = true;
  bool begins_ = false;
};

}  // namespace backstay::client
