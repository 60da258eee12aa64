// The functions of backstay.h: guard, session, code and message. Everything else is in session.cc.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "backstay/backstay_streams.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/tell.h"
#include "client/group.h"
#include "client/launcher.h"
#include "client/listed_codes.h"
#include "client/program_session.h"
#include "client/signals.h"
#include "client/stream_session.h"

namespace {

using backstay::Code;
using backstay::Error;
using backstay::Status;
using backstay::client::as_listed;
using backstay::client::Call;
using backstay::client::Endable;
using backstay::client::Group;
using backstay::client::ProgramSession;
using backstay::client::StreamSession;

struct NamedCode {
  int number;
  Code code;
  const char* text;
};
constexpr NamedCode named_codes[] = {
    {BACKSTAY_OK, Code::ok, "success"},
    {BACKSTAY_ENONE, Code::none, "no version exists yet; start from the beginning"},
    {BACKSTAY_EAGAIN, Code::again, "temporary; call again"},
    {BACKSTAY_ETIMEOUT, Code::timeout, "the level was not reached in time; it still may be"},
    {BACKSTAY_EINVALID, Code::invalid, "an argument is wrong"},
    {BACKSTAY_ESTATE, Code::state, "a call out of order"},
    {BACKSTAY_ECONFIG, Code::config, "the configuration is wrong"},
    {BACKSTAY_EBUSY, Code::busy, "another run of a job of this name is alive"},
    {BACKSTAY_EUNSUPPORTED, Code::unsupported, "this build or machine cannot do it"},
    {BACKSTAY_EDUPLICATE, Code::duplicate, "the name is protected already"},
    {BACKSTAY_ETOOLARGE, Code::too_large, "beyond a limit"},
    {BACKSTAY_EPROTOCOL, Code::protocol, "agent and library are of different releases"},
    {BACKSTAY_EPORT, Code::port_in_use, "the network port is in use"},
    {BACKSTAY_EUNREACHABLE, Code::unreachable, "a node cannot be reached by its name or address"},
    {BACKSTAY_EFEWNODES, Code::few_nodes, "too few nodes for the replicas or parity asked for"},
    {BACKSTAY_ENULL, Code::null, "a pointer is NULL"},
    {BACKSTAY_ELONGPATH, Code::long_path, "a path is longer than the system allows"},
    {BACKSTAY_EMISMATCH, Code::mismatch, "a region is not what was saved"},
    {BACKSTAY_ERANKS, Code::rank_count,
     "saved by another number of ranks, and not fit for this one"},
    {BACKSTAY_ENOTFOUND, Code::not_found, "no such version, rank or region"},
    {BACKSTAY_EIO, Code::io, "the operating system refused a read or write"},
    {BACKSTAY_ENOSPACE, Code::no_space, "the disk or quota is full"},
    {BACKSTAY_EPERMISSION, Code::permission, "not allowed"},
    {BACKSTAY_EAGENT, Code::agent_lost, "an agent died, cannot be started or cannot be reached"},
    {BACKSTAY_ERANKLOST, Code::rank_lost,
     "a rank died during the checkpoint; that version does not exist"},
    {BACKSTAY_ECORRUPT, Code::corrupt, "bytes do not match their checksum"},
    {BACKSTAY_EFORMAT, Code::format, "not a file of ours, or of a newer format"},
    {BACKSTAY_ELOST, Code::lost, "more nodes are gone than replicas or parity make up for"},
    {BACKSTAY_EINTERNAL, Code::internal, "a mistake inside of Backstay; please report it"},
};
static_assert(std::ranges::all_of(named_codes, [](const NamedCode& one) {
  return one.number == static_cast<int>(one.code);
}));
static_assert(BACKSTAY_CAPTURED == static_cast<int>(backstay::Level::captured));
static_assert(BACKSTAY_LOCAL == static_cast<int>(backstay::Level::local));
static_assert(BACKSTAY_COMPLEX128 == static_cast<int>(backstay::format::ElementType::c128));

// The process's session. Never freed at exit: the program may be in the middle of anything then.
std::atomic<ProgramSession*> the_session{nullptr};
std::atomic<bool> left_to_parent{false};  // a session that a fork() took this process out of
Group* the_group = nullptr;               // released after the session ended; guarded by `busy`
std::atomic<bool> busy{false};
thread_local std::string last_message;

int fail(const Error& error) {
  last_message = error.message();
  return static_cast<int>(error.code());
}

// In the child of a fork. The session stays the parent's: a helper that outlives it must not hold
// its connection, or the agent would take the parent for alive. Only what is allowed after fork().
void leave_session_to_parent() {
  backstay::client::unwatch_signals();
  ProgramSession* session = the_session.exchange(nullptr);
  if (session != nullptr) {
    session->leave_silently(ProgramSession::Where::in_child);
    left_to_parent.store(true);
  }
  the_group = nullptr;
  busy.store(false);
}

// `all_do`: release(), which may be collective, is called by all ranks.
void end(ProgramSession& session, bool all_do) {
  backstay::client::unwatch_signals();
  the_session.store(nullptr, std::memory_order_release);
  delete &session;
  if (all_do) the_group->release();
  delete the_group;
  the_group = nullptr;
}

class Guard {
 public:
  Guard() : mine_(!busy.exchange(true, std::memory_order_acquire)) {}
  ~Guard() {
    if (mine_) busy.store(false, std::memory_order_release);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  bool mine() const { return mine_; }

 private:
  const bool mine_;
};

// Runs `body` (-> Status) alone; nothing that it throws reaches the program.
template <typename Body>
int guarded(Call call, Body&& body) noexcept {
  const Guard guard;
  try {
    if (!guard.mine()) {
      return fail(Error(Code::state,
                        "another thread is inside of a Backstay call: call from one "
                        "thread at a time"));
    }
    const Status status = body();
    return status.ok() ? BACKSTAY_OK : fail(as_listed(call, status.error()));
  } catch (const std::bad_alloc&) {
    last_message = "out of memory";  // short enough to need none
    return BACKSTAY_EINTERNAL;
  } catch (const std::exception& unexpected) {
    return fail(Error(Code::internal, unexpected.what()));
  } catch (...) {
    last_message = "an exception";
    return BACKSTAY_EINTERNAL;
  }
}

template <typename Body>
int with_session(Call call, Body&& body) noexcept {
  return guarded(call, [&]() -> Status {
    ProgramSession* session = the_session.load(std::memory_order_acquire);
    if (session != nullptr) return body(*session);
    if (!left_to_parent.load()) return Error(Code::state, "call backstay_init first");
    return Error(Code::state,
                 "the session belongs to the parent process, which this one was forked from; for "
                 "one of its own call backstay_init with another job.name");
  });
}

template <typename Body>
int with_streams(Call call, Body&& body) noexcept {
  return with_session(call, [&](ProgramSession& session) -> Status {
    BACKSTAY_ASSIGN(StreamSession streams, session.streams());
    return body(streams);
  });
}

Status start(const Group& group, const char* config,
             const backstay_transport* transport = nullptr) {
  if (the_session.load() != nullptr) {
    return Error(Code::state, "the session was started already: call backstay_finalize first");
  }
  BACKSTAY_ASSIGN(auto session, backstay::client::make_session(group, config, transport));
  the_group = new Group(group);
  static const int at_fork = ::pthread_atfork(nullptr, nullptr, &leave_session_to_parent);
  (void)at_fork;  // without memory for it, forked children keep the connection
  backstay::client::watch_signals();
  the_session.store(session.release(), std::memory_order_release);
  return {};
}

[[noreturn]] void end_program(int code) {
  backstay::tell_user("checkpoint failed and checkpoint.strict is set: " + last_message + " (" +
                      backstay_strerror(code) + ")");
  std::abort();
}

}  // namespace

extern "C" {

int backstay_init(const char* config) {
  return guarded(Call::init, [&] { return start(Group(), config); });
}

int backstay_init_group(const backstay_group* group, const char* config) {
  return guarded(Call::init_group, [&]() -> Status {
    if (group == nullptr)
      return Error(Code::null, "group is NULL: fill a backstay_group, or call backstay_init");
    BACKSTAY_TRY(backstay::client::check_group(*group));
    return start(Group(*group), config);
  });
}

int backstay_protect(const char* name, void* data, uint64_t count, backstay_type type) {
  backstay_array array{};
  array.dims = 1;
  array.shape[0] = count;
  return backstay_protect_array(name, data, &array, type);
}

int backstay_protect_array(const char* name, void* data, const backstay_array* array,
                           backstay_type type) {
  return with_session(Call::protect_array, [&](ProgramSession& session) {
    return session.protect(name, data, array, type);
  });
}

int backstay_unprotect(const char* name) {
  return with_session(Call::unprotect, [&](ProgramSession& session) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: which region?");
    return session.unprotect(name);
  });
}

int backstay_due(void) {
  ProgramSession* session = the_session.load(std::memory_order_acquire);
  if (session == nullptr) return 0;
  try {
    return session->due() ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

int backstay_stop_requested(void) {
  const ProgramSession* session = the_session.load(std::memory_order_acquire);
  return session != nullptr && session->stop_requested() ? 1 : 0;
}

int backstay_checkpoint(void) {
  bool strict = false;
  const int code = with_session(Call::checkpoint, [&](ProgramSession& session) {
    strict = session.config().checkpoint.strict;
    const Endable endable(2);
    return session.checkpoint();
  });
  if (code != BACKSTAY_OK && strict) end_program(code);
  return code;
}

uint64_t backstay_version(void) {
  const ProgramSession* session = the_session.load(std::memory_order_acquire);
  return session == nullptr ? 0 : session->version();
}

int backstay_test(uint64_t version, backstay_level* level) {
  return with_session(Call::test, [&](ProgramSession& session) -> Status {
    if (level == nullptr)
      return Error(Code::null, "level is NULL: give the address of a backstay_level");
    backstay::Level reached = backstay::Level::none;
    const Status outcome = session.test(version, reached);
    *level = static_cast<backstay_level>(reached);
    return outcome;
  });
}

int backstay_wait(uint64_t version, backstay_level level, double timeout_s) {
  return with_session(Call::wait, [&](ProgramSession& session) -> Status {
    if (level < BACKSTAY_CAPTURED || level > BACKSTAY_DURABLE) {
      return Error(Code::invalid, "level must be one of backstay_level");
    }
    const Endable endable(2);
    return session.wait(version, static_cast<backstay::Level>(level), timeout_s);
  });
}

int backstay_restart(uint64_t* version) {
  return with_session(Call::restart, [&](ProgramSession& session) -> Status {
    const Endable endable(1);  // there is nothing to save before it
    BACKSTAY_ASSIGN(const auto restarted, session.restart());
    if (version != nullptr) *version = restarted;
    return {};
  });
}

int backstay_read_region(uint64_t version, const char* name, void* data, size_t bytes) {
  return with_session(Call::read_region, [&](ProgramSession& session) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: which region?");
    if (data == nullptr && bytes != 0)
      return Error(Code::null, "data is NULL: give as many bytes of memory as you ask for");
    if (version == 0) return Error(Code::not_found, "versions are counted from 1");
    const Endable endable(2);
    return session.read_region(version, name, data, bytes);
  });
}

int backstay_route_file(const char* name, char* path, size_t path_bytes) {
  return with_session(Call::route_file, [&](ProgramSession& session) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: give the file's name");
    if (path == nullptr) return Error(Code::null, "path is NULL: give memory for the path");
    BACKSTAY_ASSIGN(const std::string routed, session.route_file(name, path_bytes));
    routed.copy(path, routed.size());
    path[routed.size()] = '\0';
    return {};
  });
}

int backstay_stream_open(const char* name, backstay_stream* stream) {
  return with_streams(Call::stream_open, [&](StreamSession& streams) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: give the stream a name");
    if (stream == nullptr)
      return Error(Code::null, "stream is NULL: give the address of a backstay_stream");
    BACKSTAY_ASSIGN(*stream, streams.open(name));
    return {};
  });
}

