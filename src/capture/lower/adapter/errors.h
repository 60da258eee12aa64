// Codes of errors. A class has the number that the front gives it. A code that only the back knows
// gets a number of ours, by which its class and text are found again. What the program adds has the
// numbers that the front would give, so that it keeps them.
#pragma once

#include "capture/lower/adapter/abi.h"

namespace backstay::adapter {

int unusual_error_to_front(int code);
int unusual_error_to_back(int code);

inline int error_to_front(int code) { return code == 0 ? 0 : unusual_error_to_front(code); }
inline int error_to_back(int code) { return code == 0 ? 0 : unusual_error_to_back(code); }
inline void written_error(void* to) {
  auto* code = static_cast<int*>(to);
  if (code != nullptr) *code = error_to_front(*code);
}
// The highest number of an error so far, as the front's attribute MPI_LASTUSEDCODE has it.
int last_error();

}  // namespace backstay::adapter
