// Backstay for C++20: a header over backstay.h, nothing to link but libbackstay.
//
//   auto session = backstay::Session::open();            // or backstay::open_mpi(MPI_COMM_WORLD)
//   if (!session) return report(session.error());
//   auto u_region = session->protect("u", u);            // any contiguous range, or one number
//   if (auto version = session->restart()) step = ...;
//   for (...) { compute(); if (session->due()) check(session->checkpoint()); }
//
// Errors. No function here throws. Functions that can fail return a std::error_code (category
// backstay::category(), codes backstay::errc) or an Expected<T>, and both are [[nodiscard]]. For
// exceptions call Expected::value() or backstay::check(): they throw backstay::Error, a
// std::system_error whose what() is the library's advice.
//
// Threads and lifetime. As in backstay.h: one session a process, one call at a time, collective
// functions on all ranks in the same order. A Region keeps the *address* of the data, not the
// data: it must be destroyed (or release()d) before the memory goes or moves, so give a vector its
// size before it is protected. A Region may outlive its Session; it then does nothing.
#ifndef BACKSTAY_BACKSTAY_HPP
#define BACKSTAY_BACKSTAY_HPP

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "backstay/backstay_streams.h"

namespace backstay {
inline namespace cxx {

// The codes of backstay.h under names of C++; damage grows downwards.
enum class errc : int {
  none = BACKSTAY_ENONE,
  again = BACKSTAY_EAGAIN,
  timeout = BACKSTAY_ETIMEOUT,
  invalid = BACKSTAY_EINVALID,
  state = BACKSTAY_ESTATE,
  config = BACKSTAY_ECONFIG,
  busy = BACKSTAY_EBUSY,
  unsupported = BACKSTAY_EUNSUPPORTED,
  duplicate = BACKSTAY_EDUPLICATE,
  too_large = BACKSTAY_ETOOLARGE,
  protocol = BACKSTAY_EPROTOCOL,
  port_in_use = BACKSTAY_EPORT,
  unreachable = BACKSTAY_EUNREACHABLE,
  few_nodes = BACKSTAY_EFEWNODES,
  null = BACKSTAY_ENULL,
  long_path = BACKSTAY_ELONGPATH,
  mismatch = BACKSTAY_EMISMATCH,
  ranks = BACKSTAY_ERANKS,
  not_found = BACKSTAY_ENOTFOUND,
  io = BACKSTAY_EIO,
  no_space = BACKSTAY_ENOSPACE,
  permission = BACKSTAY_EPERMISSION,
  agent = BACKSTAY_EAGENT,
  rank_lost = BACKSTAY_ERANKLOST,
  corrupt = BACKSTAY_ECORRUPT,
  format = BACKSTAY_EFORMAT,
  lost = BACKSTAY_ELOST,
  internal = BACKSTAY_EINTERNAL,
};

enum class Level : int {
  captured = BACKSTAY_CAPTURED,
  local = BACKSTAY_LOCAL,
  protected_ = BACKSTAY_PROTECTED,
  durable = BACKSTAY_DURABLE,
};

inline const std::error_category& category() noexcept {
  struct Category final : std::error_category {
    const char* name() const noexcept override { return "backstay"; }
    std::string message(int code) const override { return backstay_strerror(code); }
  };
  static const Category instance;
  return instance;
}

inline std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), category()};
}
inline std::error_code from_c(int code) noexcept { return {code, category()}; }

// The last failure in this thread and what to do about it.
inline std::string last_message() { return backstay_error_message(); }

class Error : public std::system_error {
 public:
  explicit Error(std::error_code code) : std::system_error(code, last_message()) {}
};

// Throws Error if `code` is an error: the way from codes to exceptions.
inline void check(std::error_code code) {
  if (code) throw Error(code);
}

// A value, or the error why there is none.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(std::error_code error) noexcept : error_(error) {}
  explicit operator bool() const noexcept { return value_.has_value(); }
  std::error_code error() const noexcept { return error_; }
  T& operator*() noexcept { return *value_; }  // only if it holds a value
  const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  // Throws Error if there is no value.
  T& value() & {
    check(error_);
    return *value_;
  }
  T value() && {
    check(error_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::error_code error_;
};

// The element type of a C++ type; 0 if Backstay has none (save such data as bytes: protect("name",
// std::as_writable_bytes(span))).
template <class T>
constexpr int element_type() noexcept {
  if constexpr (std::is_same_v<T, float>) return BACKSTAY_FLOAT;
  if constexpr (std::is_same_v<T, double>) return BACKSTAY_DOUBLE;
  if constexpr (std::is_same_v<T, std::complex<float>>) return BACKSTAY_COMPLEX64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return BACKSTAY_COMPLEX128;
  if constexpr (std::is_same_v<T, std::byte> || std::is_same_v<T, bool>) return BACKSTAY_BYTE;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) {
    constexpr int bytes_log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return (std::is_signed_v<T> ? BACKSTAY_INT8 : BACKSTAY_UINT8) + bytes_log2;
  }
  return 0;
}
template <class T>
concept Element = element_type<std::remove_cv_t<T>>()
!= 0 && !std::is_const_v<T>;

