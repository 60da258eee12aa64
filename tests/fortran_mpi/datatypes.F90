! MPI's own types of Fortran, those that a program makes, packing, and operations on all of them.
#include "kinds.inc"

module kept_datatypes
  use world
  implicit none
  DATATYPE :: part, spread, shifted, block_, single, whole
end module

subroutine prepare_datatypes()
  use kept_datatypes
  call MPI_Type_create_subarray(2, [6, 5], [2, 3], [1, 2], MPI_ORDER_FORTRAN, MPI_INTEGER, part, &
                                ierror)
  call MPI_Type_commit(part, ierror)
  call MPI_Type_indexed(2, [1, 2], [4, 7], MPI_DOUBLE_PRECISION, spread, ierror)
  call MPI_Type_commit(spread, ierror)
  call MPI_Type_create_resized(MPI_REAL, 0_MPI_ADDRESS_KIND, 12_MPI_ADDRESS_KIND, shifted, ierror)
  call MPI_Type_commit(shifted, ierror)
  call MPI_Type_create_indexed_block(2, 3, [0, 6], MPI_CHARACTER, block_, ierror)
  call MPI_Type_commit(block_, ierror)
  call MPI_Type_create_f90_real(6, 30, single, ierror)
  call MPI_Type_create_f90_integer(12, whole, ierror)
end subroutine

