#include "wire/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/folders.h"

namespace backstay::wire {

namespace {

constexpr std::size_t descriptors_max = 4;
constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
constexpr int backlog = 4096;  // every rank of a node may come at once

Error peer_gone(int sys_errno) {
  return Error(Code::agent_lost, "the other side closed the connection", sys_errno);
}

bool means_peer_gone(int sys_errno) {
  return sys_errno == EPIPE || sys_errno == ECONNRESET || sys_errno == ENOTCONN;
}

Result<sockaddr_un> address_of(const std::string& path) {
  if (path.empty()) return Error(Code::invalid, "the path of the agent's socket is empty");
  if (path.size() > path_bytes_max) {
    return Error(Code::long_path, "the socket path " + path + " has " +
                                      std::to_string(path.size()) + " bytes, the system allows " +
                                      std::to_string(path_bytes_max) +
                                      ": set agent.socket to a shorter path");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> new_socket(int flags) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!socket.valid()) return errno_error("create a socket", errno);
  return socket;
}

int connect_again_on_signal(int socket, const sockaddr_un& address) {
  int rc = 0;
  do {
    rc = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

int credentials_of_peer(int socket, ucred& peer) {
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? 0 : errno;
}

backstay::Status check_peer(int socket, const std::string& what) {
  ucred peer{};
  if (const int error = credentials_of_peer(socket, peer); error != 0) {
    return errno_error(what + ": ask who the peer is", error);
  }
  if (peer.uid != ::geteuid()) {
    return Error(Code::permission, what + ": the peer runs as user " + std::to_string(peer.uid) +
                                       ", not as user " + std::to_string(::geteuid()));
  }
  return {};
}

// No other user may be able to put another socket in place of ours.
backstay::Status check_folder(const std::string& folder) {
  struct stat link {};
  struct stat target {};
  if (::lstat(folder.c_str(), &link) != 0 || ::stat(folder.c_str(), &target) != 0) {
    return errno_error("look at the socket's folder " + folder, errno);
  }
  const auto us = ::geteuid();
  if (!S_ISDIR(target.st_mode) || link.st_uid != us || target.st_uid != us) {
    return Error(Code::permission, "the socket's folder " + folder +
                                       " does not belong to you: set agent.socket to a path in "
                                       "a folder of yours");
  }
  if ((target.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(Code::permission, "others may write to the socket's folder " + folder +
                                       ": chmod 700 it, or set agent.socket to another path");
  }
  return {};
}

bool is_file_at(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Serialises agents that look for a stale socket and replace it: without it, the second of two
// starting agents could remove the first one's fresh socket.
Result<Fd> lock_beside(const std::string& path) {
  const std::string name = path + ".lock";
  for (;;) {
    Fd lock(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid()) return errno_error("open " + name, errno);
    while (::flock(lock.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return errno_error("lock " + name, errno);
    }
    if (is_file_at(lock.get(), name)) return lock;  // else it was removed while we waited
  }
}

// Precondition: the lock is held. Errors: busy.
backstay::Status remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return errno_error("look at " + path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Error(Code::invalid, path + " exists and is no socket: remove it or set agent.socket");
  }
  BACKSTAY_ASSIGN(const Fd probe, new_socket(SOCK_NONBLOCK));
  if (connect_again_on_signal(probe.get(), address) != ECONNREFUSED) {
    return Error(Code::busy, "an agent listens at " + path + " already");
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return errno_error("remove the stale socket " + path, errno);
  }
  return {};
}

void take_descriptors(msghdr& header, std::vector<Fd>& to) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      to.emplace_back(fd);
    }
  }
}

}  // namespace

backstay::Status send(int socket, const Message& message, const std::vector<int>& descriptors) {
  if (descriptors.size() > descriptors_max) {
    return Error(Code::internal, "a message carries at most 4 descriptors");
  }
  BACKSTAY_ASSIGN(const Buffer packet, encode(message));
  iovec part{const_cast<std::byte*>(packet.data()), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(descriptors_max * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), bytes);
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (means_peer_gone(errno)) return peer_gone(errno);
    return errno_error("send a message", errno);
  }
  return {};
}

Result<Received> receive(int socket) {
  const auto packet = std::make_unique_for_overwrite<std::byte[]>(message_bytes_max);
  iovec part{packet.get(), message_bytes_max};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(descriptors_max * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    if (means_peer_gone(errno)) return peer_gone(errno);
    return errno_error("receive a message", errno);
  }
  std::vector<Fd> descriptors;  // owned from here on, so that a refused message leaks none
  take_descriptors(header, descriptors);
  if (got == 0) return peer_gone(0);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error(Code::invalid, "a message is longer than 64 KiB or carries too many descriptors");
  }
  BACKSTAY_ASSIGN(Message message, decode(Bytes(packet.get(), static_cast<std::size_t>(got))));
  return Received{std::move(message), std::move(descriptors)};
}