// Extents of an array, slowest dimension first: {rows, columns}. At most BACKSTAY_DIMS_MAX are
// kept; more make protect_array() fail.
struct Extents {
  std::array<std::uint64_t, BACKSTAY_DIMS_MAX> values{};
  std::size_t count = 0;
  Extents() = default;
  Extents(std::initializer_list<std::uint64_t> list) {
    for (std::uint64_t value : list) {
      if (count < values.size()) values[count] = value;
      ++count;
    }
  }
};

// The place of a rank's block. Leave global_shape and global_offset out if it has no place.
struct Place {
  Extents shape;
  Extents global_shape;
  Extents global_offset;
};

// Keeps a name protected; forgets it when destroyed.
class [[nodiscard]] Region {
 public:
  explicit Region(std::string name) : name_(std::move(name)) {}
  Region(Region&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  Region& operator=(Region&& other) noexcept {
    if (this != &other) {
      (void)unprotect();
      name_ = std::exchange(other.name_, {});
    }
    return *this;
  }
  ~Region() { (void)unprotect(); }

  const std::string& name() const noexcept { return name_; }
  // Forgets the region now. Its data in earlier versions stays.
  std::error_code unprotect() noexcept {
    if (name_.empty()) return {};
    const std::error_code code = from_c(backstay_unprotect(name_.c_str()));
    name_.clear();
    return code;
  }
  // Leaves the name protected until the session ends.
  void release() noexcept { name_.clear(); }

 private:
  std::string name_;
};

// A named row of bytes of the session's next version (backstay_streams.h). Close it before the
// checkpoint, which refuses a stream that is open: destroying it does not close it, so that what an
// exception left half written is no part of a version.
class [[nodiscard]] Stream {
 public:
  // Several may be open.
  static Expected<Stream> open(const std::string& name) {
    backstay_stream number = 0;
    const int code = backstay_stream_open(name.c_str(), &number);
    if (code != BACKSTAY_OK) return from_c(code);
    return Stream(number);
  }
  // Bytes behind those before, of any contiguous data.
  template <class T, std::size_t N>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::error_code write(std::span<T, N> data) noexcept {
    return from_c(backstay_stream_write(number_, data.data(), data.size_bytes()));
  }
  [[nodiscard]] std::error_code close() noexcept { return from_c(backstay_stream_close(number_)); }

 private:
  explicit Stream(backstay_stream number) noexcept : number_(number) {}
  backstay_stream number_;
};

// A stream of a saved version.
struct SavedStream {
  std::uint64_t version = 0;
  std::string name;
  std::uint64_t bytes = 0;

  // Those of this rank, in the order in which they were opened.
  static Expected<std::vector<SavedStream>> all_of(std::uint64_t version) {
    std::uint64_t count = 0;
    if (const int code = backstay_stream_count(version, &count)) return from_c(code);
    std::vector<SavedStream> all(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::array<char, BACKSTAY_NAME_MAX + 1> text{};
      const int code = backstay_stream_at(version, i, text.data(), text.size(), &all[i].bytes);
      if (code != BACKSTAY_OK) return from_c(code);
      all[i].name = text.data();
      all[i].version = version;
    }
    return all;
  }
  // Fills `data` with the bytes from `offset` on.
  template <class T, std::size_t N>
    requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
  [[nodiscard]] std::error_code read(std::span<T, N> data, std::uint64_t offset = 0) const {
    return from_c(
        backstay_stream_read(version, name.c_str(), offset, data.data(), data.size_bytes()));
  }
};

// The one session of a process; ends it when destroyed. Collective where backstay.h says so.
class [[nodiscard]] Session {
 public:
  // `config`: path of the TOML file, or empty for the usual places.
  static Expected<Session> open(const std::string& config = {}) {
    return adopt(backstay_init(config.empty() ? nullptr : config.c_str()));
  }
  // For programs with a launcher of their own.
  static Expected<Session> open(const backstay_group& group, const std::string& config = {}) {
    return adopt(backstay_init_group(&group, config.empty() ? nullptr : config.c_str()));
  }
  // Takes over what a C initialisation returned: Session::adopt(backstay_init_mpi(comm, NULL)).
  static Expected<Session> adopt(int init_code) {
    if (init_code != BACKSTAY_OK) return from_c(init_code);
    return Session();
  }
  Session(Session&& other) noexcept
      : open_(std::exchange(other.open_, false)), exceptions_(other.exceptions_) {}
  Session& operator=(Session&&) = delete;  // there is never a second one to assign from
  // If an exception ends it, the run does not count as finished (backstay_abandon).
  ~Session() {
    if (std::uncaught_exceptions() > exceptions_ && std::exchange(open_, false))
      (void)backstay_abandon();
    (void)close();
  }

