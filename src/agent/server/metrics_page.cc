#include "agent/server/metrics_page.h"

#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"

namespace backstay::agent {

namespace {

constexpr unsigned connections_max = 16;
constexpr unsigned idle_s_max = 10;
constexpr std::size_t connection_bytes_max = 32 * 1024;

// A number, not a name: the main loop waits for no name service.
Result<Fd> listen_at(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (::getaddrinfo(address.c_str(), service.c_str(), &hints, &found) != 0) {
    return Error(Code::config, "metrics.address is '" + address +
                                   "': write an address of this node, like 127.0.0.1 or ::1");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  Fd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error("make a socket for metrics", errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0) {
    return socket;
  }
  const std::string where = "metrics at " + address + " port " + service;
  if (errno == EADDRINUSE) {
    return Error(Code::port_in_use, where + ": the port is in use; set metrics.port to another");
  }
  if (errno == EADDRNOTAVAIL) {
    return Error(Code::config, where + ": this node does not have that metrics.address");
  }
  return errno_error(where, errno);
}

class Page final : public MetricsPage {
 public:
  explicit Page(std::function<std::string()> text) : text_(std::move(text)) {}
  ~Page() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  Status start(Fd socket) {
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL, 0, nullptr, nullptr, &Page::handle, this, MHD_OPTION_LISTEN_SOCKET,
        socket.get(), MHD_OPTION_CONNECTION_LIMIT, connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
        idle_s_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes_max, MHD_OPTION_END);
    if (daemon_ == nullptr) return errno_error("serve metrics", errno);
    (void)socket.release();  // the daemon closes it
    const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == nullptr) return Error(Code::io, "serve metrics: no descriptor to wait for");
    descriptor_ = info->epoll_fd;
    return {};
  }

  int descriptor() const override { return descriptor_; }
  std::uint64_t wants_ns() const override { return wants_ns_; }
  void progress() override {
    MHD_run(daemon_);
    MHD_UNSIGNED_LONG_LONG left_ms = 0;
    const bool any = MHD_get_timeout(daemon_, &left_ms) == MHD_YES;
    wants_ns_ = any ? system_clock().monotonic_ns() + left_ms * 1'000'000 : no_deadline;
  }

 private:
  static MHD_Result handle(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char*, std::size_t*, void**) {
    return static_cast<Page*>(self)->answer(connection, path, method);
  }

  MHD_Result answer(MHD_Connection* connection, std::string_view path, std::string_view method) {
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      return send(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n", "text/plain");
    }
    if (path != "/metrics") {
      return send(connection, MHD_HTTP_NOT_FOUND, "metrics are at /metrics\n", "text/plain");
    }
    return send(connection, MHD_HTTP_OK, text_(), "text/plain; version=0.0.4; charset=utf-8");
  }

  static MHD_Result send(MHD_Connection* connection, unsigned status, std::string body,
                         const char* type) {
    MHD_Response* response =
        MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    const MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
  }

  const std::function<std::string()> text_;
  MHD_Daemon* daemon_ = nullptr;
  int descriptor_ = -1;
  std::uint64_t wants_ns_ = no_deadline;
};

}  // namespace

Result<std::unique_ptr<MetricsPage>> serve_metrics(const std::string& address, std::uint16_t port,
                                                   std::function<std::string()> text) {
  BACKSTAY_ASSIGN(Fd socket, listen_at(address, port));
  auto page = std::make_unique<Page>(std::move(text));
  BACKSTAY_TRY(page->start(std::move(socket)));
  return std::unique_ptr<MetricsPage>(std::move(page));
}

}  // namespace backstay::agent
