#include "capture/mpi_library/slots.h"

#include <string.h>
#include <unistd.h>

namespace backstay::mpi {

Slot slots[slots_max];  // the first one is the hidden communicator's (hidden.h)

namespace {
uint32_t first_free = 0;  // 0: none; slot 0 is never used
uint32_t used = 1;        // those from here on were never taken
}  // namespace

void end_program(const char* why) {
  (void)!write(2, "backstay: ", 10);
  (void)!write(2, why, strlen(why));
  (void)!write(2, "\n", 1);
  _exit(126);
}

Slot* take_slot(Class type, uint64_t real) {
  uint32_t index = first_free;
  if (index != 0) {
    first_free = slots[index].next;
  } else if (used < slots_max) {
    index = used++;
  } else {
    end_program("the program has more than 4 million MPI handles at once");
  }
  slots[index] = Slot{real, static_cast<uint32_t>(type), 0};
  return &slots[index];
}

void give_back(Slot* slot) {
  slot->type = 0;
  slot->real = 0;
  slot->next = first_free;
  first_free = static_cast<uint32_t>(slot - slots);
}

Slot* find_slot(Class type, uint64_t real) {
  for (uint32_t i = 1; i < used; ++i) {
    if (slots[i].real == real && slots[i].type == static_cast<uint32_t>(type)) return &slots[i];
  }
  return nullptr;
}

uint32_t slots_end() { return used; }

}  // namespace backstay::mpi
