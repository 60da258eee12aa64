// What the store's messages do not do in their header: their special members are here once, as
// compilers take long over these variants.
#include "agent/disk/store.h"

namespace backstay::agent {

Command::Command() = default;
Command::Command(const Command& other) = default;
Command::Command(Command&& other) noexcept = default;
Command& Command::operator=(const Command& other) = default;
Command& Command::operator=(Command&& other) noexcept = default;
Command::~Command() = default;

Event::Event(const Event& other) = default;
Event::Event(Event&& other) noexcept = default;
Event& Event::operator=(const Event& other) = default;
Event& Event::operator=(Event&& other) noexcept = default;
Event::~Event() = default;

}  // namespace backstay::agent
