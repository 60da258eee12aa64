// Packets over a connected SOCK_SEQPACKET socket, with descriptors. The only I/O in wire: both ends
// of the local protocol need it, and it knows messages only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "wire/message.h"

namespace backstay::wire {

struct Received {
  Message message;
  std::vector<Fd> descriptors;
};

// Sends one message, blocking until the socket takes it (or, on a non-blocking socket,
// Code::again). SIGPIPE is never raised. Errors: agent_lost (the peer has gone), io.
backstay::Status send(int socket, const Message& message, const std::vector<int>& descriptors = {});

// Receives one message. Errors: again (non-blocking and nothing there), agent_lost (peer has
// gone), protocol, invalid.
Result<Received> receive(int socket);

// Listens at `path`, mode 0600. The folder is created with mode 0700 and must belong to us. A stale
// socket (no process listens) is replaced. Errors: busy (a process listens), long_path (over 107
// bytes: says which setting to shorten), permission, io.
Result<Fd> listen_at(const std::string& path);

// Identifies the file that a name refers to. A listening socket keeps its file after the name has
// gone, so no other file has the same id while it is open.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};
// Errors: not_found, permission, io.
Result<FileId> file_at(const std::string& path);

// Removes the name of a listener at its end, unless it refers to another listener by now.
// Precondition: the listener is open.
void remove_name(const std::string& path, const FileId& listener);

// Connects. Errors: not_found or agent_lost (no process listens), long_path, permission, io.
Result<Fd> connect_to(const std::string& path);

// Accepts one connection from a peer of our own user. Errors: again, permission (another user), io.
Result<Fd> accept_from(int listener);

// The process that connected, as a pidfd: readable once it has ended, even if another process still
// holds a copy of the connection (a helper that was forked without exec). `ended`: it is gone
// already. Invalid if the system does not know it.
struct PeerProcess {
  Fd process;
  bool ended = false;
};
PeerProcess process_of_peer(int socket);

// The process that listens at the other end of a connected socket; 0 if the system does not know
// it.
int pid_of_peer(int socket);

// In a job of Slurm: the socket of the agents that `backstay run` has started for this job alone,
// /tmp/backstay-<uid>-<job>/agent.sock. Elsewhere "".
std::string slurm_socket_path();

// The socket of this user's agent unless configured: slurm_socket_path(), if that is there; else
// $XDG_RUNTIME_DIR/backstay/agent.sock, else /tmp/backstay-<uid>/agent.sock.
std::string default_socket_path();

// `configured` (agent.socket), or the default where that is "".
std::string socket_path(const std::string& configured);

}  // namespace backstay::wire
