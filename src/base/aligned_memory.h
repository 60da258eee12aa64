// Memory whose address and size are multiples of 4096: what O_DIRECT asks for (io/file.h).
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace backstay {

class AlignedMemory {
 public:
  static constexpr std::size_t alignment = 4096;

  // At least `bytes`, of undefined content.
  explicit AlignedMemory(std::size_t bytes)
      : bytes_((bytes + alignment - 1) / alignment * alignment),
        memory_(static_cast<std::byte*>(::operator new[](bytes_, std::align_val_t{alignment}))) {}

  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{alignment});
    }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace backstay
