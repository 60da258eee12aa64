#include "capture/lower/adapter/texts.h"

#include "capture/lower/adapter/arguments.h"

namespace backstay::adapter {

extern "C" {
#pragma GCC visibility push(default)

int MPI_Get_processor_name(char* name, int* length) {
  OutText text(name, length, number_MAX_PROCESSOR_NAME);
  return text.put(call<int>(index_MPI_Get_processor_name, text.place(), text.length()));
}

int MPI_Get_library_version(char* version, int* length) {
  OutText text(version, length, number_MAX_LIBRARY_VERSION_STRING);
  return text.put(call<int>(index_MPI_Get_library_version, text.place(), text.length()));
}

#define BACKSTAY_NAME(name, class)                                                            \
  int name(Front<Class::class> handle, char* to, int* length) {                               \
    OutText text(to, length, number_MAX_OBJECT_NAME);                                         \
    return text.put(                                                                          \
        call<int>(index_##name, to_back<Class::class>(handle), text.place(), text.length())); \
  }
BACKSTAY_NAME(MPI_Comm_get_name, comm)
BACKSTAY_NAME(MPI_Type_get_name, datatype)
BACKSTAY_NAME(MPI_Win_get_name, win)

int MPI_Open_port(Front<Class::info> info, char* name) {
  OutText text(name, nullptr, number_MAX_PORT_NAME);
  return text.put(call<int>(index_MPI_Open_port, to_back<Class::info>(info), text.place()));
}

int MPI_Lookup_name(const char* service, Front<Class::info> info, char* name) {
  OutText text(name, nullptr, number_MAX_PORT_NAME);
  return text.put(
      call<int>(index_MPI_Lookup_name, service, to_back<Class::info>(info), text.place()));
}

int MPI_Info_get_nthkey(Front<Class::info> info, int n, char* key) {
  OutText text(key, nullptr, number_MAX_INFO_KEY);
  return text.put(
      call<int>(index_MPI_Info_get_nthkey, to_back<Class::info>(info), n, text.place()));
}

int MPI_File_get_view(Front<Class::file> file, int64_t* place, void* element, void* type,
                      char* name) {
  OutHandle<Class::datatype> element_(element);
  OutHandle<Class::datatype> type_(type);
  OutText text(name, nullptr, number_MAX_DATAREP_STRING);
  const int result = call<int>(index_MPI_File_get_view, to_back<Class::file>(file), place,
                               element_.place(), type_.place(), text.place());
  element_.put();
  type_.put();
  return text.put(result);
}

#pragma GCC visibility pop
}

}  // namespace backstay::adapter
