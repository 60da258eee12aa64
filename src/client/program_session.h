// A program's session. The functions of backstay.h call it. A session with agents is session.h; one
// without agents is in src/strategy.
//
// One thread at a time, guarded by api.cc. Functions marked collective block until all ranks have
// called them and return the same code on all of them. Errors are those of backstay.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "backstay/backstay.h"
#include "base/config.h"
#include "base/ids.h"
#include "base/result.h"
#include "client/group.h"
#include "client/launcher.h"

namespace backstay::client {

class StreamSession;

class ProgramSession {
 public:
  virtual ~ProgramSession() = default;

  virtual Status protect(const char* name, void* data, const backstay_array* array,
                         backstay_type type) = 0;
  virtual Status unprotect(const std::string& name) = 0;
  virtual Result<std::string> route_file(const std::string& name, std::size_t path_bytes) = 0;
  // Valid while the session is.
  virtual Result<StreamSession> streams() = 0;

  virtual bool due() = 0;  // collective
  virtual bool stop_requested() const = 0;
  virtual Status checkpoint() = 0;              // collective
  virtual Result<VersionNumber> restart() = 0;  // collective
  virtual Status finish() = 0;                  // collective
  // Gives up without a word what this process holds. In the child of a fork the session is never
  // used or deleted again; else it is deleted next.
  enum class Where { here, in_child };
  virtual void leave_silently(Where where) = 0;

  virtual VersionNumber version() const = 0;
  // `level` is set in any case: a version may be captured although writing it failed.
  virtual Status test(VersionNumber version, Level& level) = 0;
  virtual Status wait(VersionNumber version, Level level, double timeout_s) = 0;
  virtual Status read_region(VersionNumber version, const std::string& name, void* data,
                             std::size_t bytes) = 0;

  virtual const Config& config() const = 0;
};

// Collective. The session that strategy.name asks for; the library that links api.cc has it, as it
// knows all kinds (src/strategy/make_session.cc). `config` may be NULL; so may `transport`, which
// else outlives the session. On failure `group` is not released.
Result<std::unique_ptr<ProgramSession>> make_session(const Group& group, const char* config,
                                                     const backstay_transport* transport);

}  // namespace backstay::client
