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

// Adds to point i of each line along an axis what point m gives it: table[m n + i] in[m].
void add_along(int axis, int n, const std::vector<double>& table, const double* in, double* out) {
  const int inner = axis == 2 ? n * n : n;
  if (axis == 0)
    for (int row = 0; row < n * n * n; row += n)
      for (int m = 0; m < n; ++m)
        for (int i = 0; i < n; ++i) out[row + i] += table[m * n + i] * in[row + m];
  else
    for (int start = 0; start < n * n * n; start += n * inner)
      for (int to = 0; to < n; ++to)
        for (int m = 0; m < n; ++m)
          for (int i = 0; i < inner; ++i)
            out[start + to * inner + i] += table[m * n + to] * in[start + m * inner + i];
}

// The slopes of u along the three reference axes of an element.
void slopes(const Basis& basis, const double* u, std::array<std::vector<double>, 3>& out) {
  for (int d = 0; d < 3; ++d) {
    std::fill(out[d].begin(), out[d].end(), 0.0);
    add_along(d, basis.n, basis.dt, u, out[d].data());
  }
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

void Maxwell::add_curl_of_h(std::int64_t element) {
  const std::int64_t from = element * cube_;
  for (int a = 0; a < 3; ++a) {
    slopes(basis_, &fields[3 + a][from], scratch_);
    const int b = (a + 1) % 3, c = (a + 2) % 3;
    double *more = &rate_[b][from], *less = &rate_[c][from];
    for (std::int64_t p = 0; p < cube_; ++p)
      for (int d = 0; d < 3; ++d) {
        more[p] += slope_[3 * d + c][from + p] * scratch_[d][p];
        less[p] -= slope_[3 * d + b][from + p] * scratch_[d][p];
      }
  }
}

void Maxwell::subtract_curl_of_e(std::int64_t element) {
  const std::int64_t from = element * cube_;
  for (int a = 0; a < 3; ++a) {
    const int b = (a + 1) % 3, c = (a + 2) % 3;
    double* rate = &rate_[3 + a][from];
    for (int d = 0; d < 3; ++d) {
      for (std::int64_t p = 0; p < cube_; ++p)
        scratch_[d][p] = volume[from + p] * (slope_[3 * d + b][from + p] * fields[c][from + p] -
                                             slope_[3 * d + c][from + p] * fields[b][from + p]);
      add_along(d, basis_.n, basis_.d, scratch_[d].data(), rate);
    }
    for (std::int64_t p = 0; p < cube_; ++p) rate[p] /= volume[from + p];
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
      const double e_n = dot(at.normal, e), h_n = dot(at.normal, h);
      const Vector across_h = cross(at.normal, h);
      const Vector across_e =  // of both sides' sum: the weak form
          cross(at.normal, {e[0] + 2 * mine[0], e[1] + 2 * mine[1], e[2] + 2 * mine[2]});
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
    for (std::int64_t e = 0; e < count_; ++e) {
      add_curl_of_h(e);
      subtract_curl_of_e(e);
    }
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
