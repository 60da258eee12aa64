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

#include "backstay/backstay_streams.h"

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

py::tuple stream_open(Text name) {
  backstay_stream stream = 0;
  const int code = backstay_stream_open(name, &stream);
  return py::make_tuple(code, stream);
}

int stream_write(std::uint64_t stream, std::uintptr_t address, std::size_t bytes) {
  return backstay_stream_write(stream, reinterpret_cast<const void*>(address), bytes);
}

// Name and length of all: a list of 10 000 is one call.
py::tuple streams(std::uint64_t version) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  std::uint64_t count = 0;
  int code = 0;
  {
    const py::gil_scoped_release unlocked;
    code = backstay_stream_count(version, &count);
    for (std::uint64_t i = 0; code == BACKSTAY_OK && i < count; ++i) {
      std::array<char, BACKSTAY_NAME_MAX + 1> name{};
      std::uint64_t bytes = 0;
      code = backstay_stream_at(version, i, name.data(), name.size(), &bytes);
      all.emplace_back(name.data(), bytes);
    }
  }
  return py::make_tuple(code, all);
}

py::tuple stream_bytes(std::uint64_t version, Text name) {
  std::uint64_t bytes = 0;
  const int code = backstay_stream_bytes(version, name, &bytes);
  return py::make_tuple(code, bytes);
}

int stream_read(std::uint64_t version, Text name, std::uint64_t offset, std::uintptr_t address,
                std::size_t bytes) {
  return backstay_stream_read(version, name, offset, reinterpret_cast<void*>(address), bytes);
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
  module.def("stream_open", &stream_open);
  module.def("stream_write", &stream_write, Unlocked());
  module.def("stream_close", &backstay_stream_close);
  module.def("streams", &streams);
  module.def("stream_bytes", &stream_bytes);
  module.def("stream_read", &stream_read, Unlocked());
  module.def("finalize", &backstay_finalize, Unlocked());
  module.def("abandon", &backstay_abandon, Unlocked());
  module.def("strerror", &backstay_strerror);
  module.def("error_message", &backstay_error_message);
  module.def("release", &backstay_release);
  module.attr("DIMS_MAX") = BACKSTAY_DIMS_MAX;
}
