// The adapters between the ABIs of MPICH and Open MPI: every value there and back. Built once for
// each front; the back is the real library, opened and not started.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "capture/lower/adapter/arguments.h"
#include "capture/lower/adapter/texts.h"

extern "C" const char* backstay_adapter_open(const char* mpi);
extern "C" void* backstay_adapter_find(const char* symbol);
extern "C" int MPI_Error_class(int code, int* to);
extern "C" int MPI_Type_c2f(backstay::adapter::Front<backstay::adapter::Class::datatype> type);

namespace backstay::adapter {
namespace {

class Adapter : public testing::Test {
 public:
  static void SetUpTestSuite() { ASSERT_EQ(backstay_adapter_open(nullptr), nullptr); }
};

bool is_there(int number) {
  return front.numbers[number] != backstay_absent && back.numbers[number] != backstay_absent;
}

TEST_F(Adapter, EachNumberOfEachSetComesBack) {
  int seen = 0;
  for (int set = 0; set < set_limit; ++set) {
    const Span span = spans[set];
    for (int i = span.first; i < span.first + span.count; ++i) {
      if (!is_there(i)) continue;
      ++seen;
      const auto of = static_cast<Set>(set);
      EXPECT_EQ(to_back(of, front.numbers[i]), back.numbers[i]) << "set " << set << ", " << i;
      EXPECT_EQ(to_front(of, back.numbers[i]), front.numbers[i]) << "set " << set << ", " << i;
    }
  }
  EXPECT_GT(seen, 150);
}

TEST_F(Adapter, OrdinaryNumbersStayWhatTheyAre) {
  for (const int one : {0, 1, 2, 77, 32767, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(rank_to_back(one), one);
    EXPECT_EQ(rank_to_front(one), one);
    EXPECT_EQ(tag_to_back(one), one);
    EXPECT_EQ(tag_to_front(one), one);
  }
}

TEST_F(Adapter, EachSetOfBitsComesBack) {
  for (const Set set : {set_assertion, set_file_mode}) {
    const Span span = spans[set];
    for (int chosen = 0; chosen < 1 << span.count; ++chosen) {
      int in_front = 0;
      int in_back = 0;
      for (int i = 0; i < span.count; ++i) {
        if ((chosen >> i & 1) == 0) continue;
        in_front |= front.numbers[span.first + i];
        in_back |= back.numbers[span.first + i];
      }
      EXPECT_EQ(bits_to_back(set, in_front), in_back);
      written_bits(set, &in_back);
      EXPECT_EQ(in_back, in_front);
    }
  }
}

TEST_F(Adapter, AStatusComesBack) {
  for (const uint64_t bytes :
       {0ULL, 1ULL, (1ULL << 31) - 1, 1ULL << 31, (1ULL << 32) + 5, (1ULL << 62) + 3}) {
    for (const bool cancelled : {false, true}) {
      for (const int source :
           {0, 5, front.numbers[number_ANY_SOURCE], front.numbers[number_PROC_NULL]}) {
        FrontStatus given{};
        given.source = source;
        given.tag = front.numbers[number_ANY_TAG];
        given.error = front.numbers[number_ERR_TRUNCATE];
        given.set(bytes, cancelled);
        const BackStatus status = to_back(given);
        EXPECT_EQ(status.bytes(), bytes);
        EXPECT_EQ(status.is_cancelled(), cancelled);
        EXPECT_EQ(status.error, back.numbers[number_ERR_TRUNCATE]);
        FrontStatus result{};
        put(status, result);
        EXPECT_EQ(std::memcmp(&result, &given, sizeof given), 0);
      }
    }
  }
}

TEST_F(Adapter, WhatMpiDoesNotWriteIsLeft) {
  FrontStatus status{};
  status.source = 3;
  status.error = 77;
  OutStatus nothing(&status);
  nothing.put();
  EXPECT_EQ(status.source, 3);
  OutStatus no_error(&status);
  static_cast<BackStatus*>(no_error.place())->source = 4;
  no_error.put();
  EXPECT_EQ(status.source, 4);
  EXPECT_EQ(status.error, 77);
}

TEST_F(Adapter, IgnoredStatusesAreIgnored) {
  EXPECT_EQ(OutStatus(front.status_ignore).place(), back.status_ignore);
  EXPECT_EQ(OutStatuses(front.statuses_ignore, 3).place(), back.statuses_ignore);
  EXPECT_EQ(buffer_to_back(front.in_place), back.in_place);
}

template <Class Type>
void comes_back(int row) {
  const uint64_t handle = front_of_row(row);
  if (handle == 0) return;
  Front<Type> given{};
  std::memcpy(&given, &handle, sizeof given);
  const Back<Type> of_back = to_back<Type>(given);
#ifdef BACKSTAY_FRONT_MPICH
  // MPICH has one handle for what is two of Open MPI's: the first one counts.
  if (back.handles[row].object == nullptr || row_of(Type, handle) != row) return;
  EXPECT_EQ(of_back, find_in_back(back.handles[row].object)) << predefined[row].name;
#else
  if constexpr (Type != Class::file) {
    EXPECT_EQ(of_back, back.handles[row].number) << predefined[row].name;
  }
#endif
  if (of_back != Back<Type>{}) {
    EXPECT_EQ(to_back<Type>(to_front<Type>(of_back)), of_back) << predefined[row].name;
  }
}

TEST_F(Adapter, EachPredefinedHandleComesBack) {
  for (int row = 0; row < handles_count; ++row) {
    switch (predefined[row].type) {
      case Class::comm: comes_back<Class::comm>(row); break;
      case Class::group: comes_back<Class::group>(row); break;
      case Class::datatype: comes_back<Class::datatype>(row); break;
      case Class::errhandler: comes_back<Class::errhandler>(row); break;
      case Class::op: comes_back<Class::op>(row); break;
      case Class::info: comes_back<Class::info>(row); break;
      case Class::request: comes_back<Class::request>(row); break;
      case Class::message: comes_back<Class::message>(row); break;
      case Class::win: comes_back<Class::win>(row); break;
      case Class::file: comes_back<Class::file>(row); break;
      default: FAIL();
    }
  }
}

TEST_F(Adapter, NewHandlesComeBackAndKeepTheirNumber) {
  constexpr uintptr_t first = 0x10000;
  for (uintptr_t i = 0; i < 5000; ++i) {
    Back<Class::comm> made{};
    const uintptr_t address = first + 16 * i;
    std::memcpy(&made, &address, sizeof made);
    const Front<Class::comm> handle = to_front<Class::comm>(made);
    EXPECT_EQ(to_back<Class::comm>(handle), made);
    EXPECT_EQ(to_front<Class::comm>(made), handle);
  }
}

TEST_F(Adapter, ACodeOfTheBackAloneComesBack) {
  const int code = 0x0fffff00;
  const int of_front = error_to_front(code);
  EXPECT_NE(of_front, code);
  EXPECT_EQ(error_to_front(code), of_front);
  EXPECT_EQ(error_to_back(of_front), code);
}

TEST_F(Adapter, NoMoreOfATextIsWrittenThanTheFrontPromises) {
  const auto limit = static_cast<size_t>(front.numbers[number_MAX_PROCESSOR_NAME]);
  std::string to(2 * limit, 'x');
  int length = 0;
  OutText text(to.data(), &length, number_MAX_PROCESSOR_NAME);
  std::memset(text.place(), 'a', 4000);
  EXPECT_EQ(text.put(0), 0);
  EXPECT_EQ(static_cast<size_t>(length), limit - 1);
  EXPECT_EQ(to[limit - 1], 0);
  EXPECT_EQ(to[limit], 'x');
}

}  // namespace
}  // namespace backstay::adapter
