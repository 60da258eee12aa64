// The tier of another process, over a line: it can be read, not written. Blocks on the line.
#pragma once

#include <memory>
#include <optional>

#include "store/home/copy_line.h"
#include "tier/tier.h"

namespace backstay::store {

class RemoteTier final : public tier::Tier {
 public:
  explicit RemoteTier(AskLine ask);

  // A question, whose answer may be an error of the other end. Errors of the way are remembered.
  Result<LineMessage> ask(const LineMessage& question);
  // Why the line is of no more use; none: it works.
  const std::optional<Error>& broken() const { return broken_; }

  Result<std::unique_ptr<tier::Reader>> open(const std::string& name) override;
  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override;
  Result<std::vector<std::string>> list(const std::string& prefix) override;
  // unsupported
  Result<std::unique_ptr<tier::Writer>> create(const std::string& name,
                                               std::uint64_t bytes) override;
  Status put(const std::string& name, Bytes content) override;
  Status remove(const std::string& name) override;
  Status sync(const std::string& prefix) override;

 private:
  const AskLine ask_;
  std::optional<Error> broken_;
};

}  // namespace backstay::store
