#include "mesh.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

namespace guide {
namespace {

int corner(int face, int i, int j) {
  const int axis = face / 2, a = axis == 0 ? 1 : 0, b = axis == 2 ? 1 : 2;
  return (face % 2) << axis | i << a | j << b;
}

void must(bool good, const std::string& path) {
  if (!good) throw std::runtime_error(path + " is missing or not as README.md describes it");
}

void read(const std::string& name, Mesh& mesh) {
  std::ifstream rea(name + ".rea"), map(name + ".map");
  std::size_t count = 0, again = 0, vertices = 0;
  std::string word, sides;
  rea >> count >> word >> word >> mesh.radius >> word >> mesh.length;
  must(rea.good() && count > 0, name + ".rea");
  map >> again >> word >> vertices >> word;
  must(map.good() && again == count, name + ".map");
  mesh.elements.resize(count);
  std::vector<bool> seen(count);
  for (std::size_t e = 0; e < count; ++e) {
    std::size_t position = count;
    map >> position;
    must(position < count && !seen[position], name + ".map");
    seen[position] = true;
    Element& element = mesh.elements[position];
    for (auto& vertex : element.vertices) map >> vertex;
    rea >> word >> word >> word >> sides;
    must(sides.size() == element.sides.size(), name + ".rea");
    std::copy(sides.begin(), sides.end(), element.sides.begin());
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (auto& point : element.corners) rea >> point[axis];
  }
  must(!rea.fail(), name + ".rea");
  must(!map.fail(), name + ".map");
}

// Faces with the same four vertices touch.
void link(Mesh& mesh, const std::string& name) {
  std::map<std::array<std::int64_t, 4>, Link> waiting;
  mesh.links.resize(mesh.elements.size());
  for (std::size_t e = 0; e < mesh.elements.size(); ++e)
    for (int face = 0; face < 6; ++face) {
      const Element& element = mesh.elements[e];
      if (element.sides[face] == 'W') continue;
      std::array<std::int64_t, 4> key;
      for (int c = 0; c < 4; ++c) key[c] = element.vertices[corner(face, c % 2, c / 2)];
      std::sort(key.begin(), key.end());
      const Link here{static_cast<std::int64_t>(e), face};
      const auto [place, first] = waiting.try_emplace(key, here);
      if (first) continue;
      mesh.links[e][face] = place->second;
      mesh.links[place->second.element][place->second.face] = here;
      waiting.erase(place);
    }
  must(waiting.empty(), name + ".map");
}

}  // namespace

std::int64_t Mesh::owner(std::int64_t element) const {
  return ((element + 1) * ranks - 1) / static_cast<std::int64_t>(elements.size());
}

Mesh read_mesh(const std::string& name, MPI_Comm comm) {
  int rank = 0;
  Mesh mesh;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &mesh.ranks);
  const double began = MPI_Wtime();
  if (rank == 0) read(name, mesh);
  std::array<double, 3> head{mesh.radius, mesh.length, static_cast<double>(mesh.elements.size())};
  MPI_Bcast(head.data(), 3, MPI_DOUBLE, 0, comm);
  mesh.radius = head[0];
  mesh.length = head[1];
  const auto all = static_cast<std::int64_t>(head[2]);
  if (all < mesh.ranks) throw std::runtime_error("there are more ranks than elements");
  mesh.elements.resize(all);
  MPI_Bcast(mesh.elements.data(), static_cast<int>(all * sizeof(Element)), MPI_BYTE, 0, comm);
  link(mesh, name);
  mesh.first = all * rank / mesh.ranks;
  mesh.count = all * (rank + 1) / mesh.ranks - mesh.first;
  mesh.reading_s = MPI_Wtime() - began;
  return mesh;
}

Basis::Basis(int degree) : n(degree + 1), x(n), weight(n), d(n * n), dt(n * n) {
  std::vector<double> top(n);  // the Legendre polynomial of this degree at the points
  for (int i = 0; i < n; ++i) {
    double at = -std::cos(M_PI * i / degree);
    for (int turn = 0; turn < 20; ++turn) {  // Newton's method, from the Chebyshev points
      double below = 1, now = at;
      for (int k = 2; k <= degree; ++k)
        below = std::exchange(now, ((2 * k - 1) * at * now - (k - 1) * below) / k);
      top[i] = now;
      at -= (at * now - below) / (n * now);
    }
    x[i] = at;
    weight[i] = 2 / (degree * n * top[i] * top[i]);
  }
  for (int i = 0; i < n; ++i)
    for (int m = 0; m < n; ++m) {
      double slope = i == m ? 0 : top[i] / (top[m] * (x[i] - x[m]));
      if (i == m && (i == 0 || i == degree)) slope = (i == 0 ? -0.25 : 0.25) * degree * n;
      d[i * n + m] = dt[m * n + i] = slope;
    }
}

std::vector<Vector> points_of(const Element& element, double radius, const Basis& basis) {
  const auto trilinear = [&](const Vector& at) {
    Vector point{};
    for (int c = 0; c < 8; ++c) {
      double share = 0.125;
      for (int a = 0; a < 3; ++a) share *= c >> a & 1 ? 1 + at[a] : 1 - at[a];
      for (int a = 0; a < 3; ++a) point[a] += share * element.corners[c][a];
    }
    return point;
  };
  std::vector<Vector> points;
  for (double z : basis.x)
    for (double y : basis.x)
      for (double x : basis.x) {
        Vector at{x, y, z}, point = trilinear(at);
        for (int face = 0; face < 4; ++face) {
          if (element.sides[face] != 'W') continue;
          Vector wall = at;
          wall[face / 2] = face % 2 ? 1 : -1;
          const double share = (1 + wall[face / 2] * at[face / 2]) / 2;
          wall = trilinear(wall);
          const double out = share * (radius / std::hypot(wall[0], wall[1]) - 1);
          for (int a = 0; a < 2; ++a) point[a] += out * wall[a];
        }
        points.push_back(point);
      }
  return points;
}

std::vector<int> face_points(const Element& element, int face, int n) {
  const auto vertex = [&](int i, int j) { return element.vertices[corner(face, i, j)]; };
  int i0 = 0, j0 = 0;  // the face's least vertex comes first, then the lesser one beside it
  for (int c = 1; c < 4; ++c)
    if (vertex(c % 2, c / 2) < vertex(i0, j0)) i0 = c % 2, j0 = c / 2;
  const bool along_i = vertex(1 - i0, j0) < vertex(i0, 1 - j0);
  const int axis = face / 2, a = axis == 0 ? n : 1, b = axis == 2 ? n : n * n;
  const int start = face % 2 * (n - 1) * (axis == 0 ? 1 : axis == 1 ? n : n * n);
  std::vector<int> points;
  for (int slow = 0; slow < n; ++slow)
    for (int fast = 0; fast < n; ++fast) {
      const int i = along_i ? fast : slow, j = along_i ? slow : fast;
      points.push_back(start + a * (i0 ? n - 1 - i : i) + b * (j0 ? n - 1 - j : j));
    }
  return points;
}

}  // namespace guide
