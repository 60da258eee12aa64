#include "capture/image/boot/descriptor_state.h"

namespace backstay::image {

Lines info_of(const Descriptor& one) {
  Text path;
  path << "/proc/self/fdinfo/" << uint64_t{one.number};
  return Lines(path.c_str());
}

bool find_in(const char* line, const char* name, const char*& at) {
  for (; *line != 0; ++line) {
    if (!begins_with(line, name)) continue;
    at = line + strlen(name);
    while (*at == ' ' || *at == '\t') ++at;
    return true;
  }
  return false;
}

uint8_t* add_state(Tables& tables, Descriptor& one, uint64_t size) {
  const uint64_t at = tables.contents.size();
  if (size > tables.contents.room() - at) return nullptr;
  tables.contents.resize(at + size);
  if (one.contents_bytes == 0) one.contents = at;
  one.contents_bytes += size;
  return &tables.contents[at];
}

void keep_state(Tables& tables, Descriptor& one, const void* bytes, uint64_t size,
                Trouble& trouble) {
  if (uint8_t* to = add_state(tables, one, size)) {
    memcpy(to, bytes, size);
  } else {
    trouble << "the image has no room for the state of descriptor " << uint64_t{one.number};
  }
}

}  // namespace backstay::image
