// The MPI library that the program itself loads. Its loader looks for it as it always does (RPATH,
// LD_LIBRARY_PATH, RUNPATH, ldconfig's cache, a path given to dlopen), but the calls by which it
// opens files come here (door 13). Where it has found an MPI library that we have one in place of,
// it gets ours, and the path is remembered: the lower half opens that very file
// (docs/protocol/lower-half.md, "Start"). Any thread; the loader has one in it at a time.
#pragma once

#include "capture/image/boot/call_stubs.h"
#include "capture/image/boot/elf.h"

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
// The file of the real MPI: as the program's loader has found it, or as the image says. Empty: not
// known yet.
const char* real_library();
void remember_library(const char* path);
// The file that the lower half opens where the launcher is of the same MPI: the real library. Where
// that is gone, or is an Open MPI of an older series than the launcher's (which would end in
// MPI_Init), the launcher's; where none is known, `soname`.
const char* to_open(const char* soname);

// open and openat as the kernel answers them, but for the libraries above.
long open(const Call& call);
extern "C" void backstay_open_file();  // behind door 13: what a stub calls

}  // namespace backstay::image::mpi_files
