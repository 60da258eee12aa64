// Linked into the unit tests that do not say THREADS (cmake/compile.cmake): the thread sanitizer is
// not run on them, so they must not start any. The program's own pthread_create() is found before
// the system's, by the C++ library too.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  std::fputs(
      "this test starts a thread: say THREADS in its backstay_test(), so that the thread sanitizer "
      "runs it\n",
      stderr);
  std::abort();
}
