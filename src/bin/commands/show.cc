// `backstay show`: the content of a version, and the losses that it would survive. Reads manifests
// and region tables, no payload.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bin/commands/copies.h"
#include "bin/commands/restart_room.h"
#include "bin/commands/show_files.h"
#include "bin/commands/show_image.h"
#include "bin/commands/show_streams.h"
#include "bin/commands/status_text.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/parts/stored.h"
#include "format/names.h"
#include "format/parity_manifest.h"
#include "store/home/home_mark.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct ShowOptions {
  Settings settings;
  std::string job;
  VersionNumber version = 0;
  std::int64_t rank = -1;
  bool map = false;
};

// One region over all ranks that have it.
struct RegionSummary {
  format::Region first;  // as the lowest rank has it
  bool same_shape = true;
  bool same_type = true;
  std::uint64_t ranks = 0;
  std::uint64_t bytes = 0;
};

using RegionKey = std::pair<std::string, format::RegionKind>;

struct Content {
  store::StoredVersion version;
  std::vector<NodeId> nodes;
  std::uint64_t objects_here = 0;
  std::uint64_t segment_bytes = 0;
  std::vector<RegionKey> order;  // as the first rank saved them
  std::map<RegionKey, RegionSummary> regions;
  FoundStreams streams;
  std::vector<FoundFile> files;
  std::size_t not_home = 0;           // of these files
  std::optional<image::Image> image;  // of a program that does not use Backstay: its first rank
  Rank image_rank = 0;
  std::vector<SavedProcess> processes;  // all that are here
  std::vector<format::Need> needs;
  std::string program;  // "": not known
  Result<Copies> copies = Error(Code::agent_lost, "");
  std::vector<std::uint32_t> parity;  // k, m; empty: none is here
  std::uint64_t file_bytes = 0;       // routed files of the node that has most of them
  std::optional<RestartRoom> room;    // for those

  void add(const format::Region& region) {
    const RegionKey key{region.name, region.kind};
    auto [found, fresh] = regions.try_emplace(key);
    if (fresh) {
      found->second.first = region;
      order.push_back(key);
    }
    RegionSummary& summary = found->second;
    summary.same_shape &= summary.first.shape == region.shape;
    summary.same_type &= summary.first.type == region.type;
    ++summary.ranks;
    summary.bytes += region.bytes;
  }
};

bool is_of_rank(const format::ObjectId& id, Rank rank) {
  return id.owner == format::OwnerKind::rank && id.number == rank;
}

Status add_files(Content& content, NodeReader& reader, const format::ObjectEntry& object,
                 NodeId node) {
  BACKSTAY_ASSIGN(auto files, reader.files(object));
  for (auto& file : files) content.files.push_back({node, object.id, std::move(file)});
  return {};
}

// Nothing of kinds whose content this release does not know.
Status add_regions(Content& content, NodeReader& reader, const format::ObjectEntry& object,
                   std::uint64_t& file_bytes) {
  if (object.id.kind != format::ObjectKind::regions) return {};
  BACKSTAY_ASSIGN(auto image, reader.image(object));
  if (image) {
    content.processes.push_back(
        saved_process(*image, static_cast<Rank>(object.id.number), object.bytes));
    if (!content.image || object.id.number < content.image_rank) {
      content.image = std::move(image);
      content.image_rank = static_cast<Rank>(object.id.number);
    }
    return {};
  }
  BACKSTAY_ASSIGN(const format::Table table, reader.table(object));
  if (content.program.empty()) content.program = table.note(format::note_program);
  BACKSTAY_ASSIGN(const auto streams, reader.streams(object, table));
  content.streams.add(streams);
  for (const format::Region& region : table.regions) {
    if (region.kind == format::RegionKind::streams) continue;  // listed by their names
    content.add(region);
    if (region.kind == format::RegionKind::file) file_bytes += region.bytes;
  }
  return {};
}

