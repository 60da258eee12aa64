#include "store/held_file.h"

#include "format/names.h"

namespace backstay::store {

FileNames names_of(const std::string& job, const FileOf& file) {
  const std::string folder = format::version_folder(job, file.version);
  if (file.parity) {
    return {folder, format::parity_name(folder, file.node),
            format::parity_manifest_name(folder, file.node)};
  }
  return {folder, format::segment_name(folder, file.node),
          format::manifest_name(folder, file.node)};
}

}  // namespace backstay::store
