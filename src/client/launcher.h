/* For libraries that start a session on behalf of a launcher (src/capture/mpi). Not installed. */
#ifndef BACKSTAY_CLIENT_LAUNCHER_H
#define BACKSTAY_CLIENT_LAUNCHER_H

#include "backstay/backstay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `message` what backstay_error_message() says in this thread. Returns `code`. */
BACKSTAY_API int backstay_launcher_failed(int code, const char* message);

/* MPI for ranks that write their versions together (src/strategy). Those that return text return
 * NULL, or why they failed, valid until the next call. `context` is the group's; one thread at a
 * time. A rank has one file open at most. */
typedef struct backstay_transport {
  /* Begins to send: `data` stays as it is until wait(). */
  const char* (*send)(void* context, int to, const void* data, size_t bytes);
  /* Exactly these bytes, in the order in which they were sent. Blocks. */
  const char* (*receive)(void* context, int from, void* data, size_t bytes);
  /* Until all that was sent may change again. */
  const char* (*wait)(void* context);
  /* Collective over all ranks: those with the same `group` of 0 or more make one file, the others
   * (-1) none. `hints`: "key=value;key=value". */
  const char* (*open)(void* context, int group, const char* path, const char* hints);
  /* The keys of those hints that MPI took no notice of for the open file, or "". */
  const char* (*ignored)(void* context, const char* hints);
  /* One rank alone reserves the open file's blocks up to `bytes`. Returns 0 or an errno, and 0 if
   * the file system cannot reserve. Some MPI-IO takes a write for whole that a full disk cut. */
  int (*reserve)(void* context, uint64_t bytes);
  /* Collective over the file's ranks, like close(): `bytes` is a multiple of 4096 and may be 0. */
  const char* (*write)(void* context, uint64_t offset, const void* data, uint64_t bytes);
  /* The content is on the storage. */
  const char* (*close)(void* context);
} backstay_transport;

/* As backstay_init_group(). `transport` stays valid until the group's release(). */
BACKSTAY_API int backstay_launcher_init(const backstay_group* group,
                                        const backstay_transport* transport, const char* config);

#ifdef __cplusplus
}
#endif

#endif
