/* Counts its own lives: each start brings the count back, adds one and saves it. */
#include <backstay/backstay.h>
#include <stdio.h>

static int failed(const char* what, int code) {
  fprintf(stderr, "%s: %s: %s\n", what, backstay_strerror(code), backstay_error_message());
  return 1;
}

int main(void) {
  int64_t lives = 0;
  int code = backstay_init(NULL);
  if (code != BACKSTAY_OK) return failed("init", code);
  if ((code = backstay_protect("lives", &lives, 1, BACKSTAY_INT64)) != 0)
    return failed("protect", code);
  code = backstay_restart(NULL);
  if (code != BACKSTAY_OK && code != BACKSTAY_ENONE) return failed("restart", code);
  lives++;
  if ((code = backstay_checkpoint()) != 0) return failed("checkpoint", code);
  if ((code = backstay_wait(backstay_version(), BACKSTAY_LOCAL, 60)) != 0)
    return failed("wait", code);
  if ((code = backstay_finalize()) != 0) return failed("finalize", code);
  printf("lives %d\n", (int)lives);
  return 0;
}