// Without a mark none is at home.
Status count_not_home(Content& content, Stored& stored, NodeReader& reader,
                      const format::Manifest& manifest) {
  std::size_t files = 0;
  for (const format::ObjectEntry& object : manifest.objects) {
    if (object.id.kind != format::ObjectKind::files) continue;
    BACKSTAY_ASSIGN(const auto found, reader.files(object));
    files += found.size();
  }
  BACKSTAY_ASSIGN(const auto mark,
                  store::read_home_mark(stored.tier(), content.version.record, manifest.node));
  content.not_home += mark ? mark->files.size() : files;
  return {};
}

// Errors: those of the file, with its path.
Result<format::Manifest> manifest_of(Stored& stored, const format::CommitRecord& record,
                                     const std::string& job, NodeId node) {
  auto manifest = store::read_manifest(stored.tier(), job, record, node);
  if (manifest.ok() || !is_damage(manifest.error().code())) return manifest;  // a tier names it
  const std::string name = format::manifest_name(format::version_folder(job, record.version), node);
  return manifest.error().context(stored.dir() + "/" + name);
}

Status add_node(Stored& stored, Content& content, const std::string& job, NodeId node,
                std::int64_t rank) {
  BACKSTAY_ASSIGN(const format::Manifest manifest,
                  manifest_of(stored, content.version.record, job, node));
  BACKSTAY_ASSIGN(NodeReader reader, NodeReader::open(stored.tier(), manifest));
  content.segment_bytes += manifest.segment_bytes;
  content.needs = format::both_needs(content.needs, manifest.needs);
  BACKSTAY_TRY(count_not_home(content, stored, reader, manifest));
  std::uint64_t file_bytes = 0;
  for (const format::ObjectEntry& object : manifest.objects) {
    if (rank >= 0 && !is_of_rank(object.id, static_cast<Rank>(rank))) continue;
    const Status added = object.id.kind == format::ObjectKind::files
                             ? add_files(content, reader, object, node)
                             : add_regions(content, reader, object, file_bytes);
    if (!added.ok()) return added.error().context(format::object_name(object.id));
    ++content.objects_here;
  }
  content.file_bytes = std::max(content.file_bytes, file_bytes);
  return {};
}

// The parity of its group that this node keeps.
std::vector<std::uint32_t> parity_here(Stored& stored, const std::string& job,
                                       VersionNumber version) {
  const std::string folder = format::version_folder(job, version);
  const auto names = stored.tier().list(folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (!format::node_of_parity_manifest(name)) continue;
    const auto bytes = stored.tier().get(folder + "/" + name, format::manifest_bytes_max);
    const auto parity = bytes.ok() ? format::decode_parity_manifest(*bytes)
                                   : Result<format::ParityManifest>(bytes.error());
    if (parity.ok()) return {parity->data, parity->parity};
  }
  return {};
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

std::string type_text(const RegionSummary& region) {
  if (region.first.kind == format::RegionKind::file) return "file";
  return region.same_type ? std::string(format::element_name(region.first.type)) : "differs";
}

// Empty for a version of one node that no agent knows: there are no other nodes.
std::vector<std::string> copies_lines(const Content& content) {
  if (content.copies.ok()) return survival_lines(*content.copies);
  if (content.version.record.nodes == 1) return {};
  return {"which losses it would survive is not known: " + content.copies.error().message()};
}

// The answer of the job's agents; there may be none.
Result<Copies> ask_for_copies(const Config& config, const std::string& dir, const std::string& job,
                              VersionNumber version) {
  constexpr double patience_s = 5;
  BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, patience_s));
  BACKSTAY_ASSIGN(const Json answer, agent.ask(wire::Where{job, dir, version}));
  return copies_of(answer);
}

std::vector<VersionNumber> versions_of(const std::vector<format::Need>& needs) {
  std::vector<VersionNumber> versions;
  for (const format::Need& need : needs) versions.push_back(need.version);
  return versions;
}

void print_not_home(const Content& content, const std::string& job) {
  if (content.not_home == 0 || content.version.level == Level::durable) return;
  fmt::print("{} not at home yet: `backstay ls {} --files`\n",
             content.not_home == 1 ? "1 file is" : count_text(content.not_home, "file") + " are",
             job);
}

