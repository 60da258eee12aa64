/* Backstay: fast, safe checkpoints for long-running programs. The C interface.
 *
 *   backstay_init_mpi(MPI_COMM_WORLD, NULL);              (backstay_mpi.h; or backstay_init(NULL))
 *   backstay_protect("u", u, n, BACKSTAY_DOUBLE);
 *   if (backstay_restart(&version) == BACKSTAY_OK) step = ...;
 *   for (...) { compute(); if (backstay_due()) backstay_checkpoint(); }
 *   backstay_finalize();
 *
 * Words (docs/glossary.md): a *job* is a named run that may be restarted many times; a *version*
 * is one checkpoint of all its ranks; a *region* is a named array inside it; a *level* says how
 * safe a version is.
 *
 * Errors. Every function that can fail returns a backstay_error; BACKSTAY_OK is 0. The text for the
 * last failure of the calling thread is backstay_error_message(): it says what to do. No function
 * ends the program unless the configuration says `checkpoint.strict = true`. Every function returns
 * ENULL for a NULL pointer that must not be NULL. "Errors:" below lists every code that a function
 * may return besides EINTERNAL, which is our bug or that of the launcher, or means that there is no
 * memory left.
 *
 * Threads. One session a process. All functions may be called from any one thread at a time;
 * two calls at the same time are refused with BACKSTAY_ESTATE. In a parallel job the functions
 * marked *collective* must be called by all ranks in the same order.
 *
 * Signals. From init to finalize SIGUSR1 asks for a checkpoint, and SIGTERM for a checkpoint and
 * then the end; the program's own handlers are called too. If it has none for SIGTERM, a call that
 * waits can be ended: restart() by the first SIGTERM, as nothing is lost; the others by the second.
 *
 * Forks. The session stays with the parent, and its signals, too: a child has the handlers from
 * before init(). A child may start a session of its own under another job.name.
 *
 * Ownership. Backstay keeps the pointers given to protect(); the memory stays the caller's and
 * must stay valid until unprotect() or finalize(). Names are copied.
 */
#ifndef BACKSTAY_BACKSTAY_H
#define BACKSTAY_BACKSTAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BACKSTAY_API __attribute__((visibility("default")))
#else
#define BACKSTAY_API
#endif

