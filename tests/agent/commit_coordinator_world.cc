#include "commit_coordinator_world.h"

namespace backstay::agent::testing {

void DecidingNode::begin_run(RunId run) {
  wire::Hello hello;
  hello.run = run;
  hello.node = state.node;
  hello.nodes = state.nodes;
  ASSERT_TRUE(coordinator.begin_run(hello).ok());
  state.run = run;
}

StoredVersion DecidingNode::stored(VersionNumber version, RunId run) const {
  StoredVersion stored;
  stored.version = version;
  stored.record.version = version;
  stored.record.run = run;
  stored.record.nodes = state.nodes;
  return stored;
}

MemoryVersion& DecidingNode::capture(VersionNumber version, RunId run) {
  MemoryVersion& held = state.memory[version];
  held.info = {version, run, state.node, state.nodes, 1, 4096};
  held.captured = true;
  return held;
}

void DecidingNode::seal(VersionNumber version, RunId run) {
  StoredVersion sealed = stored(version, run);
  sealed.in_doubt = state.nodes > 1;
  VersionSealed event;
  event.stored = sealed;
  auto manifest = std::make_shared<format::Manifest>();
  manifest->node = state.node;
  event.manifest = manifest;
  coordinator.on(event);
}

void DecidingNode::write_record(VersionNumber version, RunId run, Level level) {
  StoredVersion done = stored(version, run);
  done.level = level;
  coordinator.on(VersionRecorded{done});
}

std::vector<std::pair<VersionNumber, Level>>& DecidingNode::told() {
  for (const Announcement& now : state.versions.take_orders().announced) {
    told_.emplace_back(now.version.version, now.version.level);
  }
  return told_;
}

void DecidingNode::post(Command command) {
  if (const auto* record = std::get_if<RecordVersion>(&command)) {
    EXPECT_LE(record->record.level, Level::protected_);
    (record->record.level == Level::local ? asked_ : protected_asked)
        .push_back(record->record.version);
  }
  if (const auto* event = std::get_if<AppendEvent>(&command)) events.push_back(event->line);
}

void DecidingNode::send(ConnectionId, wire::Message message, std::vector<int>) {
  if (const auto* is = std::get_if<wire::LevelIs>(&message)) answers.push_back(*is);
  tools_answered += std::holds_alternative<wire::Answer>(message) ? 1 : 0;
}

void DecidingNode::fact(const tree::Fact& fact) {
  facts.push_back(fact.value);
  requests.learn(fact);
}

std::uint32_t DecidingNode::requested() const {
  std::uint32_t word = 0;
  EXPECT_EQ(::pread(page->descriptor(), &word, sizeof word, 0), ssize_t{sizeof word});
  return word;
}

void find_recorded(DecidingNode& node, VersionNumber version, RunId run, Level level) {
  StoredVersion found = node.stored(version, run);
  found.level = level;
  node.state.versions.found(found, Where::disk);
}

void find_in_doubt(DecidingNode& node, VersionNumber version, RunId run,
                   std::vector<NodeId> parts) {
  StoredVersion found = node.stored(version, run);
  found.in_doubt = true;
  found.parts = std::move(parts);
  node.state.versions.found(found, Where::disk);
}

void CommitCoordinatorTest::begin_run(RunId run) {
  clock_.advance(1);  // another incarnation
  a_.begin_run(run);
  b_.begin_run(run);
  wire::Neighbours all;
  all.neighbours = {{0, a_.coordinator.run_membership()->address(), ""},
                    {1, b_.coordinator.run_membership()->address(), ""}};
  ASSERT_TRUE(a_.coordinator.know(all).ok());
  ASSERT_TRUE(b_.coordinator.know(all).ok());
  ASSERT_TRUE(until([&] { return a_.coordinator.run_membership()->present() == 2; }));
}

bool CommitCoordinatorTest::pass_ticks() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  return until([&] { return std::chrono::steady_clock::now() > end; });
}

}  // namespace backstay::agent::testing