int backstay_stream_write(backstay_stream stream, const void* data, size_t bytes) {
  return with_streams(Call::stream_write, [&](StreamSession& streams) -> Status {
    if (data == nullptr && bytes != 0)
      return Error(Code::null, "data is NULL: give as many bytes of memory as are to be written");
    const Endable endable(2);
    return streams.write(stream, data, bytes);
  });
}

int backstay_stream_close(backstay_stream stream) {
  return with_streams(Call::stream_close,
                      [&](StreamSession& streams) { return streams.close(stream); });
}

int backstay_stream_count(uint64_t version, uint64_t* count) {
  return with_streams(Call::stream_count, [&](StreamSession& streams) -> Status {
    if (count == nullptr) return Error(Code::null, "count is NULL: give the address of a number");
    const Endable endable(2);
    BACKSTAY_ASSIGN(*count, streams.count(version));
    return {};
  });
}

int backstay_stream_at(uint64_t version, uint64_t index, char* name, size_t name_bytes,
                       uint64_t* bytes) {
  return with_streams(Call::stream_at, [&](StreamSession& streams) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: give memory for the name");
    if (bytes == nullptr) return Error(Code::null, "bytes is NULL: give the address of a number");
    const Endable endable(2);
    BACKSTAY_ASSIGN(const auto stream, streams.at(version, index));
    if (stream.name.size() >= name_bytes)
      return Error(Code::too_large, "name has too little room: BACKSTAY_NAME_MAX + 1 is enough");
    stream.name.copy(name, stream.name.size());
    name[stream.name.size()] = '\0';
    *bytes = stream.bytes;
    return {};
  });
}

