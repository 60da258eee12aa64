// Numbered places where a test may stop a process: BACKSTAY_FAILPOINT="commit.4=kill" makes the
// process kill itself (SIGKILL) when it passes failpoint("commit.4"); "commit.4=kill@3" the third
// time. "=stop" stops it instead (SIGSTOP), so that a test can change the world before it goes on;
// "=hang" blocks the thread that passes it for good, as a disk that does not answer would. "=wait"
// blocks it until the test has opened two named pipes, $BACKSTAY_FAILPOINT_PIPE.reached to read and
// then .go to write: what others do meanwhile comes while it stands there. The variable is read
// once; a failpoint costs one load and a branch if it is unset. Used on control paths only, never
// per chunk on a hot path.
#pragma once

#include <string_view>

namespace backstay {

void failpoint(std::string_view name);

}  // namespace backstay
