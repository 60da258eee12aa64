#include "capture/mpi_library/attributes.h"

#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/datatypes.h"
#include "capture/mpi_library/keyvals.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

// Where the attributes of an object are; null: it is none of MPI's.
template <Class Type>
Kept<Attribute>* attributes_of(abi::Handle<Type> handle) {
  Made* made = nullptr;
  if constexpr (Type == Class::comm) {
    made = communicator(handle);
  } else if constexpr (Type == Class::datatype) {
    made = datatype(handle);
  } else {
    made = made_of<Type>(handle);
  }
  return made != nullptr ? &made->attributes : nullptr;
}

// Numbers of functions. Types have no error handler: that of MPI_COMM_WORLD.
struct Functions {
  uint32_t set, get, remove, raise;
};
template <Class>
constexpr Functions functions;
#define BACKSTAY_FUNCTIONS(class, Class_, judge)                    \
  template <>                                                       \
  constexpr Functions functions<Class::class> = {                   \
      index_MPI_##Class_##_set_attr, index_MPI_##Class_##_get_attr, \
      index_MPI_##Class_##_delete_attr, index_MPI_##judge##_call_errhandler};
BACKSTAY_FUNCTIONS(comm, Comm, Comm)
BACKSTAY_FUNCTIONS(datatype, Type, Comm)
BACKSTAY_FUNCTIONS(win, Win, Win)

uint32_t place_of_keyval(const Kept<Attribute>& all, int keyval) {
  uint32_t at = 0;
  while (at < all.count && all[at].keyval != keyval) ++at;
  return at;
}

template <Class Type>
int set(abi::Handle<Type> handle, int keyval, void* value, Given given = Given::pointer) {
  const InCall in_call;
  Kept<Attribute>* all = attributes_of<Type>(handle);
  if (all == nullptr || find_keyval(Type, keyval) == nullptr) {  // MPI names the mistake
    return inside(functions<Type>.set, abi::real<Type>(handle), abi::keyval_invalid, value);
  }
  const uint32_t at = place_of_keyval(*all, keyval);
  if (at == all->count) {
    use_keyval(keyval);
    all->add({keyval, given, value});
    return 0;
  }
  const int refused = call_delete<Type>(handle, (*all)[at]);
  if (refused != 0) return raise_error<Type>(handle, refused);
  (*all)[at] = {keyval, given, value};
  return 0;
}

template <Class Type>
int remove(abi::Handle<Type> handle, int keyval) {
  const InCall in_call;
  Kept<Attribute>* all = attributes_of<Type>(handle);
  const uint32_t at = all != nullptr ? place_of_keyval(*all, keyval) : 0;
  if (all == nullptr || at == all->count) {
    const bool is_known = all != nullptr && find_keyval(Type, keyval) != nullptr;
    // Nothing is there to be deleted: MPICH is silent about that.
    if (is_known && abi::is_mpich) return 0;
    return inside(functions<Type>.remove, abi::real<Type>(handle), abi::keyval_invalid);
  }
  const int refused = call_delete<Type>(handle, (*all)[at]);
  if (refused != 0) return raise_error<Type>(handle, refused);
  all->remove(place_of_keyval(*all, keyval));
  unuse_keyval(keyval);
  return 0;
}

// MPI's own attributes of communicators are numbers in its memory. The program gets pointers to
// these, which stay right.
struct OwnValue {
  int keyval, value;
};
OwnValue own_values[16];
uint32_t own_values_count = 0;

void* own_value(int keyval, int value) {
  uint32_t at = 0;
  while (at < own_values_count && own_values[at].keyval != keyval) ++at;
  if (at == sizeof own_values / sizeof own_values[0]) return nullptr;
  if (at == own_values_count) ++own_values_count;
  own_values[at] = {keyval, value};
  return &own_values[at].value;
}

template <Class Type>
int get_own(abi::Handle<Type> handle, int keyval, void* value, void* flag, Given as) {
  if (as != Given::pointer) keyval = abi::own_keyval_in_c(keyval);
  const int result = inside(functions<Type>.get, abi::real<Type>(handle), keyval, value, flag);
  if (as != Given::pointer && result == 0 && *static_cast<int*>(flag) != 0) {
    auto* number = static_cast<int64_t*>(value);  // now it is where the number is
    if (Type == Class::win && abi::is_win_base(keyval)) return 0;
    const bool is_long = Type == Class::win && abi::is_win_size(keyval);
    *number = is_long ? *reinterpret_cast<int64_t*>(*number) : *reinterpret_cast<int*>(*number);
    return 0;
  }
  if (Type != Class::comm || result != 0 || *static_cast<int*>(flag) == 0) return result;
  auto** place = static_cast<int**>(value);
  void* own = own_value(keyval, **place);
  if (own != nullptr) *place = static_cast<int*>(own);
  return result;
}

template <Class Type>
int get(abi::Handle<Type> handle, int keyval, void* value, void* flag, Given as = Given::pointer) {
  const InCall in_call;
  if (!is_keyval_of_program(keyval)) return get_own<Type>(handle, keyval, value, flag, as);
  const Kept<Attribute>* all = attributes_of<Type>(handle);
  if (all == nullptr || find_keyval(Type, keyval) == nullptr) {
    return inside(functions<Type>.get, abi::real<Type>(handle), abi::keyval_invalid, value, flag);
  }
  const uint32_t at = place_of_keyval(*all, keyval);
  *static_cast<int*>(flag) = at < all->count ? 1 : 0;
  if (at < all->count) {
    const Attribute& one = (*all)[at];
    *static_cast<void**>(value) = as == Given::pointer ? in_c(one) : one.value;
  }
  return 0;
}

}  // namespace

