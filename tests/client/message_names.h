// What a log of a fake agent calls each message.
#pragma once

#include "wire/message.h"

namespace backstay::client::test {

const char* name_of(const wire::Message& message);

}  // namespace backstay::client::test
