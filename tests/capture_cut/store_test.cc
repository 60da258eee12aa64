#include "capture/mpi_library/store.h"

#include <gtest/gtest.h>

#include <vector>

namespace backstay::mpi {
namespace {

const auto* first = reinterpret_cast<const Communicator*>(16);
const auto* second = reinterpret_cast<const Communicator*>(32);

Stored message(const Communicator* in, int source, int tag) {
  Stored one{};
  one.communicator = in;
  one.source = source;
  one.tag = tag;
  return one;
}

TEST(Store, AReceiveFindsWhatCameFirst) {
  Stored all[] = {message(first, 1, 5), message(second, 1, 5), message(first, 2, 5),
                  message(first, 1, 7), message(first, 1, 5)};
  Store store;
  EXPECT_TRUE(store.is_empty());
  for (Stored& one : all) store.add(&one);
  EXPECT_EQ(store.find({first, 1, 5, false, false}), &all[0]);
  EXPECT_EQ(store.find({second, 0, 0, true, true}), &all[1]);
  EXPECT_EQ(store.find({first, 0, 7, true, false}), &all[3]);
  EXPECT_EQ(store.find({first, 2, 0, false, true}), &all[2]);
  EXPECT_EQ(store.find({second, 2, 5, false, false}), nullptr);
  store.remove(&all[0]);
  EXPECT_EQ(store.find({first, 1, 5, false, false}), &all[4]);
}

TEST(Store, TakenOutAtEachPlaceTheOrderOfTheOthersStays) {
  for (int out = 0; out < 3; ++out) {
    Stored all[] = {message(first, 1, 0), message(first, 1, 1), message(first, 1, 2)};
    Store store;
    for (Stored& one : all) store.add(&one);
    store.remove(&all[out]);
    Stored last = message(first, 1, 3);
    store.add(&last);
    std::vector<int> tags;
    for (const Stored* one = store.first(); one != nullptr; one = one->next) {
      tags.push_back(one->tag);
    }
    std::vector<int> expected{0, 1, 2, 3};
    expected.erase(expected.begin() + out);
    EXPECT_EQ(tags, expected);
  }
}

}  // namespace
}  // namespace backstay::mpi
