// A mode of a circular guide with a perfectly conducting wall: the exact solution (Jackson,
// Classical Electrodynamics, sections 8.2 to 8.4).
#ifndef WAVEGUIDE_MODE_H
#define WAVEGUIDE_MODE_H

#include <array>
#include <cmath>
#include <string>

#include "mesh.h"

namespace guide {

class Mode {
 public:
  // TE11, TE01, TM01 or TM11 with one wavelength in the mesh's length, travelling along z.
  Mode(const std::string& name, const Mesh& mesh)
      : electric_(name.at(1) == 'M'), order_(name.at(2) - '0'), along_(2 * M_PI / mesh.length) {
    const double zeros[] = {3.8317059702075125, 1.8411837813406593,   // J0', J1'
                            2.4048255576957729, 3.8317059702075125};  // J0, J1
    across_ = zeros[2 * electric_ + order_] / mesh.radius;
    omega_ = std::hypot(across_, along_);
  }
  static bool is_one(const std::string& name) {
    return name == "TE11" || name == "TE01" || name == "TM01" || name == "TM11";
  }
  double period() const { return 2 * M_PI / omega_; }

  // Ex Ey Ez Hx Hy Hz
  std::array<double, 6> at(const Vector& point, double t) const {
    const double r = std::hypot(point[0], point[1]), phi = std::atan2(point[1], point[0]);
    // psi = J_m(across r) cos(m phi), and its slopes along x and y
    const auto j = [&](int m) { return jn(m, across_ * r); };
    const int m = order_;
    const double below = j(m - 1), above = j(m + 1), half = across_ / 2;
    const double psi = j(m) * std::cos(m * phi);
    const double x = half * (below * std::cos((m - 1) * phi) - above * std::cos((m + 1) * phi));
    const double y = -half * (below * std::sin((m - 1) * phi) + above * std::sin((m + 1) * phi));
    const double phase = along_ * point[2] - omega_ * t;
    const double same = -along_ / (across_ * across_) * std::sin(phase);
    const double other = omega_ / (across_ * across_) * std::sin(phase);
    const double z = psi * std::cos(phase);
    if (electric_) return {same * x, same * y, z, other * y, -other * x, 0};
    return {-other * y, other * x, 0, same * x, same * y, z};
  }

 private:
  bool electric_;
  int order_;
  double along_, across_ = 0, omega_ = 0;
};

}  // namespace guide

#endif
