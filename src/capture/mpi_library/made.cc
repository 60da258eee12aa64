#include "capture/mpi_library/made.h"

#include "capture/mpi_library/keyvals.h"

namespace backstay::mpi {

Made* made_of_slot[slots_max];

namespace {

struct List {
  Made* first;
  Made* last;
};
List lists[16];
List& list_of(Class type) { return lists[static_cast<uint32_t>(type)]; }

// Those that nothing needs, by `next`. A chain of types that are built on each other may be long,
// so it is no recursion.
Made* unneeded = nullptr;
bool is_ending = false;

void unlink(Made* made) {
  List& list = list_of(made->type);
  (made->before != nullptr ? made->before->next : list.first) = made->next;
  (made->next != nullptr ? made->next->before : list.last) = made->before;
}

void clear(Made* made) {
  if (made->type == Class::datatype) clear_type(made);
  if (made->type == Class::comm) clear_communicator(made);
  if (made->type == Class::group) clear_group(made);
  if (made->type == Class::info) clear_info(made);
  for (const Attribute& one : made->attributes) unuse_keyval(one.keyval);
  made->attributes.clear();
  free(made->name);
  free(made);
}

}  // namespace

Made* begin_made(Class type, uint64_t real, uint64_t bytes) {
  auto* made = static_cast<Made*>(calloc(1, bytes));
  if (made == nullptr) abort();
  made->type = type;
  made->real = real;
  List& list = list_of(type);
  made->before = list.last;
  (list.last != nullptr ? list.last->next : list.first) = made;
  list.last = made;
  return made;
}

Made* first_made(Class type) { return list_of(type).first; }

Made* find_made(Class type, uint64_t real) {
  for (Made* made = list_of(type).last; made != nullptr; made = made->before) {
    if (made->real == real) return made;
  }
  return nullptr;
}

void end_if_unneeded(Made* made) {
  if (made->handles != 0 || made->uses != 0) return;
  unlink(made);
  made->next = unneeded;
  unneeded = made;
  if (is_ending) return;
  is_ending = true;
  while (unneeded != nullptr) {
    Made* one = unneeded;
    unneeded = one->next;
    clear(one);
  }
  is_ending = false;
}

void unuse(Made* made) {
  if (made == nullptr) return;
  --made->uses;
  end_if_unneeded(made);
}

void attach(Slot* slot, Made* made) {
  made_of(slot) = made;
  ++made->handles;
}

void detach(Slot* slot) {
  Made* made = made_of(slot);
  if (made == nullptr) return;
  made_of(slot) = nullptr;
  --made->handles;
  end_if_unneeded(made);
}

void rename(char*& name, const char* to) {
  free(name);
  name = to[0] != 0 ? keep_text(to) : nullptr;
}

}  // namespace backstay::mpi
