#include <linux/utsname.h>

#include "capture/image/boot/bring_back.h"
#include "capture/image/boot/contents.h"
#include "capture/image/boot/describe.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/identify.h"
#include "capture/image/boot/nameless.h"
#include "capture/image/boot/outputs.h"

namespace backstay::image {

namespace {
constexpr uint32_t access_mode = 3;

// A restart makes a file anew if the image has its contents, but makes no folder.
void check_folder_of(const char* path, Trouble& trouble) {
  static char folder[4096];
  copy_text(folder, sizeof folder, path);
  folder[last_part(path) - path] = 0;
  FileStatus status;
  if (!file_status(folder, status))
    trouble << folder << ", the folder of " << path << ", is missing";
}

// On another machine a file has other numbers, so they say nothing there.
bool is_same_host(const Tables& tables) {
  new_utsname names{};
  return system_call(__NR_uname, address_of(&names)) == 0 &&
         same_text(tables.text(tables.identity.host), names.nodename);
}

// 0: the image does not have it.
uint64_t birth_of(const Tables& tables, const Descriptor& one) {
  uint64_t born_ns = 0;
  if (!nameless::is_one(tables, one) && one.contents_bytes == sizeof born_ns) {
    memcpy(&born_ns, &tables.contents[one.contents], sizeof born_ns);
  }
  return born_ns;
}

// Of a file that the program may write: whether another one is at its path. That one would be
// written to, or cut back to the length of the one that the program had open. A copy that was put
// in place of a lost file is taken for that file. Such a copy is younger than its time of change.
bool is_another(const Tables& tables, const char* path, uint64_t inode, uint64_t before_ns) {
  FileStatus now;
  uint64_t born_ns = 0;
  if (!is_same_host(tables) || !file_status(path, now) || !birth_time(path, born_ns) ||
      now.mtime_ns < born_ns) {
    return false;
  }
  return (now.inode != inode && keeps_inodes(path)) || (before_ns != 0 && before_ns != born_ns);
}

bool is_another(const Tables& tables, const Descriptor& one) {
  return (one.flags & access_mode) != 0 &&
         is_another(tables, tables.text(one.path), one.inode, birth_of(tables, one));
}

constexpr const char* how_to_put_back =
    ": that one was removed or renamed; put it back, or a copy of it made with cp -p";

// Nothing is opened here: to open a pipe that has a name would wait for its other end.
void check_type(const char* path, DescriptorKind kind, const FileStatus& now, Trouble& trouble) {
  if (kind == DescriptorKind::file && !now.is_regular()) trouble << path << " is no file any more";
  if (kind == DescriptorKind::directory && !now.is_directory())
    trouble << path << " is no folder any more";
}

bool is_link(const char* path) {
  FileStatus status;
  return link_status(path, status) && status.is_link();
}

void check_one(const Tables& tables, const Descriptor& one, Trouble& trouble) {
  const auto kind = static_cast<DescriptorKind>(one.kind);
  const char* path = tables.text(one.path);
  if (kind >= DescriptorKind::pipe) return;  // these are not opened by a path
  if (outputs::given(one) >= 0) return;
  if (kind == DescriptorKind::file && ends_with(path, " (deleted)")) return;
  FileStatus status;
  const bool held = contents::holds(tables, path);
  const bool is_made_anew = held && (!file_status(path, status) || is_link(path));
  if (is_made_anew) return check_folder_of(path, trouble);
  if (!file_status(path, status)) {
    trouble << path << " is missing: the program had it open as descriptor "
            << uint64_t{one.number};
  } else if (check_type(path, kind, status, trouble); !trouble.empty()) {
    return;
  } else if (kind == DescriptorKind::file && !held && is_another(tables, one)) {
    trouble << path << " is another file than the one that the program had open as descriptor "
            << uint64_t{one.number} << how_to_put_back;
  } else if (kind == DescriptorKind::file && status.bytes < one.bytes && !held) {
    trouble << path << " has become shorter than it was when the image was saved";
  } else if (system_call(__NR_faccessat, AT_FDCWD, address_of(path),
                         (one.flags & access_mode) == 0 ? 4 : 2) != 0) {
    trouble << path << " may not be opened as it was";
  }
}

// Of a private mapping most pages are the file's: it must be the same. A shared one is written to.
bool is_private(const Tables& tables, uint32_t file) {
  for (const Area& area : tables.areas) {
    if (area.file == file && area.kind == static_cast<uint32_t>(AreaKind::private_file))
      return true;
  }
  return false;
}

// A restart writes into it what the program had written into its mapping.
bool is_written(const Tables& tables, uint32_t file) {
  for (const Area& area : tables.areas) {
    if (area.file == file && area.kind == static_cast<uint32_t>(AreaKind::shared_file) &&
        (area.protection & protection_write) != 0) {
      return true;
    }
  }
  return false;
}

// Programs and libraries are those with a build id.
void compare_all(const Tables& tables, bool programs, Trouble& trouble) {
  for (uint32_t i = 0; i < tables.files.size() && trouble.empty(); ++i) {
    const File& file = tables.files[i];
    if ((file.build_id_bytes > 0) != programs) continue;
    const char* path = tables.text(file.path);
    if (contents::holds(tables, path)) continue;
    compare(path, file, is_private(tables, i), trouble);
    if (trouble.empty() && is_written(tables, i) && is_another(tables, path, file.inode, 0)) {
      trouble << path << " is another file than the one that the program had mapped"
              << how_to_put_back;
    }
  }
}
}  // namespace

void check_machine(const Tables& tables, Trouble& trouble) {
  const Identity& saved = tables.identity;
  uint32_t features[features_count] = {};
  uint64_t xfeatures = 0;
  uint32_t xstate_bytes = 0;
  read_features(features, &xfeatures, &xstate_bytes);
  for (uint32_t i = 0; i < features_count; ++i) {
    const uint32_t missing = saved.features[i] & ~features[i];
    if (missing == 0) continue;
    trouble << "this processor lacks features that the program may use (word " << uint64_t{i}
            << ", bits ";
    trouble.hex(missing) << "); restart it where they are present";
    return;
  }
  if ((saved.xfeatures & ~xfeatures) != 0 || saved.xstate_bytes > xstate_bytes) {
    trouble << "this kernel saves less of a thread's registers than the one before";
  }
}

void check_folder(const Tables& tables, Trouble& trouble) {
  FileStatus status;
  const char* folder = tables.text(tables.identity.cwd);
  if (!file_status(folder, status) || !status.is_directory()) {
    trouble << folder << ", the working directory, is missing";
  }
}

void check_programs(const Tables& tables, Trouble& trouble) {
  compare_all(tables, /*programs=*/true, trouble);
}

void check_files(const Tables& tables, Trouble& trouble) {
  compare_all(tables, /*programs=*/false, trouble);
}

void check_descriptors(const Tables& tables, Trouble& trouble) {
  check_numbers(tables, /*whose=*/0, trouble);
  for (const Descriptor& one : tables.descriptors) {
    if (trouble.empty()) check_one(tables, one, trouble);
  }
}

}  // namespace backstay::image
