/* Makes operations, info objects, error handlers and attributes, has them renewed, and says all
 * that can be seen of them: the lines must be those of a run without renewals. */
#include "renewing.h"

/* --- operations */

static int called;
static void add_twice(void* in, void* inout, int* count, MPI_Datatype* type) {
  called += *type == MPI_INT;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += 2 * ((int*)in)[i];
}
static void first_of_two(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  memcpy(inout, in, (size_t)*count * sizeof(int));
}

static void operations(void) {
  MPI_Op twice, first, freed;
  int commutes = -1, other = -1, sum = 0, chosen = -1, local = 5;
  MPI_Op_create(add_twice, 0, &freed);
  MPI_Op_create(add_twice, 1, &twice);
  MPI_Op_create(first_of_two, 0, &first);
  MPI_Op_free(&freed);
  renew(0);
  MPI_Op_commutative(twice, &commutes);
  MPI_Op_commutative(first, &other);
  MPI_Reduce_local(&rank, &local, 1, MPI_INT, twice);
  MPI_Allreduce(&rank, &chosen, 1, MPI_INT, first, MPI_COMM_WORLD);
  MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  say("operations: %d %d, local %d, first %d, sum %d, called %d", commutes, other, local, chosen,
      sum, called > 0);
  MPI_Op_free(&twice);
  MPI_Op_free(&first);
}

/* --- info */

static void say_info(const char* what, MPI_Info info) {
  int count = 0, found = 0;
  char key[MPI_MAX_INFO_KEY], value[256];
  MPI_Info_get_nkeys(info, &count);
  for (int i = 0; i < count; ++i) {
    MPI_Info_get_nthkey(info, i, key);
    MPI_Info_get(info, key, 255, value, &found);
    say("%s: %s is '%s' %d", what, key, value, found);
  }
}

static void infos(void) {
  MPI_Info info, copy, empty;
  char key[16];
  MPI_Info_create(&info);
  MPI_Info_create(&empty);
  for (int i = 0; i < 12; ++i) {
    snprintf(key, sizeof key, "key %d", i);
    MPI_Info_set(info, key, i % 3 ? "a value" : "another");
  }
  MPI_Info_delete(info, "key 4");
  MPI_Info_set(info, "key 2", "changed");
  MPI_Info_dup(info, &copy);
  MPI_Info_set(copy, "of the copy", "x");
  MPI_Info_delete(info, "key 11");
  renew(0);
  say_info("info", info);
  say_info("copy", copy);
  say_info("empty", empty);
  say_info("environment", MPI_INFO_NULL == info ? info : empty);
  MPI_Info_free(&info);
  MPI_Info_free(&copy);
  MPI_Info_free(&empty);
}

/* Only what the program itself asked for: an MPI may have more hints of its own. */
static void say_hint(const char* what, MPI_Comm comm) {
  MPI_Info info;
  char value[64] = "";
  int found = 0;
  MPI_Comm_get_info(comm, &info);
  MPI_Info_get(info, "mpi_assert_no_any_tag", 63, value, &found);
  say("%s: hint '%s' %d", what, value, found);
  MPI_Info_free(&info);
}

static void hints(void) {
  MPI_Comm one, two, three;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_set_info(one, info);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &two);
  MPI_Comm_dup(one, &three);
  renew(0);
  say_hint("set", one);
  say_hint("given", two);
  say_hint("copied", three);
  MPI_Info_free(&info);
  MPI_Comm_free(&one);
  MPI_Comm_free(&two);
  MPI_Comm_free(&three);
}

/* --- error handlers */

static void on_error(MPI_Comm* comm, int* code, ...) {
  int class = 0, size = 0;
  MPI_Error_class(*code, &class);
  MPI_Comm_size(*comm, &size);
  say("handler: class %d of a communicator of %d, world %d", class, size, *comm == MPI_COMM_WORLD);
}
static void on_other_error(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  say("other handler");
}
static void provoke(const char* what, MPI_Comm comm) {
  say("%s", what);
  int class = 0, code = MPI_Send(&rank, 1, MPI_INT, ranks + 7, 0, comm);
  MPI_Error_class(code, &class);
  say("%s: class %d", what, class);
}

