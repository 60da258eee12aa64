// The MPI library that the program itself loads. Its loader looks for it as it always does (RPATH,
// LD_LIBRARY_PATH, RUNPATH, ldconfig's cache, a path given to dlopen), but the calls by which it
// opens files come here (door 13). Where it has found an MPI library that we have one in place of,
// it gets ours, and the path is remembered: the lower half opens that very file
// (docs/protocol/lower-half.md, "Start"). Any thread; the loader has one in it at a time.
#pragma once

#include "capture/image/boot/call_stubs.h"
#include "capture/image/boot/elf.h"
#include "capture/image/boot/tables.h"
#include "capture/image/boot/text.h"

namespace backstay::image::mpi_files {

// `folder`: of our MPI libraries; stays valid.
void use_folder(const char* folder);
// The MPI whose launcher has started this process; stays valid. Null: it is not known.
void use_launcher(const char* path);
// Changes the calls of the program's loader. Once, before the program runs. A loader of another
// kind may stay as it is: it loads the real MPI then, and the companion says that it cannot be
// saved.
void watch_loader(const Elf& interpreter);

// Our library in place of the one that has this soname; null: there is none.
const char* ours_for(const char* soname);
// An image's notes: the file of the real MPI, and of the launcher's.
void add_notes(Text& notes);
void take_notes(const Tables& tables);
// The file that the lower half opens where the launcher is of the same MPI: the one that the
// program's loader has found, or that the image names. Three times it is the launcher's instead:
// that file is gone; the process was saved under another launcher, for whose MPI this environment
// may not be made; it is an Open MPI of an older series than the launcher's, which would end in
// MPI_Init. `soname` where no file is known.
const char* to_open(const char* soname);

// open and openat as the kernel answers them, but for the libraries above.
long open(const Call& call);
extern "C" void backstay_open_file();  // behind door 13: what a stub calls

}  // namespace backstay::image::mpi_files
