// The adapter's start: opens the MPI that runs and finds its functions.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <utility>

#include "capture/lower/adapter/handles.h"
#include "capture/lower/adapter/status.h"

namespace backstay::adapter {

void* functions[indices_count];

namespace {

void* library = nullptr;
char why[512];

static_assert(front_is_mpich ? sizeof(FrontStatus) == 20 : sizeof(FrontStatus) == 24);

// What a function is called since MPI-2, where the old one is not there.
constexpr const char* renamed[][2] = {
    {"MPI_Address", "MPI_Get_address"},
    {"MPI_Comm_idup_with_info", "MPIX_Comm_idup_with_info"},
    {"MPI_Errhandler_get", "MPI_Comm_get_errhandler"},
    {"MPI_Errhandler_set", "MPI_Comm_set_errhandler"},
    {"MPI_Type_hindexed", "MPI_Type_create_hindexed"},
    {"MPI_Type_hvector", "MPI_Type_create_hvector"},
    {"MPI_Type_struct", "MPI_Type_create_struct"},
};

void* find_function(const char* name) {
  if (void* found = dlsym(library, name)) return found;
  for (const auto& one : renamed) {
    if (strcmp(one[0], name) == 0) return dlsym(library, one[1]);
  }
  // Open MPI has persistent collective calls as an extension.
  char extension[128];
  snprintf(extension, sizeof extension, "MPIX%s", name + strlen("MPI"));
  return dlsym(library, extension);
}

template <size_t Index>
int missing() {
  return refuse(Index);
}

template <size_t... Index>
void fill(std::index_sequence<Index...>) {
  void* const otherwise[] = {reinterpret_cast<void*>(&missing<Index>)...};
  for (size_t i = 0; i < indices_count; ++i) {
    void* found = find_function(function_names[i]);
    functions[i] = found != nullptr ? found : otherwise[i];
  }
}

// What the adapter takes to be the same in both.
bool are_layouts_known() {
  constexpr Number same[] = {number_UNDEFINED, number_DISPLACEMENT_CURRENT};
  for (const Number one : same) {
    if (front.numbers[one] != back.numbers[one]) return false;
  }
  return front.bottom == back.bottom && front.argv_null == back.argv_null &&
         front.errcodes_ignore == back.errcodes_ignore &&
         front.status_bytes == sizeof(FrontStatus) && back.status_bytes == sizeof(BackStatus) &&
         front.source_at == offsetof(FrontStatus, source) &&
         back.source_at == offsetof(BackStatus, source) &&
         front.error_at == offsetof(FrontStatus, error) &&
         back.error_at == offsetof(BackStatus, error);
}

#ifdef BACKSTAY_FRONT_MPICH
int unweighted, weights_empty, all_variables;
#else
// MPICH has these addresses in variables.
void* address_in(const char* variable) {
  void** const found = static_cast<void**>(dlsym(library, variable));
  return found != nullptr ? *found : nullptr;
}
#endif

}  // namespace

void* find_in_back(const char* symbol) { return dlsym(library, symbol); }

int refuse(uint32_t index) {
  dprintf(2,
          "backstay: the program calls %s, which it cannot do over %s: start it with the launcher "
          "of %s\n",
          function_names[index], back.name, front.name);
  const int code = back.numbers[number_ERR_UNSUPPORTED_OPERATION];
  const uint64_t world = front_of_row(handle_COMM_WORLD);
#ifdef BACKSTAY_FRONT_MPICH
  const auto handle = static_cast<uint32_t>(world);
#else
  void* const handle = reinterpret_cast<void*>(world);
#endif
  call<int>(index_MPI_Comm_call_errhandler, to_back<Class::comm>(handle), code);
  return error_to_front(code);
}

extern "C" {
#pragma GCC visibility push(default)

// `mpi`: path of the back's library; null: the default search finds it. Null: all is well. Else why
// not.
const char* backstay_adapter_open(const char* mpi) {
  // Global, as Open MPI's plug-ins look there.
  library = dlopen(mpi != nullptr ? mpi : back.library, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return dlerror();
  if (!are_layouts_known()) return "its ABI is not the one that this adapter was built for";
  const char* missed = learn_handles();
  if (missed != nullptr) {
    snprintf(why, sizeof why, "%s lacks %s", back.library, missed);
    return why;
  }
  fill(std::make_index_sequence<indices_count>());
  return nullptr;
}

// In place of dlsym, for variables of the front.
#ifdef BACKSTAY_FRONT_MPICH
void* const MPI_UNWEIGHTED = &unweighted;
void* const MPI_WEIGHTS_EMPTY = &weights_empty;
void* const MPI_T_PVAR_ALL_HANDLES = &all_variables;

void* backstay_adapter_find(const char* symbol) {
  struct Variable {
    const char* name;
    const void* place;
  };
  static const Variable all[] = {{"MPI_UNWEIGHTED", &MPI_UNWEIGHTED},
                                 {"MPI_WEIGHTS_EMPTY", &MPI_WEIGHTS_EMPTY},
                                 {"MPI_T_PVAR_ALL_HANDLES", &MPI_T_PVAR_ALL_HANDLES}};
  for (const Variable& one : all) {
    if (strcmp(one.name, symbol) == 0) return const_cast<void*>(one.place);
  }
  return nullptr;
}
#else
void* backstay_adapter_find(const char* symbol) {
  for (int row = 0; row < handles_count; ++row) {
    const char* object = front.handles[row].object;
    if (object != nullptr && strcmp(object, symbol) == 0) {
      return reinterpret_cast<void*>(front_of_row(row));
    }
  }
  return nullptr;
}
#endif

#pragma GCC visibility pop
}

#ifdef BACKSTAY_FRONT_MPICH
void* weights_to_back(void* weights) {
  if (weights == &unweighted) return back.unweighted;
  return weights == &weights_empty ? back.weights_empty : weights;
}
void* variables_to_back(void* handle) {
  return handle != &all_variables ? handle : reinterpret_cast<void*>(-1);
}
#else
void* weights_to_back(void* weights) {
  if (weights == front.unweighted) return address_in("MPI_UNWEIGHTED");
  if (weights != front.weights_empty) return weights;
  return address_in("MPI_WEIGHTS_EMPTY");
}
void* variables_to_back(void* handle) {
  return handle != reinterpret_cast<void*>(-1) ? handle : address_in("MPI_T_PVAR_ALL_HANDLES");
}
#endif

}  // namespace backstay::adapter
