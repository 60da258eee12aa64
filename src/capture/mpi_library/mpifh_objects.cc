// Groups, attributes, and functions of the program: Open MPI's functions read and write inside of
// the object.
#include "capture/mpi_library/mpifh.h"

extern "C" {
void* PMPI_Comm_f2c(int number);
void* PMPI_Group_f2c(int number);
void* PMPI_Type_f2c(int number);
void* PMPI_Win_f2c(int number);
int PMPI_Group_c2f(void* group);
int PMPI_Op_c2f(void* operation);
int PMPI_Request_c2f(void* request);
int PMPI_Group_difference(void* one, void* other, void* made);
int PMPI_Group_intersection(void* one, void* other, void* made);
int PMPI_Group_union(void* one, void* other, void* made);
int PMPI_Group_excl(void* group, int count, const int* ranks, void* made);
int PMPI_Group_incl(void* group, int count, const int* ranks, void* made);
int PMPI_Group_range_excl(void* group, int count, const int* ranges, void* made);
int PMPI_Group_range_incl(void* group, int count, const int* ranges, void* made);
int PMPI_Grequest_start(void* query, void* done, void* cancel, void* extra, void* request);
int PMPI_Comm_call_errhandler(void* comm, int code);
int MPII_Comm_get_attr(void* handle, int keyval, void* value, int* flag, int as);
int MPII_Type_get_attr(void* handle, int keyval, void* value, int* flag, int as);
int MPII_Win_get_attr(void* handle, int keyval, void* value, int* flag, int as);
void MPII_Grequest_set_lang_f77(void* request);
int backstay_op_create_fortran(void* function, int commutes, void* op);
extern char ompi_mpi_comm_world[];
}

namespace backstay::mpifh {

namespace {

// As attributes are asked for (made.h).
enum : int { as_address_number = 1, as_number = 3 };

void put_group(int result, Handle group, int* number, int* ierror) {
  if (give(ierror, result) == 0) *number = PMPI_Group_c2f(group);
}

}  // namespace

extern "C" {

#define BACKSTAY_TWO_GROUPS(name, NAME, Name)                                                   \
  void ompi_group_##name##_f(int* one, int* other, int* made, int* ierror) {                    \
    Handle group = nullptr;                                                                     \
    const int result = PMPI_Group_##name(PMPI_Group_f2c(*one), PMPI_Group_f2c(*other), &group); \
    put_group(result, group, made, ierror);                                                     \
  }                                                                                             \
  BACKSTAY_MPIFH_NAMES(group_##name, GROUP_##NAME, Group_##name)
BACKSTAY_TWO_GROUPS(difference, DIFFERENCE, difference)
BACKSTAY_TWO_GROUPS(intersection, INTERSECTION, intersection)
BACKSTAY_TWO_GROUPS(union, UNION, union)

#define BACKSTAY_RANKS_OF_GROUP(name, NAME)                                               \
  void ompi_group_##name##_f(int* from, int* count, int* ranks, int* made, int* ierror) { \
    Handle group = nullptr;                                                               \
    const int result = PMPI_Group_##name(PMPI_Group_f2c(*from), *count, ranks, &group);   \
    put_group(result, group, made, ierror);                                               \
  }                                                                                       \
  BACKSTAY_MPIFH_NAMES(group_##name, GROUP_##NAME, Group_##name)
BACKSTAY_RANKS_OF_GROUP(excl, EXCL)
BACKSTAY_RANKS_OF_GROUP(incl, INCL)
BACKSTAY_RANKS_OF_GROUP(range_excl, RANGE_EXCL)
BACKSTAY_RANKS_OF_GROUP(range_incl, RANGE_INCL)

#define BACKSTAY_GET(name, NAME, Name, object, Object)                                       \
  void ompi_##name##_f(int* number, int* keyval, int64_t* value, int* flag, int* ierror) {   \
    const Handle handle = PMPI_##Object##_f2c(*number);                                      \
    give(ierror, MPII_##Object##_get_attr(handle, *keyval, value, flag, as_address_number)); \
  }                                                                                          \
  BACKSTAY_MPIFH_NAMES(name, NAME, Name)
BACKSTAY_GET(comm_get_attr, COMM_GET_ATTR, Comm_get_attr, comm, Comm)
BACKSTAY_GET(type_get_attr, TYPE_GET_ATTR, Type_get_attr, type, Type)
BACKSTAY_GET(win_get_attr, WIN_GET_ATTR, Win_get_attr, win, Win)

// Of MPI 1: the value has 4 bytes.
void ompi_attr_get_f(int* comm, int* keyval, int* value, int* flag, int* ierror) {
  int64_t number = 0;
  *flag = 0;
  give(ierror, MPII_Comm_get_attr(PMPI_Comm_f2c(*comm), *keyval, &number, flag, as_number));
  if (*flag != 0) *value = static_cast<int>(number);
}
BACKSTAY_MPIFH_NAMES(attr_get, ATTR_GET, Attr_get)

void ompi_op_create_f(void* function, int* commutes, int* operation, int* ierror) {
  Handle made = nullptr;
  const int result = backstay_op_create_fortran(function, *commutes != 0 ? 1 : 0, &made);
  if (give(ierror, result) == 0) *operation = PMPI_Op_c2f(made);
}
BACKSTAY_MPIFH_NAMES(op_create, OP_CREATE, Op_create)

void ompi_grequest_start_f(void* query, void* done, void* cancel, void* extra, int* request,
                           int* ierror) {
  Handle made = nullptr;
  if (give(ierror, PMPI_Grequest_start(query, done, cancel, extra, &made)) != 0) return;
  MPII_Grequest_set_lang_f77(made);
  *request = PMPI_Request_c2f(made);
}
BACKSTAY_MPIFH_NAMES(grequest_start, GREQUEST_START, Grequest_start)

// Functions of Fortran would be called by a lower half that does not know them as such.
void ompi_register_datarep_f(char* /*name*/, void* /*read*/, void* /*write*/, void* /*extent*/,
                             void* /*extra*/, int* ierror, int /*length*/) {
  constexpr int err_unsupported_operation = 52;
  PMPI_Comm_call_errhandler(ompi_mpi_comm_world, err_unsupported_operation);
  give(ierror, err_unsupported_operation);
}
BACKSTAY_MPIFH_NAMES(register_datarep, REGISTER_DATAREP, Register_datarep)

}  // extern "C"

}  // namespace backstay::mpifh
