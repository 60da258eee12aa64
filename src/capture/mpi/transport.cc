// Messages and files for ranks that write their versions together (client/launcher.h).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "capture/mpi/context.h"

// An MPI may come without MPI-IO.
#pragma weak MPI_File_open

namespace backstay::mpi {

namespace {

constexpr int tag = 0x6273;
constexpr int block_bytes = 4096;
constexpr int blocks_at_once = 1 << 18;  // a GiB

char words[MPI_MAX_ERROR_STRING + 1];

const char* as_text(int code) {
  if (code == MPI_SUCCESS) return nullptr;
  int length = 0;
  if (MPI_Error_string(code, words, &length) != MPI_SUCCESS) return "MPI does not say why";
  words[length] = '\0';
  std::replace(words, words + length, '\n', ' ');
  return words;
}

// Errors of the operating system.
const char* system_text() {
  std::strncpy(words, std::strerror(errno), sizeof words - 1);
  return words;
}

Context& of(void* context) { return *static_cast<Context*>(context); }

const char* send(void* context, int to, const void* data, size_t bytes) {
  if (bytes > INT_MAX) return "a message is too long";
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, of(context).comm, &request);
  if (code == MPI_SUCCESS) of(context).sends.push_back(request);
  return as_text(code);
}

const char* receive(void* context, int from, void* data, size_t bytes) {
  if (bytes > INT_MAX) return "a message is too long";
  MPI_Status status;
  int code =
      MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, of(context).comm, &status);
  int got = 0;
  if (code == MPI_SUCCESS) code = MPI_Get_count(&status, MPI_BYTE, &got);
  if (code != MPI_SUCCESS) return as_text(code);
  return static_cast<size_t>(got) == bytes ? nullptr : "a message is shorter than it should be";
}

const char* wait(void* context) {
  std::vector<MPI_Request>& sends = of(context).sends;
  const int code = MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  sends.clear();
  return as_text(code);
}

// --- files ---------------------------------------------------------------------------------------

int split(Context& mine, int group) {
  if (mine.is_split && mine.file_group == group) return MPI_SUCCESS;
  if (mine.file_comm != MPI_COMM_NULL) MPI_Comm_free(&mine.file_comm);
  int rank = 0;
  MPI_Comm_rank(mine.comm, &rank);
  const int code =
      MPI_Comm_split(mine.comm, group < 0 ? MPI_UNDEFINED : group, rank, &mine.file_comm);
  mine.is_split = code == MPI_SUCCESS;
  mine.file_group = group;
  return code;
}

int file_rank(const Context& mine) {
  int rank = 0;
  MPI_Comm_rank(mine.file_comm, &rank);
  return rank;
}

// "key=value;key=value", whose form was checked.
template <typename Body>
void for_each_hint(const std::string& hints, const Body& body) {
  for (size_t at = 0; at < hints.size();) {
    const size_t end = std::min(hints.find(';', at), hints.size());
    const size_t is = hints.find('=', at);
    body(hints.substr(at, is - at), hints.substr(is + 1, end - is - 1));
    at = end + 1;
  }
}

MPI_Info info_of(const std::string& hints) {
  MPI_Info info = MPI_INFO_NULL;
  if (hints.empty() || MPI_Info_create(&info) != MPI_SUCCESS) return MPI_INFO_NULL;
  for_each_hint(hints, [&](const std::string& key, const std::string& value) {
    MPI_Info_set(info, key.c_str(), value.c_str());
  });
  return info;
}

// ROMIO shows the hints that it knows, Open MPI's own MPI-IO all of them.
const char* ignored(void* context, const char* hints) {
  static std::string unknown;
  unknown.clear();
  MPI_Info used = MPI_INFO_NULL;
  if (MPI_File_get_info(of(context).file, &used) != MPI_SUCCESS) return "";
  for_each_hint(hints, [&](const std::string& key, const std::string&) {
    int length = 0;
    int known = 0;
    MPI_Info_get_valuelen(used, key.c_str(), &length, &known);
    if (!known) unknown += (unknown.empty() ? "" : ", ") + key;
  });
  MPI_Info_free(&used);
  return unknown.c_str();
}

const char* open(void* context, int group, const char* path, const char* hints) {
  Context& mine = of(context);
  if (const char* failed = as_text(split(mine, group)); failed != nullptr) return failed;
  if (group < 0) return nullptr;
  void* const has_files = reinterpret_cast<void*>(&MPI_File_open);
  if (has_files == nullptr) return "this MPI has no MPI-IO: choose file_per_process";
  mine.path = path;
  const std::string folder = mine.path.substr(0, mine.path.rfind('/'));
  if (file_rank(mine) == 0) (void)!::mkdir(folder.c_str(), 0700);  // MPI_File_open says why not
  MPI_Barrier(mine.file_comm);
  MPI_Info info = info_of(hints);
  const int code =
      MPI_File_open(mine.file_comm, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, info, &mine.file);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (code != MPI_SUCCESS) mine.file = MPI_FILE_NULL;
  if (code == MPI_SUCCESS) MPI_File_set_errhandler(mine.file, MPI_ERRORS_RETURN);
  if (mine.block == MPI_DATATYPE_NULL) {
    MPI_Type_contiguous(block_bytes, MPI_BYTE, &mine.block);
    MPI_Type_commit(&mine.block);
  }
  return as_text(code);
}

int reserve(void* context, uint64_t bytes) {
  const int fd = ::open(of(context).path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int failed = 0;
  do failed = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  while (failed == EINTR);
  ::close(fd);
  return failed == EOPNOTSUPP || failed == ENOSYS ? 0 : failed;
}

// An int counts blocks. A write that ends early goes on alone: the others are done with this call.
const char* write(void* context, uint64_t offset, const void* data, uint64_t bytes) {
  Context& mine = of(context);
  const int blocks = static_cast<int>(bytes / block_bytes);
  MPI_Status status;
  int done = 0;
  int code = MPI_File_write_at_all(mine.file, static_cast<MPI_Offset>(offset), data, blocks,
                                   mine.block, &status);
  if (code == MPI_SUCCESS && blocks > 0) code = MPI_Get_count(&status, mine.block, &done);
  if (code == MPI_SUCCESS && done == MPI_UNDEFINED) done = 0;
  while (code == MPI_SUCCESS && done < blocks) {
    const auto at = static_cast<uint64_t>(done) * block_bytes;
    const int next = std::min(blocks - done, blocks_at_once);
    code = MPI_File_write_at(mine.file, static_cast<MPI_Offset>(offset + at),
                             static_cast<const char*>(data) + at, next, mine.block, &status);
    int wrote = 0;
    if (code == MPI_SUCCESS) code = MPI_Get_count(&status, mine.block, &wrote);
    if (code == MPI_SUCCESS && wrote <= 0) return "a write has ended early";
    done += wrote;
  }
  return as_text(code);
}

// MPI_File_sync() need not reach the storage for what another rank of the node has written.
bool sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  return synced;
}

// All ranks meet in it, also where one of them fails.
const char* close(void* context) {
  Context& mine = of(context);
  const int synced = MPI_File_sync(mine.file);
  const int closed = MPI_File_close(&mine.file);
  mine.file = MPI_FILE_NULL;
  MPI_Barrier(mine.file_comm);
  const bool safe = file_rank(mine) != 0 || sync_file(mine.path);
  if (synced != MPI_SUCCESS) return as_text(synced);
  if (closed != MPI_SUCCESS) return as_text(closed);
  return safe ? nullptr : system_text();
}

}  // namespace

const backstay_transport transport = {send, receive, wait, open, ignored, reserve, write, close};

}  // namespace backstay::mpi