template <Class Type>
int raise_error(abi::Handle<Type> handle, int code) {
  inside(functions<Type>.raise, Type == Class::datatype ? abi::world() : abi::real<Type>(handle),
         code);
  return code;
}

template <Class Type>
int copy_attributes(abi::Handle<Type> handle, const Kept<Attribute>& from, Kept<Attribute>& to) {
  const uint32_t count = from.count;  // the functions may set others meanwhile
  for (uint32_t i = 0; i < count; ++i) {
    const Attribute one = from[abi::copies_last_first ? count - 1 - i : i];
    void* value = nullptr;
    int flag = 0;
    const int refused = call_copy<Type>(handle, one, &value, &flag);
    if (refused != 0) return refused;
    if (flag == 0) continue;
    use_keyval(one.keyval);
    to.add({one.keyval, one.given, value});
  }
  for (uint32_t i = 0; abi::copies_last_first && i < to.count / 2; ++i) {
    const Attribute one = to[i];
    to[i] = to[to.count - 1 - i];
    to[to.count - 1 - i] = one;
  }
  return 0;
}

template <Class Type>
int delete_attributes(abi::Handle<Type> handle, Kept<Attribute>& all) {
  while (all.count != 0) {
    const int keyval = all[all.count - 1].keyval;
    const int refused = call_delete<Type>(handle, all[all.count - 1]);
    if (refused != 0) return refused;
    const uint32_t at = place_of_keyval(all, keyval);
    if (at == all.count) continue;
    all.remove(at);
    unuse_keyval(keyval);
  }
  return 0;
}

void renew_own_values() {
  for (uint32_t i = 0; i < own_values_count; ++i) {
    int* value = nullptr;
    int flag = 0;
    inside(index_MPI_Comm_get_attr, abi::world(), own_values[i].keyval, &value, &flag);
    if (flag != 0) own_values[i].value = *value;
  }
}

extern "C" {

// MPI_Attr_put, _get and _delete are the same under names of MPI 1.
#define BACKSTAY_ATTRIBUTES(set_name, get_name, delete_name, class)                        \
  int P##set_name(abi::Handle<Class::class> handle, int keyval, void* value) {             \
    return set<Class::class>(handle, keyval, value);                                       \
  }                                                                                        \
  BACKSTAY_MPI_NAME(set_name)                                                              \
  int P##get_name(abi::Handle<Class::class> handle, int keyval, void* value, void* flag) { \
    return get<Class::class>(handle, keyval, value, flag);                                 \
  }                                                                                        \
  BACKSTAY_MPI_NAME(get_name)                                                              \
  int P##delete_name(abi::Handle<Class::class> handle, int keyval) {                       \
    return remove<Class::class>(handle, keyval);                                           \
  }                                                                                        \
  BACKSTAY_MPI_NAME(delete_name)
BACKSTAY_ATTRIBUTES(MPI_Comm_set_attr, MPI_Comm_get_attr, MPI_Comm_delete_attr, comm)
BACKSTAY_ATTRIBUTES(MPI_Attr_put, MPI_Attr_get, MPI_Attr_delete, comm)
BACKSTAY_ATTRIBUTES(MPI_Type_set_attr, MPI_Type_get_attr, MPI_Type_delete_attr, datatype)
BACKSTAY_ATTRIBUTES(MPI_Win_set_attr, MPI_Win_get_attr, MPI_Win_delete_attr, win)

int PMPI_Win_free(void* win) {
  const InCall in_call;
  const auto handle = *static_cast<abi::Handle<Class::win>*>(win);
  Kept<Attribute>* all = attributes_of<Class::win>(handle);
  const int refused = all != nullptr ? delete_attributes<Class::win>(handle, *all) : 0;
  if (refused != 0) return raise_error<Class::win>(handle, refused);
  InOut<Class::win> win_(win);
  const int result = beside(index_MPI_Win_free, win_.place());
  win_.put();
  if (result == 0) let_go(Open::window);
  return result;
}
BACKSTAY_MPI_NAME(MPI_Win_free)

// For Fortran: values are numbers, of 8 bytes where they are given back. The names are MPICH's.
#define BACKSTAY_NUMBERS(name, class)                                                   \
  int MPII_##name##_set_attr(abi::Handle<Class::class> handle, int keyval, void* value, \
                             Given given) {                                             \
    return set<Class::class>(handle, keyval, value, given);                             \
  }                                                                                     \
  int MPII_##name##_get_attr(abi::Handle<Class::class> handle, int keyval, void* value, \
                             void* flag, Given as) {                                    \
    return get<Class::class>(handle, keyval, value, flag, as);                          \
  }
BACKSTAY_NUMBERS(Comm, comm)
BACKSTAY_NUMBERS(Type, datatype)
BACKSTAY_NUMBERS(Win, win)

}  // extern "C"

#define BACKSTAY_INSTANCES(type)                                                              \
  template int copy_attributes<Class::type>(abi::Handle<Class::type>, const Kept<Attribute>&, \
                                            Kept<Attribute>&);                                \
  template int delete_attributes<Class::type>(abi::Handle<Class::type>, Kept<Attribute>&);    \
  template int raise_error<Class::type>(abi::Handle<Class::type>, int);
BACKSTAY_INSTANCES(comm)
BACKSTAY_INSTANCES(datatype)
BACKSTAY_INSTANCES(win)

}  // namespace backstay::mpi
