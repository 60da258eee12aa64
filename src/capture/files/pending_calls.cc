// Calls on folders, which show the temporary names under which files come home, and calls on paths
// that need nothing for a file in memory, which stands at its place, but would meet
// the placeholder of one that is pending: that one comes home first.
#include <dirent.h>

#include "capture/files/capture.h"
#include "capture/files/export.h"
#include "capture/files/pool.h"
#include "capture/files/raw.h"

namespace backstay::files {

#define LISTS(result, name, parameters, arguments) \
  EXPORT(result, name, parameters) {               \
    settle_all();                                  \
    return NEXT(name) arguments;                   \
  }
LISTS(DIR*, opendir, (const char* path), (path))
LISTS(DIR*, fdopendir, (int fd), (fd))
LISTS(int, scandir,
      (const char* path, struct dirent*** names, int (*wanted)(const struct dirent*),
       int (*order)(const struct dirent**, const struct dirent**)),
      (path, names, wanted, order))
LISTS(int, scandir64,
      (const char* path, void*** names, int (*wanted)(const void*),
       int (*order)(const void**, const void**)),
      (path, names, wanted, order))

// What comes back, the name, the parameters, the arguments, then folder, path and flags of the path
// that is meant.
#define SETTLED(result, name, parameters, arguments, folder, path, flags)         \
  EXPORT(result, name, parameters) {                                              \
    if (const int error = settle_file(folder, path, flags)) return answer(error); \
    return NEXT(name) arguments;                                                  \
  }

// The same, but one that cannot come home leaves the answer to what is there. `reads`: the call
// only looks.
#define TRIED(name, parameters, arguments, folder, path, flags, reads) \
  EXPORT(int, name, parameters) {                                      \
    settle_file(folder, path, flags, reads);                           \
    return NEXT(name) arguments;                                       \
  }

// Questions after permissions: those of the file at the place are another file's, or the
// placeholder's.
TRIED(access, (const char* path, int mode), (path, mode), AT_FDCWD, path, 0, true)
TRIED(euidaccess, (const char* path, int mode), (path, mode), AT_FDCWD, path, 0, true)
TRIED(eaccess, (const char* path, int mode), (path, mode), AT_FDCWD, path, 0, true)
TRIED(faccessat, (int at, const char* path, int mode, int flags), (at, path, mode, flags), at, path,
      flags, true)

// A name that goes away takes nothing with it that had to be there: the file that could not come
// home stays with the collector, which drops it.
TRIED(unlink, (const char* path), (path), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, false)
TRIED(remove, (const char* path), (path), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, false)
TRIED(unlinkat, (int at, const char* path, int flags), (at, path, flags), at, path,
      AT_SYMLINK_NOFOLLOW, false)

SETTLED(int, link, (const char* from, const char* to), (from, to), AT_FDCWD, from,
        AT_SYMLINK_NOFOLLOW)

// The program may name the file by its descriptor, or by the path of that in /proc. A file in
// memory is on no disk, and one that cannot come home has an old file at its place: the second name
// would be one of that.
EXPORT(int, linkat, (int at, const char* from, int to_at, const char* to, int flags)) {
  const int look = (flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW;
  if (const int error = settle_file(at, from, look)) return answer(error);
  const bool by_descriptor = (flags & AT_EMPTY_PATH) != 0 && from != nullptr && *from == '\0';
  int error = 0;
  if (by_descriptor) error = make_descriptor_real(at);
  if (!by_descriptor && look == 0) error = make_memory_real(at, from);
  if (error != 0) return answer(error);
  return NEXT(linkat)(at, from, to_at, to, flags);
}

SETTLED(int, chmod, (const char* path, mode_t mode), (path, mode), AT_FDCWD, path, 0)
SETTLED(int, fchmodat, (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags),
        at, path, flags)
SETTLED(int, chown, (const char* path, uid_t owner, gid_t group), (path, owner, group), AT_FDCWD,
        path, 0)
SETTLED(int, lchown, (const char* path, uid_t owner, gid_t group), (path, owner, group), AT_FDCWD,
        path, AT_SYMLINK_NOFOLLOW)
SETTLED(int, fchownat, (int at, const char* path, uid_t owner, gid_t group, int flags),
        (at, path, owner, group, flags), at, path, flags)
SETTLED(int, setxattr,
        (const char* path, const char* name, const void* value, size_t bytes, int flags),
        (path, name, value, bytes, flags), AT_FDCWD, path, 0)
SETTLED(int, lsetxattr,
        (const char* path, const char* name, const void* value, size_t bytes, int flags),
        (path, name, value, bytes, flags), AT_FDCWD, path, AT_SYMLINK_NOFOLLOW)
SETTLED(int, removexattr, (const char* path, const char* name), (path, name), AT_FDCWD, path, 0)
SETTLED(int, lremovexattr, (const char* path, const char* name), (path, name), AT_FDCWD, path,
        AT_SYMLINK_NOFOLLOW)

}  // namespace backstay::files
