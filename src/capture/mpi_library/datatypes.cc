#include "capture/mpi_library/datatypes.h"

#include "capture/mpi_library/attributes.h"
#include "capture/mpi_library/names.h"
#include "capture/mpi_library/renew.h"

namespace backstay::mpi {

extern "C" int PMPI_Type_free(void* type);

namespace {

using TypeHandle = abi::Handle<Class::datatype>;

using Part = Reference<Class::datatype>;  // a type that another one is built on

constexpr uint32_t arguments_max = 9;
struct DatatypeMade : Made {
  uint32_t function;              // its constructor
  const char* shape;              // null: MPI gave it
  int length;                     // of arrays
  uint64_t given[arguments_max];  // numbers, and own copies of arrays; of a type nothing
  Kept<Part> parts;               // in the order of the arguments
  int64_t lower_bound, extent;    // of a type that is not MPI's own
  uint64_t unresized;             // what `real` is resized from (renew_extent); else 0
  bool is_committed;
};

Kept<DatatypeMade*> own_types;  // MPI's own that have attributes or another name

bool is_array(char letter) { return letter == 'i' || letter == 'a'; }

DatatypeMade* made_as_type(TypeHandle handle) {
  return static_cast<DatatypeMade*>(made_of<Class::datatype>(handle));
}

void keep_argument(DatatypeMade& made, uint32_t at, uint64_t given) {
  const char letter = made.shape[at];
  const auto length = static_cast<uint64_t>(made.length > 0 ? made.length : 0);
  const auto* const array = reinterpret_cast<const void*>(given);
  if (letter == 'n') {
    made.given[at] = given;
  } else if (letter == 't') {
    made.parts.add(refer_to<Class::datatype>(abi::handle_of_word<TypeHandle>(given)));
  } else if (array == nullptr) {
    made.given[at] = 0;
  } else if (letter == 'T') {
    made.given[at] = given;
    for (uint64_t i = 0; i < length; ++i) {
      made.parts.add(refer_to<Class::datatype>(static_cast<const TypeHandle*>(array)[i]));
    }
  } else {
    made.given[at] = word(keep_bytes(array, length * (letter == 'i' ? 4 : 8)));
  }
}

// The call itself: the first time as each time later. Of what a function does not take, nothing
// reaches it.
int make(const DatatypeMade& made, uint64_t* real) {
  uint64_t words[arguments_max + 1] = {};
  auto* types =
      static_cast<abi::RealElement*>(malloc(sizeof(abi::RealElement) * (made.parts.count + 1)));
  if (types == nullptr) abort();
  for (uint32_t i = 0; i < made.parts.count; ++i) {
    types[i] = static_cast<abi::RealElement>(made.parts[i].real());
  }
  uint32_t at = 0;
  for (; made.shape[at] != 0; ++at) {
    const bool is_type = made.shape[at] == 't';
    const bool is_types = made.shape[at] == 'T' && made.given[at] != 0;
    words[at] = is_type ? types[0] : is_types ? word(types) : made.given[at];
  }
  words[at] = word(real);
  const int result = inside(made.function, words[0], words[1], words[2], words[3], words[4],
                            words[5], words[6], words[7], words[8], words[9]);
  free(types);
  return result;
}

// Each call of MPI_Type_create_f90_* with the same numbers gives the same type.
bool is_of_mpi(uint32_t function) {
  return function == index_MPI_Type_create_f90_integer ||
         function == index_MPI_Type_create_f90_real ||
         function == index_MPI_Type_create_f90_complex;
}

// Open MPI's name of a duplicate has that of its original in it, and a resized type is one too.
void note_name(DatatypeMade& made) {
  if (made.function != index_MPI_Type_dup && made.function != index_MPI_Type_create_resized) return;
  constexpr int bytes = 256;
  char name[bytes] = "";
  int length = 0;
  inside(index_MPI_Type_get_name, made.real, name, &length);
  rename(made.name, name);
}

void note_extent(DatatypeMade& made) {
  inside(index_MPI_Type_get_extent, made.real, &made.lower_bound, &made.extent);
}

// Another MPI may round an extent where this one did not, or hand a resized type's bounds on to
// what is built on it. The program has laid out its memory by what it was told.
void renew_extent(DatatypeMade& made) {
  int64_t lower_bound = 0;
  int64_t extent = 0;
  inside(index_MPI_Type_get_extent, made.real, &lower_bound, &extent);
  if (lower_bound == made.lower_bound && extent == made.extent) return;
  uint64_t resized = 0;
  must(inside(index_MPI_Type_create_resized, made.real, made.lower_bound, made.extent, &resized),
       "a datatype's extent");
  made.unresized = made.real;
  made.real = resized;
}

// What the program has made: it may ask how.
uint64_t constructed(TypeHandle type) {
  const DatatypeMade* made = made_as_type(type);
  const bool is_resized = made != nullptr && made->unresized != 0;
  return is_resized ? made->unresized : abi::real<Class::datatype>(type);
}

int duplicate_attributes(TypeHandle from, TypeHandle* newtype) {
  const Made* old = datatype(from);
  Made* made = made_of<Class::datatype>(*newtype);
  if (old == nullptr || made == nullptr) return 0;
  const int refused = copy_attributes<Class::datatype>(from, old->attributes, made->attributes);
  if (refused == 0) return 0;
  PMPI_Type_free(newtype);
  return raise_error<Class::datatype>(from, refused);
}

int forget_handle(TypeHandle& handle) {
  Slot* slot = abi::slot_of<Class::datatype>(handle);
  detach(slot);
  give_back(slot);
  handle = abi::predefined<Class::datatype>(abi::null<Class::datatype>());
  return 0;
}

}  // namespace

int construct_type(uint32_t function, const char* shape, std::initializer_list<uint64_t> given,
                   int length, void* newtype) {
  auto* made = new_made<DatatypeMade>(Class::datatype, 0);
  made->function = function;
  made->shape = shape;
  made->length = length;
  uint32_t at = 0;
  for (const uint64_t one : given) keep_argument(*made, at++, one);
  uint64_t real = 0;
  const int result = make(*made, &real);
  Made* known = result == 0 && is_of_mpi(function) ? find_made(Class::datatype, real) : nullptr;
  if (result == 0 && known == nullptr) {
    made->real = real;
    made->is_committed = is_of_mpi(function);
    if (!is_of_mpi(function)) note_extent(*made);
    note_name(*made);
    *static_cast<TypeHandle*>(newtype) = abi::is_predefined<Class::datatype>(real)
                                             ? abi::predefined<Class::datatype>(real)
                                             : handle_of_made<Class::datatype>(made);
  } else if (known != nullptr) {
    *static_cast<TypeHandle*>(newtype) =
        abi::handle_of<Class::datatype>(find_slot(Class::datatype, real));
  }
  end_if_unneeded(made);
  return result;
}

Made* datatype(TypeHandle handle) {
  const Slot* slot = abi::slot_of<Class::datatype>(handle);
  if (slot != nullptr) return made_of(slot);
  const uint64_t real = abi::real<Class::datatype>(handle);
  if (abi::is_null<Class::datatype>(real) || !abi::is_predefined<Class::datatype>(real)) {
    return nullptr;
  }
  for (DatatypeMade* one : own_types) {
    if (one->parts[0].own == handle) return one;
  }
  auto* made = static_cast<DatatypeMade*>(calloc(1, sizeof(DatatypeMade)));
  if (made == nullptr) abort();
  made->parts.add({nullptr, handle});
  return own_types.add(made);
}

Made* describe_datatype(uint64_t real) {
  Made* made = find_made(Class::datatype, real);
  return made != nullptr ? made : new_made<DatatypeMade>(Class::datatype, real);
}

void clear_type(Made* made) {
  auto* own = static_cast<DatatypeMade*>(made);
  for (uint32_t at = 0; own->shape != nullptr && own->shape[at] != 0; ++at) {
    if (is_array(own->shape[at])) free(reinterpret_cast<void*>(own->given[at]));
  }
  for (const Part& part : own->parts) unuse(part.made);
  own->parts.clear();
  if (made->real != 0 && own->shape != nullptr) inside(index_MPI_Type_free, &made->real);
  if (own->unresized != 0) inside(index_MPI_Type_free, &own->unresized);
}

void renew_datatypes() {
  for (Made* one = first_made(Class::datatype); one != nullptr; one = one->next) {
    auto* made = static_cast<DatatypeMade*>(one);
    made->real = made->unresized = 0;
    must(make(*made, &made->real), "a datatype");
    if (!is_of_mpi(made->function)) renew_extent(*made);
    const bool is_open = made->is_committed && !is_of_mpi(made->function);
    if (is_open) must(inside(index_MPI_Type_commit, &made->real), "a datatype's commit");
    if (made->name != nullptr) inside(index_MPI_Type_set_name, made->real, made->name);
  }
  for (const DatatypeMade* one : own_types) {
    if (one->name != nullptr) {
      inside(index_MPI_Type_set_name, one->parts[0].real(), one->name);
    }
  }
}

bool is_a_datatype_unknown() {
  for (Made* made = first_made(Class::datatype); made != nullptr; made = made->next) {
    if (static_cast<DatatypeMade*>(made)->shape == nullptr) return true;
  }
  return false;
}

extern "C" {

int PMPI_Type_dup(TypeHandle oldtype, void* newtype) {
  const InCall in_call;
  const int result = construct_type(index_MPI_Type_dup, "t", {word(oldtype)}, 0, newtype);
  if (result != 0) return result;
  return duplicate_attributes(oldtype, static_cast<TypeHandle*>(newtype));
}
BACKSTAY_MPI_NAME(MPI_Type_dup)

int PMPI_Type_commit(void* datatype) {
  const InCall in_call;
  InOut<Class::datatype> datatype_(datatype);
  const int result = inside(index_MPI_Type_commit, datatype_.place());
  datatype_.put();
  if (datatype == nullptr || result != 0) return result;
  DatatypeMade* made = made_as_type(*static_cast<TypeHandle*>(datatype));
  if (made != nullptr) made->is_committed = true;
  return result;
}
BACKSTAY_MPI_NAME(MPI_Type_commit)

// MPI has one reference for all handles of a type, and for what uses it here: it goes with the last
// of them (clear_type).
int PMPI_Type_free(void* type) {
  const InCall in_call;
  auto* handle = static_cast<TypeHandle*>(type);
  Made* made = handle != nullptr ? made_of<Class::datatype>(*handle) : nullptr;
  if (made != nullptr && made->handles > 1) return forget_handle(*handle);
  const int refused =
      made != nullptr ? delete_attributes<Class::datatype>(*handle, made->attributes) : 0;
  if (refused != 0) return raise_error<Class::datatype>(*handle, refused);
  if (made != nullptr && made->uses != 0) return forget_handle(*handle);
  InOut<Class::datatype> type_(type);
  const int result = inside(index_MPI_Type_free, type_.place());
  if (result == 0 && made != nullptr) made->real = 0;
  type_.put();
  return result;
}
BACKSTAY_MPI_NAME(MPI_Type_free)

int PMPI_Type_set_name(TypeHandle type, void* name) {
  const InCall in_call;
  const int result = inside(index_MPI_Type_set_name, abi::real<Class::datatype>(type), name);
  Made* made = result == 0 ? datatype(type) : nullptr;
  if (made != nullptr) rename(made->name, static_cast<const char*>(name));
  return result;
}
BACKSTAY_MPI_NAME(MPI_Type_set_name)

int PMPI_Type_get_envelope(TypeHandle type, void* integers, void* addresses, void* types,
                           void* combiner) {
  const InCall in_call;
  return inside(index_MPI_Type_get_envelope, constructed(type), integers, addresses, types,
                combiner);
}
BACKSTAY_MPI_NAME(MPI_Type_get_envelope)

// MPI gives a reference to each part. Where the program has a handle of it, this library has one.
int PMPI_Type_get_contents(TypeHandle type, int max_integers, int max_addresses, int max_datatypes,
                           void* integers, void* addresses, void* datatypes) {
  const InCall in_call;
  OutArray<Class::datatype> parts(datatypes, max_datatypes);
  const int result = inside(index_MPI_Type_get_contents, constructed(type), max_integers,
                            max_addresses, max_datatypes, integers, addresses, parts.place());
  const DatatypeMade* made = made_as_type(type);
  if (result != 0 || made == nullptr) return result;
  for (uint32_t i = 0; i < made->parts.count && i < static_cast<uint32_t>(max_datatypes); ++i) {
    const Part& part = made->parts[i];
    auto& to = static_cast<TypeHandle*>(datatypes)[i];
    if (part.made == nullptr) {
      to = part.own;
      continue;
    }
    uint64_t given = parts.at(i);
    if (part.made->real == 0) {
      part.made->real = given;
    } else if (!is_of_mpi(static_cast<DatatypeMade*>(part.made)->function)) {
      inside(index_MPI_Type_free, &given);
    }
    to = handle_of_made<Class::datatype>(part.made);
  }
  return result;
}
BACKSTAY_MPI_NAME(MPI_Type_get_contents)

}  // extern "C"

}  // namespace backstay::mpi
