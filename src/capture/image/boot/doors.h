// The doors: code at a fixed place of the window, by which the program enters the boot program. The
// program's memory, and so an image, holds their addresses: they are the same in every build
// (docs/format/image.md, "Doors").
//
// The program's libc is changed in its memory where it asks the kernel to replace the program
// (execve, execveat): the call goes through a door to exec.cc, on the program's own thread. So do
// those that read links, to exe_link.cc, and the one that sets handlers of signals, to handlers.cc,
// where the program may have a lower half.
#pragma once

#include "capture/image/boot/maps.h"
#include "capture/image/boot/window.h"
#include "capture/lower/table.h"

namespace backstay::image::doors {

inline constexpr uint64_t place = arena_start - 4096;
inline constexpr uint64_t size = 32;  // of one door

// Maps them. Once, before the program runs.
void build(Trouble& trouble);
// Code of the program's libc.
bool is_libc(const Mapping& one);
// Which calls of the program's libc are to go through doors beside those that read links: those
// that replace the program, and those that set handlers of signals.
void choose(bool exec, bool handlers);

// The first instruction of the program enters here, behind its interpreter: libc is there by then.
// The true first instruction stands in the 8 bytes before the program's name (AT_EXECFN).
inline constexpr uint64_t entry = place;

// Starts the lower half (lower_half.h), with the arguments of a function of the C ABI.
inline constexpr uint64_t lower_door = 5;
// Opens a file for the program's loader (mpi_files.h); entered from a stub (call_stubs.h).
inline constexpr uint64_t open_door = 13;
inline constexpr uint64_t open = place + open_door * size;
// What getpid answers to Python's asyncio after a restart (asyncio.h); a function of the C ABI.
inline constexpr uint64_t asyncio_door = 8;
inline constexpr uint64_t asyncio = place + asyncio_door * size;
static_assert(place + lower_door * size == lower::start_door);

}  // namespace backstay::image::doors
