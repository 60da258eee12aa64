/* Streams: for state that a program cannot name and measure all at once, such as trees, lists of
 * particles, or what a library writes out piece by piece.
 *
 *   if (backstay_due()) {
 *     for (each cell) {
 *       backstay_stream_open(name_of(cell), &stream);
 *       while (more) backstay_stream_write(stream, data, bytes);
 *       backstay_stream_close(stream);
 *     }
 *     backstay_checkpoint();                  takes streams, regions and files as one version
 *   }
 *   ...
 *   if (backstay_restart(&version) == BACKSTAY_OK) {
 *     backstay_stream_count(version, &count);
 *     for (i = 0; i < count; ++i) {
 *       backstay_stream_at(version, i, name, sizeof name, &bytes);
 *       backstay_stream_read(version, name, 0, memory_for(bytes), bytes);
 *     }
 *   }
 *
 * A stream is a named row of bytes of one rank and one version. It is the object of section 4.1 of
 * the Sandia report on lightweight storage and overlay networks for application-directed
 * checkpoints (paper 000): a client makes it by itself, without a file and without a word to a
 * server, and its metadata is written once, with that of all others. To open one costs memory for
 * its name. Bytes go straight into the node's pool, and from there to the disk while the program
 * goes on writing.
 *
 * Life. What is written after one checkpoint belongs to the next version that backstay_checkpoint()
 * takes. All streams must be closed by then. It ends them: their names are free again. Nothing is
 * safe before that call returns; backstay_restart(), the end of the session or of the process, and
 * a checkpoint that fails drop what was written since the last one. Versions with streams get
 * copies and parity, become durable, and are checked and removed as all others.
 *
 * Order. Not collective: each rank has its own streams, any number of them, or none. Several may be
 * open, and be written in turn. backstay_due() and all other calls may come in between.
 *
 * Memory. Between calls a rank keeps one buffer of the pool at most, and 16 bytes of its own for
 * each change from one stream to another. A stream may be larger than the pool, and than memory.
 * The pool needs two buffers (pool.buffer_mib) for each rank of the node.
 *
 * Threads, errors and codes are those of backstay.h.
 */
#ifndef BACKSTAY_BACKSTAY_STREAMS_H
#define BACKSTAY_BACKSTAY_STREAMS_H

#include "backstay/backstay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names one stream in this session; 0 is none. Never used again for another. */
typedef uint64_t backstay_stream;

/* Begins a stream. `name`: 1 to 200 bytes of UTF-8, that no other stream of the next version has,
 * and no protected region. Copied. Does not block.
 * Errors: ESTATE, ENULL, EINVALID (the name), EDUPLICATE, ETOOLARGE (the name; more than 1 000 000
 * streams in one version), and that of a write which has failed since the last checkpoint. Those
 * are: ERANKLOST, ENOSPACE, EIO, EPERMISSION, EUNSUPPORTED, EAGENT, EPROTOCOL. */
BACKSTAY_API int backstay_stream_open(const char* name, backstay_stream* stream);

/* Copies `bytes` bytes behind those written before; the memory may be changed at once. `data` may
 * be a CUDA pointer, or NULL where `bytes` is 0. Blocks while the pool is full. After an error
 * other than ESTATE and ENULL all streams of this rank are lost, further calls return the same
 * error, and so does the next backstay_checkpoint(), on all ranks; after it the program may write
 * them again. Errors: ESTATE (the stream is closed, or its checkpoint is over), ENULL, ERANKLOST,
 * ENOSPACE, EIO and EPERMISSION (the disk of a pool that is full; EIO also a GPU), EUNSUPPORTED
 * (the pool has too few buffers), ETOOLARGE (the last version number), EAGENT, EPROTOCOL. */
BACKSTAY_API int backstay_stream_write(backstay_stream stream, const void* data, size_t bytes);

/* Ends a stream. It is safe once the checkpoint that takes it has returned.
 * Errors: ESTATE, and that of a write which has failed since the last checkpoint: ERANKLOST,
 * ENOSPACE, EIO, EPERMISSION, EUNSUPPORTED, ETOOLARGE, EAGENT, EPROTOCOL. */
BACKSTAY_API int backstay_stream_close(backstay_stream stream);

/* How many streams this rank has in a version. If another number of ranks saved it, those of the
 * rank with the same number.
 * Errors: ESTATE, ENULL, ENOTFOUND (no such version or rank), ETOOLARGE, ECORRUPT, ELOST, EFORMAT,
 * EIO, EPERMISSION (it cannot be read), EUNSUPPORTED (saved with larger buffers than the pool has
 * now), EPROTOCOL, EAGENT. */
BACKSTAY_API int backstay_stream_count(uint64_t version, uint64_t* count);

/* Name and length of the stream `index`, from 0, in the order in which they were opened. `name` has
 * room for `name_bytes`: BACKSTAY_NAME_MAX + 1 is always enough.
 * Errors: as backstay_stream_count; ENOTFOUND also if there are not as many. */
BACKSTAY_API int backstay_stream_at(uint64_t version, uint64_t index, char* name, size_t name_bytes,
                                    uint64_t* bytes);

/* The length of one of them, by its name.
 * Errors: as backstay_stream_count; ENOTFOUND also if there is no such stream. */
BACKSTAY_API int backstay_stream_bytes(uint64_t version, const char* name, uint64_t* bytes);

/* Reads `bytes` bytes from `offset` of a stream on, verified; `data` is untouched on failure.
 * Reading in the order of writing asks the agent once for each of its buffers. A whole stream can
 * be read with backstay_read_region() too.
 * Errors: as backstay_stream_count; ENOTFOUND also if there is no such stream, EMISMATCH (it does
 * not have those bytes). */
BACKSTAY_API int backstay_stream_read(uint64_t version, const char* name, uint64_t offset,
                                      void* data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
