// Ranks that come together by messages over the hidden communicator: a binomial tree below one of
// them. To the cut they are messages and waits like the program's own, so a cut may come while some
// are there and others are not (docs/protocol/cut.md, "Calls of some ranks alone").
//
// Outside of all calls: each message is a call of its own.
#pragma once

namespace backstay::mpi {

class Meeting {
 public:
  // `world`: of each member the rank in MPI_COMM_WORLD. null: they are the same. It outlives this.
  // `tag`: tag_alone().
  Meeting(const int* world, int count, int own, int root, int tag)
      : world_(world),
        count_(count),
        root_(root),
        place_((own - root + count) % count),
        tag_(tag) {}

  bool is_root() const { return place_ == 0; }
  // At the root it returns when all members have called it.
  void gather();
  // What the root has, to all.
  void hand_out(void* bytes, int count);

 private:
  int child(int turn) const;  // negative: no more
  int world_rank(int place) const;

  const int* world_;
  int count_, root_;
  int place_;  // in the tree, where the root is 0
  int tag_;
};

// With another one that calls it too: what each has goes to the other.
void exchange(int world, int tag, void* given, int bytes_given, void* got, int bytes_got);

}  // namespace backstay::mpi