Result<Fd> listen_at(const std::string& path) {
  BACKSTAY_ASSIGN(const sockaddr_un address, address_of(path));
  const std::string folder = parent_of(path);
  BACKSTAY_TRY(make_folders(folder));
  BACKSTAY_TRY(check_folder(folder));
  BACKSTAY_ASSIGN(const Fd lock, lock_beside(path));
  BACKSTAY_TRY(remove_stale(path, address));
  BACKSTAY_ASSIGN(Fd listener, new_socket(0));
  // Linux gives the name the mode of the socket: at no moment is it more open.
  if (::fchmod(listener.get(), 0600) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(listener.get(), backlog) != 0) {
    return errno_error("listen at " + path, errno);
  }
  return listener;
}

Result<FileId> file_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno_error("look at " + path, errno);
  return FileId{info.st_dev, info.st_ino};
}

void remove_name(const std::string& path, const FileId& listener) {
  const auto lock = lock_beside(path);
  const auto now = file_at(path);
  if (lock.ok() && now.ok() && *now == listener) ::unlink(path.c_str());
}

Result<Fd> connect_to(const std::string& path) {
  BACKSTAY_ASSIGN(const sockaddr_un address, address_of(path));
  BACKSTAY_ASSIGN(Fd socket, new_socket(0));
  const int failed = connect_again_on_signal(socket.get(), address);
  if (failed == ECONNREFUSED) {
    return Error(Code::agent_lost, "no agent listens at " + path, failed);
  }
  if (failed != 0) return errno_error("connect to the agent at " + path, failed);
  BACKSTAY_TRY(check_peer(socket.get(), "the agent at " + path));
  return socket;
}

Result<Fd> accept_from(int listener) {
  Fd socket;
  do {
    socket.reset(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  } while (!socket.valid() && errno == EINTR);
  if (!socket.valid()) {
    if (errno == ECONNABORTED) return Error(Code::again, "the peer left before it was accepted");
    return errno_error("accept a connection", errno);
  }
  BACKSTAY_TRY(check_peer(socket.get(), "a connection was refused"));
  return socket;
}

PeerProcess process_of_peer(int socket) {
#ifdef SO_PEERPIDFD
  constexpr int peer_pidfd = SO_PEERPIDFD;
#else
  constexpr int peer_pidfd = 77;  // Linux 6.5
#endif
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, peer_pidfd, &fd, &size) == 0) return {Fd(fd)};
  const int pid = pid_of_peer(socket);
  if (pid == 0) return {};
#ifdef SYS_pidfd_open
  fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#endif
  if (fd < 0) return {Fd(), errno == ESRCH};
  return {Fd(fd)};
}

int pid_of_peer(int socket) {
  ucred peer{};
  return credentials_of_peer(socket, peer) == 0 && peer.pid > 0 ? peer.pid : 0;
}

std::string slurm_socket_path() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const std::string number = job == nullptr ? "" : job;
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return {};
  return "/tmp/backstay-" + std::to_string(::geteuid()) + "-" + number + "/agent.sock";
}

std::string default_socket_path() {
  const std::string slurm = slurm_socket_path();
  struct stat info {};
  if (!slurm.empty() && ::lstat(slurm.c_str(), &info) == 0 && info.st_uid == ::geteuid())
    return slurm;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  // Batch systems export the variable also on nodes on which the folder was not made.
  if (runtime != nullptr && runtime[0] == '/' && ::access(runtime, W_OK) == 0) {
    return std::string(runtime) + "/backstay/agent.sock";
  }
  return "/tmp/backstay-" + std::to_string(::geteuid()) + "/agent.sock";
}

std::string socket_path(const std::string& configured) {
  return configured.empty() ? default_socket_path() : configured;
}

}  // namespace backstay::wire
