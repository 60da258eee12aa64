// The parts of a restart, in the order in which restore.cc takes them. One thread: the new
// process's first, on the boot program's own stack.
#pragma once

#include "capture/image/boot/process.h"
#include "capture/image/boot/sink.h"
#include "capture/image/boot/tables.h"

namespace backstay::image {

// The checks compare what is here with what the image needs. They change nothing.
//
// An older image of the program needs the same of these: processor and kernel, working directory,
// the program and its libraries.
void check_machine(const Tables& tables, Trouble& trouble);
void check_folder(const Tables& tables, Trouble& trouble);
void check_programs(const Tables& tables, Trouble& trouble);
// An older one may do without these: other files that are mapped, and what is open.
void check_files(const Tables& tables, Trouble& trouble);
void check_descriptors(const Tables& tables, Trouble& trouble);

// Unmaps everything but the boot program; the kernel's vdso is moved into the window.
void clear_memory();
// Maps all areas. Trouble: an address that is taken, a file that changed meanwhile.
void map_areas(const Tables& tables, Trouble& trouble);
// Where the pages of a run are put before place_vdso(): at their address, but for the vdso's.
uint8_t* place_of(const Tables& tables, const Run& run);
// Puts the vdso where the program expects it; where this kernel's is another one, its functions
// enter the kernel by system calls instead.
void place_vdso(const Tables& tables);
// Writes the areas that are contents of files, which are memory of this process by then, into their
// files. A file that is not there is made, with the mode that it had; it also takes the name of a
// symbolic link, or of another file that has several names. Then removes SQLite's journals beside
// them that the image does not have.
void write_contents(const Tables& tables, Trouble& trouble);
// Maps the files whose contents were written back. Until then memory without a file stands at their
// places, and has the pages that the program had changed.
void map_written_files(const Tables& tables, Trouble& trouble);
// Sets the protection of areas that were filled.
void protect_areas(const Tables& tables);

// Starts the threads; they wait in the boot program. Their new ids are known from then on.
void start_threads(const Tables& tables, Trouble& trouble);
// The id of the process or of a thread in this life; 0: the image has no such one.
uint32_t new_thread_id(uint32_t before);
// Writes new thread ids where libc keeps them: in each thread's block, and in mutexes that are
// held, and for the thread that runs functions of timers (SIGEV_THREAD).
void renew_thread_ids(const Tables& tables);

// Closes what the image does not have, but for `control` and the launcher's descriptor, which move
// to numbers above all of the image. `reserve`: something takes each of the image's numbers, so
// that what the lower half opens goes elsewhere.
void clear_descriptors(const Tables& tables, bool reserve, long& control, Trouble& trouble);
void open_descriptors(const Tables& tables, Trouble& trouble);
// Trouble: this process (0), or the one that saves it and would start it again, may not have as
// many descriptors as a restart needs, above those of the image too.
void check_numbers(const Tables& tables, long whose, Trouble& trouble);
// As many descriptors as this process may have, until it is lowered again.
void raise_descriptor_limit();
void lower_descriptor_limit();
// Flags that count when a file is opened first: O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW.
inline constexpr uint32_t only_at_first = 0100 | 0200 | 01000 | 0400000;
// What was written behind the cut is cut off: the program writes it again.
void cut_back(const Descriptor& one, long fd);
// Moves a descriptor to a number above all of the image, and closes the old one. The new number, or
// a negative error.
long lift_descriptor(long fd);
void set_signals(const Tables& tables);
void set_timers(const Tables& tables);
// Lets all threads go on, the calling one as the image's leader. Does not return.
[[noreturn]] void go_on(const Tables& tables);

}  // namespace backstay::image
