// Maxwell's curl equations, dE/dt = curl H and dH/dt = -curl E, by a nodal discontinuous Galerkin
// method with upwind fluxes (Hesthaven and Warburton 2002) and the five-stage fourth-order
// Runge-Kutta method of Carpenter and Kennedy (1994).
#ifndef WAVEGUIDE_MAXWELL_H
#define WAVEGUIDE_MAXWELL_H

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

#include "mesh.h"

namespace guide {

using Fields = std::array<std::vector<double>, 6>;  // Ex Ey Ez Hx Hy Hz at this rank's points

class Maxwell {
 public:
  Maxwell(const Mesh& mesh, const Basis& basis, MPI_Comm comm);
  Maxwell(const Maxwell&) = delete;  // behind_ points into it
  // The largest time step that is stable, the same on all ranks.
  double largest_step() const;
  // Exchanges one message with each neighbour in each of the five stages. Between two steps the
  // fields are all of the state.
  void step(double dt);

  Fields fields;
  std::vector<Vector> points;
  std::vector<double> volume;  // quadrature weight of each point

 private:
  struct FacePoint {
    std::int64_t point;
    Vector normal;
    double lift;  // half the face's quadrature weight over the point's
  };
  struct Neighbour {
    int rank;
    std::vector<std::int64_t> faces;  // this rank's, in the order in which both send
    std::vector<double> out, in;
  };

  Vector tangent(int axis, std::int64_t point) const;
  Vector gradient(int axis, std::int64_t point) const;
  double jacobian(std::int64_t point) const;
  void set_geometry(const Mesh& mesh);
  void set_faces(const Mesh& mesh);
  void set_neighbours(const Mesh& mesh);
  void start_exchange();
  // The rates `to`, to + 1, to + 2: `sign` times the curl of the fields from `of` on.
  void set_curl(std::int64_t element, int of, int to, double sign);
  void add_faces(std::int64_t element);

  const Basis basis_;
  const MPI_Comm comm_;
  const std::int64_t count_, cube_, square_;    // elements; points of an element, of a face
  std::array<std::vector<double>, 9> tangent_;  // 3 d + c: slope of x_c along reference axis d
  std::vector<double> inverse_jacobian_;
  std::vector<FacePoint> faces_;       // 6 square_ for each element
  std::vector<double> trace_;          // the six components at each of faces_
  std::vector<const double*> behind_;  // the trace behind each face; null: a wall
  std::vector<Neighbour> neighbours_;
  std::vector<MPI_Request> requests_;
  Fields rate_, residual_;
  // One element's: a field's components along the tangents, and their curl. Both curls use the
  // tangents alone, so each is the other's transpose, and the energy cannot grow.
  std::array<std::vector<double>, 3> along_, curl_;
};

}  // namespace guide

#endif
