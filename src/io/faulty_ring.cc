#include <map>

#include "io/blocking_request.h"
#include "io/faulty_file.h"

namespace backstay::io {

namespace {

struct Request : BlockingRequest {
  std::string what;
  Fault fault = Fault::none;
  std::size_t part = 0;  // done first, on its own, because of the fault

  std::size_t bytes() const { return read ? to.size() : from.size(); }
};

// Each request goes to the inner ring under a number of ours, in one or two parts.
class FaultyRing final : public Ring {
 public:
  FaultyRing(std::unique_ptr<Ring> inner, std::shared_ptr<Faults> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}
  bool broken() const override { return inner_->broken(); }
  ~FaultyRing() override {
    while (in_flight() > 0) (void)reap(true);
  }

  unsigned depth() const override { return inner_->depth(); }
  unsigned in_flight() const override {
    return static_cast<unsigned>(requests_.size() + finished_.size());
  }

  void write(File& file, std::uint64_t offset, Bytes from, std::uint64_t tag) override {
    start({{&file, offset, from, {}, false, tag}, "write"});
  }
  void read(File& file, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    start({{&file, offset, {}, to, true, tag}, "read"});
  }

  std::vector<Completion> reap(bool wait) override {
    do {
      const bool sleep = wait && finished_.empty();
      for (const Completion& completion : inner_->reap(sleep)) take(completion);
    } while (wait && finished_.empty() && !requests_.empty());
    return std::exchange(finished_, {});
  }

 private:
  void start(Request request) {
    BACKSTAY_CHECK(in_flight() < depth());
    if (auto* faulty = dynamic_cast<FaultyFile*>(request.file)) {
      request.what += " " + faulty->path();
      request.file = &faulty->inner();
    }
    request.fault = faults_->next(request.what);
    request.part = done_before(request.fault, request.bytes());
    if (request.part == 0 && fails(request.fault)) {
      finished_.push_back({request.tag, fault_error(request.fault, request.what)});
      return;
    }
    const std::uint64_t number = next_++;
    const std::size_t bytes = request.part > 0 ? request.part : request.bytes();
    submit(number, requests_.emplace(number, std::move(request)).first->second, 0, bytes);
  }

  void submit(std::uint64_t number, const Request& request, std::size_t begin, std::size_t bytes) {
    if (request.read) {
      inner_->read(*request.file, request.offset + begin, request.to.subspan(begin, bytes), number);
    } else {
      inner_->write(*request.file, request.offset + begin, request.from.subspan(begin, bytes),
                    number);
    }
  }

  void take(const Completion& completion) {
    Request& request = requests_.at(completion.tag);
    const std::size_t begin = std::exchange(request.part, 0);
    if (begin > 0 && completion.status.ok() && !fails(request.fault)) {
      return submit(completion.tag, request, begin, request.bytes() - begin);
    }
    Status status = completion.status;
    if (status.ok() && fails(request.fault)) status = fault_error(request.fault, request.what);
    if (status.ok() && request.fault == Fault::flip && !request.to.empty()) {
      request.to[request.to.size() / 2] ^= std::byte{1};
    }
    finished_.push_back({request.tag, std::move(status)});
    requests_.erase(completion.tag);
  }

  const std::unique_ptr<Ring> inner_;
  const std::shared_ptr<Faults> faults_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Request> requests_;
  std::vector<Completion> finished_;
};

}  // namespace

std::unique_ptr<Ring> make_faulty_ring(std::unique_ptr<Ring> inner,
                                       std::shared_ptr<Faults> faults) {
  return std::make_unique<FaultyRing>(std::move(inner), std::move(faults));
}

}  // namespace backstay::io
