// keep.c with the C++ face.
#include <backstay/backstay.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>

int main() try {
  std::int64_t lives = 0;
  backstay::Session session = backstay::Session::open().value();
  auto region = session.protect("lives", lives).value();
  (void)session.restart();  // nothing saved yet is fine
  lives++;
  backstay::check(session.checkpoint());
  backstay::check(session.wait(session.version(), backstay::Level::local, 60));
  std::printf("lives %d\n", static_cast<int>(lives));
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
