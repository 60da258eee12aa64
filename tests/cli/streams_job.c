/* A program of one process with an array and streams: streams_job STREAMS VERSIONS.
 *
 * Stream "cell I" of version V holds I * 300 times the byte V + I (cell 0 is empty), written in
 * turn with the next one. Waits until the last version is local. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstay/backstay.h"
#include "backstay/backstay_streams.h"

static void must(int code, const char* what) {
  if (code == BACKSTAY_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, backstay_strerror(code), backstay_error_message());
  exit(3);
}

static void write_streams(int streams, int version) {
  backstay_stream* open = calloc((size_t)streams, sizeof *open);
  char name[32], piece[100];
  for (int i = 0; i < streams; ++i) {
    snprintf(name, sizeof name, "cell %d", i);
    must(backstay_stream_open(name, &open[i]), "open");
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < streams; ++i) {
      memset(piece, version + i, sizeof piece);
      for (int part = 0; part < i; ++part)
        must(backstay_stream_write(open[i], piece, sizeof piece), "write");
    }
  }
  for (int i = 0; i < streams; ++i) must(backstay_stream_close(open[i]), "close");
  free(open);
}

int main(int count, char** words) {
  double u[100] = {0};
  if (count != 3) return 2;
  must(backstay_init(NULL), "init");
  must(backstay_protect("u", u, 100, BACKSTAY_DOUBLE), "protect");
  for (int version = 1; version <= atoi(words[2]); ++version) {
    write_streams(atoi(words[1]), version);
    must(backstay_checkpoint(), "checkpoint");
  }
  must(backstay_wait(backstay_version(), BACKSTAY_LOCAL, 60), "wait");
  must(backstay_finalize(), "finalize");
  return 0;
}
