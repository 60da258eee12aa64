#include "store/home/remote_tier.h"

#include <algorithm>
#include <utility>

namespace backstay::store {

namespace {

Error reads_only() { return {Code::unsupported, "the tier of another process is only read"}; }

// Each read is a question: nothing is in flight.
class RemoteReader final : public tier::Reader {
 public:
  RemoteReader(RemoteTier& tier, std::string name) : tier_(tier), name_(std::move(name)) {}
  unsigned depth() const override { return 4; }
  unsigned in_flight() const override { return static_cast<unsigned>(done_.size()); }
  void read(std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) override {
    done_.push_back({tag, read(offset, to)});
  }
  std::vector<tier::Done> reap(bool /*wait*/) override { return std::exchange(done_, {}); }

 private:
  Status read(std::uint64_t offset, std::span<std::byte> to) {
    BACKSTAY_ASSIGN(const LineMessage answer,
                    tier_.ask(line_question(
                        "read", {{"name", name_}, {"offset", offset}, {"bytes", to.size()}})));
    if (answer.data.size() != to.size())
      return Error(Code::corrupt, name_ + " is shorter than it should be");
    std::ranges::copy(answer.data, to.begin());
    return {};
  }

  RemoteTier& tier_;
  const std::string name_;
  std::vector<tier::Done> done_;
};

}  // namespace

RemoteTier::RemoteTier(AskLine ask) : ask_(std::move(ask)) {}

Result<LineMessage> RemoteTier::ask(const LineMessage& question) {
  if (broken_) return *broken_;
  auto answer = ask_(question);
  if (!answer.ok()) return *(broken_ = answer.error());
  BACKSTAY_TRY(error_of(*answer));
  return answer;
}

Result<std::unique_ptr<tier::Reader>> RemoteTier::open(const std::string& name) {
  BACKSTAY_TRY(ask(line_question("look", {{"name", name}})));
  return std::unique_ptr<tier::Reader>(std::make_unique<RemoteReader>(*this, name));
}

Result<Buffer> RemoteTier::get(const std::string& name, std::uint64_t bytes_max) {
  BACKSTAY_ASSIGN(LineMessage answer,
                  ask(line_question("get", {{"name", name}, {"bytes", bytes_max}})));
  return std::move(answer.data);
}

Result<std::vector<std::string>> RemoteTier::list(const std::string& prefix) {
  BACKSTAY_ASSIGN(const LineMessage answer, ask(line_question("list", {{"name", prefix}})));
  std::vector<std::string> names;
  std::string name;
  for (const std::byte byte : answer.data) {
    const char c = static_cast<char>(byte);
    if (c == '\n') names.push_back(std::exchange(name, {}));
    if (c != '\n') name += c;
  }
  return names;
}

Result<std::unique_ptr<tier::Writer>> RemoteTier::create(const std::string& /*name*/,
                                                         std::uint64_t /*bytes*/) {
  return reads_only();
}

Status RemoteTier::put(const std::string& /*name*/, Bytes /*content*/) { return reads_only(); }

Status RemoteTier::remove(const std::string& /*name*/) { return reads_only(); }

Status RemoteTier::sync(const std::string& /*prefix*/) { return reads_only(); }

}  // namespace backstay::store
