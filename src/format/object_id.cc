#include "format/object_id.h"

namespace backstay::format {

std::string_view kind_name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::regions: return "regions";
    case ObjectKind::files: return "files";
    case ObjectKind::image: return "process image";
    case ObjectKind::calls: return "recorded calls";
  }
  return "unknown kind";
}

std::string owner_name(const ObjectId& id) {
  return (id.owner == OwnerKind::rank ? "rank " : "writer ") + std::to_string(id.number);
}

std::string object_name(const ObjectId& id) {
  if (id.kind == ObjectKind::regions) return owner_name(id);
  return std::string(kind_name(id.kind)) + " of " + owner_name(id);
}

}  // namespace backstay::format
