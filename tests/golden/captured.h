// The golden job with captured files, whose version 13 needs its version 12 (tests/golden/README.md
// says what is in it).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/files.h"
#include "format/object_id.h"

namespace backstay::test {

// Objects of kind files in version 13.
inline constexpr format::ObjectId golden_files_of_rank{format::OwnerKind::rank, 1,
                                                       format::ObjectKind::files};
inline constexpr format::ObjectId golden_files_of_writer{format::OwnerKind::writer, 0,
                                                         format::ObjectKind::files};

std::vector<format::CapturedFile> golden_captured(const format::ObjectId& object);
// The byte at each place of such an object's payload.
std::byte golden_byte(const format::ObjectId& object, std::uint64_t at);
Buffer golden_captured_object(const format::ObjectId& object);
// A rank's regions as version 13 has them: those of version 12, and on rank 1 another `u`.
Buffer golden_object_13(std::uint32_t rank);

// File name (relative to the folder of the format) -> bytes; both versions.
std::map<std::string, Buffer> golden_captured_files();

}  // namespace backstay::test
