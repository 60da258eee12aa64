#include "store/home/shared_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>

namespace backstay::store {

Result<bool> is_on_network(const std::string& path) {
  constexpr std::uint32_t lustre = 0x0BD00BD0, gpfs = 0x47504653, beegfs = 0x19830326,
                          panfs = 0xAAD7AAEA, cifs = 0xFF534D42, smb2 = 0xFE534D42,
                          ceph = 0x00C36400;
  struct statfs system = {};
  if (::statfs(path.c_str(), &system) != 0) return errno_error("look at " + path, errno);
  switch (static_cast<std::uint32_t>(system.f_type)) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case lustre:
    case gpfs:
    case beegfs:
    case panfs:
    case cifs:
    case smb2:
    case ceph: return true;
    default: return false;
  }
}

Result<FolderFacts> look_at_folder(const std::string& path) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  struct statx facts = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &facts) != 0)
    return errno_error("look at " + path, errno);
  FolderFacts folder{.inode = facts.stx_ino};
  if ((facts.stx_mask & STATX_BTIME) != 0)
    folder.born_ns =
        static_cast<std::uint64_t>(facts.stx_btime.tv_sec) * second_ns + facts.stx_btime.tv_nsec;
  BACKSTAY_ASSIGN(folder.network, is_on_network(path));
  return folder;
}

bool same_folder(const FolderFacts& here, const FolderFacts& there) {
  if (here.inode != there.inode) return false;
  if (here.born_ns != 0 && there.born_ns != 0) return here.born_ns == there.born_ns;
  return here.network;
}

}  // namespace backstay::store
