#include "io/memory_node.h"

#include <algorithm>

namespace backstay::io {

namespace {

void apply_to(std::map<std::string, NodePointer>& names, const MemoryNode::Change& change) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      names.erase(name);
    } else {
      names[name] = node;
    }
  }
}

std::uint64_t size_after(std::uint64_t synced, std::uint64_t newest, CrashDice& dice) {
  const auto choice = dice.below(4);
  if (choice == 0 && newest > synced) return synced + dice.below(newest - synced);
  return choice <= 1 ? synced : newest;
}

}  // namespace

void MemoryNode::before_change(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t block = begin / memory_block_bytes; block * memory_block_bytes < end;
       ++block) {
    const auto [at, added] = synced_blocks.try_emplace(block);
    if (!added) continue;
    at->second.fill(std::byte{0});
    const std::uint64_t first = block * memory_block_bytes;
    if (first >= content.size()) continue;
    const auto bytes = std::min<std::uint64_t>(memory_block_bytes, content.size() - first);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(first), bytes, at->second.begin());
  }
}

void MemoryNode::resize(std::uint64_t bytes) {
  before_change(std::min<std::uint64_t>(bytes, content.size()), content.size());
  content.resize(bytes);
}

void MemoryNode::write(std::uint64_t offset, Bytes from) {
  if (from.empty()) return;
  before_change(offset, offset + from.size());
  if (content.size() < offset + from.size()) content.resize(offset + from.size());
  std::copy(from.begin(), from.end(), content.begin() + static_cast<std::ptrdiff_t>(offset));
}

void MemoryNode::apply(const Change& change) {
  apply_to(names, change);
  changes.push_back(change);
}

void MemoryNode::sync() {
  synced_size = content.size();
  synced_blocks.clear();
  synced_attributes = attributes;
  synced_names = names;
  changes.clear();
}

void MemoryNode::crash_file(CrashDice& dice) {
  const std::uint64_t size = size_after(synced_size, content.size(), dice);
  const auto mood = dice.below(4);  // 0: all new bytes are lost, 1: none, else: block by block
  const std::uint64_t blocks_in_group = dice.large_blocks() ? 8 : 1;
  std::uint64_t group = ~std::uint64_t{0};
  bool lost = false;
  content.resize(std::max<std::uint64_t>(content.size(), synced_size));
  for (const auto& [block, bytes] : synced_blocks) {
    if (block / blocks_in_group != group) {
      group = block / blocks_in_group;
      lost = mood == 0 || (mood > 1 && dice.below(2) == 0);
    }
    const std::uint64_t first = block * memory_block_bytes;
    if (!lost || first >= content.size()) continue;
    const auto count = std::min<std::uint64_t>(memory_block_bytes, content.size() - first);
    std::copy_n(bytes.begin(), count, content.begin() + static_cast<std::ptrdiff_t>(first));
  }
  content.resize(size);
  if (attributes != synced_attributes && dice.below(2) == 0) attributes = synced_attributes;
  sync();
}

void MemoryNode::crash_directory(CrashDice& dice) {
  const auto mood = dice.below(4);  // 0: all changes are lost, 1: none, 2: the last ones, 3: any
  const auto kept_first = dice.below(changes.size() + 1);
  names = synced_names;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool kept = mood == 1 || (mood == 2 && i < kept_first) || (mood == 3 && dice.below(2));
    if (kept) apply_to(names, changes[i]);
  }
  sync();
}

}  // namespace backstay::io
