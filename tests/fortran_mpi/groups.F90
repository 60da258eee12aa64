! Communicators, groups, topologies, and info objects.
#include "kinds.inc"

module kept_groups
  use world
  implicit none
  COMM :: halves, between, grid, around, graph_, node
  INFO :: hints
end module

subroutine prepare_groups()
  use kept_groups
  integer :: leader
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, 1, rank < ranks / 2), rank, halves, ierror)
  leader = merge(ranks / 2, 0, rank < ranks / 2)
  call MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, leader, 9, between, ierror)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [ranks, 1], [.true., .false.], .false., grid, ierror)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [left], MPI_UNWEIGHTED, 1, [right], &
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., around, ierror)
  call MPI_Graph_create(MPI_COMM_WORLD, 2, [1, 2], [1, 0], .false., graph_, ierror)
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, node, ierror)
  call MPI_Info_create(hints, ierror)
  call MPI_Info_set(hints, 'first', '  1 ', ierror)
  call MPI_Info_set(hints, 'second', 'two words', ierror)
end subroutine

subroutine groups()
  use kept_groups
  integer :: size_, result_, kind_, dims(2), coords(2), one, other, word, words(2), degree_in, &
      degree_out
  integer :: sources(1), targets(1), weights(1), neighbors(2)
  logical :: flag, periods(2)
  COMM :: merged, line_, made
  GROUP :: everyone, some, remote
  call MPI_Comm_test_inter(between, flag, ierror)
  call MPI_Comm_remote_size(between, size_, ierror)
  call check(flag .and. size_ == merge(ranks - ranks / 2, ranks / 2, rank < ranks / 2), &
             'MPI_Comm_remote_size')
  call MPI_Comm_remote_group(between, remote, ierror)
  call MPI_Group_size(remote, one, ierror)
  call check(one == size_, 'MPI_Comm_remote_group')
  call MPI_Group_free(remote, ierror)
  call MPI_Intercomm_merge(between, rank >= ranks / 2, merged, ierror)
  call MPI_Comm_compare(merged, MPI_COMM_WORLD, result_, ierror)
  call check(result_ == MPI_CONGRUENT, 'MPI_Intercomm_merge')
  call MPI_Comm_compare(merged, merged, result_, ierror)
  call check(result_ == MPI_IDENT, 'MPI_IDENT')
  call MPI_Comm_free(merged, ierror)
  call MPI_Topo_test(grid, kind_, ierror)
  call check(kind_ == MPI_CART, 'MPI_CART')
  call MPI_Topo_test(around, kind_, ierror)
  call check(kind_ == MPI_DIST_GRAPH, 'MPI_DIST_GRAPH')
  call MPI_Topo_test(MPI_COMM_WORLD, kind_, ierror)
  call check(kind_ == MPI_UNDEFINED, 'MPI_UNDEFINED')
  call MPI_Cartdim_get(grid, size_, ierror)
  call MPI_Cart_get(grid, 2, dims, periods, coords, ierror)
  call check(size_ == 2 .and. dims(1) == ranks .and. periods(1) .and. .not. periods(2), &
             'MPI_Cart_get')
  call MPI_Cart_rank(grid, [-1, 0], one, ierror)
  call MPI_Cart_coords(grid, ranks - 1, 2, coords, ierror)
  call check(one == ranks - 1 .and. coords(1) == ranks - 1, 'MPI_Cart_rank')
  call MPI_Cart_shift(grid, 1, 1, one, other, ierror)
  call check(one == MPI_PROC_NULL .and. other == MPI_PROC_NULL, 'MPI_Cart_shift beyond the end')
  call MPI_Cart_sub(grid, [.true., .false.], line_, ierror)
  call MPI_Comm_size(line_, size_, ierror)
  call check(size_ == ranks, 'MPI_Cart_sub')
  call MPI_Comm_free(line_, ierror)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierror)
  call check(dims(1) * dims(2) == ranks, 'MPI_Dims_create')
  call MPI_Dist_graph_neighbors_count(around, degree_in, degree_out, flag, ierror)
  call check(degree_in == 1 .and. degree_out == 1 .and. .not. flag, &
             'MPI_Dist_graph_neighbors_count')
  call MPI_Dist_graph_neighbors(around, 1, sources, weights, 1, targets, weights, ierror)
  call check(sources(1) == left .and. targets(1) == right, 'MPI_Dist_graph_neighbors')
  call MPI_Neighbor_allgather([rank], 1, MPI_INTEGER, words, 1, MPI_INTEGER, around, ierror)
  call check(words(1) == left, 'MPI_Neighbor_allgather')
  if (graph_ /= MPI_COMM_NULL) then
    call MPI_Topo_test(graph_, kind_, ierror)
    call check(kind_ == MPI_GRAPH, 'MPI_GRAPH')
    call MPI_Graph_neighbors_count(graph_, rank, size_, ierror)
    call MPI_Graph_neighbors(graph_, rank, 1, neighbors, ierror)
    call check(size_ == 1 .and. neighbors(1) == 1 - rank, 'MPI_Graph_neighbors')
  end if
  call MPI_Comm_size(node, size_, ierror)
  call check(size_ >= 1 .and. size_ <= ranks, 'MPI_Comm_split_type')
  call MPI_Comm_get_parent(made, ierror)
  call check(made == MPI_COMM_NULL, 'MPI_Comm_get_parent')
  call MPI_Comm_group(MPI_COMM_WORLD, everyone, ierror)
  call MPI_Group_rank(everyone, one, ierror)
  call check(one == rank, 'MPI_Group_rank')
  call MPI_Group_incl(everyone, 1, [0], some, ierror)
  call MPI_Group_rank(some, one, ierror)
  call check(one == merge(0, MPI_UNDEFINED, rank == 0), 'MPI_Group_rank of others')
  call MPI_Group_compare(everyone, some, result_, ierror)
  call check(result_ == merge(MPI_IDENT, MPI_UNEQUAL, ranks == 1), 'MPI_Group_compare')
  call MPI_Comm_create(MPI_COMM_WORLD, some, made, ierror)
  call check((made /= MPI_COMM_NULL) .eqv. rank == 0, 'MPI_Comm_create')
  if (rank == 0) call MPI_Comm_free(made, ierror)
  if (rank == 0) then
    call MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, made, ierror)
    call MPI_Comm_size(made, size_, ierror)
    call check(size_ == 1, 'MPI_Comm_create_group')
    call MPI_Comm_free(made, ierror)
  end if
  call MPI_Group_free(some, ierror)
  call check(some == MPI_GROUP_NULL, 'MPI_Group_free')
  call MPI_Group_difference(everyone, everyone, some, ierror)
  call check(some == MPI_GROUP_EMPTY, 'MPI_GROUP_EMPTY')
  call MPI_Group_free(everyone, ierror)
  call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, made, ierror)
  call check(made == MPI_COMM_NULL, 'a split without a color')
  call MPI_Comm_dup_with_info(halves, hints, made, ierror)
  word = 1
  call MPI_Allreduce(MPI_IN_PLACE, word, 1, MPI_INTEGER, MPI_SUM, made, ierror)
  call check(word == merge(ranks / 2, ranks - ranks / 2, rank < ranks / 2), &
             'MPI_Comm_dup_with_info')
  call MPI_Comm_free(made, ierror)
  ! Between two groups: one's sum is the other's.
  call MPI_Allreduce([rank], words, 1, MPI_INTEGER, MPI_MAX, between, ierror)
  call check(words(1) == merge(ranks, ranks / 2, rank < ranks / 2) - 1, &
             'MPI_Allreduce between groups')
  word = 0
  one = MPI_PROC_NULL
  if (rank < ranks / 2) one = 0
  if (rank == ranks / 2) then
    one = MPI_ROOT
    word = 77
  end if
  call MPI_Bcast(word, 1, MPI_INTEGER, one, between, ierror)
  call check(rank > ranks / 2 .or. word == 77, 'MPI_ROOT')
end subroutine

subroutine infos()
  use kept_groups
  integer :: count_, length
  logical :: flag
  character(MPI_MAX_INFO_KEY) :: key
  character(20) :: text
  INFO :: other
  call MPI_Info_get_nkeys(hints, count_, ierror)
  call MPI_Info_get_nthkey(hints, 1, key, ierror)
  call check(count_ == 2 .and. key == 'second', 'MPI_Info_get_nthkey')
  call MPI_Info_get(hints, 'first', 20, text, flag, ierror)
  call check(flag .and. text == '1', 'MPI_Info_get')
  call MPI_Info_get_valuelen(hints, 'second', length, flag, ierror)
  call check(flag .and. length == 9, 'MPI_Info_get_valuelen')
  call MPI_Info_dup(hints, other, ierror)
  call MPI_Info_delete(other, 'first', ierror)
  call MPI_Info_get(other, 'first', 20, text, flag, ierror)
  call check(.not. flag, 'MPI_Info_delete')
  call MPI_Info_free(other, ierror)
  call check(other == MPI_INFO_NULL, 'MPI_Info_free')
end subroutine
