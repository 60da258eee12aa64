// What the companion asks of the boot program, and what it answers: one struct each way, over a
// socket of kind SOCK_SEQPACKET. Like layout.h this header includes nothing but <stdint.h>, as the
// boot program has no library.
//
// The boot program serves one request at a time and answers each one but `go`. A cut:
//   pool     once for each connection to an agent: maps the pool, whose descriptor comes along
//   cut      stops the program's threads and describes the process; they stay stopped. `why` names
//            a file that is mapped shared, and whose pages the image does not hold though the
//            program may come to write them; empty: there is none
//   kept     tells which chunks of the last cut's object this one begins with, some at once
//   fill     copies the next bytes of the object, behind those, into the pool; as often as it takes
//   snapshot copies the stopped process by fork. The copy says over the socket that comes along
//            whether it is of use (an answer without a request), and from then on answers `kept`
//            and `fill` there, going on where this one is, until the socket is closed. Refused:
//            now (this program has none), again (the machine gives none); the cut goes on then
//   resume   lets the threads go on; tells how much of a pool is mapped
// A program that replaces itself (exec) is the same process with another boot program, which has no
// pool yet: it reads the requests that wait. A cut that meets this is to be asked again.
// A process that is brought back answers these before its program runs:
//   pool     as above
//   table    the object's end, in the memory that comes along; checks the machine, the files and
//            the descriptors, then maps the areas
//   take     copies bytes of the object from the pool to their places
//   base     after the last take: the object's chunks, in the memory that comes along (KeptChunk
//            each, in order); those that hold pages alone may be kept by the next cut. Tells
//            whether the program's writes are watched from now on
//   ready    does all else that may fail: the lower half, descriptors, signal handlers. `why` names
//            attributes of the process that are not allowed here; empty: there are none
//   go       lets the program go on; it has no answer
// A companion that ends lets stopped threads go on: the program then runs without being saved. A
// process whose companion ends before `go` ends too.
#pragma once

#include <stdint.h>

namespace backstay::image {

enum class Ask : uint32_t {
  pool = 1,
  cut,
  fill,
  resume,
  table,
  take,
  ready,
  kept,
  snapshot,
  base,
  go
};

inline constexpr uint32_t notes_max = 1024;

struct Request {
  uint32_t kind;          // Ask
  uint32_t tersely;       // cut: 1: need not name a child
  uint64_t at;            // fill, take: in the pool; kept: the first one, counted from 0; pool:
                          // its part that this rank prefers
  uint64_t bytes;         // pool: of the pool; fill, take: how many; table: of the tail; base: of
                          // the list; cut: of a chunk of the object
  uint64_t object;        // take: offset in the object; table: bytes of the object; pool: of that
                          // part
  uint32_t watches;       // cut: 1: the next one may keep chunks of its object
  uint32_t keeps;         // cut: 1: keeps chunks of the last one's, where that watches
  char notes[notes_max];  // cut: a text for the image (docs/format/image.md, identity)
};
static_assert(sizeof(Request) == 40 + notes_max);

inline constexpr uint32_t why_max = 1024;

enum class Refused : uint32_t {
  no = 0,
  now = 1,    // nothing has changed
  ends = 2,   // this process ends
  again = 3,  // the program is just replacing itself; snapshot: see there
  child = 4,  // the program has a child; nothing was stopped, or for a moment
  image = 5,  // table, ready: this process ends; an older image may do without what is wrong or
              // missing
};

struct KeptChunk {
  uint64_t offset, bytes;  // in the last cut's object
};
inline constexpr uint32_t kept_max = 64;

struct Answer {
  uint32_t refused;                     // Refused; `why` says why, else of a cut: see there
  uint32_t process;                     // snapshot: the copy's; a child of who asks
  uint64_t bytes;                       // cut: of the object; resume: of the pool; base: 1: yes
  uint64_t kept_bytes;                  // cut: of these, at the front, that are not filled
  KeptChunk kept[kept_max];             // kept: the next ones, in order; of 0 bytes: no more
  uint64_t sum;                         // fill, take: checksum of the bytes
  uint64_t agreeing_ns, describing_ns;  // cut
  uint64_t stopped_ns;                  // resume: since the first thread was asked to stop
  uint64_t contents;                    // cut: of so many files
  uint64_t table_bytes;                 // cut: of `bytes`, at the end: the table and the footer
  char why[why_max];
};
static_assert(sizeof(Answer) == 72 + kept_max * sizeof(KeptChunk) + why_max);

}  // namespace backstay::image