static void error_handlers(void) {
  MPI_Errhandler first, other, got, again;
  MPI_Comm one, two, three, four;
  MPI_Comm_create_errhandler(on_error, &first);
  MPI_Comm_create_errhandler(on_other_error, &other);
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_set_errhandler(one, first);
  MPI_Comm_dup(one, &two); /* it inherits */
  MPI_Comm_dup(MPI_COMM_WORLD, &three);
  MPI_Comm_set_errhandler(three, other);
  MPI_Errhandler_free(&other); /* three keeps it */
  MPI_Comm_dup(MPI_COMM_WORLD, &four);
  MPI_Comm_set_errhandler(four, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, first);
  renew(0);
  provoke("world", MPI_COMM_WORLD);
  provoke("one", one);
  provoke("two", two);
  provoke("three", three);
  provoke("four", four);
  MPI_Comm_get_errhandler(three, &got);
  renew(0);
  MPI_Comm_set_errhandler(four, got);
  provoke("four, changed", four);
  MPI_Comm_get_errhandler(two, &again);
  say("two's is the first: %d, and its number: %d", again == first,
      MPI_Errhandler_c2f(again) == MPI_Errhandler_c2f(first));
  MPI_Errhandler_free(&again);
  say("freed: %d", again == MPI_ERRHANDLER_NULL && first != MPI_ERRHANDLER_NULL);
  MPI_Comm_set_errhandler(three, first);
  provoke("three, changed", three);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &other);
  say("self's is fatal: %d", other == MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  renew(0);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&first);
  provoke("two, later", two);
  MPI_Comm_free(&one);
  renew(0);
  provoke("four, later", four);
  MPI_Comm_free(&two);
  MPI_Comm_free(&three);
  MPI_Comm_free(&four);
}

/* --- attributes */

static int copy_value(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  say("copy of %d, %d, of a communicator of %d", *(int*)in, *(int*)extra, size);
  (void)key;
  *(void**)out = in;
  *flag = *(int*)in % 2;
  return MPI_SUCCESS;
}
static int delete_value(MPI_Comm comm, int key, void* value, void* extra) {
  int size = 0;
  (void)key;
  MPI_Comm_size(comm, &size);
  say("delete of %d, %d, of a communicator of %d", *(int*)value, *(int*)extra, size);
  return MPI_SUCCESS;
}
static int copy_of_type(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
  (void)type, (void)key, (void)extra;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_of_type(MPI_Datatype type, int key, void* value, void* extra) {
  int size = 0;
  (void)key, (void)extra;
  MPI_Type_size(type, &size);
  say("delete of type's %d, size %d", *(int*)value, size);
  return MPI_SUCCESS;
}
static int refuse(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  return MPI_ERR_OTHER;
}

static void say_attribute(const char* what, MPI_Comm comm, int key) {
  int* value = NULL;
  int flag = 0;
  MPI_Comm_get_attr(comm, key, &value, &flag);
  say("%s: attribute %d", what, flag ? *value : -1);
}

static void attributes(void) {
  int keys[3], kept, refused, extra[3] = {10, 20, 30}, values[4] = {1, 2, 3, 4}, flag = 0;
  int* bound = NULL;
  MPI_Comm one, two;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_create_keyval(copy_value, delete_value, &keys[i], &extra[i]);
  }
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &kept, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &refused, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  for (int i = 0; i < 3; ++i) MPI_Comm_set_attr(one, keys[i], &values[i]);
  MPI_Comm_set_attr(one, kept, &values[3]);
  MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], &values[0]);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  renew(0);
  say("bound %d", *bound);
  MPI_Comm_dup(one, &two);
  renew(0);
  for (int i = 0; i < 3; ++i) say_attribute("one", one, keys[i]);
  for (int i = 0; i < 3; ++i) say_attribute("two", two, keys[i]);
  say_attribute("two", two, kept);
  MPI_Comm_set_attr(two, keys[0], &values[3]);
  MPI_Comm_delete_attr(two, keys[2]);
  MPI_Comm_free_keyval(&keys[1]);
  say("freed: %d", keys[1] == MPI_KEYVAL_INVALID);
  MPI_Comm_free(&two);
  MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
  MPI_Comm_set_attr(one, refused, &values[0]);
  say("refused: %d", MPI_Comm_delete_attr(one, refused) != MPI_SUCCESS);
  say("no keyval: %d", MPI_Comm_set_attr(one, MPI_KEYVAL_INVALID, NULL) != MPI_SUCCESS);
  for (int i = 0; i < 3; i += 2) MPI_Comm_delete_attr(one, keys[i]);
}