int backstay_stream_bytes(uint64_t version, const char* name, uint64_t* bytes) {
  return with_streams(Call::stream_bytes, [&](StreamSession& streams) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: which stream?");
    if (bytes == nullptr) return Error(Code::null, "bytes is NULL: give the address of a number");
    const Endable endable(2);
    BACKSTAY_ASSIGN(*bytes, streams.bytes(version, name));
    return {};
  });
}

int backstay_stream_read(uint64_t version, const char* name, uint64_t offset, void* data,
                         size_t bytes) {
  return with_streams(Call::stream_read, [&](StreamSession& streams) -> Status {
    if (name == nullptr) return Error(Code::null, "name is NULL: which stream?");
    if (data == nullptr && bytes != 0)
      return Error(Code::null, "data is NULL: give as many bytes of memory as you ask for");
    const Endable endable(2);
    return streams.read(version, name, offset, data, bytes);
  });
}

int backstay_finalize(void) {
  return with_session(Call::finalize, [&](ProgramSession& session) -> Status {
    const Endable endable(2);
    Status outcome = session.finish();
    end(session, /*all_do=*/true);
    return outcome;
  });
}

int backstay_abandon(void) {
  return with_session(Call::abandon, [&](ProgramSession& session) -> Status {
    const Endable endable(2);
    session.leave_silently(ProgramSession::Where::here);
    end(session, /*all_do=*/false);
    return {};
  });
}

const char* backstay_strerror(int error) {
  for (const NamedCode& one : named_codes) {
    if (one.number == error) return one.text;
  }
  return "not an error code of Backstay";
}

void backstay_name_program(const char* name) {
  (void)guarded(Call::init, [&]() -> Status {
    if (name != nullptr) backstay::client::set_program_name(name);
    return {};
  });
}

int backstay_launcher_init(const backstay_group* group, const backstay_transport* transport,
                           const char* config) {
  return guarded(Call::init_group, [&]() -> Status {
    BACKSTAY_TRY(backstay::client::check_group(*group));
    return start(Group(*group), config, transport);
  });
}

int backstay_launcher_failed(int code, const char* message) {
  return guarded(Call::init_group,
                 [&]() -> Status { return Error(static_cast<Code>(code), message); });
}

const char* backstay_error_message(void) { return last_message.c_str(); }

const char* backstay_release(void) { return BACKSTAY_VERSION; }

}  // extern "C"
