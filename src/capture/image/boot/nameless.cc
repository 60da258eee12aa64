#include "capture/image/boot/nameless.h"

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/rights.h"

namespace backstay::image::nameless {

namespace {

constexpr uint32_t device_shift = 40;
constexpr int without_name = 020200000;  // O_TMPFILE
constexpr uint32_t only_owner = 0600;
constexpr uint32_t permissions = 0777;

struct File {
  uint64_t number = 0;
  long fd = -1;
};
File files[files_max];
uint32_t count = 0;

const Descriptor* descriptor_of(const Tables& tables, uint64_t number) {
  for (const Descriptor& one : tables.descriptors) {
    if (is_one(tables, one) && number_of(one.device, one.inode) == number) return &one;
  }
  return nullptr;
}

// The length of one that is not open: the image knows only how far it is mapped.
uint64_t mapped_bytes(const Tables& tables, uint64_t number) {
  uint64_t bytes = 0;
  for (const Area& area : tables.areas) {
    if (area.kind != static_cast<uint32_t>(AreaKind::shared_memory) || area.object != number) {
      continue;
    }
    const uint64_t end = area.offset + (area.end - area.start);
    if (end > bytes) bytes = end;
  }
  return bytes;
}

// Different numbers, up to one more than there may be.
class Numbers {
 public:
  void add(uint64_t number) {
    for (uint32_t i = count_; i > 0; --i) {  // areas of one file often follow each other
      if (all_[i - 1] == number) return;
    }
    if (!are_too_many()) all_[count_++] = number;
  }
  bool are_too_many() const { return count_ > files_max; }
  void clear() { count_ = 0; }

 private:
  uint64_t all_[files_max + 1] = {};
  uint32_t count_ = 0;
};

void refuse(const char* how, Trouble& trouble) {
  trouble << "more than " << uint64_t{files_max} << " files without a name (removed ones, memory "
          << "files, shared memory) are " << how;
}

bool fill(const Tables& tables, const Descriptor& from, long fd) {
  for (uint64_t done = 0; done < from.contents_bytes;) {
    const long wrote =
        system_call(__NR_pwrite64, fd, address_of(&tables.contents[from.contents + done]),
                    static_cast<long>(from.contents_bytes - done), static_cast<long>(done));
    if (wrote <= 0) return false;
    done += static_cast<uint64_t>(wrote);
  }
  return true;
}

// In the folder in which it was, where that is on the same disk: so what the program writes to it
// takes no memory, and it may get a name (linkat). Memory files (memfd_create) are of no folder.
// Negative: it cannot be made there.
long make_on_disk(const Tables& tables, const Descriptor& one) {
  static char folder[4096];
  const char* path = tables.text(one.path);
  copy_text(folder, sizeof folder, path);
  folder[last_part(path) - path] = 0;
  FileStatus status;
  if (!file_status(folder, status) || status.device != one.device) return -1;
  const long fd = sys_open(folder, O_RDWR | O_CLOEXEC | without_name, only_owner);
  if (fd < 0) return fd;
  system_call(__NR_ftruncate, fd, static_cast<long>(one.bytes));
  if (fill(tables, one, fd)) return fd;
  sys_close(fd);
  return -1;
}

long make_in_memory(const Tables& tables, uint64_t number, const Descriptor* open) {
  const long fd = system_call(__NR_memfd_create, address_of("backstay"), 1 /* MFD_CLOEXEC */);
  if (fd < 0) return fd;
  const uint64_t bytes = open != nullptr ? open->bytes : mapped_bytes(tables, number);
  system_call(__NR_ftruncate, fd, static_cast<long>(bytes));
  if (open != nullptr) fill(tables, *open, fd);
  return fd;
}

}  // namespace

uint64_t number_of(uint64_t device, uint64_t inode) { return inode ^ (device << device_shift); }

bool is_one(const Tables& tables, const Descriptor& one) {
  return one.kind == static_cast<uint32_t>(DescriptorKind::file) &&
         ends_with(tables.text(one.path), " (deleted)");
}

void refuse_many(const Tables& tables, Trouble& trouble) {
  static Numbers mapped, open;  // too large for the stack
  mapped.clear();
  open.clear();
  for (const Area& area : tables.areas) {
    if (area.kind == static_cast<uint32_t>(AreaKind::shared_memory)) mapped.add(area.object);
  }
  for (const Descriptor& one : tables.descriptors) {
    if (is_one(tables, one)) open.add(number_of(one.device, one.inode));
  }
  if (mapped.are_too_many()) return refuse("mapped", trouble);
  if (open.are_too_many()) refuse("open", trouble);
}

long file(const Tables& tables, uint64_t number) {
  for (uint32_t i = 0; i < count; ++i) {
    if (files[i].number == number) return files[i].fd;
  }
  constexpr long too_many = -24;  // EMFILE
  if (count == files_max) return too_many;
  const Descriptor* open = descriptor_of(tables, number);
  long made = open != nullptr ? make_on_disk(tables, *open) : -1;
  if (made < 0) made = make_in_memory(tables, number, open);
  const long fd = made < 0 ? made : lift_descriptor(made);  // its number may be one of the image's
  if (fd < 0) return fd;
  files[count++] = File{number, fd};
  return fd;
}

void close_unopened(const Tables& tables) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (descriptor_of(tables, files[i].number) != nullptr) {
      files[left++] = files[i];
    } else {
      sys_close(files[i].fd);
    }
  }
  count = left;
}

uint32_t lift(long (&numbers)[files_max]) {
  for (uint32_t i = 0; i < count; ++i) numbers[i] = files[i].fd = lift_descriptor(files[i].fd);
  return count;
}

void close_all(const Tables& tables) {
  for (uint32_t i = 0; i < count; ++i) {
    // Only now, as its descriptors may have been opened for more than these permissions give.
    const Descriptor* open = descriptor_of(tables, files[i].number);
    const uint32_t mode = open == nullptr ? 0 : open->marks >> descriptor_mode_shift;
    rights::give(files[i].fd);
    if (mode != 0) system_call(__NR_fchmod, files[i].fd, static_cast<long>(mode & permissions));
    sys_close(files[i].fd);
  }
  count = 0;
}

}  // namespace backstay::image::nameless