static void attributes_of_types(void) {
  int key, values[2] = {2, 3}, flag = 0, *got = NULL;
  MPI_Datatype type, copy;
  MPI_Type_create_keyval(copy_of_type, delete_of_type, &key, NULL);
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_set_attr(type, key, &values[1]);
  MPI_Type_set_attr(MPI_INT, key, &values[0]);
  MPI_Type_dup(type, &copy);
  renew(0);
  MPI_Type_get_attr(copy, key, &got, &flag);
  say("type: %d %d", flag, *got);
  MPI_Type_get_attr(MPI_INT, key, &got, &flag);
  say("MPI_INT: %d %d", flag, *got);
  MPI_Type_delete_attr(MPI_INT, key);
  MPI_Type_free(&copy); /* Open MPI would keep the other one's attribute as long as this one */
  MPI_Type_free(&type);
  MPI_Type_free_keyval(&key);
}

/* --- Fortran's numbers */

static void fortran_numbers(void) {
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_contiguous(2, MPI_INT, &type);
  const MPI_Fint number = MPI_Comm_c2f(comm), other = MPI_Type_c2f(type);
  renew(0);
  int size = 0;
  MPI_Type_size(MPI_Type_f2c(other), &size);
  say("Fortran: %d %d, size %d", MPI_Comm_f2c(number) == comm, MPI_Comm_c2f(comm) == number, size);
  say("Fortran's own: %d %d %d", MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD,
      MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE,
      MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_NULL)) == MPI_COMM_NULL);
  say("Fortran's number of the world: %x", (unsigned)MPI_Comm_c2f(MPI_COMM_WORLD));
  MPI_Comm_free(&comm);
  MPI_Type_free(&type);
}

/* --- of windows, files and requests: no restart renews these, and their functions are called */

static void on_window_error(MPI_Win* win, int* code, ...) {
  MPI_Group group;
  int size = 0;
  (void)code;
  MPI_Win_get_group(*win, &group);
  MPI_Group_size(group, &size);
  MPI_Group_free(&group);
  say("handler of a window of %d", size);
}
static void on_file_error(MPI_File* file, int* code, ...) {
  (void)code;
  say("handler of a file: none %d", *file == MPI_FILE_NULL);
}
static int delete_of_window(MPI_Win win, int key, void* value, void* extra) {
  (void)win, (void)key, (void)extra;
  say("delete of a window's %d", *(int*)value);
  return MPI_SUCCESS;
}

static void files(void) {
  MPI_Errhandler of_file;
  MPI_File file;
  MPI_File_create_errhandler(on_file_error, &of_file);
  MPI_File_set_errhandler(MPI_FILE_NULL, of_file);
  MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&of_file);
}

static void windows(void) {
  int key, value = 7, *memory = NULL;
  MPI_Win win;
  MPI_Errhandler of_window;
  if (ranks == 1) return; /* Open MPI has none then */
  MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
  memset(memory, 0, 64);
  MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_create_errhandler(on_window_error, &of_window);
  MPI_Win_set_errhandler(win, of_window);
  MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_of_window, &key, NULL);
  MPI_Win_set_attr(win, key, &value);
  say_why("with a window");
  MPI_Win_free(&win);
  MPI_Errhandler_free(&of_window);
  MPI_Free_mem(memory);
  say_why("without");
}

static int query(void* extra, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_BYTE, *(int*)extra);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int done(void* extra) {
  say("done with %d", *(int*)extra);
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  say("cancel of %d, complete %d", *(int*)extra, complete);
  return MPI_SUCCESS;
}

static void requests(void) {
  int extra = 12, count = 0, class = 0, code = 0, length = 0, out = rank, got = -1;
  char text[MPI_MAX_ERROR_STRING] = "";
  MPI_Request request;
  MPI_Status status;
  static char buffer[4096];
  void* detached = NULL;
  MPI_Grequest_start(query, done, cancel, &extra, &request);
  MPI_Cancel(&request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Get_elements(&status, MPI_BYTE, &count);
  say("generalized request: %d", count);
  MPI_Buffer_attach(buffer, sizeof buffer);
  MPI_Bsend(&out, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
  MPI_Recv(&got, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Buffer_detach(&detached, &length);
  say("buffer: %d, got %d", detached == buffer && length == (int)sizeof buffer, got);
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  MPI_Add_error_string(code, "an error of the program");
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &count);
  say("error: '%s', of its class %d", text, count == class);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) return 2;
  begin(argv[1]);
  operations();
  infos();
  hints();
  error_handlers();
  attributes_of_types();
  fortran_numbers();
  say("alive: %d", alive());
  windows();
  files();
  attributes(); /* it leaves one communicator, whose attribute cannot be deleted */
  requests();   /* behind the last renewal: this MPI has the error codes already */
  MPI_Finalize();
  if (argc > 2) say("%d renewals", renewals);
  return 0;
}
