// Questions as they come over a socket, and answers (capture/files/collect.h).
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "capture/files/collect.h"

namespace backstay::files {

struct Asked {
  Question question;
  std::vector<Fd> descriptors;  // as many as handed_with() says
};

// Blocks for the one packet. Errors: agent_lost (the other end is gone), protocol.
Result<Asked> receive_question(int from);
// False: the process that asked is gone.
bool send_answer(int to, Said said, const std::string& words = "");
bool send_done(int to, int error, std::uint64_t version = 0);
// The other end is closed.
bool has_left(int socket);

}  // namespace backstay::files
