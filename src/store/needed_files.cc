#include "store/needed_files.h"

#include <algorithm>

namespace backstay::store {

FileOf file_of(const format::Manifest& manifest) {
  return {manifest.version, manifest.run, manifest.node};
}

FileOf file_with(const format::Manifest& manifest, const format::ChunkEntry& chunk) {
  if (chunk.here()) return file_of(manifest);
  const format::Need& need = manifest.needs[chunk.need - 1];
  return {need.version, need.run, chunk.node};
}

std::vector<FileOf> needed_files(const format::Manifest& manifest) {
  std::vector<FileOf> files;
  if (manifest.needs.empty()) return files;
  for (const format::ChunkEntry& chunk : manifest.chunks) {
    if (chunk.here()) continue;
    const FileOf file = file_with(manifest, chunk);
    if (files.empty() || files.back() != file) files.push_back(file);  // most repeat the last one
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::vector<format::Need> needs_of(const std::vector<FileOf>& files) {
  std::vector<format::Need> needs;
  for (const FileOf& file : files) {
    const format::Need need{file.version, file.run};
    if (needs.empty() || needs.back() != need) needs.push_back(need);
  }
  return needs;
}

}  // namespace backstay::store
