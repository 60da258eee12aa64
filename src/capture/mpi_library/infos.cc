#include "capture/mpi_library/infos.h"

#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

namespace {

constexpr int key_bytes_max = 256;  // of both ABIs, with its end

KeyValue* find_key(const KeyValues& all, const char* key) {
  for (KeyValue& one : all) {
    if (strcmp(one.key, key) == 0) return &one;
  }
  return nullptr;
}

void free_both(const KeyValue& one) {
  free(one.key);
  free(one.value);
}

// What a real info object has that no call of the program filled in.
void read_key(uint64_t real, int at, KeyValues& to) {
  char key[key_bytes_max] = "";
  int length = 0;
  int found = 0;
  inside(index_MPI_Info_get_nthkey, real, at, key);
  inside(index_MPI_Info_get_valuelen, real, key, &length, &found);
  if (found == 0) return;
  auto* value = static_cast<char*>(malloc(static_cast<uint64_t>(length) + 1));
  if (value == nullptr) abort();
  inside(index_MPI_Info_get, real, key, length, value, &found);
  if (found != 0) set_key(to, key, value);
  free(value);
}

}  // namespace

void set_key(KeyValues& all, const char* key, const char* value) {
  KeyValue* one = find_key(all, key);
  if (one == nullptr) {
    all.add({keep_text(key), keep_text(value)});
    return;
  }
  free(one->value);
  one->value = keep_text(value);
}

void merge(KeyValues& all, const KeyValues& more) {
  for (const KeyValue& one : more) set_key(all, one.key, one.value);
}

void clear(KeyValues& all) {
  for (const KeyValue& one : all) free_both(one);
  all.clear();
}

Made* describe_info(uint64_t real) {
  auto* made = new_made<InfoMade>(Class::info, real);
  int count = 0;
  inside(index_MPI_Info_get_nkeys, real, &count);
  for (int i = 0; i < count; ++i) read_key(real, i, made->all);
  return made;
}

uint64_t make_info(const KeyValues& all) {
  uint64_t real = 0;
  must(inside(index_MPI_Info_create, &real), "an info object");
  for (const KeyValue& one : all) {
    must(inside(index_MPI_Info_set, real, one.key, one.value), "a key of an info object");
  }
  return real;
}

uint64_t renew_info(const Made* made) { return make_info(static_cast<const InfoMade*>(made)->all); }

void clear_info(Made* made) { clear(static_cast<InfoMade*>(made)->all); }

extern "C" {

int PMPI_Info_set(abi::Handle<Class::info> handle, void* key, void* value) {
  const InCall in_call;
  const int result = inside(index_MPI_Info_set, abi::real<Class::info>(handle), key, value);
  InfoMade* made = result == 0 ? info(handle) : nullptr;
  if (made != nullptr) {
    set_key(made->all, static_cast<const char*>(key), static_cast<const char*>(value));
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Info_set)

int PMPI_Info_delete(abi::Handle<Class::info> handle, void* key) {
  const InCall in_call;
  const int result = inside(index_MPI_Info_delete, abi::real<Class::info>(handle), key);
  InfoMade* made = result == 0 ? info(handle) : nullptr;
  const KeyValue* one =
      made != nullptr ? find_key(made->all, static_cast<const char*>(key)) : nullptr;
  if (one != nullptr) {
    free_both(*one);
    made->all.remove(static_cast<uint32_t>(one - made->all.begin()));
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Info_delete)

}  // extern "C"

}  // namespace backstay::mpi
