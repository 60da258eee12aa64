#include "maxwell.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace guide {
namespace {

constexpr double cfl = 0.8;
constexpr std::array<double, 5> rk_a{
    0, -567301805773.0 / 1357537059087.0, -2404267990393.0 / 2016746695238.0,
    -3550918686646.0 / 2091501179385.0, -1275806237668.0 / 842570457699.0};
constexpr std::array<double, 5> rk_b{
    1432997174477.0 / 9575080441755.0, 5161836677717.0 / 13612068292357.0,
    1720146321549.0 / 2090206949498.0, 3134564353537.0 / 4481467310338.0,
    2277821191437.0 / 14882151754819.0};

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// The slopes of u along the three reference axes of an element.
void slopes(const Basis& basis, const double* u, std::array<std::vector<double>, 3>& out) {
  const int n = basis.n, square = n * n;
  for (auto& one : out) std::fill(one.begin(), one.end(), 0.0);
  for (int row = 0; row < square; ++row)
    for (int m = 0; m < n; ++m)
      for (int i = 0; i < n; ++i) out[0][row * n + i] += basis.dt[m * n + i] * u[row * n + m];
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      for (int m = 0; m < n; ++m)
        for (int i = 0; i < n; ++i)
          out[1][k * square + j * n + i] += basis.d[j * n + m] * u[k * square + m * n + i];
  for (int k = 0; k < n; ++k)
    for (int m = 0; m < n; ++m)
      for (int i = 0; i < square; ++i)
        out[2][k * square + i] += basis.d[k * n + m] * u[m * square + i];
}

}  // namespace

Maxwell::Maxwell(const Mesh& mesh, const Basis& basis, MPI_Comm comm)
    : basis_(basis),
      comm_(comm),
      count_(mesh.count),
      cube_(static_cast<std::int64_t>(basis.n) * basis.n * basis.n),
      square_(static_cast<std::int64_t>(basis.n) * basis.n) {
  for (auto* all : {&fields, &rate_, &residual_})
    for (auto& one : *all) one.assign(count_ * cube_, 0.0);
  for (auto& one : slope_) one.resize(count_ * cube_);
  for (auto& one : scratch_) one.resize(cube_);
  set_geometry(mesh);
  set_faces(mesh);
  set_neighbours(mesh);
}

void Maxwell::set_geometry(const Mesh& mesh) {
  const int n = basis_.n;
  std::vector<double> u(cube_);
  for (std::int64_t e = 0; e < count_; ++e) {
    const auto own = points_of(mesh.elements[mesh.first + e], mesh.radius, basis_);
    points.insert(points.end(), own.begin(), own.end());
    std::array<std::vector<Vector>, 3>
        along;  // along[d][p][c]: slope of x_c along reference axis d
    for (auto& one : along) one.resize(cube_);
    for (int c = 0; c < 3; ++c) {
      for (std::int64_t p = 0; p < cube_; ++p) u[p] = own[p][c];
      slopes(basis_, u.data(), scratch_);
      for (int d = 0; d < 3; ++d)
        for (std::int64_t p = 0; p < cube_; ++p) along[d][p][c] = scratch_[d][p];
    }
    for (std::int64_t p = 0; p < cube_; ++p) {
      const double jacobian = dot(along[0][p], cross(along[1][p], along[2][p]));
      volume.push_back(jacobian * basis_.weight[p % n] * basis_.weight[p / n % n] *
                       basis_.weight[p / square_]);
      for (int d = 0; d < 3; ++d) {
        const Vector slope = cross(along[(d + 1) % 3][p], along[(d + 2) % 3][p]);
        for (int c = 0; c < 3; ++c) slope_[3 * d + c][e * cube_ + p] = slope[c] / jacobian;
      }
    }
  }
}

void Maxwell::set_faces(const Mesh& mesh) {
  for (std::int64_t e = 0; e < count_; ++e)
    for (int face = 0; face < 6; ++face)
      for (int p : face_points(mesh.elements[mesh.first + e], face, basis_.n)) {
        FacePoint at{e * cube_ + p, {}, 0};
        for (int c = 0; c < 3; ++c) at.normal[c] = slope_[face / 2 * 3 + c][at.point];
        const double length = std::sqrt(dot(at.normal, at.normal));
        for (double& c : at.normal) c *= (face % 2 ? 1 : -1) / length;
        at.lift = 0.5 * length / basis_.weight[0];
        faces_.push_back(at);
      }
  trace_.resize(6 * faces_.size());
}

