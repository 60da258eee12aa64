// The mesh of the guide: hexahedra, which of them touch, and their Gauss-Lobatto-Legendre points.
#ifndef WAVEGUIDE_MESH_H
#define WAVEGUIDE_MESH_H

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace guide {

using Vector = std::array<double, 3>;

// Corner i + 2 j + 4 k lies at the end i of axis 0, j of axis 1 and k of axis 2. Face 2 a + s lies
// at the end s of axis a.
struct Element {
  std::array<Vector, 8> corners;
  std::array<std::int64_t, 8> vertices;  // equal numbers: the same vertex, also across the period
  std::array<char, 6> sides;             // W: a conducting wall, on the cylinder
};

struct Link {  // the face behind a face
  std::int64_t element = -1;
  int face = 0;
};

struct Mesh {
  double radius = 0, length = 0, reading_s = 0;
  std::vector<Element> elements;           // all, in the order of the map
  std::vector<std::array<Link, 6>> links;  // element -1: a wall
  std::int64_t first = 0, count = 0;       // this rank's share
  std::int64_t owner(std::int64_t element) const;
  int ranks = 1;
};

// Rank 0 reads NAME.rea and NAME.map; all get the mesh. Throws std::runtime_error.
Mesh read_mesh(const std::string& name, MPI_Comm comm);

// The 1-D basis of degree n - 1 on [-1, 1].
struct Basis {
  explicit Basis(int degree);
  int n;
  std::vector<double> x, weight;  // points and quadrature
  std::vector<double> d, dt;      // d[i n + m]: slope of function m at point i; its transpose
};

// The points of an element, axis 0 fastest; a face on the wall lies on the cylinder.
std::vector<Vector> points_of(const Element& element, double radius, const Basis& basis);

// The points of a face, in an order that both elements see in the same way.
std::vector<int> face_points(const Element& element, int face, int n);

}  // namespace guide

#endif
