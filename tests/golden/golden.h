// The golden version of format 2, made by today's writer (tests/golden/README.md says what is in
// it).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/object.h"

namespace backstay::test {

inline constexpr std::uint32_t golden_ranks = 2;

// A region with its payload.
struct GoldenRegion {
  format::Region region;
  Buffer payload;
};
std::vector<GoldenRegion> golden_regions(std::uint32_t rank);

// The whole byte stream of a rank.
Buffer golden_object(std::uint32_t rank);

// Of a job `streams` with one rank: the streams of the worked example of docs/format/streams.md,
// then the array `u` of rank 0.
std::vector<GoldenRegion> golden_stream_regions();
std::map<std::string, Buffer> golden_stream_files();

// Made of these regions.
Buffer golden_object_of(const std::vector<GoldenRegion>& contents);

// File name (relative to the folder of the format, "v2") -> bytes. The same under the name of
// another job.
std::map<std::string, Buffer> golden_files();
std::map<std::string, Buffer> golden_files_of(const std::string& job);
// The same with these objects, of rank 0 on.
std::map<std::string, Buffer> golden_files_of(const std::string& job,
                                              const std::vector<Buffer>& objects);

}  // namespace backstay::test
