#include "net/ucx.h"

#include <fmt/ranges.h>
#include <ucp/api/ucp.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "net/address.h"
#include "net/frame.h"

namespace backstay::net {

namespace {

constexpr unsigned bulk_message = 1;  // the only active message
constexpr int progress_max = 1000;    // calls of ucp_worker_progress in one progress()

// Header of each active message.
struct BulkHeader {
  BulkToken token;
  OfferId offer;
};
static_assert(sizeof(BulkHeader) == 24);

// Devices are named as UCX does: those of the kernel, and "mlx5_0:1" (device and port) of
// InfiniBand.
Status check_devices(const std::string& wanted) {
  std::set<std::string> known = device_names();
  std::error_code absent;  // a machine without InfiniBand
  for (const auto& adapter : std::filesystem::directory_iterator("/sys/class/infiniband", absent)) {
    for (const auto& port : std::filesystem::directory_iterator(adapter.path() / "ports", absent))
      known.insert(adapter.path().filename().string() + ":" + port.path().filename().string());
  }
  std::istringstream list(wanted);
  for (std::string name; std::getline(list, name, ',');) {
    if (!known.contains(name))
      return Error(Code::not_found,
                   fmt::format("no network device '{}' for UCX on this node; there are: {}", name,
                               fmt::join(known, ", ")));
  }
  return {};
}

Error ucx_error(const std::string& what, ucs_status_t status) {
  return Error(Code::io, what + ": " + ucs_status_string(status) + " (UCX)");
}

Error lost(ucs_status_t status) {
  return Error(Code::agent_lost, std::string("bulk data did not get through: ") +
                                     ucs_status_string(status) + " (UCX)");
}

struct FreeContext {
  void operator()(ucp_context_h context) const { ucp_cleanup(context); }
};
struct FreeWorker {
  void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
};
using Context = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, FreeContext>;
using Worker = std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, FreeWorker>;

}  // namespace

class Ucx final : public BulkLane {
 public:
  Status start(const UcxOptions& options);
  ~Ucx() override;

  int descriptor() const override { return descriptor_; }
  Bytes address() const override { return address_; }
  Status attach(PeerId peer, const BulkToken& ours, const BulkToken& theirs,
                Bytes address) override;
  void send(PeerId peer, OfferId offer, Bytes memory) override;
  void expect(PeerId peer, OfferId offer, std::span<std::byte> memory) override;
  void detach(PeerId peer) override;
  bool in_use(PeerId peer) const override { return peers_.contains(peer); }
  std::vector<BulkEvent> progress(bool* more) override;

 private:
  // One endpoint of UCX. Stays until its last request has ended, also after detach().
  struct Peer {
    Ucx* lane;
    PeerId id;
    ucp_ep_h endpoint = nullptr;
    BulkToken ours, theirs;
    std::map<OfferId, std::span<std::byte>> expected;
    std::size_t requests = 0;  // of UCX, not ended
    bool detached = false;
    void* closing = nullptr;  // the request that closes the endpoint
  };
  struct Request {
    Peer& peer;
    OfferId offer;
    BulkEvent::What what;
    BulkHeader header;
  };

  Status configure(const UcxOptions& options);
  Status make_worker();
  static ucp_request_param_t parameters(Request* request);
  static void ended(Request* request, ucs_status_t status);
  static void started(Request* request, ucs_status_ptr_t pointer);
  static ucs_status_t arrived(void* lane, const void* header, std::size_t header_bytes, void* data,
                              std::size_t bytes, const ucp_am_recv_param_t* how);
  ucs_status_t receive(const BulkHeader& header, void* data, std::size_t bytes, bool rendezvous);
  static void endpoint_failed(void* peer, ucp_ep_h endpoint, ucs_status_t status);
  void drop_ended_peers();