subroutine has_size(kind_, bytes, name)
  use world
  DATATYPE :: kind_
  integer :: bytes, size_
  character(*) :: name
  call MPI_Type_size(kind_, size_, ierror)
  call check(size_ == bytes, 'size of ' // name)
end subroutine

subroutine datatypes()
  use kept_datatypes
  integer(1) :: tiny(2)
  integer(2) :: small(2)
  integer(8) :: long_(2)
  integer :: pairs(2, 1), words(2)
  logical :: truth(3)
  real :: reals(2)
  double precision :: doubles(2), double_pairs(2, 1)
  complex :: complexes(1)
  double complex :: double_complexes(1)
  real(kind(0d0)) :: in_place(2)
  call has_size(MPI_INTEGER, 4, 'MPI_INTEGER')
  call has_size(MPI_LOGICAL, 4, 'MPI_LOGICAL')
  call has_size(MPI_CHARACTER, 1, 'MPI_CHARACTER')
  call has_size(MPI_REAL, 4, 'MPI_REAL')
  call has_size(MPI_REAL4, 4, 'MPI_REAL4')
  call has_size(MPI_REAL8, 8, 'MPI_REAL8')
  call has_size(MPI_REAL16, 16, 'MPI_REAL16')
  call has_size(MPI_COMPLEX, 8, 'MPI_COMPLEX')
  call has_size(MPI_COMPLEX16, 16, 'MPI_COMPLEX16')
  call has_size(MPI_DOUBLE_COMPLEX, 16, 'MPI_DOUBLE_COMPLEX')
  call has_size(MPI_DOUBLE_PRECISION, 8, 'MPI_DOUBLE_PRECISION')
  call has_size(MPI_INTEGER1, 1, 'MPI_INTEGER1')
  call has_size(MPI_INTEGER2, 2, 'MPI_INTEGER2')
  call has_size(MPI_INTEGER4, 4, 'MPI_INTEGER4')
  call has_size(MPI_INTEGER8, 8, 'MPI_INTEGER8')
  call has_size(MPI_2INTEGER, 8, 'MPI_2INTEGER')
  call has_size(MPI_2REAL, 8, 'MPI_2REAL')
  call has_size(MPI_2DOUBLE_PRECISION, 16, 'MPI_2DOUBLE_PRECISION')
  call has_size(MPI_PACKED, 1, 'MPI_PACKED')
  call has_size(MPI_BYTE, 1, 'MPI_BYTE')
  call has_size(MPI_AINT, 8, 'MPI_AINT')
  call has_size(MPI_OFFSET, 8, 'MPI_OFFSET')
  call has_size(single, 4, 'MPI_Type_create_f90_real')
  call has_size(whole, 8, 'MPI_Type_create_f90_integer')
  call MPI_Allreduce([integer(1) :: 1, 2], tiny, 2, MPI_INTEGER1, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(tiny(2) == 2 * ranks, 'MPI_SUM of MPI_INTEGER1')
  call MPI_Allreduce([integer(2) :: 1, 300], small, 2, MPI_INTEGER2, MPI_MAX, MPI_COMM_WORLD, &
                     ierror)
  call check(small(2) == 300, 'MPI_MAX of MPI_INTEGER2')
  call MPI_Allreduce([6_8, 2_8**40], long_, 2, MPI_INTEGER8, MPI_BOR, MPI_COMM_WORLD, ierror)
  call check(long_(2) == 2_8**40, 'MPI_BOR of MPI_INTEGER8')
  call MPI_Allreduce([7, 12], words, 2, MPI_INTEGER, MPI_BAND, MPI_COMM_WORLD, ierror)
  call check(words(1) == 7 .and. words(2) == 12, 'MPI_BAND')
  call MPI_Allreduce([7, 12], words, 2, MPI_INTEGER4, MPI_BXOR, MPI_COMM_WORLD, ierror)
  call check(words(1) == merge(7, 0, mod(ranks, 2) == 1), 'MPI_BXOR')
  call MPI_Allreduce([.true., rank == 0, .false.], truth, 3, MPI_LOGICAL, MPI_LAND, &
                     MPI_COMM_WORLD, ierror)
  call check(truth(1) .and. (truth(2) .eqv. ranks == 1) .and. .not. truth(3), 'MPI_LAND')
  call MPI_Allreduce([.true., rank == 0, .false.], truth, 3, MPI_LOGICAL, MPI_LOR, &
                     MPI_COMM_WORLD, ierror)
  call check(truth(1) .and. truth(2) .and. .not. truth(3), 'MPI_LOR')
  call MPI_Allreduce([.false., rank == 0, .false.], truth, 3, MPI_LOGICAL, MPI_LXOR, &
                     MPI_COMM_WORLD, ierror)
  call check(.not. truth(1) .and. truth(2), 'MPI_LXOR')
  call MPI_Allreduce([1.5, 2.0], reals, 2, MPI_REAL, MPI_PROD, MPI_COMM_WORLD, ierror)
  call check(reals(2) == 2.0**ranks, 'MPI_PROD of MPI_REAL')
  call MPI_Allreduce([1.5, 2.0], reals, 2, single, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(reals(2) == 2.0 * ranks, 'MPI_SUM of MPI_Type_create_f90_real')
  call MPI_Allreduce([1_8, 2_8], long_, 2, whole, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(long_(2) == 2 * ranks, 'MPI_SUM of MPI_Type_create_f90_integer')
  call MPI_Allreduce([1.5d0, -2d0], doubles, 2, MPI_REAL8, MPI_MIN, MPI_COMM_WORLD, ierror)
  call check(doubles(2) == -2, 'MPI_MIN of MPI_REAL8')
  call MPI_Allreduce([(1.0, 2.0)], complexes, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(complexes(1) == ranks * (1.0, 2.0), 'MPI_SUM of MPI_COMPLEX')
  call MPI_Allreduce([(0d0, 1d0)], double_complexes, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, &
                     MPI_COMM_WORLD, ierror)
  call check(abs(double_complexes(1) - (0d0, 1d0)**ranks) < 1d-9, 'MPI_PROD of MPI_DOUBLE_COMPLEX')
  call MPI_Allreduce(reshape([10 + rank, rank], [2, 1]), pairs, 1, MPI_2INTEGER, MPI_MAXLOC, &
                     MPI_COMM_WORLD, ierror)
  call check(pairs(1, 1) == 9 + ranks .and. pairs(2, 1) == ranks - 1, 'MPI_MAXLOC')
  call MPI_Allreduce(reshape([5d0 + rank, 1d0 * rank], [2, 1]), double_pairs, 1, &
                     MPI_2DOUBLE_PRECISION, &
                     MPI_MINLOC, MPI_COMM_WORLD, ierror)
  call check(double_pairs(1, 1) == 5 .and. double_pairs(2, 1) == 0, 'MPI_MINLOC')
  in_place = rank
  call MPI_Reduce_local([1d0, 2d0], in_place, 2, MPI_DOUBLE_PRECISION, MPI_SUM, ierror)
  call check(in_place(2) == rank + 2, 'MPI_Reduce_local')
end subroutine

subroutine own_datatypes()
  use kept_datatypes
  integer :: from(6, 5), to(6, 5), i, integers, addresses, types, combiner, at, size_, elements
  integer :: numbers(20)
  integer(MPI_ADDRESS_KIND) :: low, extent, places(4)
  integer(MPI_ADDRESS_KIND) :: external_at, external_size
  double precision :: sparse(10), dense(3)
  real :: gaps(9), close_(3)
  character(12) :: letters, others
  character :: packed(500)
  DATATYPE :: old(4), made
  STATUS(one)
  from = reshape([(i + 100 * rank, i = 1, 30)], [6, 5])
  to = 0
  call MPI_Sendrecv(from, 1, part, right, 1, to, 1, part, left, 1, MPI_COMM_WORLD, one, ierror)
  call check(to(2, 3) == 14 + 100 * left .and. to(3, 5) == 27 + 100 * left, 'MPI_ORDER_FORTRAN')
  call check(count(to /= 0) == 6, 'the rest of a subarray')
  call MPI_Get_count(one, part, at, ierror)
  call MPI_Get_elements(one, part, elements, ierror)
  call check(at == 1 .and. elements == 6, 'MPI_Get_elements')
  call MPI_Type_get_envelope(part, integers, addresses, types, combiner, ierror)
  call check(combiner == MPI_COMBINER_SUBARRAY .and. integers == 8 .and. types == 1, &
             'MPI_Type_get_envelope')
  call MPI_Type_get_contents(part, 8, 0, 1, numbers, places, old, ierror)
  call check(numbers(1) == 2 .and. numbers(3) == 5 .and. numbers(8) == MPI_ORDER_FORTRAN, &
             'MPI_Type_get_contents')
  call check(old(1) == MPI_INTEGER, 'a type in another one')
  sparse = [(1d0 * i + rank, i = 0, 9)]
  call MPI_Sendrecv(sparse, 1, spread, right, 2, dense, 3, MPI_DOUBLE_PRECISION, left, 2, &
                    MPI_COMM_WORLD, one, ierror)
  call check(all(dense == [4d0, 7d0, 8d0] + left), 'MPI_Type_indexed')
  gaps = [(1.0 * i, i = 1, 9)]
  call MPI_Sendrecv(gaps, 3, shifted, rank, 3, close_, 3, MPI_REAL, rank, 3, MPI_COMM_WORLD, &
                    one, ierror)
  call check(all(close_ == [1.0, 4.0, 7.0]), 'MPI_Type_create_resized')
  call MPI_Type_get_extent(shifted, low, extent, ierror)
  call check(low == 0 .and. extent == 12, 'MPI_Type_get_extent')
  call MPI_Type_get_true_extent(shifted, low, extent, ierror)
  call check(low == 0 .and. extent == 4, 'MPI_Type_get_true_extent')
  letters = 'abcdefghijkl'
  others = '............'
  call MPI_Sendrecv(letters, 1, block_, right, 4, others, 1, block_, left, 4, MPI_COMM_WORLD, &
                    one, ierror)
  call check(others == 'abc...ghi...', 'MPI_Type_create_indexed_block')
  at = 0
  call MPI_Pack_size(1, part, MPI_COMM_WORLD, size_, ierror)
  call check(size_ >= 24, 'MPI_Pack_size')
  call MPI_Pack(from, 1, part, packed, 500, at, MPI_COMM_WORLD, ierror)
  call MPI_Pack(letters, 12, MPI_CHARACTER, packed, 500, at, MPI_COMM_WORLD, ierror)
  i = 0
  call MPI_Unpack(packed, at, i, to, 1, part, MPI_COMM_WORLD, ierror)
  call MPI_Unpack(packed, at, i, others, 12, MPI_CHARACTER, MPI_COMM_WORLD, ierror)
  call check(i == at .and. to(3, 5) == 27 + 100 * rank .and. others == letters, 'MPI_Unpack')
  call MPI_Pack_external_size('external32', 2, MPI_INTEGER, external_size, ierror)
  call check(external_size == 8, 'MPI_Pack_external_size')
  external_at = 0
  call MPI_Pack_external('external32', [1, 2], 2, MPI_INTEGER, packed, external_size, &
                         external_at, ierror)
  call check(external_at == 8 .and. ichar(packed(4)) == 1, 'MPI_Pack_external')
  call MPI_Type_create_hvector(2, 1, 24_MPI_ADDRESS_KIND, MPI_DOUBLE_PRECISION, made, ierror)
  call MPI_Type_commit(made, ierror)
  call MPI_Sendrecv(sparse, 1, made, rank, 5, dense, 2, MPI_DOUBLE_PRECISION, rank, 5, &
                    MPI_COMM_WORLD, one, ierror)
  call check(dense(2) == 3 + rank, 'MPI_Type_create_hvector')
  call MPI_Type_free(made, ierror)
  call check(made == MPI_DATATYPE_NULL, 'MPI_Type_free')
  call MPI_Type_create_darray(ranks, rank, 1, [4 * ranks], [MPI_DISTRIBUTE_CYCLIC], &
                              [MPI_DISTRIBUTE_DFLT_DARG], [ranks], MPI_ORDER_FORTRAN, MPI_REAL, &
                              made, ierror)
  call has_size(made, 16, 'MPI_Type_create_darray')
  call MPI_Type_free(made, ierror)
  call MPI_Type_create_hindexed(2, [1, 1], [0_MPI_ADDRESS_KIND, 40_MPI_ADDRESS_KIND], MPI_REAL8, &
                                made, ierror)
  call MPI_Type_get_extent(made, low, extent, ierror)
  call check(extent == 48, 'MPI_Type_create_hindexed')
  call MPI_Type_free(made, ierror)
end subroutine
