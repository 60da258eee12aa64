#include "client/files_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/ids.h"
#include "base/machine.h"

namespace backstay::client {

namespace {
constexpr std::size_t checksum_digits = 16;
}  // namespace

std::string files_job_name(std::string_view job, std::string_view host) {
  const std::string whole = fmt::format("{}.files.{}", job, host.empty() ? "localhost" : host);
  std::string name = whole;
  std::ranges::replace_if(
      name, [](char letter) { return !check_job_name(std::string("a") + letter).ok(); }, '-');
  if (name.size() <= job_name_bytes_max) return name;
  name.resize(job_name_bytes_max - checksum_digits - 1);
  return fmt::format("{}-{:016x}", name, checksum(std::as_bytes(std::span(whole))));
}

std::string files_job_name(std::string_view job) { return files_job_name(job, host_name()); }

}  // namespace backstay::client