  Context context_;
  Worker worker_;
  int descriptor_ = -1;
  Buffer address_;
  std::map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<BulkToken, Peer*> by_token_;
  std::vector<BulkEvent> events_;
};

// --- set-up --------------------------------------------------------------------------------------

Status Ucx::configure(const UcxOptions& options) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("read the settings", status);
  const std::pair<const char*, std::string> settings[] = {
      {"TLS", options.transports},
      {"NET_DEVICES", options.devices},
      {"KEEPALIVE_INTERVAL", "inf"},  // the connection itself notices a dead peer
  };
  for (const auto& [name, value] : settings) {
    if (status == UCS_OK) status = ucp_config_modify(config, name, value.c_str());
  }
  if (status == UCS_OK && options.transports.find("tcp") != std::string::npos)
    status = ucp_config_modify(config, "CONN_NB", "y");  // its connect() would block
  if (status == UCS_OK && !std::getenv("UCX_LOG_LEVEL"))
    status = ucp_config_modify(config, "LOG_LEVEL", "fatal");  // we report its errors ourselves
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  if (status == UCS_OK) status = ucp_init(&parameters, config, &context);
  ucp_config_release(config);
  if (status == UCS_ERR_NO_DEVICE)
    return Error(Code::unsupported,
                 "UCX has no transport '" + options.transports + "' on " + options.devices);
  if (status != UCS_OK) return ucx_error("set up UCX", status);
  context_.reset(context);
  return {};
}

Status Ucx::make_worker() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  ucs_status_t status = ucp_worker_create(context_.get(), &parameters, &worker);
  if (status != UCS_OK) return ucx_error("make a worker", status);
  worker_.reset(worker);

  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = bulk_message;
  handler.cb = arrived;
  handler.arg = this;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  status = ucp_worker_set_am_recv_handler(worker, &handler);
  if (status == UCS_OK) status = ucp_worker_get_efd(worker, &descriptor_);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (status == UCS_OK) status = ucp_worker_get_address(worker, &address, &bytes);
  if (status != UCS_OK) return ucx_error("set up a worker", status);
  const auto* first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + bytes);
  ucp_worker_release_address(worker, address);
  return {};
}

Status Ucx::start(const UcxOptions& options) {
  BACKSTAY_TRY(check_devices(options.devices));
  BACKSTAY_TRY(configure(options));
  BACKSTAY_TRY(make_worker());
  if (address_.size() > bulk_address_bytes_max)
    return Error(Code::unsupported, "the address of UCX has " + std::to_string(address_.size()) +
                                        " bytes: name fewer devices");
  return {};
}

Status Ucx::attach(PeerId id, const BulkToken& ours, const BulkToken& theirs, Bytes address) {
  auto peer = std::make_unique<Peer>();
  peer->lane = this;
  peer->id = id;
  peer->ours = ours;
  peer->theirs = theirs;
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {endpoint_failed, peer.get()};
  const ucs_status_t status = ucp_ep_create(worker_.get(), &parameters, &peer->endpoint);
  if (status != UCS_OK) return ucx_error("reach the peer", status);
  by_token_[ours] = peer.get();
  peers_[id] = std::move(peer);
  return {};
}

// --- requests ------------------------------------------------------------------------------------

ucp_request_param_t Ucx::parameters(Request* request) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.user_data = request;
  return how;
}

void Ucx::ended(Request* request, ucs_status_t status) {
  const std::unique_ptr<Request> owned(request);
  Peer& peer = request->peer;
  --peer.requests;
  if (peer.detached) return;
  Status result;
  if (status != UCS_OK) result = lost(status);
  peer.lane->events_.push_back({request->what, peer.id, request->offer, result});
}

// UCX does not call back for a request that it ended at once.
void Ucx::started(Request* request, ucs_status_ptr_t pointer) {
  if (pointer == nullptr)
    ended(request, UCS_OK);
  else if (UCS_PTR_IS_ERR(pointer))
    ended(request, UCS_PTR_STATUS(pointer));
}

void Ucx::send(PeerId id, OfferId offer, Bytes memory) {
  Peer& peer = *peers_.at(id);
  ++peer.requests;
  auto* request = new Request{peer, offer, BulkEvent::What::sent, {peer.theirs, offer}};
  ucp_request_param_t how = parameters(request);
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_RNDV;
  how.cb.send = [](void* handle, ucs_status_t status, void* data) {
    ended(static_cast<Request*>(data), status);
    ucp_request_free(handle);
  };
  started(request, ucp_am_send_nbx(peer.endpoint, bulk_message, &request->header,
                                   sizeof request->header, memory.data(), memory.size(), &how));
}

void Ucx::expect(PeerId id, OfferId offer, std::span<std::byte> memory) {
  peers_.at(id)->expected[offer] = memory;
}