void print_process(const Content& content, bool with_map) {
  if (!content.image) return;
  const Rank ranks = content.version.record.ranks;
  const std::string whose = ranks > 1 ? fmt::format("  rank {} of {}; --rank N shows another\n",
                                                    content.image_rank, ranks)
                                      : "";
  if (content.processes.size() > 1) fmt::print("{}", processes_text(content.processes));
  fmt::print("{}", image_text(*content.image, whose, with_map));
}

Json process_json(const Content& content) {
  if (!content.image) return nullptr;
  Json process = image_json(*content.image);
  process["rank"] = content.image_rank;
  return process;
}

void print_content(const std::string& dir, const std::string& job, const Content& content,
                   bool with_map) {
  const auto& version = content.version;
  const auto& record = version.record;
  fmt::print("{} version {}: {}, {}\n", job, version.version, state_text(version),
             level_name(version.level));
  if (!version.damage.empty()) fmt::print("  damaged: {}\n", printable(version.damage));
  fmt::print("  captured {} ({}), on the disk after {}\n", time_text(record.captured_ns),
             age_text(record.captured_ns),
             duration_text(static_cast<double>(record.committed_ns - record.captured_ns) * 1e-9));
  fmt::print("  {} on {}, {} payload{}, {} on this disk\n  {}/{}\n",
             count_text(record.ranks, "rank"), count_text(record.nodes, "node"),
             bytes_text(record.payload_bytes), counts_one_node(version) ? " of this node" : "",
             bytes_text(content.segment_bytes), dir, job);
  if (!content.program.empty()) fmt::print("  saved by {}\n", printable(content.program));
  if (!content.needs.empty())
    fmt::print("  needs what lies in version{} {}\n", content.needs.size() > 1 ? "s" : "",
               fmt::join(versions_of(content.needs), ", "));
  std::vector<std::string> said_of_others = copies_lines(content);
  if (!content.parity.empty()) {
    said_of_others.push_back(fmt::format(
        "parity ({}, {}) is kept{}: a restart makes what up to {} of the {} nodes of this "
        "node's group saved out of what the others have",
        content.parity[0], content.parity[1], content.copies.ok() ? ", and counted above" : "",
        content.parity[1], content.parity[0] + content.parity[1]));
  }
  said_of_others.push_back(warning(content.room, dir));  // no line where there is room
  for (const std::string& said : said_of_others) {
    for (const std::string& line : wrapped(said, 2, 80)) fmt::print("{}\n", line);
  }
  Table table({"REGION", "TYPE", "SHAPE OF A RANK", "GLOBAL SHAPE", ">RANKS", ">BYTES"});
  for (const RegionKey& key : content.order) {
    const RegionSummary& region = content.regions.at(key);
    table.add({region.first.name, type_text(region),
               region.same_shape ? shape_text(region.first.shape) : "differs (--rank N shows one)",
               region.first.global_shape.empty() ? "-" : shape_text(region.first.global_shape),
               std::to_string(region.ranks), bytes_text(region.bytes)});
  }
  print_process(content, with_map);
  const std::string streams = content.streams.text();
  const bool nothing_else = content.files.empty() && !content.image && streams.empty();
  if (!content.order.empty() || nothing_else) fmt::print("\n{}", table.text());
  fmt::print("{}{}", streams, files_text(content.files));
  print_not_home(content, job);
}

