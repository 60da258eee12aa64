// backstay.hpp with a real agent: what is saved comes back, scopes end what they began.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backstay/backstay.hpp"

namespace {

using backstay::errc;
using backstay::Level;
using backstay::Session;

const backstay::Place second_half{
    .shape = {100, 1000}, .global_shape = {200, 1000}, .global_offset = {100, 0}};

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The tests of this file share one job and run in this order.
TEST(CppSession, NothingIsSavedAtFirst) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  std::vector<double> u(10, 1.0);
  auto region = session->protect("u", u);
  ASSERT_TRUE(region);
  const auto version = session->restart();
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error(), errc::none);
  EXPECT_EQ(u[9], 1.0);
  EXPECT_EQ(session->version(), 0U);
}

TEST(CppSession, OneSessionAProcess) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  EXPECT_EQ(Session::open().error(), errc::state);
}

struct State {
  std::vector<double> u = std::vector<double>(100000);
  std::complex<float> z[4] = {};
  std::int64_t step = 0;
  std::vector<backstay::Region> regions;
  std::string path;

  void protect(Session& session) {
    regions.push_back(session.protect_array("u", u.data(), second_half).value());
    regions.push_back(session.protect("z", z).value());
    regions.push_back(session.protect("step", step).value());
    path = session.route_file("notes.txt").value();
  }
};

void save_two_versions(State& state) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  state.protect(*session);
  std::ofstream(state.path) << "as it was";
  EXPECT_FALSE(session->due());
  EXPECT_TRUE(session->due()) << "every second call";
  ASSERT_FALSE(session->checkpoint()) << backstay::last_message();
  const std::uint64_t first = session->version();
  ASSERT_FALSE(session->wait(first, Level::local, 60)) << backstay::last_message();
  EXPECT_GE(session->test(first).value(), Level::local);

  state.step = 42;
  ASSERT_FALSE(session->checkpoint()) << backstay::last_message();
  std::int64_t old = 0;
  EXPECT_FALSE(session->read_region(first, "step", std::span(&old, 1))) << backstay::last_message();
  EXPECT_EQ(old, 41);
  state.regions.clear();
}

TEST(CppSession, SavesAndBringsBack) {
  State state;
  std::iota(state.u.begin(), state.u.end(), 0.5);
  state.z[3] = {7, 8};
  state.step = 41;
  const auto before = state.u;
  ASSERT_NO_FATAL_FAILURE(save_two_versions(state));

  std::fill(state.u.begin(), state.u.end(), 0.0);
  state.z[3] = {};
  state.step = 0;
  std::ofstream(state.path) << "overwritten";
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  state.protect(*session);
  const auto version = session->restart();
  ASSERT_TRUE(version) << backstay::last_message();
  EXPECT_EQ(*version, session->version());
  EXPECT_EQ(state.u, before);
  EXPECT_EQ(state.z[3], (std::complex<float>{7, 8}));
  EXPECT_EQ(state.step, 42);
  EXPECT_EQ(content(state.path), "as it was");
}

TEST(CppSession, ARegionEndsWithItsScope) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  double x = 1;
  {
    auto region = session->protect("x", x);
    ASSERT_TRUE(region);
    EXPECT_EQ(session->protect("x", x).error(), errc::duplicate);
  }
  EXPECT_TRUE(session->protect("x", x)) << "its name is free again";
}

TEST(CppSession, StreamsComeBack) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  const std::vector<double> first(5000, 1.5), second{2.5, 3.5};
  auto stream = backstay::Stream::open("particles");
  ASSERT_TRUE(stream) << backstay::last_message();
  EXPECT_EQ(backstay::Stream::open("particles").error(), errc::duplicate);
  ASSERT_FALSE(stream->write(std::span(first))) << backstay::last_message();
  ASSERT_FALSE(stream->write(std::span(second))) << backstay::last_message();
  ASSERT_FALSE(stream->close()) << backstay::last_message();
  EXPECT_EQ(stream->write(std::span(second)), errc::state);
  ASSERT_FALSE(session->checkpoint()) << backstay::last_message();
  auto all = backstay::SavedStream::all_of(session->version());
  ASSERT_TRUE(all) << backstay::last_message();
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ((*all)[0].name, "particles");
  EXPECT_EQ((*all)[0].bytes, 5002 * sizeof(double));
  std::vector<double> back(2);
  ASSERT_FALSE((*all)[0].read(std::span(back), 5000 * sizeof(double))) << backstay::last_message();
  EXPECT_EQ(back, second);
  std::vector<double> whole(5002);
  ASSERT_FALSE(session->read_region(session->version(), "particles", std::span(whole)))
      << backstay::last_message();
  EXPECT_EQ(whole[4999], 1.5);
}

TEST(CppSession, RefusesAPlaceThatDoesNotFit) {
  auto session = Session::open();
  ASSERT_TRUE(session) << backstay::last_message();
  double x[6] = {};
  const auto refused = [&](const backstay::Place& place) {
    return session->protect_array("x", x, place).error() == errc::invalid;
  };
  EXPECT_TRUE(refused({.shape = {}, .global_shape = {}, .global_offset = {}}));
  EXPECT_TRUE(refused({.shape = {2, 3}, .global_shape = {6}, .global_offset = {0}}));
  EXPECT_TRUE(refused({.shape = {2, 3}, .global_shape = {2, 3}, .global_offset = {1, 0}}));
  EXPECT_TRUE(refused({.shape = {2, 3}, .global_shape = {}, .global_offset = {1, 0}}));
  EXPECT_TRUE(
      refused({.shape = {1, 1, 1, 1, 1, 1, 1, 1, 6}, .global_shape = {}, .global_offset = {}}));
}

}  // namespace
