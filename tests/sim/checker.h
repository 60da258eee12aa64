// The rules that the tree must keep whatever happens, checked at the moment of each output.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/world.h"

namespace backstay::sim {

class Checker : public Watcher {
 public:
  // Before the world runs. `decided`: what earlier runs had announced or decided, by version.
  void watch(World& world, std::map<tree::RunVersion, Level> decided = {});

  void entered(NodeId node, std::uint64_t barrier, std::uint64_t round);
  void published(NodeId node, std::uint64_t incarnation, const std::string& name,
                 const std::string& value);

  // After a disk was destroyed: what no disk records any more may be forgotten.
  void destroyed();

  void announced(NodeId node, tree::RunVersion version, Level level) override;
  void released(NodeId node, std::uint64_t barrier, std::uint64_t round) override;
  void delivered(NodeId node, const tree::Fact& fact) override;
  void stepped(NodeId node) override;

  // The highest level that was announced of each version on any node, and that some disk should
  // still know.
  const std::map<tree::RunVersion, Level>& told() const { return told_; }
  std::uint64_t rounds(std::uint64_t barrier) const;
  std::size_t connections_max() const { return connections_max_; }
  std::uint64_t announcements() const { return announcements_; }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void broken(const std::string& what);

  World* world_ = nullptr;
  std::map<tree::RunVersion, Level> decided_;
  std::map<tree::RunVersion, Level> told_;
  std::map<tree::RunVersion, Level>
      sound_;  // looked at since a disk was destroyed; disks only gain otherwise
  std::map<std::uint64_t, std::vector<std::uint64_t>> entered_;
  std::map<std::uint64_t, std::uint64_t> released_;
  std::set<std::tuple<NodeId, std::uint64_t, std::string, std::string>> published_;
  std::size_t connections_max_ = 0;
  std::uint64_t announcements_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace backstay::sim
