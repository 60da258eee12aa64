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

// Adds `sign` times the slope of `in` along a reference axis of an element.
void add_slope(const Basis& basis, int axis, double sign, const std::vector<double>& in,
               std::vector<double>& out) {
  const int n = basis.n, inner = axis == 2 ? n * n : n;
  if (axis == 0)
    for (int row = 0; row < n * n * n; row += n)
      for (int m = 0; m < n; ++m)
        for (int i = 0; i < n; ++i) out[row + i] += sign * in[row + m] * basis.dt[m * n + i];
  else
    for (int start = 0; start < n * n * n; start += n * inner)
      for (int to = 0; to < n; ++to)
        for (int m = 0; m < n; ++m)
          for (int i = 0; i < inner; ++i)
            out[start + to * inner + i] += sign * basis.d[to * n + m] * in[start + m * inner + i];
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
  for (auto& one : tangent_) one.resize(count_ * cube_);
  for (auto* all : {&along_, &curl_})
    for (auto& one : *all) one.resize(cube_);
  set_geometry(mesh);
  set_faces(mesh);
  set_neighbours(mesh);
}

void Maxwell::set_geometry(const Mesh& mesh) {
  const int n = basis_.n;
  std::vector<double> u(cube_), slope(cube_);
  for (std::int64_t e = 0; e < count_; ++e) {
    const auto own = points_of(mesh.elements[mesh.first + e], mesh.radius, basis_);
    points.insert(points.end(), own.begin(), own.end());
    for (int c = 0; c < 3; ++c)
      for (int d = 0; d < 3; ++d) {
        for (std::int64_t p = 0; p < cube_; ++p) u[p] = own[p][c];
        std::fill(slope.begin(), slope.end(), 0.0);
        add_slope(basis_, d, 1, u, slope);
        std::copy(slope.begin(), slope.end(), &tangent_[3 * d + c][e * cube_]);
      }
    for (std::int64_t p = 0; p < cube_; ++p) {
      inverse_jacobian_.push_back(1 / jacobian(e * cube_ + p));
      volume.push_back(jacobian(e * cube_ + p) * basis_.weight[p % n] * basis_.weight[p / n % n] *
                       basis_.weight[p / square_]);
    }
  }
}

Vector Maxwell::tangent(int axis, std::int64_t point) const {
  const auto* along = &tangent_[3 * axis];
  return {along[0][point], along[1][point], along[2][point]};
}

double Maxwell::jacobian(std::int64_t point) const {
  return dot(tangent(0, point), cross(tangent(1, point), tangent(2, point)));
}

Vector Maxwell::gradient(int axis, std::int64_t point) const {
  Vector slope = cross(tangent((axis + 1) % 3, point), tangent((axis + 2) % 3, point));
  for (double& c : slope) c /= jacobian(point);
  return slope;
}

void Maxwell::set_faces(const Mesh& mesh) {
  for (std::int64_t e = 0; e < count_; ++e)
    for (int face = 0; face < 6; ++face)
      for (int p : face_points(mesh.elements[mesh.first + e], face, basis_.n)) {
        FacePoint at{e * cube_ + p, gradient(face / 2, e * cube_ + p), 0};
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
    for (int d = 0; d < 3; ++d) here += std::sqrt(dot(gradient(d, p), gradient(d, p)));
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

void Maxwell::set_curl(std::int64_t element, int of, int to, double sign) {
  const std::int64_t from = element * cube_;
  for (int d = 0; d < 3; ++d)
    for (std::int64_t p = 0; p < cube_; ++p)
      along_[d][p] = tangent_[3 * d][from + p] * fields[of][from + p] +
                     tangent_[3 * d + 1][from + p] * fields[of + 1][from + p] +
                     tangent_[3 * d + 2][from + p] * fields[of + 2][from + p];
  for (int a = 0; a < 3; ++a) {
    const int b = (a + 1) % 3, c = (a + 2) % 3;
    std::fill(curl_[a].begin(), curl_[a].end(), 0.0);
    add_slope(basis_, b, sign, along_[c], curl_[a]);
    add_slope(basis_, c, -sign, along_[b], curl_[a]);
  }
  for (int c = 0; c < 3; ++c)
    for (std::int64_t p = 0; p < cube_; ++p)
      rate_[to + c][from + p] =
          (curl_[0][p] * tangent_[c][from + p] + curl_[1][p] * tangent_[3 + c][from + p] +
           curl_[2][p] * tangent_[6 + c][from + p]) *
          inverse_jacobian_[from + p];
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
      const Vector across_e = cross(at.normal, e), across_h = cross(at.normal, h);
      for (int c = 0; c < 3; ++c) {
        rate_[c][at.point] += at.lift * (across_h[c] + e[c] - e_n * at.normal[c]);
        rate_[3 + c][at.point] += at.lift * (h[c] - h_n * at.normal[c] - across_e[c]);
      }
    }
}

void Maxwell::step(double dt) {
  for (std::size_t stage = 0; stage < rk_a.size(); ++stage) {
    start_exchange();
    for (std::int64_t e = 0; e < count_; ++e) {
      set_curl(e, 3, 0, 1);
      set_curl(e, 0, 3, -1);
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
