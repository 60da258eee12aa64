#include "home_world.h"

namespace backstay::agent::testing {

Machine::Machine() : files({.clock = &clock}) {
  EXPECT_TRUE(files.make_directories("/w").ok());
  EXPECT_TRUE(files.make_directories("/disk").ok());
  EXPECT_TRUE(files.sync_directory("/").ok());
}

void Machine::put(const std::string& path, const std::string& bytes) {
  auto file = files.open(path, io::Open::create);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->write_at(0, std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE((*file)->sync().ok());
  ASSERT_TRUE(files.sync_directory("/w").ok());
}

std::string Machine::at(const std::string& path) {
  const auto bytes = io::read_file(files, path, 1 << 22);
  if (!bytes.ok()) return "none";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

void Machine::crash(std::uint64_t seed) {
  files.crash(seed);
  ++boots;
}

Buffer object_of(const std::vector<Written>& written) {
  Buffer object;
  std::vector<format::CapturedFile> table;
  for (const Written& one : written) {
    format::CapturedFile file;
    file.path = one.path;
    file.mode = one.mode;
    file.bytes = one.bytes.size() + one.hole;
    file.placed_ns = one.placed_s * second;
    file.modified = {static_cast<std::int64_t>(one.modified_s()), 17};
    file.accessed = {static_cast<std::int64_t>(one.placed_s), 18};
    if (!one.bytes.empty()) file.extents = {{0, one.bytes.size(), object.size()}};
    const auto raw = std::as_bytes(std::span(one.bytes));
    object.insert(object.end(), raw.begin(), raw.end());
    table.push_back(std::move(file));
  }
  std::ranges::sort(table, {}, &format::CapturedFile::path);
  object.resize(format::aligned_in_object(object.size()));
  const Buffer tail = format::encode_files(table, object.size());
  object.insert(object.end(), tail.begin(), tail.end());
  return object;
}

format::Manifest cut_up(const Buffer& object, VersionNumber version, Buffer& segment,
                        const std::string& of) {
  format::Manifest manifest;
  manifest.job = of;
  manifest.version = version;
  manifest.run = 9;
  manifest.chunk_bytes_max = 4096;
  manifest.captured_ns = version;
  for (std::uint64_t at = 0; at < object.size(); at += manifest.chunk_bytes_max) {
    const Bytes part = Bytes(object).subspan(
        at, std::min<std::uint64_t>(manifest.chunk_bytes_max, object.size() - at));
    manifest.chunks.push_back({files_of_writer, static_cast<std::uint32_t>(part.size()), at,
                               segment.size(), checksum(part)});
    segment.insert(segment.end(), part.begin(), part.end());
    segment.resize(format::slot_bytes(segment.size()));
  }
  manifest.segment_bytes = segment.size();
  const std::vector<std::pair<format::ObjectId, std::uint64_t>> sizes{
      {files_of_writer, object.size()}};
  EXPECT_TRUE(index_objects(manifest, sizes).ok());
  return manifest;
}

format::CommitRecord store(Machine& machine, VersionNumber version,
                           const std::vector<Written>& written, const std::string& of) {
  Buffer segment = encode(
      format::SegmentHeader{.job = of, .node = 0, .version = version, .run = 9, .created_ns = 1});
  const format::Manifest manifest = cut_up(object_of(written), version, segment, of);
  const Buffer encoded = encode(manifest);
  format::CommitRecord record = record_of(manifest, encoded);
  record.committed_ns = version + 1;
  const std::string folder = "/disk/" + format::version_folder(of, version);
  io::MemoryFileSystem& files = machine.files;
  EXPECT_TRUE(files.make_directories(folder).ok());
  EXPECT_TRUE(io::publish_file(files, format::segment_name(folder, 0), segment).ok());
  EXPECT_TRUE(io::publish_file(files, format::manifest_name(folder, 0), encoded).ok());
  EXPECT_TRUE(
      io::publish_file(files, format::commit_name(folder, Level::local), encode(record)).ok());
  EXPECT_TRUE(files.sync_directory("/disk/" + of).ok());
  EXPECT_TRUE(files.sync_directory("/disk").ok());
  return record;
}

std::string text(std::size_t bytes, char first) {
  std::string all(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(first + i % 23);
  return all;
}

void expect_is(Machine& machine, const Written& written) {
  const std::string bytes = machine.at(written.path);
  EXPECT_TRUE(bytes == written.bytes + std::string(written.hole, '\0')) << written.path;
  const auto facts = machine.files.look(written.path);
  ASSERT_TRUE(facts.ok());
  const auto at = [](std::uint64_t s, std::uint32_t ns) {
    return io::Moment{static_cast<std::int64_t>(s), ns};
  };
  EXPECT_EQ(facts->attributes,
            (io::Attributes{written.mode, at(written.placed_s, 18), at(written.modified_s(), 17)}));
}

std::vector<std::string> names(Machine& machine, const std::string& folder) {
  std::vector<std::string> all;
  const auto entries = machine.files.list(folder);
  EXPECT_TRUE(entries.ok());
  for (const io::Entry& entry : *entries) all.push_back(entry.name);
  return all;
}

std::vector<std::string> mark_of(Machine& machine, VersionNumber version) {
  const auto bytes = io::read_file(
      machine.files, "/disk/" + format::home_mark_name(format::version_folder(job, version), 0),
      1 << 20);
  if (!bytes.ok()) return {"no mark"};
  const auto mark = format::decode_home_mark(*bytes);
  EXPECT_TRUE(mark.ok());
  std::vector<std::string> paths;
  for (const auto& file : mark->files) paths.push_back(file.path);
  return paths;
}

void HomeAgent::add(const format::CommitRecord& record, bool before) {
  plan_.captured(record.version);
  plan_.recorded(record, 0, before);
}

void HomeAgent::run() {
  while (!faults_->stopped() && step()) {
  }
  take_news();
}

bool HomeAgent::step() {
  const HomeOrders orders = plan_.next(machine_.clock.monotonic_ns(), at_once_max_);
  if (orders.empty()) return false;
  worker_.handle(orders);
  EXPECT_EQ(thread_answers_.size(), orders.size());
  for (const HomeAnswer& answer : std::exchange(thread_answers_, {})) {
    plan_.on(answer, machine_.clock.monotonic_ns());
  }
  return true;
}

void HomeAgent::run_patiently(int pauses) {
  run();
  for (int i = 0; i < pauses && plan_.wakes_at_ns() != no_deadline; ++i) {
    const std::uint64_t now = machine_.clock.monotonic_ns();
    machine_.clock.advance(std::max(plan_.wakes_at_ns(), now) - now);
    run();
  }
}

std::string HomeAgent::settled(const std::string& path) {
  plan_.settle(++ticket_, path, machine_.clock.monotonic_ns());
  run();
  return answers_[ticket_];
}

Result<std::unique_ptr<tier::Tier>> HomeAgent::tier() {
  auto make_ring = [calls = faults_]() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_faulty_ring(io::make_memory_ring({.depth = 2, .seed = 1}), calls);
  };
  return tier::open_dir_tier(*files_, make_ring, {.root = "/disk"});
}

void HomeAgent::take_news() {
  const HomeNews news = plan_.take_news();
  for (const auto& one : news.answers) {
    answers_[one.ticket] = one.status.ok() ? "ok" : one.status.error().to_string();
  }
  at_home_.insert(at_home_.end(), news.at_home.begin(), news.at_home.end());
  for (const auto& one : news.warnings) warnings_.push_back(one.path + ": " + one.why);
}

}  // namespace backstay::agent::testing