  template <Element T, std::size_t N>
  Expected<Region> protect(const std::string& name, std::span<T, N> data) {
    return region(name,
                  backstay_protect(name.c_str(), const_cast<std::remove_cv_t<T>*>(data.data()),
                                   data.size(), type<T>()));
  }
  template <std::ranges::contiguous_range R>
    requires std::ranges::sized_range<R> && std::is_lvalue_reference_v<R&&> Expected<Region>
    protect(const std::string& name, R&& data) {
      return protect(name, std::span(std::ranges::data(data), std::ranges::size(data)));
    }
  template <Element T>
  Expected<Region> protect(const std::string& name, T& number) {
    return protect(name, std::span<T, 1>(&number, 1));
  }
  // `data` holds the product of place.shape elements, row-major.
  template <Element T>
  Expected<Region> protect_array(const std::string& name, T* data, const Place& place) {
    const std::optional<backstay_array> array = to_c(place);
    if (!array) return make_error_code(errc::invalid);
    return region(name, backstay_protect_array(name.c_str(), data, &*array, type<T>()));
  }

  bool due() noexcept { return backstay_due() != 0; }
  bool stop_requested() noexcept { return backstay_stop_requested() != 0; }
  [[nodiscard]] std::error_code checkpoint() noexcept { return from_c(backstay_checkpoint()); }
  std::uint64_t version() const noexcept { return backstay_version(); }

  // The level that `version` has now.
  Expected<Level> test(std::uint64_t version) {
    backstay_level level{};
    const int code = backstay_test(version, &level);
    if (code != BACKSTAY_OK) return from_c(code);
    return static_cast<Level>(level);
  }
  // Blocks, at most `timeout_s` seconds; negative: without limit.
  [[nodiscard]] std::error_code wait(std::uint64_t version, Level level, double timeout_s = -1) {
    return from_c(backstay_wait(version, static_cast<backstay_level>(level), timeout_s));
  }
  // The number of the version that was brought back; errc::none: no version yet.
  Expected<std::uint64_t> restart() {
    std::uint64_t version = 0;
    const int code = backstay_restart(&version);
    if (code != BACKSTAY_OK) return from_c(code);
    return version;
  }
  template <Element T, std::size_t N>
  [[nodiscard]] std::error_code read_region(std::uint64_t version, const std::string& name,
                                            std::span<T, N> data) {
    return from_c(backstay_read_region(version, name.c_str(), data.data(), data.size_bytes()));
  }
  // The path at which the program shall write its file `name`.
  Expected<std::string> route_file(const std::string& name) {
    std::array<char, 4096> path{};
    const int code = backstay_route_file(name.c_str(), path.data(), path.size());
    if (code != BACKSTAY_OK) return from_c(code);
    return std::string(path.data());
  }
  // Ends the session; the destructor does it too, without reporting the error.
  std::error_code close() noexcept {
    return std::exchange(open_, false) ? from_c(backstay_finalize()) : std::error_code();
  }

 private:
  Session() noexcept : open_(true) {}

  template <class T>
  static constexpr backstay_type type() {
    return static_cast<backstay_type>(element_type<std::remove_cv_t<T>>());
  }
  static Expected<Region> region(const std::string& name, int code) {
    if (code != BACKSTAY_OK) return from_c(code);
    return Region(name);
  }
  static std::optional<backstay_array> to_c(const Place& place) {
    const std::size_t dims = place.shape.count;
    const auto fits = [dims](const Extents& e) { return e.count == 0 || e.count == dims; };
    if (dims == 0 || dims > BACKSTAY_DIMS_MAX) return std::nullopt;
    if (!fits(place.global_shape) || !fits(place.global_offset)) return std::nullopt;
    backstay_array array{};
    array.dims = static_cast<int>(dims);
    for (std::size_t i = 0; i < dims; ++i) {
      array.shape[i] = place.shape.values[i];
      array.global_shape[i] = place.global_shape.values[i];
      array.global_offset[i] = place.global_offset.values[i];
    }
    return array;
  }

  bool open_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace cxx
}  // namespace backstay

template <>
struct std::is_error_code_enum<backstay::errc> : std::true_type {};

#endif
