// The server of a meeting: sockets and a thread around Meeting (docs/protocol/meeting.md). It is in
// `backstay run`, one for each start of the launcher.
//
// The thread has all signals blocked. The functions below are for the thread that has made it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "meet/meeting.h"

namespace backstay::meet {

struct ServerOptions {
  bool several_hosts = false;  // TCP; else a socket of this host alone
  std::string device = {};     // network.device; "": all but the loopback one
  double patience_s = 120;     // for the last rank, from the first one on
};

class Server {
 public:
  // Listens when it returns. Errors: not_found (the device), io.
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options);
  // Ends the thread and all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // For the ranks: the values of BACKSTAY_MEETING and BACKSTAY_MEETING_SECRET.
  const std::string& addresses() const;
  const std::string& secret() const;
  // Readable when loss() has something to say for the first time.
  int descriptor() const;
  std::optional<Loss> loss() const;

 private:
  class Room;
  explicit Server(std::unique_ptr<Room> room);
  const std::unique_ptr<Room> room_;
};

inline constexpr const char* addresses_variable = "BACKSTAY_MEETING";
inline constexpr const char* secret_variable = "BACKSTAY_MEETING_SECRET";

}  // namespace backstay::meet
