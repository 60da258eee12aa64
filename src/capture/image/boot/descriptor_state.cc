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

void keep_state(Tables& tables, Descriptor& one, const void* bytes, uint64_t size,
                Trouble& trouble) {
  const uint64_t at = tables.contents.size();
  if (size > tables.contents.room() - at) {
    trouble << "the image has no room for the state of descriptor " << uint64_t{one.number};
    return;
  }
  tables.contents.resize(at + size);
  memcpy(&tables.contents[at], bytes, size);
  if (one.contents_bytes == 0) one.contents = at;
  one.contents_bytes += size;
}

}  // namespace backstay::image
