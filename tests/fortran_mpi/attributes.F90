! MPI's own attributes, those of the program, and errors.
#include "kinds.inc"

module kept_attributes
  use world
  implicit none
  integer :: duplicated, dropped, of_type, code, class_, deleted = 0
  integer(MPI_ADDRESS_KIND) :: extra = 3 ! MPICH 4.0 keeps its address
  DATATYPE :: named
  ERRHANDLER :: counting
  COMM :: watched
  integer :: raised = 0
end module

subroutine delete_of_type(of, key, value, state, failed)
  use kept_attributes
  DATATYPE :: of
  integer :: key, failed
  integer(MPI_ADDRESS_KIND) :: value, state
  call check(state == 3 .and. key == of_type, 'arguments of a delete function of types')
  deleted = deleted + int(value)
  failed = MPI_SUCCESS
end subroutine

subroutine copy_of_type(of, key, state, value, copy, is_copied, failed)
  use kept_attributes
  DATATYPE :: of
  integer :: key, failed
  integer(MPI_ADDRESS_KIND) :: value, state, copy
  logical :: is_copied
  copy = value + state
  is_copied = .true.
  failed = MPI_SUCCESS
end subroutine

subroutine count_error(of, failed)
  use kept_attributes
  COMM :: of
  integer :: failed, class_of_it, again
  call MPI_Error_class(failed, class_of_it, again)
  call check(of == watched .and. class_of_it == MPI_ERR_RANK, 'arguments of an error handler')
  raised = raised + 1
end subroutine

subroutine prepare_attributes()
  use kept_attributes
  external :: copy_of_type, delete_of_type, count_error
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, duplicated, extra, ierror)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, dropped, extra, &
                              ierror)
  call MPI_Type_create_keyval(copy_of_type, delete_of_type, of_type, extra, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, watched, ierror)
  call MPI_Comm_set_attr(watched, duplicated, -7_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(watched, dropped, 2_MPI_ADDRESS_KIND**40, ierror)
  call MPI_Type_contiguous(3, MPI_REAL, named, ierror)
  call MPI_Type_set_attr(named, of_type, 100_MPI_ADDRESS_KIND, ierror)
  call MPI_Type_set_name(named, 'three of them', ierror)
  call MPI_Comm_create_errhandler(count_error, counting, ierror)
  call MPI_Comm_set_errhandler(watched, counting, ierror)
  call MPI_Add_error_class(class_, ierror)
  call MPI_Add_error_code(class_, code, ierror)
  call MPI_Add_error_string(code, 'an error of our own', ierror)
end subroutine

subroutine attributes(round)
  use kept_attributes
  integer :: round, key, length
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  COMM :: twin
  DATATYPE :: other
  character(MPI_MAX_OBJECT_NAME) :: name
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, value, flag, ierror)
  call check(.not. flag .or. value == 0 .or. value == 1, 'MPI_WTIME_IS_GLOBAL')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, value, flag, ierror)
  call check(flag .and. value == MPI_ANY_SOURCE, 'MPI_IO')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, value, flag, ierror)
  call check(.not. flag .or. value == MPI_PROC_NULL, 'MPI_HOST')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, value, flag, ierror)
  call check(.not. flag .or. value == 0, 'MPI_APPNUM')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, value, flag, ierror)
  call check(.not. flag .or. value >= 1, 'MPI_UNIVERSE_SIZE')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, value, flag, ierror)
  call check(flag, 'MPI_LASTUSEDCODE')
#if !defined(WITH_F08)
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, length, flag, ierror)
  call check(flag .and. length >= 32767, 'MPI_Attr_get')
#endif
  call MPI_Comm_get_attr(watched, dropped, value, flag, ierror)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**40, 'an attribute of 8 bytes')
  call MPI_Comm_dup(watched, twin, ierror)
  call MPI_Comm_get_attr(twin, duplicated, value, flag, ierror)
  call check(flag .and. value == -7, 'MPI_COMM_DUP_FN')
  call MPI_Comm_get_attr(twin, dropped, value, flag, ierror)
  call check(.not. flag, 'MPI_COMM_NULL_COPY_FN')
  call MPI_Comm_delete_attr(twin, duplicated, ierror)
  call MPI_Comm_get_attr(twin, duplicated, value, flag, ierror)
  call check(.not. flag, 'MPI_Comm_delete_attr')
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierror)
  call MPI_Comm_set_attr(twin, key, 1_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_free_keyval(key, ierror)
  call check(key == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')
  call MPI_Comm_free(twin, ierror)
  call check(twin == MPI_COMM_NULL, 'MPI_Comm_free')
  call MPI_Type_get_name(named, name, length, ierror)
  call check(length == 13 .and. name == 'three of them', 'MPI_Type_get_name')
  call MPI_Type_dup(named, other, ierror)
  call MPI_Type_get_attr(other, of_type, value, flag, ierror)
  call check(flag .and. value == 103, 'copy of an attribute of a type')
  call MPI_Type_delete_attr(other, of_type, ierror)
  call check(deleted == 103 * round, 'MPI_Type_delete_attr')
  call MPI_Type_free(other, ierror)
end subroutine

subroutine errors()
  use kept_attributes
  integer :: before, class_of_it, length, word, failed
  character(MPI_MAX_ERROR_STRING) :: text
  ERRHANDLER :: current
  call MPI_Error_class(code, class_of_it, ierror)
  call check(class_of_it == class_, 'MPI_Error_class of an own one')
  call MPI_Error_string(code, text, length, ierror)
  call check(length == 19 .and. text == 'an error of our own', 'MPI_Error_string of an own one')
  before = raised
  call MPI_Send(word, 1, MPI_INTEGER, ranks + 1, 0, watched, failed)
  call MPI_Error_class(failed, class_of_it, ierror)
  call check(class_of_it == MPI_ERR_RANK .and. raised == before + 1, 'MPI_ERR_RANK')
  call MPI_Error_string(failed, text, length, ierror)
  call check(length > 0 .and. text(length:) /= '', 'MPI_Error_string')
  call MPI_Comm_get_errhandler(watched, current, ierror)
  call check(current == counting, 'MPI_Comm_get_errhandler')
  call MPI_Errhandler_free(current, ierror)
  call check(current == MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
  call MPI_Comm_call_errhandler(watched, MPI_ERR_RANK, ierror)
  call check(raised == before + 2, 'MPI_Comm_call_errhandler')
  call MPI_Comm_set_errhandler(watched, MPI_ERRORS_RETURN, ierror)
  call MPI_Send(word, -1, MPI_INTEGER, right, 0, watched, failed)
  call MPI_Error_class(failed, class_of_it, ierror)
  call check(class_of_it == MPI_ERR_COUNT .and. raised == before + 2, 'MPI_ERRORS_RETURN')
  call MPI_Send(word, 1, MPI_INTEGER, right, -5, watched, failed)
  call MPI_Error_class(failed, class_of_it, ierror)
  call check(class_of_it == MPI_ERR_TAG, 'MPI_ERR_TAG')
  call MPI_Bcast(word, 1, MPI_INTEGER, -1, watched, failed)
  call MPI_Error_class(failed, class_of_it, ierror)
  call check(class_of_it == MPI_ERR_ROOT, 'MPI_ERR_ROOT')
  call MPI_Comm_set_errhandler(watched, counting, ierror)
end subroutine
