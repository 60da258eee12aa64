/* For libraries that start a session on behalf of a launcher (src/capture/mpi). Not installed. */
#ifndef BACKSTAY_CLIENT_LAUNCHER_H
#define BACKSTAY_CLIENT_LAUNCHER_H

#include "backstay/backstay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `message` what backstay_error_message() says in this thread. Returns `code`. */
BACKSTAY_API int backstay_launcher_failed(int code, const char* message);

#ifdef __cplusplus
}
#endif

#endif
