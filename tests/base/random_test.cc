#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "openrnn/base.h"

namespace openrnn {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The three vectors that the authors of Philox publish for 4x32-10.
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<double> mask(DropoutKey key, DropoutRow row, double rate, std::size_t width) {
  std::vector<double> values(width, -1.0);
  dropout_mask<double>(key, row, rate, values);
  return values;
}

TEST(DropoutMask, KeepsTheRightShare) {
  constexpr std::size_t kWidth = 40000;
  for (const double rate : {0.1, 0.3, 0.5, 0.9}) {
    const std::vector<double> values = mask({7, 1}, {0, 2, 3}, rate, kWidth);
    const double scale = 1.0 / (1.0 - rate);
    const auto dropped = std::count(values.begin(), values.end(), 0.0);
    const auto kept = std::count(values.begin(), values.end(), scale);
    EXPECT_EQ(static_cast<std::size_t>(dropped + kept), kWidth);
    // Five standard deviations of a binomial count.
    const double spread = 5.0 * std::sqrt(kWidth * rate * (1.0 - rate));
    EXPECT_NEAR(static_cast<double>(dropped), kWidth * rate, spread) << rate;
  }
}

TEST(DropoutMask, ReachesBothEnds) {
  for (const double v : mask({7, 1}, {0, 2, 3}, 0.0, 37)) EXPECT_EQ(v, 1.0);
  for (const double v : mask({7, 1}, {0, 2, 3}, 1.0, 37)) EXPECT_EQ(v, 0.0);
}

TEST(DropoutMask, DependsOnEveryPartOfItsKey) {
  constexpr std::size_t kWidth = 256;
  std::set<std::vector<double>> seen;
  std::size_t made = 0;
  const auto add = [&](DropoutKey key, DropoutRow row) {
    seen.insert(mask(key, row, 0.5, kWidth));
    ++made;
  };
  for (std::uint32_t n = 0; n < 5; ++n) {
    add({n, 100}, {200, 300, 400});
    add({100, n}, {200, 300, 400});
    add({100, 200}, {n, 300, 400});
    add({100, 200}, {300, n, 400});
    add({100, 200}, {300, 400, n});
  }
  add({std::uint64_t{1} << 40, 100}, {200, 300, 400});
  add({100, std::uint64_t{1} << 40}, {200, 300, 400});
  // Seed and call do not stand for each other.
  add({3, 5}, {0, 0, 0});
  add({5, 3}, {0, 0, 0});
  EXPECT_EQ(seen.size(), made);
}

TEST(DropoutMask, HasAStreamForEachOfItsUses) {
  std::set<std::vector<double>> seen;
  std::size_t made = 0;
  for (const std::uint64_t seed : {0, 1, 2, 77}) {
    for (int of = 0; of <= static_cast<int>(MaskOf::kZoneoutCell); ++of, ++made) {
      seen.insert(mask(key_of({seed, 3}, static_cast<MaskOf>(of)), {1, 2, 3}, 0.5, 256));
    }
  }
  EXPECT_EQ(seen.size(), made);
  EXPECT_EQ(mask(key_of({7, 3}, MaskOf::kLayer), {1, 2, 3}, 0.5, 9),
            mask({7, 3}, {1, 2, 3}, 0.5, 9));
}

TEST(DropoutMask, OfAUnitDependsOnNoWidthAndNoType) {
  const std::vector<double> wide = mask({1, 2}, {3, 4, 5}, 0.5, 131);
  for (const std::size_t width : {1, 3, 4, 17, 130}) {
    const std::vector<double> narrow = mask({1, 2}, {3, 4, 5}, 0.5, width);
    EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin())) << width;
  }
  std::vector<float> single(131);
  dropout_mask<float>({1, 2}, {3, 4, 5}, 0.5, single);
  EXPECT_TRUE(std::equal(single.begin(), single.end(), wide.begin(),
                         [](float a, double b) { return static_cast<double>(a) == b; }));
}

TEST(RandomStream, RepeatsAndSeparates) {
  RandomStream a(5, 1), b(5, 1), other_stream(5, 2), other_seed(6, 1);
  int same_stream = 0, same_seed = 0;
  for (int n = 0; n < 100; ++n) {
    const std::uint32_t word = a.next_uint32();
    EXPECT_EQ(word, b.next_uint32());
    same_stream += word == other_stream.next_uint32();
    same_seed += word == other_seed.next_uint32();
  }
  EXPECT_LE(same_stream, 1);
  EXPECT_LE(same_seed, 1);
}

