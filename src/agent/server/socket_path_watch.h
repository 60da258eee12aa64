// Notices that the name of the agent's socket may have gone: a cleaner of /tmp, or the end of a
// login session that takes its runtime folder along. One thread; never blocks.
#pragma once

#include <string>

#include "base/fd.h"

namespace backstay::agent {

class SocketPathWatch {
 public:
  // Watches the folder of `path`. Where the system refuses, nothing is ever noticed.
  explicit SocketPathWatch(const std::string& path);
  // The folder may be another one by now.
  void renew();

  // Readable when there is news; -1 where nothing can be noticed. take_news() makes it quiet.
  int descriptor() const { return events_.get(); }
  void take_news();

 private:
  std::string folder_;
  Fd events_;
};

}  // namespace backstay::agent