/* Any int may arrive from C, so C++ needs the underlying type. */
#ifdef __cplusplus
#define BACKSTAY_ENUM_OF_INT : int
extern "C" {
#else
#define BACKSTAY_ENUM_OF_INT
#endif

/* The closed list of errors, ordered by how much is lost. */
typedef enum backstay_error BACKSTAY_ENUM_OF_INT {
  BACKSTAY_OK = 0,
  /* Nothing is lost. */
  BACKSTAY_ENONE = 1,         /* restart: no version exists; start from the beginning */
  BACKSTAY_EAGAIN = 2,        /* temporary; call again */
  BACKSTAY_ETIMEOUT = 3,      /* wait: the level was not reached in time; it still may be */
  BACKSTAY_EINVALID = 4,      /* an argument is wrong */
  BACKSTAY_ESTATE = 5,        /* a call out of order */
  BACKSTAY_ECONFIG = 6,       /* the configuration is wrong; the message names line and key */
  BACKSTAY_EBUSY = 7,         /* another run of a job of this name is alive */
  BACKSTAY_EUNSUPPORTED = 8,  /* this build or machine cannot do it */
  BACKSTAY_EDUPLICATE = 9,    /* the name is protected already */
  BACKSTAY_ETOOLARGE = 10,    /* beyond a limit that the message names */
  BACKSTAY_EPROTOCOL = 11,    /* agent and library are of different releases */
  BACKSTAY_EPORT = 12,        /* another process has network.port */
  BACKSTAY_EUNREACHABLE = 13, /* a node cannot be reached by its name or address */
  BACKSTAY_EFEWNODES = 14,    /* too few for the replicas or parity that are asked for */
  BACKSTAY_ENULL = 15,        /* a pointer is NULL; the message names the argument */
  BACKSTAY_ELONGPATH = 16,    /* a path is longer than the system allows: agent.socket */
  /* This object. */
  BACKSTAY_EMISMATCH = 20, /* a region's name, type, shape or size is not what was saved */
  BACKSTAY_ERANKS = 21,    /* saved by another number of ranks, and not fit for this one */
  BACKSTAY_ENOTFOUND = 22, /* no such version, rank or region */
  /* This tier. */
  BACKSTAY_EIO = 30,         /* the operating system refused a read or write */
  BACKSTAY_ENOSPACE = 31,    /* the disk or quota is full */
  BACKSTAY_EPERMISSION = 32, /* not allowed; the message names the path */
  /* This node. */
  BACKSTAY_EAGENT = 40,    /* an agent died, cannot be started or cannot be reached */
  BACKSTAY_ERANKLOST = 41, /* a rank died during the checkpoint; that version does not exist */
  /* This version. */
  BACKSTAY_ECORRUPT = 50, /* bytes do not match their checksum */
  BACKSTAY_EFORMAT = 51,  /* not a file of ours, or of a newer format */
  BACKSTAY_ELOST = 52,    /* more nodes are gone than replicas or parity make up for */
  /* Our bug. */
  BACKSTAY_EINTERNAL = 90
} backstay_error;

/* How safe a version is, once it has reached the level. A higher level includes the lower ones.
 * Nodes that are lost afterwards use up its protection (`backstay show` says what is left). */
typedef enum backstay_level BACKSTAY_ENUM_OF_INT {
  BACKSTAY_CAPTURED = 1,  /* in the node's pool: survives the death of any program process */
  BACKSTAY_LOCAL = 2,     /* on the node's disk: survives the agent's death and a reboot */
  BACKSTAY_PROTECTED = 3, /* copies on other nodes (protect.replicas) */
  BACKSTAY_DURABLE = 4    /* on shared storage, if durable.dir is set */
} backstay_level;

/* Element types of regions. The number of bytes is part of the name or of the comment. */
typedef enum backstay_type BACKSTAY_ENUM_OF_INT {
  BACKSTAY_BYTE = 1, /* 1 byte, opaque */
  BACKSTAY_INT8 = 2,
  BACKSTAY_INT16 = 3,
  BACKSTAY_INT32 = 4,
  BACKSTAY_INT64 = 5,
  BACKSTAY_UINT8 = 6,
  BACKSTAY_UINT16 = 7,
  BACKSTAY_UINT32 = 8,
  BACKSTAY_UINT64 = 9,
  BACKSTAY_FLOAT = 10,     /* 4 bytes */
  BACKSTAY_DOUBLE = 11,    /* 8 bytes */
  BACKSTAY_COMPLEX64 = 12, /* two floats */
  BACKSTAY_COMPLEX128 = 13 /* two doubles */
} backstay_type;

#define BACKSTAY_DIMS_MAX 8
#define BACKSTAY_NAME_MAX 200 /* bytes of a region's or file's name, without the final zero */

/* An array and its place. Row-major (C order); Fortran callers give the dimensions reversed, as
 * the Fortran module does by itself. */
typedef struct backstay_array {
  int dims;                                  /* 1 .. BACKSTAY_DIMS_MAX */
  uint64_t shape[BACKSTAY_DIMS_MAX];         /* elements of this rank's block, each dimension */
  uint64_t global_shape[BACKSTAY_DIMS_MAX];  /* elements of the whole array; all 0: not declared */
  uint64_t global_offset[BACKSTAY_DIMS_MAX]; /* where this rank's block begins in it */
} backstay_array;

/* Starts the session of a program of one process. `config`: path of a TOML file, or NULL for
 * $BACKSTAY_CONFIG, ./backstay.toml, ~/.config/backstay.toml, or the defaults, in that order.
 * Starts an agent if none runs on this node. Blocks until the agent answers (at most
 * `agent.start_timeout_s`).
 * Errors: ESTATE (already started), ECONFIG (also a folder that cannot be made), EAGENT, EPROTOCOL,
 * EBUSY, EPERMISSION, ENOSPACE, ELONGPATH (the socket's), EINVALID (the agent takes no such job),
 * ETOOLARGE (the agent has as many connections as it may open files), EUNSUPPORTED (a strategy that
 * needs MPI). */
BACKSTAY_API int backstay_init(const char* config);

/* For programs that an interpreter runs: the name of a job without a configured name. Otherwise it
 * is the program's file, which would be "python3" for all of them. Copied; call it before init.
 * NULL is ignored. */
BACKSTAY_API void backstay_name_program(const char* name);

/* The functions and facts of a parallel launcher; backstay_mpi.h fills it for MPI. Every function
 * returns 0 on success and is called by all ranks in the same order. */
typedef struct backstay_group {
  void* context;
  int rank; /* 0 .. ranks-1 */
  int ranks;
  int local_rank;  /* position among the ranks of this node */
  int local_ranks; /* how many ranks run on this node */
  int node;        /* 0 .. nodes-1 */
  int nodes;
  int (*broadcast)(void* context, void* data, size_t bytes, int root);
  int (*minimum)(void* context, int64_t* value); /* the smallest of all ranks' values, on all */
  void (*release)(void* context);                /* called once, at finalize; may be NULL */
} backstay_group;

/* Collective. The same for a parallel program with its own launcher. `group` is copied; on failure
 * it is not kept and release() is not called.
 * Errors: as backstay_init, EINVALID (which field), ENULL, and on several nodes EPORT,
 * EUNREACHABLE, EFEWNODES and EUNSUPPORTED (parity or a network that this build does not have). The
 * same code on all ranks. */
BACKSTAY_API int backstay_init_group(const backstay_group* group, const char* config);

/* Names `count` elements at `data` as part of every later version. `count` may be 0 (then `data`
 * may be NULL). Protecting a name again is refused; unprotect it first. `data` may be a CUDA device
 * or managed pointer if a CUDA runtime is present.
 * Errors: ESTATE, ENULL (name or data), EINVALID (unknown type, bad name), EDUPLICATE,
 * ETOOLARGE. */
BACKSTAY_API int backstay_protect(const char* name, void* data, uint64_t count, backstay_type type);

/* The same with a shape and, if global_shape is not all zero, the place in a global array.
 * Errors: as backstay_protect; EINVALID also if a block lies outside of its global shape, or has an
 * offset and no global shape. */
BACKSTAY_API int backstay_protect_array(const char* name, void* data, const backstay_array* array,
                                        backstay_type type);

/* Forgets a region. Its data in earlier versions stays.
 * Errors: ESTATE, ENULL, ENOTFOUND. */
BACKSTAY_API int backstay_unprotect(const char* name);

/* Collective. 1 if a checkpoint should be taken now, else 0; the same answer on all ranks.
 * Decided by `checkpoint.*` in the configuration (interval, every n calls, Daly's optimum), by
 * `backstay checkpoint JOB`, or by SIGUSR1; also by SIGTERM, see backstay_stop_requested().
 * Cost: a few nanoseconds on most calls; on some, a broadcast of 16 bytes. Never fails. */
BACKSTAY_API int backstay_due(void);

/* Collective. 1 if the job was asked to end after its next checkpoint (SIGTERM, the scheduler's
 * warning signal, `backstay checkpoint --stop`). Changes only inside backstay_due(). */
BACKSTAY_API int backstay_stop_requested(void);

/* Collective. Saves all protected regions, routed files and streams (backstay_streams.h) as a new
 * version and returns when it is *captured*: the regions may be changed at once. On failure nothing
 * of the version remains, streams included, the program may go on, and earlier versions are
 * untouched. Blocks while the pool is full.
 * Errors: ESTATE (also if a stream is open), EAGENT, ERANKLOST, EINVALID (a routed file that cannot
 * be read), ENOSPACE, EIO and EPERMISSION (the disk of a pool that is full), ETOOLARGE (an object,
 * or the last version number), and if an agent died and a new one refuses: EBUSY, EPROTOCOL,
 * ECONFIG, EPORT, EUNREACHABLE, EUNSUPPORTED. The same code on all ranks. */
BACKSTAY_API int backstay_checkpoint(void);

/* The number of the newest version that this run captured or restarted from; 0 if none. */
BACKSTAY_API uint64_t backstay_version(void);

/* One question to the agent and its answer; waits for no disk. *level: the level that `version` has
 * now (0 if it does not exist), also if a code says why it cannot get a higher one.
 * Errors: ESTATE, ENULL, ENOTFOUND, EAGENT, EPROTOCOL, and the reason for no higher level:
 * ENOSPACE, EIO, EPERMISSION, EBUSY (another run has the job's folder, or its place in the durable
 * directory), ECORRUPT (it is damaged), EAGAIN (a copy was interrupted), ECONFIG (another node has
 * other pool buffers), EFORMAT (a newer release wrote it), EUNREACHABLE (another node cannot be
 * reached by its name or address). */
BACKSTAY_API int backstay_test(uint64_t version, backstay_level* level);

/* Blocks until `version` has `level` or better, at most `timeout_s` seconds (negative: no limit).
 * For a version that an earlier run saved on several nodes at most LOCAL (or DURABLE) is reported:
 * its replicas may have been on nodes that are gone. Waiting for PROTECTED of such a version is
 * EUNSUPPORTED; the next version can reach it. When the time is over the agent is asked for the
 * reason, which takes a second more if it hangs.
 * Errors: ESTATE, ENOTFOUND, EAGENT, EPROTOCOL, EINVALID (no level), ETIMEOUT, EUNSUPPORTED (a
 * level that is not configured), and the reason for no higher level: ENOSPACE, EIO, EPERMISSION,
 * EBUSY, ECORRUPT, EAGAIN, ECONFIG, EFORMAT, EUNREACHABLE. */
BACKSTAY_API int backstay_wait(uint64_t version, backstay_level level, double timeout_s);

/* Collective. Brings all protected regions and routed files back from the newest version that is
 * complete and undamaged, the same one on all ranks. *version (may be NULL) is its number. A
 * version that is found damaged twice is set aside, and one that cannot be read is skipped this
 * time. The agent's log names both, and the next older version is taken. Nothing is written to the
 * regions before every rank has verified every byte of the version.
 * The run may have another number of ranks than the one that saved the version. Then each region
 * either has a place in a global array (backstay_protect_array) and the saved blocks cover it, each
 * element once, or it was the same on all ranks; a version with routed files or streams stays with
 * its number. Everything is then read twice, and rank 0 compares the regions without a place.
 * Errors: ESTATE, ENONE (nothing saved yet; the regions are untouched), EMISMATCH (regions
 * protected now differ from those saved, or another program saved them and the job has a default
 * name; untouched), ERANKS (saved by another number of ranks, and the message says why it does not
 * fit this one; untouched), EINVALID (a folder is in the place of a routed file; untouched),
 * ENOSPACE (the disk has no room for the routed files, which come back beside those that are there;
 * the message names path and bytes; untouched), EPERMISSION (they may not be written; untouched),
 * ECORRUPT (versions exist, none can be read; untouched), ELOST (the same, as too many nodes that
 * had them are gone; untouched), EAGENT (a second agent was tried, or a part of the version is only
 * on a node that cannot be reached now; untouched, and the program must not start afresh),
 * ERANKLOST (a rank died; untouched), EFORMAT (of a newer release; untouched), EUNSUPPORTED (saved
 * with larger buffers than the pool has now; untouched), and if an agent died and a new one
 * refuses: EBUSY, EPROTOCOL, ECONFIG, ETOOLARGE, EPORT, EUNREACHABLE. Only EIO after a first
 * success of verification leaves regions in an undefined state; the message then says so and the
 * program must not go on. */
BACKSTAY_API int backstay_restart(uint64_t* version);

/* Reads one region, or stream, of an old version of this rank into `data` (`bytes` long, exactly
 * the size that was saved), verified; untouched on failure. If another number of ranks saved the
 * version, the region is that of the rank with the same number, its block of a global array
 * included. Errors: ESTATE, ENULL, ENOTFOUND (no such version, region or rank), EMISMATCH (size),
 * ETOOLARGE (no memory for a second copy), ECORRUPT, ELOST, EFORMAT, EIO, EPERMISSION (it cannot be
 * read), EUNSUPPORTED (saved with larger buffers than the pool has now), EPROTOCOL, EAGENT. */
BACKSTAY_API int backstay_read_region(uint64_t version, const char* name, void* data, size_t bytes);

/* For programs that write their own files. Writes into `path` (of `path_bytes`) the path at which
 * to write the file `name`; all routed files of a node share one directory, so names of different
 * ranks must differ. `name` may hold letters, digits and "._-%+". From then on every checkpoint()
 * takes the file's content as it is at that moment, and restart() puts it back at the same path. A
 * routed file that does not exist at a checkpoint makes it fail with EINVALID.
 * The same name gives the same path.
 * Errors: ESTATE, EINVALID, ENULL, ETOOLARGE (path does not fit), ECONFIG (its folder below
 * storage.dir can never be made), EPERMISSION, ENOSPACE, EIO, EUNSUPPORTED (no agent runs, by
 * strategy.name). */
BACKSTAY_API int backstay_route_file(const char* name, char* path, size_t path_bytes);

/* Collective. Ends the session; the agent goes on and brings captured versions to their level. With
 * `checkpoint.wait_at_end = true` waits for *local* first, and says why that was not reached; the
 * session has ended in any case.
 * Errors: ESTATE, and from that wait EAGENT, EPROTOCOL, ENOTFOUND, ENOSPACE, EIO, EPERMISSION,
 * EBUSY, ECORRUPT, EAGAIN. */
BACKSTAY_API int backstay_finalize(void);

/* Ends this rank's session as one that failed: the run does not count as finished, so the next
 * start does not say that the job had finished. Not collective; does not wait. A process that ends
 * without backstay_finalize() has the same effect; this function is for a process that goes on, or
 * whose destructors run, after an error. The group's release() is not called.
 * Errors: ESTATE. */
BACKSTAY_API int backstay_abandon(void);

/* One sentence for a code; static memory. */
BACKSTAY_API const char* backstay_strerror(int error);

/* The last failure in this thread and what to do; valid until the next call in this thread. */
BACKSTAY_API const char* backstay_error_message(void);

/* "0.1.0" */
BACKSTAY_API const char* backstay_release(void);

#ifdef __cplusplus
}
#endif

#endif
