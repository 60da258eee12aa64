#include "agent/version/held_files.h"

#include <algorithm>
#include <set>

namespace backstay::agent {

void HeldFiles::add(HeldFile held) {
  std::sort(held.ranks.begin(), held.ranks.end());
  const FileOf file = held.file;
  files_.insert_or_assign(file, std::move(held));
}

const HeldFile* HeldFiles::find(const FileOf& file) const {
  const auto found = files_.find(file);
  return found == files_.end() ? nullptr : &found->second;
}

std::optional<NodeId> HeldFiles::node_with(VersionOfRun version, Rank rank) const {
  const auto file = file_with(version, rank, /*parity=*/false);
  return file ? std::optional(file->node) : std::nullopt;
}

std::optional<FileOf> HeldFiles::parity_with(VersionOfRun version, Rank rank) const {
  return file_with(version, rank, /*parity=*/true);
}

std::optional<FileOf> HeldFiles::file_with(VersionOfRun version, Rank rank, bool parity) const {
  const auto [number, run] = version;
  for (auto at = files_.lower_bound({number, run, 0}); at != files_.end(); ++at) {
    const auto& [file, held] = *at;
    if (file.version != number || file.run != run) break;
    if (file.parity != parity) continue;
    if (std::binary_search(held.ranks.begin(), held.ranks.end(), rank)) return file;
  }
  return std::nullopt;
}

std::optional<VersionNumber> HeldFiles::needs_without_parity(const FileOf& parity) const {
  const HeldFile& made = *find(parity);
  std::set<FileOf> seen{parity};
  std::vector<FileOf> left{parity};
  while (!left.empty()) {
    const HeldFile* held = find(left.back());
    left.pop_back();
    for (const FileOf& need : held->needs) {
      const FileOf own{need.version, need.run, parity.node};
      const FileOf of_need{need.version, need.run, parity.node, /*parity=*/true};
      const HeldFile* its_parity = find(own) == nullptr ? nullptr : find(of_need);
      const bool made_again = its_parity != nullptr && its_parity->of.makes_up_for(made.of) &&
                              std::ranges::find(made.of.group, need.node) != made.of.group.end();
      if (!made_again) return need.version;
      if (seen.insert(of_need).second) left.push_back(of_need);
    }
  }
  return std::nullopt;
}

}  // namespace backstay::agent
