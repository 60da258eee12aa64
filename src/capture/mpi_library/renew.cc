#include "capture/mpi_library/renew.h"

#include <stdio.h>

#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/communicators.h"
#include "capture/mpi_library/datatypes.h"
#include "capture/mpi_library/leftovers.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/operations.h"

namespace backstay::mpi {

namespace {

template <typename Renew>
void renew_class(Class type, Renew renew) {
  for (Made* made = first_made(type); made != nullptr; made = made->next) made->real = renew(made);
}

void renew_slots() {
  for (uint32_t i = 1; i < slots_end(); ++i) {
    const Made* made = slots[i].type != 0 ? made_of_slot[i] : nullptr;
    if (made != nullptr) slots[i].real = made->real;
  }
}

// A communicator keeps the error handler that the program has freed.
void free_unowned_error_handlers() {
  for (Made* made = first_made(Class::errhandler); made != nullptr; made = made->next) {
    uint64_t real = made->real;
    if (made->handles == 0) inside(index_MPI_Errhandler_free, &real);
  }
}

const char* open_of(Class type) {
  switch (type) {
    case Class::win: return "an MPI window is open";
    case Class::file: return "an MPI file is open";
    case Class::session: return "an MPI session is open";
    default: return nullptr;
  }
}

bool is_a_communicator_foreign() {
  for (Made* made = first_made(Class::comm); made != nullptr; made = made->next) {
    if (static_cast<CommunicatorMade*>(made)->is_foreign()) return true;
  }
  return false;
}

}  // namespace

void must(int code, const char* what) {
  if (code == 0) return;
  char text[1024] = "";
  int length = 0;
  inside(index_MPI_Error_string, code, text, &length);
  char why[1280];
  snprintf(why, sizeof why, "the restart fails: the MPI library cannot make %s again: %s", what,
           text);
  end_program(why);
}

Made* describe(Class type, uint64_t real) {
  switch (type) {
    case Class::comm: return describe_communicator(real);
    case Class::group: return describe_group(real);
    case Class::info: return describe_info(real);
    case Class::datatype: return describe_datatype(real);
    case Class::errhandler: return describe_error_handler(real);
    default: return new_made<Made>(type, real);
  }
}

void renew_handles() {
  forget_world();
  let_own_errors_return();  // MPI would end the program at the first one
  renew_class(Class::group, renew_group);
  renew_class(Class::info, renew_info);
  renew_datatypes();
  renew_class(Class::op, renew_operation);
  renew_class(Class::errhandler, renew_error_handler);
  renew_communicators();
  renew_own_communicators();
  free_unowned_error_handlers();
  renew_slots();
  renew_own_values();
  renew_error_codes();
  renew_buffer();
}

const char* why_not_renewable() {
  for (uint32_t i = 1; i < slots_end(); ++i) {
    const char* why = open_of(static_cast<Class>(slots[i].type));
    if (why != nullptr) return why;
  }
  if (is_a_communicator_foreign()) {
    return "a communicator has processes of another MPI_COMM_WORLD";
  }
  if (is_a_datatype_unknown()) return "the program has a datatype that MPI itself made";
  if (is_an_error_handler_unknown()) return "the program has an error handler that MPI gave";
  return nullptr;
}

}  // namespace backstay::mpi
