// Compiled for general registers only: the code around a changed call may keep others over it.
#include "capture/image/boot/mpi_files.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/doors.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/notes.h"
#include "capture/image/boot/program.h"

namespace backstay::image::mpi_files {

namespace {

// A library whose name begins so may be one of MPI; its soname says which.
constexpr const char* beginning = "libmpi";
constexpr const char* standard = "libmpi_abi.so.1";  // MPI's own ABI
// Ours needs the real one of its name, which the loader finds nowhere under this one.
constexpr const char* fortran = "libmpi_mpifh.so.40";
constexpr const char* real_fortran = "libmpi_mpifh.so.40.real";
// Sonames for which the folder has a library of ours, of the same name.
constexpr const char* sonames[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", standard,
                                   fortran};
// Open MPI needs this one of its own; the number behind it grows with each series (40: 4.x,
// 80: 5.0).
constexpr const char* open_mpi_base = "libopen-pal.so.";
constexpr uint64_t stubs_bytes = 4096;
constexpr long not_there = -2;  // ENOENT

const char* folder = nullptr;
char library[path_max];
char fortran_library[path_max];
char launcher_library[path_max];
char launcher_before[path_max];  // of the process that was saved
char otherwise[path_max];        // the program's own file, if the launcher's was chosen
bool is_chosen = false;          // the program may open another one later

bool opens(uint32_t number) { return number == __NR_open || number == __NR_openat; }

// Keeps an absolute path: the loader's is relative where an entry of its search path is.
void remember(char* to, const char* path, long fd) {
  Text link;
  link << "/proc/self/fd/" << fd;
  if (path[0] == '/' || !read_link(link.c_str(), to, path_max)) copy_text(to, path_max, path);
}

bool is_in_folder(const char* path) {
  return begins_with(path, folder) && path[strlen(folder)] == '/';
}

// The descriptor of ours, where one takes the place of this open file.
long replaced(const char* path, long fd) {
  char soname[64];
  if (is_in_folder(path) || !read_name(fd, DT_SONAME, "", soname, sizeof soname)) return fd;
  if (!have(soname)) return fd;
  Text ours;
  ours << folder << "/" << soname;
  const long opened = sys_open(ours.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return fd;
  char* const place = same_text(soname, fortran) ? fortran_library : library;
  if (!is_chosen || (place == fortran_library && place[0] == 0)) remember(place, path, fd);
  sys_close(fd);
  return opened;
}

// The series of the Open MPI in this file; 0: the file is no Open MPI.
uint64_t open_mpi_series(const char* path) {
  char name[64];
  const long fd = sys_open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const bool is = read_name(fd, DT_NEEDED, open_mpi_base, name, sizeof name);
  sys_close(fd);
  const char* number = name + strlen(open_mpi_base);
  return is ? read_decimal(number) : 0;
}

// The launcher's library for this soname: the one that is known, or, of the standard ABI, the one
// beside it. Null: none is there.
const char* launcher_file_for(const char* soname) {
  static char path[path_max];
  FileStatus status;
  if (launcher() == nullptr || !same_text(soname, standard)) return launcher();
  const size_t folder_bytes = strlen(launcher_library) - strlen(last_part(launcher_library));
  copy_text(path, sizeof path, launcher_library);
  copy_text(path + folder_bytes, sizeof path - folder_bytes, standard);
  return file_status(path, status) ? path : nullptr;
}

}  // namespace

void use_folder(const char* of) { folder = of; }
void use_launcher(const char* path) { copy_text(launcher_library, sizeof launcher_library, path); }
const char* launcher() { return launcher_library[0] != 0 ? launcher_library : nullptr; }

void watch_loader(const Elf& interpreter) {
  const long room =
      sys_map(interpreter.end, stubs_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
  if (room < 0) return;
  const auto at = static_cast<uint64_t>(room);
  Stubs stubs{at, at + stubs_bytes, at};
  const auto door = reinterpret_cast<void (*)()>(doors::open);
  uint64_t start = 0;
  uint64_t end = 0;
  if (code_of(interpreter, start, end)) change_to_stubs(start, end, opens, door, stubs);
}

bool have(const char* soname) {
  for (const char* one : sonames) {
    if (same_text(one, soname)) return true;
  }
  return false;
}

void add_notes(Text& notes) {
  notes << "mpi-file=" << library << "\n";
  if (launcher() != nullptr) notes << "mpi-launcher=" << launcher_library << "\n";
}

void take_notes(const Tables& tables) {
  note_of(tables, "mpi-file", library, sizeof library);
  note_of(tables, "mpi-launcher", launcher_before, sizeof launcher_before);
}

void end_search() { is_chosen = true; }

const char* choose_file(const char* soname) {
  FileStatus status;
  otherwise[0] = 0;
  const bool is_there = file_status(library, status);
  const char* launchers = launcher_file_for(soname);
  if (launchers == nullptr) return is_there ? library : soname;
  const bool is_of_other_launcher =
      launcher_before[0] != 0 && !same_text(launcher_before, launcher_library);
  const uint64_t series = is_there ? open_mpi_series(library) : 0;
  const bool is_too_old = series != 0 && series < open_mpi_series(launchers);
  if (!is_there || is_of_other_launcher || is_too_old) {
    if (is_there && !is_too_old) copy_text(otherwise, sizeof otherwise, library);
    copy_text(library, sizeof library, launchers);
  }
  return library;
}

const char* other_choice() { return otherwise[0] != 0 ? otherwise : nullptr; }
void take_other_choice() { copy_text(library, sizeof library, otherwise); }

// Signals are blocked: a handler of the program's would stand on frames of the boot program, which
// no image may hold.
extern "C" [[gnu::used]] long backstay_open(const Call* of) {
  const Call& call = *of;
  const uint64_t mask = set_mask(~0ULL);
  long fd = by_kernel(call);
  if (fd >= 0 || fd == not_there) {
    const auto* path =
        reinterpret_cast<const char*>(call.arguments[call.number == __NR_open ? 0 : 1]);
    const char* name = last_part(path);
    if (fd >= 0 && begins_with(name, beginning)) {
      fd = replaced(path, fd);
    } else if (fd < 0 && same_text(name, real_fortran) && fortran_library[0] != 0) {
      fd = sys_open(fortran_library, O_RDONLY | O_CLOEXEC);
    }
  }
  set_mask(mask);
  return fd;
}

BACKSTAY_STUB_FUNCTION(backstay_open_file, backstay_open)

}  // namespace backstay::image::mpi_files
