// backstay.hpp without a session: types, errors and lifetimes.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backstay/backstay.hpp"

namespace {

using backstay::element_type;
using backstay::errc;
using backstay::Expected;

static_assert(element_type<std::int8_t>() == BACKSTAY_INT8);
static_assert(element_type<std::int16_t>() == BACKSTAY_INT16);
static_assert(element_type<int>() == BACKSTAY_INT32);
static_assert(element_type<long>() == BACKSTAY_INT64);
static_assert(element_type<long long>() == BACKSTAY_INT64);
static_assert(element_type<std::uint8_t>() == BACKSTAY_UINT8);
static_assert(element_type<std::uint16_t>() == BACKSTAY_UINT16);
static_assert(element_type<unsigned>() == BACKSTAY_UINT32);
static_assert(element_type<std::size_t>() == BACKSTAY_UINT64);
static_assert(element_type<float>() == BACKSTAY_FLOAT);
static_assert(element_type<double>() == BACKSTAY_DOUBLE);
static_assert(element_type<std::complex<float>>() == BACKSTAY_COMPLEX64);
static_assert(element_type<std::complex<double>>() == BACKSTAY_COMPLEX128);
static_assert(element_type<std::byte>() == BACKSTAY_BYTE);
static_assert(element_type<bool>() == BACKSTAY_BYTE);
static_assert(!backstay::Element<long double>, "has no counterpart");
static_assert(!backstay::Element<const double>, "restart writes into it");
static_assert(!std::is_copy_constructible_v<backstay::Session>);
static_assert(!std::is_copy_constructible_v<backstay::Region>);

TEST(CppErrors, HaveTheCategoryAndTheTextOfTheLibrary) {
  const std::error_code code = errc::mismatch;
  EXPECT_EQ(code.value(), BACKSTAY_EMISMATCH);
  EXPECT_STREQ(code.category().name(), "backstay");
  EXPECT_EQ(code.message(), backstay_strerror(BACKSTAY_EMISMATCH));
  EXPECT_EQ(backstay::from_c(BACKSTAY_EMISMATCH), errc::mismatch);
  EXPECT_FALSE(backstay::from_c(BACKSTAY_OK));
}

TEST(CppErrors, CheckThrowsOnlyErrors) {
  EXPECT_NO_THROW(backstay::check({}));
  try {
    backstay::check(errc::agent);
    FAIL() << "nothing was thrown";
  } catch (const backstay::Error& error) {
    EXPECT_EQ(error.code(), errc::agent);
  }
}

TEST(CppExpected, HoldsAValueOrAnError) {
  Expected<std::string> good{std::string("v")};
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, "v");
  EXPECT_EQ(good->size(), 1U);
  EXPECT_FALSE(good.error());

  Expected<std::string> bad{backstay::make_error_code(errc::io)};
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error(), errc::io);
  EXPECT_THROW((void)bad.value(), backstay::Error);
}

TEST(CppRegion, WithoutASessionDoesNothing) {
  backstay::Region region("u");
  backstay::Region other = std::move(region);
  EXPECT_TRUE(region.name().empty());  // NOLINT(bugprone-use-after-move): that is what is promised
  EXPECT_EQ(other.name(), "u");
  EXPECT_EQ(other.unprotect(), errc::state);
  EXPECT_FALSE(other.unprotect()) << "forgotten already";
}

TEST(CppSession, IsNotThereIfItsStartFailed) {
  const auto session = backstay::Session::adopt(BACKSTAY_EAGENT);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error(), errc::agent);
}

}  // namespace
