// The C interface for Python: one function for each of backstay.h, and nothing more. Types, shapes
// and exceptions are the business of python/backstay/session.py.
//
// Every function that can block gives the interpreter's lock away; the group's callbacks, which run
// inside such calls, take it back. Functions return the C code; session.py raises.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backstay/backstay.h"

namespace py = pybind11;

namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;
using Text = const char*;

// The launcher's operations as Python objects: broadcast(memoryview, root), minimum(int) -> int.
struct PythonGroup {
  py::object broadcast;
  py::object minimum;
};

// An exception of a callback is shown on stderr and becomes the code that the library expects.
template <class Function>
int guarded(Function&& function) {
  const py::gil_scoped_acquire lock;
  try {
    function();
    return 0;
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("backstay: communicator");
  } catch (const std::exception&) {
  }
  return 1;
}

int broadcast(void* context, void* data, size_t bytes, int root) {
  return guarded([&] {
    const auto size = static_cast<py::ssize_t>(bytes);
    static_cast<PythonGroup*>(context)->broadcast(py::memoryview::from_memory(data, size), root);
  });
}

int minimum(void* context, std::int64_t* value) {
  return guarded(
      [&] { *value = static_cast<PythonGroup*>(context)->minimum(*value).cast<std::int64_t>(); });
}

void release(void* context) {
  const py::gil_scoped_acquire lock;
  delete static_cast<PythonGroup*>(context);
}

int init_group(const std::array<int, 6>& at, py::object broadcast_call, py::object minimum_call,
               Text config) {
  auto context = std::make_unique<PythonGroup>();
  context->broadcast = std::move(broadcast_call);
  context->minimum = std::move(minimum_call);
  backstay_group group{context.get(), at[0], at[1],     at[2],   at[3],
                       at[4],         at[5], broadcast, minimum, release};
  int code = 0;
  {
    const py::gil_scoped_release unlocked;
    code = backstay_init_group(&group, config);
  }
  if (code == BACKSTAY_OK) (void)context.release();  // the library calls release() at finalize
  return code;
}

using Extents = std::vector<std::uint64_t>;

int protect(Text name, std::uintptr_t address, int type, const Extents& shape,
            const Extents& global_shape, const Extents& global_offset) {
  if (shape.size() > BACKSTAY_DIMS_MAX || global_shape.size() > shape.size() ||
      global_offset.size() > shape.size()) {
    return BACKSTAY_EINVALID;
  }
  backstay_array array{};
  array.dims = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), array.shape);
  std::copy(global_shape.begin(), global_shape.end(), array.global_shape);
  std::copy(global_offset.begin(), global_offset.end(), array.global_offset);
  return backstay_protect_array(name, reinterpret_cast<void*>(address), &array,
                                static_cast<backstay_type>(type));
}

py::tuple test(std::uint64_t version) {
  backstay_level level{};
  const int code = backstay_test(version, &level);
  return py::make_tuple(code, static_cast<int>(level));
}

int wait(std::uint64_t version, int level, double timeout_s) {
  return backstay_wait(version, static_cast<backstay_level>(level), timeout_s);
}

int restart() { return backstay_restart(nullptr); }

int read_region(std::uint64_t version, Text name, std::uintptr_t address, std::size_t bytes) {
  return backstay_read_region(version, name, reinterpret_cast<void*>(address), bytes);
}

py::tuple route_file(Text name) {
  std::array<char, 4096> path{};
  const int code = backstay_route_file(name, path.data(), path.size());
  return py::make_tuple(code, code == BACKSTAY_OK ? std::string(path.data()) : std::string());
}

}  // namespace

PYBIND11_MODULE(_session, module) {
  module.doc() = "The C interface of Backstay; use the package backstay instead.";
  module.def("name_program", &backstay_name_program);
  module.def("init", &backstay_init, Unlocked());
  module.def("init_group", &init_group);
  module.def("protect", &protect);
  module.def("unprotect", &backstay_unprotect);
  module.def("due", &backstay_due, Unlocked());
  module.def("stop_requested", &backstay_stop_requested, Unlocked());
  module.def("checkpoint", &backstay_checkpoint, Unlocked());
  module.def("version", &backstay_version);
  module.def("test", &test);
  module.def("wait", &wait, Unlocked());
  module.def("restart", &restart, Unlocked());
  module.def("read_region", &read_region, Unlocked());
  module.def("route_file", &route_file);
  module.def("finalize", &backstay_finalize, Unlocked());
  module.def("abandon", &backstay_abandon, Unlocked());
  module.def("strerror", &backstay_strerror);
  module.def("error_message", &backstay_error_message);
  module.def("release", &backstay_release);
  module.attr("DIMS_MAX") = BACKSTAY_DIMS_MAX;
}