void Maxwell::set_neighbours(const Mesh& mesh) {
  // Both ranks sort their faces by the lesser of the two sides.
  std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> shared;
  behind_.assign(6 * count_, nullptr);
  for (std::int64_t f = 0; f < 6 * count_; ++f) {
    const Link other = mesh.links[mesh.first + f / 6][f % 6];
    if (other.element < 0) continue;
    const std::int64_t mine = 6 * mesh.first + f, theirs = 6 * other.element + other.face;
    if (other.element >= mesh.first && other.element < mesh.first + mesh.count)
      behind_[f] = &trace_[6 * square_ * (theirs - 6 * mesh.first)];
    else
      shared[mesh.owner(other.element)].emplace_back(std::min(mine, theirs), f);
  }
  for (auto& [rank, some] : shared) {
    std::sort(some.begin(), some.end());
    Neighbour& neighbour = neighbours_.emplace_back(Neighbour{rank, {}, {}, {}});
    neighbour.out.resize(6 * square_ * some.size());
    neighbour.in.resize(neighbour.out.size());
    for (const auto& [order, f] : some) {
      behind_[f] = &neighbour.in[6 * square_ * neighbour.faces.size()];
      neighbour.faces.push_back(f);
    }
  }
}

double Maxwell::largest_step() const {
  double fastest = 0;
  for (std::int64_t p = 0; p < count_ * cube_; ++p) {
    double here = 0;
    for (int d = 0; d < 3; ++d)
      here += std::hypot(slope_[3 * d][p], slope_[3 * d + 1][p], slope_[3 * d + 2][p]);
    fastest = std::max(fastest, here);
  }
  MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return cfl * (basis_.x[1] - basis_.x[0]) / fastest;
}

void Maxwell::start_exchange() {
  for (std::size_t f = 0; f < faces_.size(); ++f)
    for (int c = 0; c < 6; ++c) trace_[6 * f + c] = fields[c][faces_[f].point];
  requests_.clear();
  for (Neighbour& to : neighbours_) {
    const int size = static_cast<int>(to.out.size());
    MPI_Irecv(to.in.data(), size, MPI_DOUBLE, to.rank, 0, comm_, &requests_.emplace_back());
    double* next = to.out.data();
    for (std::int64_t f : to.faces) next = std::copy_n(&trace_[6 * square_ * f], 6 * square_, next);
    MPI_Isend(to.out.data(), size, MPI_DOUBLE, to.rank, 0, comm_, &requests_.emplace_back());
  }
}

void Maxwell::add_curls(std::int64_t element) {
  const std::int64_t from = element * cube_;
  for (int f = 0; f < 6; ++f) {
    slopes(basis_, &fields[f][from], scratch_);
    // Component a of H adds its slope along a + 2 to rate a + 1 of E, and takes the other.
    const int a = f % 3, b = (a + 1) % 3, c = (a + 2) % 3, to = f < 3 ? 3 : 0;
    const double sign = f < 3 ? -1 : 1;
    double *up = &rate_[to + b][from], *down = &rate_[to + c][from];
    for (std::int64_t p = 0; p < cube_; ++p) {
      double along_b = 0, along_c = 0;
      for (int d = 0; d < 3; ++d) {
        along_b += slope_[3 * d + b][from + p] * scratch_[d][p];
        along_c += slope_[3 * d + c][from + p] * scratch_[d][p];
      }
      up[p] += sign * along_c;
      down[p] -= sign * along_b;
    }
  }
}

void Maxwell::add_faces(std::int64_t element) {
  for (std::int64_t f = 6 * element; f < 6 * element + 6; ++f)
    for (std::int64_t q = 0; q < square_; ++q) {
      const FacePoint& at = faces_[f * square_ + q];
      const double* mine = &trace_[6 * (f * square_ + q)];
      Vector e, h;  // the jumps, from here to there
      for (int c = 0; c < 3; ++c) {
        // A conducting wall mirrors: E behind it is the negative, H the same.
        e[c] = behind_[f] ? behind_[f][6 * q + c] - mine[c] : -2 * mine[c];
        h[c] = behind_[f] ? behind_[f][6 * q + 3 + c] - mine[3 + c] : 0;
      }
      const Vector across_e = cross(at.normal, e), across_h = cross(at.normal, h);
      const double e_n = dot(at.normal, e), h_n = dot(at.normal, h);
      for (int c = 0; c < 3; ++c) {
        rate_[c][at.point] += at.lift * (across_h[c] + e[c] - e_n * at.normal[c]);
        rate_[3 + c][at.point] += at.lift * (h[c] - h_n * at.normal[c] - across_e[c]);
      }
    }
}

void Maxwell::step(double dt) {
  for (std::size_t stage = 0; stage < rk_a.size(); ++stage) {
    start_exchange();
    for (auto& one : rate_) std::fill(one.begin(), one.end(), 0.0);
    for (std::int64_t e = 0; e < count_; ++e) add_curls(e);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (std::int64_t e = 0; e < count_; ++e) add_faces(e);
    for (std::size_t c = 0; c < fields.size(); ++c)
      for (std::size_t p = 0; p < fields[c].size(); ++p) {
        residual_[c][p] = rk_a[stage] * residual_[c][p] + dt * rate_[c][p];
        fields[c][p] += rk_b[stage] * residual_[c][p];
      }
  }
}

}  // namespace guide
