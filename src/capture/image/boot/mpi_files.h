// The MPI library that the program itself loads. Its loader searches as always (RPATH,
// LD_LIBRARY_PATH, RUNPATH, ldconfig's cache, a path given to dlopen), but its calls of open come
// here (door 13). It gets our library where we have one of the soname that it has found. The path
// of the real one is remembered, and the lower half opens that file (docs/protocol/lower-half.md,
// "Start"). Any thread: the loader's own lock lets one in at a time.
#pragma once

#include "capture/image/boot/call_stubs.h"
#include "capture/image/boot/elf.h"
#include "capture/image/boot/tables.h"
#include "capture/image/boot/text.h"

namespace backstay::image::mpi_files {

// `folder`: of our MPI libraries; stays valid.
void use_folder(const char* folder);
// Path of the MPI library whose launcher has started this process. Null: it is not known.
void use_launcher(const char* path);
const char* launcher();
// Changes the calls of the program's loader. Once, before the program runs. A loader of another
// kind may stay as it is: it loads the real MPI then, and the companion says that it cannot be
// saved.
void watch_loader(const Elf& interpreter);

// Whether we have a library in place of the one that has this soname. Ours has the same.
bool have(const char* soname);
// An image's notes: the file of the real MPI, and of the launcher's.
void add_notes(Text& notes);
void take_notes(const Tables& tables);
// The lower half uses another library than those that the program opens from now on.
void end_search();
// Chooses the file that the lower half opens where the launcher is of the same MPI, notes it for
// the image, and returns it: the one that the loader has found or the image names. It is the
// launcher's in three cases: the first is gone; the process was saved under another launcher, and
// this environment may not fit its MPI; the first is an Open MPI of an older series than the
// launcher's, and MPI_Init would fail. Returns `soname` where no file is known.
const char* choose_file(const char* soname);
// The program's own file, if choose_file() took the launcher's instead; null: it is gone, too old,
// or was taken.
const char* other_choice();
// Notes it for the image: the launcher's cannot be opened.
void take_other_choice();

extern "C" void backstay_open_file();  // behind door 13: what a stub calls

}  // namespace backstay::image::mpi_files