TEST(RandomStream, IsUniform) {
  constexpr int kCount = 100000, kBins = 50;
  RandomStream random(1);
  std::array<int, kBins> bins{};
  for (int n = 0; n < kCount; ++n) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  double chi2 = 0.0;
  constexpr double kExpected = static_cast<double>(kCount) / kBins;
  for (const int bin : bins) chi2 += std::pow(bin - kExpected, 2) / kExpected;
  // 49 degrees of freedom: the mean is 49, and 100 lies five standard deviations above.
  EXPECT_LT(chi2, 100.0);
  EXPECT_GT(chi2, 10.0);
}

TEST(RandomStream, IsNormal) {
  constexpr int kCount = 100000;
  RandomStream random(2);
  double sum = 0.0, squares = 0.0, fourths = 0.0;
  for (int n = 0; n < kCount; ++n) {
    const double v = random.normal();
    sum += v;
    squares += v * v;
    fourths += v * v * v * v;
  }
  // Five standard deviations: 1, sqrt(2) and sqrt(96) over sqrt(count).
  EXPECT_NEAR(sum / kCount, 0.0, 0.016);
  EXPECT_NEAR(squares / kCount, 1.0, 0.023);
  EXPECT_NEAR(fourths / kCount, 3.0, 0.16);
}

TEST(RandomStream, StaysBelowItsBoundAndReachesAll) {
  RandomStream random(3);
  for (const std::uint64_t bound : {1, 2, 7, 10}) {
    std::set<std::uint64_t> seen;
    for (int n = 0; n < 500; ++n) seen.insert(random.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;
  for (int n = 0; n < 100; ++n) EXPECT_LT(random.below(large), large);
}

// The rest of a division would give the first third of them twice as often.
TEST(RandomStream, EveryResultBelowALargeBoundIsAsLikely) {
  constexpr std::uint64_t kThird = std::uint64_t{1} << 62;
  constexpr int kCount = 9000;
  RandomStream random(4);
  std::array<int, 3> thirds{};
  for (int n = 0; n < kCount; ++n) ++thirds.at(random.below(3 * kThird) / kThird);
  // Five standard deviations, sqrt(2 / 9 kCount).
  for (const int count : thirds) EXPECT_NEAR(count, kCount / 3, 224);
}

/// |found - exact| in units of the last place of exact.
double ulps(double found, long double exact) {
  const double near = std::abs(static_cast<double>(exact));
  const double ulp = std::nextafter(near, HUGE_VAL) - near;
  return static_cast<double>(std::abs(static_cast<long double>(found) - exact)) / ulp;
}

TEST(PortableExp, IsWithinOneUlp) {
  RandomStream random(4);
  for (int n = 0; n < 200000; ++n) {
    const double x = n % 2 ? random.uniform(-708.0, 709.0) : random.uniform(-2.0, 2.0);
    ASSERT_LE(ulps(portable_exp(x), std::exp(static_cast<long double>(x))), 1.0) << x;
  }
  // Up to the largest result, and down to the smallest, which have fewer digits.
  for (int n = 0; n < 20000; ++n) {
    const double x =
        n % 2 ? random.uniform(708.0, 709.7827128933839) : random.uniform(-745.1, -708.0);
    ASSERT_LE(ulps(portable_exp(x), std::exp(static_cast<long double>(x))), 1.0) << x;
  }
  EXPECT_EQ(portable_exp(709.7827128933841), HUGE_VAL);
  EXPECT_EQ(portable_exp(-745.133), 5e-324);
  EXPECT_EQ(portable_exp(-745.2), 0.0);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(1000.0), HUGE_VAL);
  EXPECT_EQ(portable_exp(-1000.0), 0.0);
  EXPECT_EQ(portable_exp(-HUGE_VAL), 0.0);
  EXPECT_EQ(portable_exp(HUGE_VAL), HUGE_VAL);
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
}

TEST(PortableLog, IsWithinOneUlp) {
  RandomStream random(5);
  for (int n = 0; n < 200000; ++n) {
    const double x = n % 2 ? std::ldexp(random.uniform(0.5, 1.0), static_cast<int>(n % 2000) - 1000)
                           : random.uniform(0.5, 2.0);
    ASSERT_LE(ulps(portable_log(x), std::log(static_cast<long double>(x))), 1.0) << x;
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(0.0), -HUGE_VAL);
  EXPECT_EQ(portable_log(HUGE_VAL), HUGE_VAL);
  EXPECT_TRUE(std::isnan(portable_log(-1.0)));
  EXPECT_TRUE(std::isnan(portable_log(std::nan(""))));
}

}  // namespace
}  // namespace openrnn
