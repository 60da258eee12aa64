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
    std::vector<std::int64_t> faces;  // of this rank, in the order in which both send
    std::vector<double> out, in;
  };

  void set_geometry(const Mesh& mesh);
  void set_faces(const Mesh& mesh);
  void set_neighbours(const Mesh& mesh);
  void start_exchange();
  // The strong form for E and the weak form for H: each is the other's transpose, so the energy
  // cannot grow, on curved elements either.
  void add_curl_of_h(std::int64_t element);
  void subtract_curl_of_e(std::int64_t element);
  void add_faces(std::int64_t element);

  const Basis basis_;
  const MPI_Comm comm_;
  const std::int64_t count_, cube_, square_;  // elements; points of an element, of a face
  std::array<std::vector<double>, 9> slope_;  // 3 d + c: slope of reference axis d along axis c
  std::vector<FacePoint> faces_;              // 6 square_ of each element
  std::vector<double> trace_;                 // the six components at each of faces_
  std::vector<const double*> behind_;         // of each face: the trace on the other side, or null
  std::vector<Neighbour> neighbours_;
  std::vector<MPI_Request> requests_;
  Fields rate_, residual_;
  std::array<std::vector<double>, 3> scratch_;
};

}  // namespace guide

#endif
