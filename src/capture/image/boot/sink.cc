#include "capture/image/boot/sink.h"

#include "capture/image/boot/files.h"

namespace backstay::image {

namespace {

constexpr uint64_t piece = 1 << 30;

bool write_all(void* context, const void* bytes, uint64_t size, Trouble& trouble) {
  const auto* file = static_cast<const FileSink*>(context);
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const long wrote = sys_write(file->fd, at, size < piece ? size : piece);
    if (wrote <= 0) {
      trouble << "writing " << file->path << " failed (error " << -wrote << ")";
      return false;
    }
    at += wrote;
    size -= static_cast<uint64_t>(wrote);
  }
  return true;
}

bool read_all(void* context, void* to, uint64_t size, uint64_t at, Trouble& trouble) {
  const auto* file = static_cast<const FileSource*>(context);
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const long got = sys_pread(file->fd, out, size < piece ? size : piece, at);
    if (got <= 0) {
      trouble << "the image cannot be read at " << at << " (error " << -got << ")";
      return false;
    }
    out += got;
    at += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

}  // namespace

bool FileSink::begin(const char* name, Trouble& trouble) {
  path = name;
  temporary.clear();
  temporary << name << ".tmp";
  fd = sys_open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) trouble << temporary.c_str() << " cannot be made (error " << -fd << ")";
  return fd >= 0;
}

Sink FileSink::sink() { return Sink{this, write_all}; }

bool FileSink::finish(Trouble& trouble) {
  sys_close(fd);
  fd = -1;
  const long renamed = system_call(__NR_rename, address_of(temporary.c_str()), address_of(path));
  if (renamed != 0) trouble << path << " cannot be replaced (error " << -renamed << ")";
  return renamed == 0;
}

void FileSink::abandon() {
  if (fd >= 0) sys_close(fd);
  fd = -1;
  system_call(__NR_unlink, address_of(temporary.c_str()));
}

bool FileSource::begin(const char* path, Trouble& trouble) {
  fd = sys_open(path, O_RDONLY | O_CLOEXEC);
  FileStatus status;
  if (fd < 0 || !descriptor_status(fd, status)) {
    trouble << path << " cannot be read (error " << -fd << ")";
    return false;
  }
  bytes = status.bytes;
  return true;
}

Source FileSource::source() { return Source{this, bytes, read_all}; }

}  // namespace backstay::image
