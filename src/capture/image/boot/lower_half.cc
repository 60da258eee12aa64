#include "capture/image/boot/lower_half.h"

#include <elf.h>
#include <linux/mman.h>

#include "capture/image/boot/channel.h"
#include "capture/image/boot/files.h"
#include "capture/image/boot/gate.h"
#include "capture/image/boot/handlers.h"
#include "capture/image/boot/lower_descriptors.h"
#include "capture/image/boot/lower_stack.h"
#include "capture/image/boot/maps.h"
#include "capture/image/boot/mpi_files.h"
#include "capture/image/boot/program.h"
#include "capture/image/boot/steer.h"
#include "capture/image/boot/thread.h"
#include "capture/image/format/layout.h"
#include "capture/lower/channel.h"
#include "capture/lower/table.h"

namespace backstay::image {

namespace {

constexpr uint64_t stack_bytes = 8 << 20;
constexpr uint64_t fs_base_instructions = 2;  // in AT_HWCAP2
constexpr const char* launcher_variable = "PMI_FD";

char folder[path_max];
uint64_t entry_stack = 0;
uint64_t entry_address = 0;
char adapter_path[path_max];
char library_name[64];  // of the real MPI: no pointer into the program, which an image replaces
uint32_t started = 0;   // for that library
char** kept = nullptr;  // behind a restart: the environment of this process
long moved = -1;        // and where the descriptor is that its PMI_FD names

// --- its interpreter and libc
// ----------------------------------------------------------------------

// Changes the code of the library whose mapping holds this address.
const char* change_library(const void* inside) {
  const auto at = reinterpret_cast<uint64_t>(inside);
  Mapping code;
  Lines lines("/proc/self/maps");
  while (const char* line = lines.next()) {
    Mapping one;
    if (!read_mapping(line, one) || at < one.start || at >= one.end) continue;
    code = one;
    break;
  }
  if ((code.protection & PROT_EXEC) == 0) return "its code";
  const char* missing = steer::change_calls(code.start, code.end, true);
  return missing != nullptr ? missing : lower_descriptors::change_calls(code.start, code.end);
}

const char* change_interpreter(const Elf& elf) {
  uint64_t start = 0;
  uint64_t end = 0;
  return code_of(elf, start, end) ? steer::change_calls(start, end, false) : "its code";
}

// --- the thread
// ------------------------------------------------------------------------------------

[[noreturn]] void enter(void*) {
  __asm__ volatile(
      "mov %0, %%rsp\n\t"
      "xor %%edx, %%edx\n\t"
      "xor %%ebp, %%ebp\n\t"
      "jmp *%1"
      :
      : "a"(entry_stack), "c"(entry_address)
      : "memory");
  __builtin_unreachable();
}

void map_table(Trouble& trouble) {
  const long at = sys_map(lower::range_start, lower::table_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (at != static_cast<long>(lower::range_start)) {
    trouble << "the address range of the lower half is taken";
    return;
  }
  lower::Table& table = lower::table();
  table.version = lower::version;
  table.is_behind_restart = kept != nullptr;
  mpi_files::end_search();
  table.adapter = adapter_path[0] != 0 ? adapter_path : nullptr;
  table.library = table.adapter == nullptr ? mpi_files::choose_file(library_name) : library_name;
  table.otherwise = table.adapter == nullptr ? mpi_files::other_choice() : nullptr;
  table.launcher_library = mpi_files::launcher();
  table.change_calls = change_library;
  table.is_noted = lower_descriptors::is_noted;
}

void map_program(Program& program, Elf& interpreter, Trouble& trouble) {
  Text path;
  path << folder << "/backstay-lower";
  open_program_at(path.c_str(), program, trouble);
  if (!trouble.empty()) return;
  map_elf(program.fd, program.path, steer::take_place(64 << 20), program.elf, trouble);
  sys_close(program.fd);
  const long fd = sys_open(program.elf.interpreter, O_RDONLY | O_CLOEXEC);
  if (fd < 0) trouble << program.elf.interpreter << " cannot be read (error " << -fd << ")";
  if (!trouble.empty()) return;
  map_elf(fd, program.elf.interpreter, steer::take_place(64 << 20), interpreter, trouble);
  sys_close(fd);
  if (!trouble.empty()) return;
  const char* missing = change_interpreter(interpreter);
  if (missing != nullptr) {
    trouble << program.elf.interpreter << " is not known: " << missing << " was not found in it";
  }
}

void run_thread(const Program& program, const Elf& interpreter, char** environment,
                Trouble& trouble) {
  const long room = steer::map(stack_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK);
  if (room < 0) {
    trouble << "no memory for a stack of the lower half (error " << -room << ")";
    return;
  }
  const LowerStart start{program, interpreter, environment, moved};
  entry_stack = build_lower_stack(static_cast<uint64_t>(room), stack_bytes, start);
  if (entry_stack == 0) {
    trouble << "the environment is too large for the lower half's stack";
    return;
  }
  entry_address = interpreter.entry;
  NewThread thread;
  thread.flags = clone_memory | clone_place | clone_descriptors | clone_handlers | clone_thread |
                 clone_semaphores;
  thread.stack = reinterpret_cast<void*>((entry_stack - 4096) & ~15ULL);
  thread.entry = enter;
  const long tid = start_thread(thread);
  if (tid < 0) trouble << "a thread cannot be started (error " << -tid << ")";
}

void check_possible(const char* library, Trouble& trouble) {
  if (folder[0] == 0) {
    trouble << "this program uses MPI (" << library << "), and no folder was given by --mpi";
  } else if ((kept_auxiliary(AT_HWCAP2) & fs_base_instructions) == 0) {
    trouble << "this processor or kernel does not let programs set the FS base (FSGSBASE, Linux "
            << "5.9): an MPI program cannot be saved here";
  }
}

struct Abi {
  const char* library;
  bool is_open_mpi;
  const char* adapter;  // to an MPI of the other kind; null: there is none
};
constexpr Abi abis[] = {{"libmpi.so.40", true, "/backstay-openmpi-abi.so"},
                        {"libmpich.so.12", false, "/backstay-mpich-abi.so"},
                        {"libmpi_abi.so.1", false, nullptr}};

const Abi& abi_of(const char* library) {
  for (const Abi& one : abis) {
    if (same_text(one.library, library)) return one;
  }
  return abis[1];
}

// Hydra's word for a rank tells it from Slurm, which sets PMI_FD for programs of either MPI.
bool is_of_other_launcher(const Abi& abi, char** environment) {
  const bool by_open_mpi = variable_of(environment, "OMPI_COMM_WORLD_SIZE") != nullptr;
  const bool by_hydra = variable_of(environment, launcher_variable) != nullptr &&
                        variable_of(environment, "MPI_LOCALNRANKS") != nullptr;
  return abi.is_open_mpi ? by_hydra && !by_open_mpi : by_open_mpi && !by_hydra;
}

// A launcher of another MPI would make each rank a job of its own. So the launcher's MPI runs then,
// and an adapter gives the program the one that it is linked with.
void choose_adapter(const char* library, char** environment, Trouble& trouble) {
  const Abi& abi = abi_of(library);
  adapter_path[0] = 0;
  if (!is_of_other_launcher(abi, environment)) return;
  Text path;
  path << folder << (abi.adapter != nullptr ? abi.adapter : "");
  FileStatus status;
  if (abi.adapter == nullptr) {
    trouble << "the program uses " << library << ", and this process was started by the launcher "
            << "of Open MPI: under --transparent start it with MPICH's or Intel MPI's";
  } else if (!file_status(path.c_str(), status)) {
    trouble << "the program uses " << library << ", this process was started by the launcher of "
            << "another MPI, and " << path.c_str() << " is missing, by which it could use that one";
  } else {
    copy_text(adapter_path, sizeof adapter_path, path.c_str());
  }
}

bool is_first_rank(char** environment, bool over_hydra) {
  const char* rank = variable_of(environment, over_hydra ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  return rank != nullptr && rank[0] == '0' && rank[1] == 0;
}

// Once for the job.
void say_adapter(const char* library, char** environment) {
  const bool over_hydra = abi_of(library).is_open_mpi;
  if (!is_first_rank(environment, over_hydra)) return;
  Text text;
  text << "backstay: the program is linked with " << library << " and runs over "
       << (over_hydra ? "MPICH" : "Open MPI") << ", whose launcher has started it\n";
  sys_write(2, text.c_str(), text.size());
}

// The launcher's library could not be opened. Told once for the job.
void take_other_choice(const char* library, char** environment) {
  mpi_files::take_other_choice();
  if (!is_first_rank(environment, !abi_of(library).is_open_mpi)) return;
  Text text;
  text << "backstay: the program goes on with its own MPI, as the launcher's cannot be opened: "
       << lower::table().reason.text << "\n";
  sys_write(2, text.c_str(), text.size());
}

void start(const char* library, char** environment, Trouble& trouble) {
  static Program program;
  Elf interpreter;
  check_possible(library, trouble);
  if (trouble.empty()) choose_adapter(library, environment, trouble);
  copy_text(library_name, sizeof library_name, library);
  if (trouble.empty()) __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
  if (trouble.empty()) map_table(trouble);
  if (trouble.empty()) map_program(program, interpreter, trouble);
  if (trouble.empty()) run_thread(program, interpreter, environment, trouble);
  if (!trouble.empty()) return;
  lower::Table& table = lower::table();
  wait_while(&table.state, static_cast<uint32_t>(lower::State::starting));
  if (table.state == static_cast<uint32_t>(lower::State::failed)) trouble << table.reason.text;
  if (!trouble.empty()) return;
  if (table.adapter != nullptr) say_adapter(library, environment);
  if (table.library == table.otherwise) take_other_choice(library, environment);
}

long descriptor_of(const char* number) {
  return number != nullptr && *number >= '0' && *number <= '9'
             ? static_cast<long>(read_decimal(number))
             : -1;
}

}  // namespace

void prepare_lower_half(const Options& options, const Start& start) {
  copy_text(folder, sizeof folder, options.mpi);
  mpi_files::use_folder(folder);
  if (options.launcher_mpi != nullptr) {
    mpi_files::use_launcher(options.launcher_mpi);
  }
  if (options.handed_in != nullptr) {
    lower_descriptors::note_list(options.handed_in);
  } else {
    lower_descriptors::note_handed_in(options.control);
  }
  static Trouble trouble;
  map_channel(trouble);
  if (!trouble.empty()) give_up(trouble, 126);
  keep_auxiliary(start);
  if ((kept_auxiliary(AT_HWCAP2) & fs_base_instructions) != 0) handlers::begin();
}

const char* lower_folder() { return folder[0] != 0 ? folder : nullptr; }

const char* lower_library() {
  return __atomic_load_n(&started, __ATOMIC_ACQUIRE) != 0 ? library_name : nullptr;
}

bool in_lower_half() { return folder[0] != 0 && !lower::is_outside(lower::channel()); }

bool is_of_lower_half(long tid) {
  if (folder[0] == 0) return false;
  uint64_t list = 0;
  uint64_t bytes = 0;
  const long told = system_call(__NR_get_robust_list, tid, address_of(&list), address_of(&bytes));
  return told == 0 && list >= lower::range_start && list < lower::range_end;
}

const char* start_lower_half(const char* library, char** environment) {
  static Trouble trouble;
  const uint64_t mask = set_mask(~0ULL);
  gate::begin_exec();
  trouble.clear();
  start(library, kept != nullptr ? kept : environment, trouble);
  gate::end_exec();
  set_mask(mask);
  return trouble.empty() ? nullptr : trouble.c_str();
}

void keep_for_lower_half(const Start& start) {
  kept = keep_environment(start);
  if (kept == nullptr) give_up(Text() << "no memory for the environment", 126);
}

void check_lower_half(const char* library, Trouble& trouble) {
  check_possible(library, trouble);
  if (!trouble.empty()) return;
  Text path;
  path << folder << "/" << library;
  FileStatus status;
  if (!file_status(path.c_str(), status)) {
    trouble << path.c_str() << " is missing: the program uses this MPI";
    return;
  }
  choose_adapter(library, kept, trouble);
  if (!trouble.empty()) return;
  static Program program;
  path.clear();
  path << folder << "/backstay-lower";
  open_program_at(path.c_str(), program, trouble);
  if (program.fd >= 0) sys_close(program.fd);
}

long launcher_descriptor() {
  return kept != nullptr ? descriptor_of(variable_of(kept, launcher_variable)) : -1;
}

void move_launcher_descriptor(long number) {
  lower_descriptors::forget(static_cast<uint64_t>(launcher_descriptor()));
  lower_descriptors::note(static_cast<uint64_t>(number));
  moved = number;
}

void restart_lower_half(const char* library, Trouble& trouble) {
  start(library, kept, trouble);
  if (!trouble.empty()) return;
  __atomic_fetch_or(&lower::channel().attention, lower::attend_renew, __ATOMIC_SEQ_CST);
}

}  // namespace backstay::image
