// The codes that a function of the C interface may return: those that its comment in backstay.h
// or backstay_streams.h lists (codes_test.cc and stream_codes_test.cc compare them). Another code
// of an agent is a defect, and is reported as one. Any thread; nothing blocks.
#pragma once

#include "base/result.h"

namespace backstay::client {

enum class Call {
  init,
  init_group,
  protect,
  protect_array,
  unprotect,
  checkpoint,
  test,
  wait,
  restart,
  read_region,
  route_file,
  finalize,
  abandon,
  stream_open,
  stream_write,
  stream_close,
  stream_count,
  stream_at,
  stream_bytes,
  stream_read
};

bool may_return(Call call, Code code);

// `error` if the call may return it, else internal with the same message.
Error as_listed(Call call, const Error& error);

}  // namespace backstay::client
