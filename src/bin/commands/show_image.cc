#include "bin/commands/show_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct AreaName {
  image::AreaKind kind;
  const char* name;
};
constexpr AreaName area_names[] = {{image::AreaKind::anonymous, "private"},
                                   {image::AreaKind::private_file, "private file"},
                                   {image::AreaKind::shared_file, "shared file"},
                                   {image::AreaKind::shared_memory, "shared memory"},
                                   {image::AreaKind::vdso, "vdso"},
                                   {image::AreaKind::vdso_data, "vdso data"}};
constexpr const char* descriptor_names[] = {"file",      "folder",        "device", "pipe",
                                            "inherited", "event counter", "epoll",  "timer",
                                            "signals",   "socket pair"};

const char* name_of(const image::Area& area) {
  if ((area.flags & image::area_is_content) != 0) return "content of file";
  for (const AreaName& one : area_names) {
    if (area.kind == static_cast<std::uint32_t>(one.kind)) return one.name;
  }
  return "unknown";
}

std::string name_of(const image::Descriptor& one) { return descriptor_names[one.kind - 1]; }

std::string protection_of(const image::Area& area) {
  const auto letter = [&area](std::uint32_t bit, char name) {
    return (area.protection & bit) != 0 ? name : '-';
  };
  return {letter(image::protection_read, 'r'), letter(image::protection_write, 'w'),
          letter(image::protection_execute, 'x')};
}

// Of the area's pages, those that the image holds.
std::uint64_t saved_bytes(const image::Image& image, const image::Area& area) {
  const auto first = std::lower_bound(
      image.runs.begin(), image.runs.end(), area.start,
      [](const image::Run& run, std::uint64_t address) { return run.address < address; });
  std::uint64_t pages = 0;
  for (auto run = first; run != image.runs.end() && run->address < area.end; ++run) {
    pages += run->pages;
  }
  return pages * image::page_bytes;
}

std::string file_of(const image::Image& image, const image::Area& area) {
  if (area.file == image::no_index) return "-";
  return printable(std::string(image.text(image.files[area.file].path)));
}

std::string map_text(const image::Image& image) {
  Table table({"ADDRESS", ">BYTES", ">SAVED", "MAY", "KIND", "FILE"});
  for (const image::Area& area : image.areas) {
    table.add({fmt::format("{:012x}", area.start), bytes_text(area.end - area.start),
               bytes_text(saved_bytes(image, area)), protection_of(area), name_of(area),
               file_of(image, area)});
  }
  return table.text();
}

std::string descriptors_text(const image::Image& image) {
  Table table({">OPEN", "KIND", ">OFFSET", "PATH"});
  for (const image::Descriptor& one : image.descriptors) {
    table.add({std::to_string(one.number), name_of(one), std::to_string(one.offset),
               printable(std::string(image.text(one.path)))});
  }
  return table.text();
}

std::string text(const image::Image& image, std::uint32_t offset) {
  return printable(std::string(image.text(offset)));
}

std::string name_of(const image::Thread& thread) {
  const auto* end = std::find(thread.name, thread.name + sizeof thread.name, '\0');
  return printable(std::string(thread.name, end));
}

constexpr std::size_t listed_max = 20;  // processes in the text

void sort_by_rank(std::vector<SavedProcess>& processes) {
  std::ranges::sort(processes, {}, &SavedProcess::rank);
}

}  // namespace

SavedProcess saved_process(const image::Image& image, Rank rank, std::uint64_t bytes) {
  const image::Identity& identity = image.identity;
  return {rank, identity.pid, text(image, identity.host), image.threads.size(), bytes};
}

std::string processes_text(std::vector<SavedProcess> processes) {
  sort_by_rank(processes);
  Table table({">RANK", ">PROCESS", "HOST", ">THREADS", ">SAVED"});
  for (const SavedProcess& one : processes) {
    if (&one == processes.data() + listed_max) break;
    table.add({std::to_string(one.rank), std::to_string(one.pid), one.host,
               std::to_string(one.threads), bytes_text(one.bytes)});
  }
  std::string out = "\n" + table.text();
  if (processes.size() > listed_max)
    out += fmt::format("and {} more (--json lists all)\n",
                       count_text(processes.size() - listed_max, "process"));
  return out;
}

Json processes_json(std::vector<SavedProcess> processes) {
  sort_by_rank(processes);
  Json list = Json::array();
  for (const SavedProcess& one : processes) {
    list.push_back({{"rank", one.rank},
                    {"pid", one.pid},
                    {"host", one.host},
                    {"threads", one.threads},
                    {"bytes", one.bytes}});
  }
  return list;
}

std::string image_text(const image::Image& image, const std::string& whose, bool with_map) {
  const image::Identity& identity = image.identity;
  std::string out = fmt::format(
      "\nPROCESS {} of {}, in {}\n{}  {}, interpreter {}\n  saved on Linux {}, host {}\n",
      identity.pid, text(image, identity.program), text(image, identity.cwd), whose,
      count_text(image.threads.size(), "thread"), text(image, identity.interpreter),
      text(image, identity.kernel), text(image, identity.host));
  out += with_map ? "\n" + map_text(image)
                  : fmt::format("  {} of memory (--map lists them)\n",
                                count_text(image.areas.size(), "area"));
  return out + "\n" + descriptors_text(image);
}

Json image_json(const image::Image& image) {
  const image::Identity& identity = image.identity;
  Json areas = Json::array();
  for (const image::Area& area : image.areas) {
    areas.push_back(
        {{"start", area.start},
         {"end", area.end},
         {"saved_bytes", saved_bytes(image, area)},
         {"protection", protection_of(area)},
         {"kind", name_of(area)},
         {"file", area.file == image::no_index ? Json(nullptr) : Json(file_of(image, area))}});
  }
  Json threads = Json::array();
  for (const image::Thread& thread : image.threads) {
    threads.push_back({{"id", thread.tid}, {"name", name_of(thread)}});
  }
  Json descriptors = Json::array();
  for (const image::Descriptor& one : image.descriptors) {
    descriptors.push_back({{"number", one.number},
                           {"kind", name_of(one)},
                           {"offset", one.offset},
                           {"path", text(image, one.path)}});
  }
  return {{"pid", identity.pid},
          {"program", text(image, identity.program)},
          {"interpreter", text(image, identity.interpreter)},
          {"folder", text(image, identity.cwd)},
          {"kernel", text(image, identity.kernel)},
          {"host", text(image, identity.host)},
          {"threads", threads},
          {"areas", areas},
          {"descriptors", descriptors}};
}

}  // namespace backstay::bin
