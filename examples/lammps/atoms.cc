#include "atoms.h"

#include <lammps/library.h>

#include <algorithm>
#include <utility>

namespace demo {
namespace {

// LAMMPS keeps x and v as one block with row pointers into it.
const double* block(void* lammps, const char* name) {
  return static_cast<double**>(lammps_extract_atom(lammps, name))[0];
}
const int* integers(void* lammps, const char* name) {
  return static_cast<const int*>(lammps_extract_atom(lammps, name));
}

}  // namespace

Atoms::Atoms(const Simulation& simulation) {
  int ranks = 1;
  MPI_Comm_size(simulation.comm(), &ranks);
  const auto share = static_cast<std::size_t>(lammps_get_natoms(simulation.handle()) / ranks);
  const std::size_t capacity = share + share / 2 + 512;
  for (auto* numbers : {&tag_, &type_, &image_}) numbers->resize(capacity);
  for (auto* vectors : {&x_, &v_}) vectors->resize(3 * capacity);
}

std::error_code Atoms::protect(backstay::Session& session) {
  std::error_code failed;
  const auto add = [&](const char* name, auto& data) {
    auto region = session.protect(name, data);
    if (region) regions_.push_back(std::move(*region));
    if (!region && !failed) failed = region.error();
  };
  add("step", step_);
  add("count", count_);
  add("tag", tag_);
  add("type", type_);
  add("image", image_);
  add("x", x_);
  add("v", v_);
  return failed;
}

bool Atoms::take(const Simulation& simulation) {
  void* lammps = simulation.handle();
  const int n = lammps_extract_setting(lammps, "nlocal");
  if (static_cast<std::size_t>(n) > tag_.size()) return false;
  step_ = simulation.step();
  count_ = n;
  if (n == 0) return true;
  std::copy_n(integers(lammps, "id"), n, tag_.begin());
  std::copy_n(integers(lammps, "type"), n, type_.begin());
  std::copy_n(integers(lammps, "image"), n, image_.begin());
  std::copy_n(block(lammps, "x"), 3 * n, x_.begin());
  std::copy_n(block(lammps, "v"), 3 * n, v_.begin());
  return true;
}

bool Atoms::give_back(Simulation& simulation) {
  simulation.command("delete_atoms group all compress no");
  simulation.command("reset_timestep " + std::to_string(step_));
  // Every rank hands in its own atoms only, and owns them all.
  const int n = static_cast<int>(count_);
  lammps_create_atoms(simulation.handle(), n, tag_.data(), type_.data(), x_.data(), v_.data(),
                      image_.data(), 0);
  int missing = n - lammps_extract_setting(simulation.handle(), "nlocal");
  MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, simulation.comm());
  return missing == 0;
}

}  // namespace demo
