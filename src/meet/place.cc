#include "meet/place.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <vector>

namespace backstay::meet {
namespace {

struct Row {
  Launcher launcher;
  const char* name;
  const char* rank;
  std::vector<const char*> ranks;  // the first one that is set counts
};

const std::array<Row, 3>& rows() {
  static const auto& all = *new std::array<Row, 3>{
      {{Launcher::openmpi, "openmpi", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
       {Launcher::mpich, "mpich", "PMI_RANK", {"PMI_SIZE"}},
       {Launcher::slurm, "slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}}}};
  return all;
}

const Row& row_of(Launcher launcher) {
  for (const Row& row : rows())
    if (row.launcher == launcher) return row;
  return rows().front();
}

Result<std::uint32_t> number_in(const char* name, const Variables& variables) {
  const char* text = variables(name);
  if (text == nullptr)
    return Error(Code::invalid,
                 fmt::format("the launcher has not set {}, so this process does not know its place "
                             "in the job (docs/guide/transparent.md)",
                             name));
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return Error(Code::invalid, fmt::format("{} is '{}', which is no number", name, text));
  return value;
}

const char* first_set(const std::vector<const char*>& names, const Variables& variables) {
  for (const char* name : names)
    if (variables(name) != nullptr) return name;
  return names.front();
}

}  // namespace

std::string_view launcher_name(Launcher launcher) { return row_of(launcher).name; }

std::optional<Launcher> launcher_of(std::string_view name) {
  for (const Row& row : rows())
    if (name == row.name) return row.launcher;
  return std::nullopt;
}

Result<Place> place_by(Launcher launcher, const Variables& variables) {
  const Row& row = row_of(launcher);
  const char* ranks_name = first_set(row.ranks, variables);
  BACKSTAY_ASSIGN(const std::uint32_t rank, number_in(row.rank, variables));
  BACKSTAY_ASSIGN(const std::uint32_t ranks, number_in(ranks_name, variables));
  if (rank >= ranks)
    return Error(Code::invalid, fmt::format("{} is {}, and {} is {}: a rank is below the number of "
                                            "ranks",
                                            row.rank, rank, ranks_name, ranks));
  return Place{rank, ranks};
}

}  // namespace backstay::meet