Json as_json(const std::string& dir, const std::string& job, const Content& content) {
  Json regions = Json::array();
  for (const RegionKey& key : content.order) {
    const RegionSummary& region = content.regions.at(key);
    regions.push_back(
        {{"name", region.first.name},
         {"kind", format::region_kind_name(region.first.kind)},
         {"type", region.same_type ? Json(format::element_name(region.first.type)) : Json(nullptr)},
         {"shape", region.same_shape ? Json(region.first.shape) : Json(nullptr)},
         {"global_shape",
          region.first.global_shape.empty() ? Json(nullptr) : Json(region.first.global_shape)},
         {"ranks", region.ranks},
         {"bytes", region.bytes}});
  }
  const auto& version = content.version;
  return {{"dir", dir},
          {"job", job},
          {"version", version.version},
          {"state", state_text(version)},
          {"damage", version.damage},
          {"level", level_name(version.level)},
          {"where", Json::array({level_name(version.level)})},
          {"run", fmt::format("{:016x}", version.record.run)},
          {"program", content.program.empty() ? Json(nullptr) : Json(content.program)},
          {"ranks", version.record.ranks},
          {"nodes", version.record.nodes},
          {"nodes_here", content.nodes},
          {"payload_bytes", version.record.payload_bytes},
          {"segment_bytes", content.segment_bytes},
          {"captured_ns", version.record.captured_ns},
          {"committed_ns", version.record.committed_ns},
          {"age_s", seconds_since(version.record.captured_ns)},
          {"survival", content.copies.ok() ? survival_json(*content.copies) : Json(nullptr)},
          {"restart_room", room_json(content.room)},
          {"parity", content.parity.empty() ? Json(nullptr) : Json(content.parity)},
          {"needs", versions_of(content.needs)},
          {"regions", regions},
          {"streams", content.streams.json()},
          {"files", files_json(content.files)},
          {"files_not_home", content.not_home},
          {"process", process_json(content)},
          {"processes", processes_json(content.processes)}};
}

// Says which version it is, and what helps: a restart would find out by itself.
Error unreadable(const Error& error, const std::string& job, VersionNumber number) {
  const Error named = error.context(fmt::format("{} version {}", job, number));
  if (!store::is_damage_or_gone(error.code())) return named;
  return {named.code(),
          fmt::format("{}; `backstay verify {} {}` sets a damaged version aside, `backstay ls {}` "
                      "shows the others",
                      named.message(), job, number, job)};
}

Result<int> show(const ShowOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load_for_versions(options.settings));
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  Content content;
  BACKSTAY_ASSIGN(content.version, stored.version(job, options.version));
  const VersionNumber number = content.version.version;
  if (content.version.level == Level::none) {
    if (!content.version.damage.empty())
      return Error(Code::corrupt,
                   fmt::format("{} version {}: {}", job, number, content.version.damage));
    return Error(
        Code::none,
        fmt::format("{} version {} is incomplete: being written, or left by a crash", job, number));
  }
  BACKSTAY_ASSIGN(content.nodes, stored.nodes(job, number));
  for (const NodeId node : content.nodes) {
    const Status added = add_node(stored, content, job, node, options.rank);
    if (!added.ok()) return unreadable(added.error(), job, number);
  }
  content.files = latest_of_each_path(std::move(content.files));
  if (content.objects_here == 0)
    return Error(Code::not_found,
                 options.rank < 0
                     ? fmt::format("{} version {}: its manifest is missing", job, number)
                     : fmt::format("{} version {} has no rank {} here; it has {}", job, number,
                                   options.rank, count_text(content.version.record.ranks, "rank")));
  content.room = restart_room(stored.dir(), content.file_bytes);
  content.parity = parity_here(stored, job, number);
  content.copies = ask_for_copies(config, stored.dir(), job, number);
  if (options.settings.json)
    print_json(as_json(stored.dir(), job, content));
  else
    print_content(stored.dir(), job, content, options.map);
  return exit_ok;
}

}  // namespace

Action declare_show(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  app.add_option("job", options->job, "Name of the job; default: job.name")->type_name("JOB");
  app.add_option("version", options->version,
                 "Number of the version; default: the newest complete one")
      ->type_name("VERSION")
      ->check(a_version());
  app.add_option("--rank", options->rank, "Only what this rank saved")
      ->type_name("RANK")
      ->check(a_rank());
  app.add_flag("--map", options->map, "Of a saved process: each area of its memory, too");
  add_settings(app, options->settings, true);
  app.footer(
      "Examples:\n"
      "  backstay show lj              the newest complete version\n"
      "  backstay show lj 12 --rank 3  exact shapes of one rank\n"
      "Exit codes: 0 ok, 3 no such job, version or rank, 4 damaged");
  return [options] { return show(*options); };
}

}  // namespace backstay::bin
