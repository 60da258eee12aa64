/* Loaded into an agent (LD_PRELOAD): it greets other agents with another number of the network's
 * protocol (docs/protocol/network.md, "Handshake"), and takes theirs for another one, as an agent
 * of another release would. */
#include <string.h>
#include <sys/socket.h>

enum { hello_bytes = 128, number_at = 8 };

static int is_hello(const void* data, ssize_t bytes) {
  return bytes >= hello_bytes && memcmp(data, "BKSTYNET", number_at) == 0;
}

ssize_t send(int socket, const void* data, size_t bytes, int flags) {
  char hello[hello_bytes];
  if (!is_hello(data, (ssize_t)bytes)) return sendto(socket, data, bytes, flags, NULL, 0);
  memcpy(hello, data, hello_bytes);
  ++hello[number_at];
  return sendto(socket, hello, hello_bytes, flags, NULL, 0);
}

ssize_t recv(int socket, void* data, size_t bytes, int flags) {
  const ssize_t count = recvfrom(socket, data, bytes, flags, NULL, NULL);
  if (is_hello(data, count)) --((char*)data)[number_at];
  return count;
}
