// Which files of nodes the chunks of a manifest lie in (docs/format/manifest.md, "Chunks in older
// versions"). Pure.
//
// Wherever a manifest lies, the segments that it names lie in the same tier, with their manifests:
// what copies a file of a node copies those first. So a reader takes all chunks from one place.
#pragma once

#include <vector>

#include "format/manifest.h"
#include "store/file_of.h"

namespace backstay::store {

// What the node of this manifest wrote for its version.
FileOf file_of(const format::Manifest& manifest);
// Where this chunk lies.
FileOf file_with(const format::Manifest& manifest, const format::ChunkEntry& chunk);
// Those of older versions, sorted, each once.
std::vector<FileOf> needed_files(const format::Manifest& manifest);
// Their versions, sorted, each once.
std::vector<format::Need> needs_of(const std::vector<FileOf>& files);

}  // namespace backstay::store