ucs_status_t Ucx::arrived(void* lane, const void* header, std::size_t header_bytes, void* data,
                          std::size_t bytes, const ucp_am_recv_param_t* how) {
  if (header_bytes != sizeof(BulkHeader)) return UCS_OK;
  BulkHeader copy;
  std::memcpy(&copy, header, sizeof copy);
  return static_cast<Ucx*>(lane)->receive(copy, data, bytes,
                                          how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
}

// Data that is not expected, or that does not carry the token, is dropped: UCS_OK.
ucs_status_t Ucx::receive(const BulkHeader& header, void* data, std::size_t bytes,
                          bool rendezvous) {
  const auto owner = by_token_.find(header.token);
  if (owner == by_token_.end()) return UCS_OK;
  Peer& peer = *owner->second;
  const auto at = peer.expected.find(header.offer);
  if (at == peer.expected.end() || at->second.size() != bytes) return UCS_OK;
  const std::span<std::byte> memory = at->second;
  peer.expected.erase(at);
  ++peer.requests;
  auto* request = new Request{peer, header.offer, BulkEvent::What::received, {}};
  if (!rendezvous) {
    std::memcpy(memory.data(), data, bytes);
    ended(request, UCS_OK);
    return UCS_OK;
  }
  ucp_request_param_t how = parameters(request);
  how.cb.recv_am = [](void* handle, ucs_status_t status, std::size_t, void* user) {
    ended(static_cast<Request*>(user), status);
    ucp_request_free(handle);
  };
  started(request, ucp_am_recv_data_nbx(worker_.get(), data, memory.data(), bytes, &how));
  return UCS_INPROGRESS;
}

// --- the end of a peer ---------------------------------------------------------------------------

void Ucx::endpoint_failed(void* failed, ucp_ep_h, ucs_status_t status) {
  const Peer& peer = *static_cast<Peer*>(failed);
  if (peer.detached) return;
  peer.lane->events_.push_back({BulkEvent::What::failed, peer.id, 0, lost(status)});
}

void Ucx::detach(PeerId id) {
  const auto at = peers_.find(id);
  if (at == peers_.end() || at->second->detached) return;
  Peer& peer = *at->second;
  peer.detached = true;
  peer.expected.clear();
  by_token_.erase(peer.ours);
  std::erase_if(events_, [&](const BulkEvent& event) { return event.peer == id; });
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  peer.closing = ucp_ep_close_nbx(peer.endpoint, &how);
  if (!UCS_PTR_IS_PTR(peer.closing)) peer.closing = nullptr;
}

void Ucx::drop_ended_peers() {
  for (auto at = peers_.begin(); at != peers_.end();) {
    Peer& peer = *at->second;
    if (peer.closing && ucp_request_check_status(peer.closing) != UCS_INPROGRESS) {
      ucp_request_free(peer.closing);
      peer.closing = nullptr;
    }
    at = peer.detached && !peer.closing && peer.requests == 0 ? peers_.erase(at) : std::next(at);
  }
}

// Closes in order, for a second at most; destroying the worker ends the rest.
Ucx::~Ucx() {
  for (auto& [id, peer] : peers_) detach(id);
  const std::uint64_t deadline = deadline_in(1);
  while (!peers_.empty() && system_clock().monotonic_ns() < deadline) {
    ucp_worker_progress(worker_.get());
    drop_ended_peers();
  }
  worker_.reset();  // before the peers that its requests name
}

std::vector<BulkEvent> Ucx::progress(bool* more) {
  int left = progress_max;
  ucs_status_t armed = UCS_ERR_BUSY;
  while (armed == UCS_ERR_BUSY && left > 0) {
    while (left-- > 0 && ucp_worker_progress(worker_.get()) != 0) {
    }
    if (left > 0) armed = ucp_worker_arm(worker_.get());
  }
  *more = armed != UCS_OK;
  drop_ended_peers();
  return std::exchange(events_, {});
}

Result<std::unique_ptr<BulkLane>> make_ucx(const UcxOptions& options) {
  auto ucx = std::make_unique<Ucx>();
  BACKSTAY_TRY(ucx->start(options));
  return std::unique_ptr<BulkLane>(std::move(ucx));
}

}  // namespace backstay::net
