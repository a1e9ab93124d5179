#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/counter.h"
#include "base/power.h"
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
  for (const int count : thirds) EXPECT_NEAR(count, kCount / 3.0, 224);
}

// ---- The words of streams and masks, from Philox alone -----------------------------------------

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

std::uint32_t word_of(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
  const std::uint64_t key = mixed(seed), block = number / 4;
  return philox({low(block), high(block), low(stream), high(stream)},
                {low(key), high(key)})[number % 4];
}

TEST(RandomStream, CountsBlocksOfPhilox) {
  constexpr std::uint64_t kLarge = 0x1234567890ABCDEF;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{9}, kLarge}) {
    for (const std::uint64_t stream : {std::uint64_t{0}, std::uint64_t{2}, kLarge}) {
      RandomStream words(seed, stream), uniform(seed, stream), scaled(seed, stream);
      for (std::uint64_t n = 0; n < 40; n += 2) {
        const std::uint32_t first = word_of(seed, stream, n), next = word_of(seed, stream, n + 1);
        EXPECT_EQ(words.next_uint32(), first) << n;
        EXPECT_EQ(words.next_uint32(), next) << n;
        const double u = static_cast<double>((std::uint64_t{first} << 32 | next) >> 11) * 0x1p-53;
        EXPECT_EQ(uniform.uniform(), u) << n;
        EXPECT_EQ(scaled.uniform(-3.0, 5.0), -3.0 + 8.0 * u) << n;
      }
    }
  }
}

TEST(RandomStream, DrawsAgainWhatItCannotUse) {
  RandomStream random(12, 3), normals(12, 3);
  std::uint64_t at = 0;
  const auto next = [&] {
    const std::uint64_t first = word_of(12, 3, at++);
    return first << 32 | word_of(12, 3, at++);
  };
  for (const std::uint64_t bound :
       {std::uint64_t{10}, (std::uint64_t{1} << 63) + 1, ~std::uint64_t{0}, std::uint64_t{3} << 62,
        std::uint64_t{1}, std::uint64_t{1000}}) {
    for (int n = 0; n < 8; ++n) {
      std::uint64_t word = next();
      while (word < (0 - bound) % bound) word = next();
      EXPECT_EQ(random.below(bound), word % bound) << bound;
    }
  }
  at = 0;
  const auto side = [&] { return -1.0 + 2.0 * (static_cast<double>(next() >> 11) * 0x1p-53); };
  for (int n = 0; n < 50; ++n) {
    double u = side(), v = side();
    while (u * u + v * v >= 1.0) u = side(), v = side();
    const double s = u * u + v * v;
    EXPECT_EQ(normals.normal(), u * std::sqrt(-2.0 * portable_log(s) / s)) << n;
  }
}

TEST(DropoutMask, ComparesWordsOfPhilox) {
  for (const double rate : {0.0, 0.25, 0.5, 0.8125, 1.0}) {
    for (const DropoutKey& key : {DropoutKey{5, 7}, DropoutKey{std::uint64_t{1} << 60, 1}}) {
      const DropoutRow row{3, 11, 1000};
      const std::uint64_t words = mixed(key.seed) ^ mixed(mixed(key.call));
      const std::vector<double> found = mask(key, row, rate, 27);
      for (std::uint32_t unit = 0; unit < 27; ++unit) {
        const std::uint32_t word =
            philox({unit / 4, row.row, row.time, row.layer}, {low(words), high(words)})[unit % 4];
        const bool dropped = static_cast<double>(word) < rate * 0x1p32;
        EXPECT_EQ(found[unit], dropped ? 0.0 : 1.0 / (1.0 - rate)) << unit;
      }
    }
  }
  for (int of = 0; of <= static_cast<int>(MaskOf::kZoneoutCell); ++of) {
    const DropoutKey key = key_of({5, 7, 2, 9}, static_cast<MaskOf>(of));
    EXPECT_EQ(key.seed, 5 + static_cast<std::uint64_t>(of) * 0x9E3779B97F4A7C15u);
    EXPECT_EQ(key.call, 7U);
    EXPECT_EQ(key.first_row, 2);
    EXPECT_EQ(key.whole_batch, 9);
  }
}

TEST(PartRows, AreNumberedAsInTheWhole) {
  const auto numbers = [](const counter::PartRows& part) {
    std::vector<std::int64_t> all;
    for (std::int64_t row = 0; row < 7; ++row) all.push_back(part.number(row));
    return all;
  };
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(numbers({}), (Numbers{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers({.group = 2, .stride = 5, .first = 1}), (Numbers{1, 2, 6, 7, 11, 12, 16}));
  EXPECT_EQ(numbers({.group = 3, .stride = 10, .first = 4}), (Numbers{4, 5, 6, 14, 15, 16, 24}));
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

const auto kSplit = [](double x, int* exponent) { return std::frexp(x, exponent); };
const auto kScaled = [](double x, int exponent) { return std::ldexp(x, exponent); };

// Every pair of numbers of which C's pow says something of its own.
TEST(PowerOf, HasTheSpecialCasesOfPow) {
  const double infinity = HUGE_VAL, large = 0x1p53, tiny = 5e-324;
  std::vector<double> all{0.0,    0.5,   1.0,       1.5,           2.0,           3.0,
                          4.0,    5.0,   large - 1, large,         large + 2,     0x1p64,
                          0x1p70, 1e300, tiny,      1.0 + 0x1p-52, 1.0 - 0x1p-53, infinity};
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) all.push_back(-all[i]);
  all.push_back(std::nan(""));
  for (const double x : all) {
    for (const double y : all) {
      const double found = power_of(x, y, kSplit, kScaled), expected = std::pow(x, y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << x << " " << y;
        continue;
      }
      EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << " " << y;
      if (expected == 0.0 || std::isinf(expected)) {
        EXPECT_EQ(found, expected) << x << " " << y;
      } else {
        EXPECT_LE(ulps(found, std::pow(static_cast<long double>(x), y)), 2.0) << x << " " << y;
      }
    }
  }
}

TEST(PowerOf, IsWithinTwoUlp) {
  RandomStream random(6);
  for (int n = 0; n < 100000; ++n) {
    const int kind = n % 4;
    const double x = kind == 0   ? random.uniform(0.0, 2.0)
                     : kind == 1 ? std::ldexp(random.uniform(0.5, 1.0), n % 2000 - 1000)
                     : kind == 2 ? random.uniform(0.999, 1.001)
                                 : random.uniform(-9.0, 0.0);
    const double y = kind == 1   ? random.uniform(-1.0, 1.0)
                     : kind == 2 ? random.uniform(-6e5, 6e5)
                     : kind == 3 ? std::floor(random.uniform(-300.0, 300.0))
                                 : random.uniform(-700.0, 700.0);
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    if (std::abs(exact) > 1e308L || std::abs(exact) < 3e-308L) continue;
    const double found = power_of(x, y, kSplit, kScaled);
    ASSERT_LE(ulps(found, exact), 2.0) << x << " " << y;
    ASSERT_EQ(found < 0.0, exact < 0.0L) << x << " " << y;
  }
}

TEST(SoftplusOf, IsWithinTwoUlp) {
  RandomStream random(7);
  for (int n = 0; n < 100000; ++n) {
    const double width = n % 3 == 0 ? 1.0 : n % 3 == 1 ? 40.0 : 700.0;
    const double x = random.uniform(-width, width);
    const long double exact = std::log1p(std::exp(static_cast<long double>(x)));
    ASSERT_LE(ulps(softplus_of(x, kSplit, kScaled), exact), 2.0) << x;
  }
  EXPECT_EQ(softplus_of(HUGE_VAL, kSplit, kScaled), HUGE_VAL);
  EXPECT_EQ(softplus_of(-HUGE_VAL, kSplit, kScaled), 0.0);
  EXPECT_EQ(softplus_of(-745.0, kSplit, kScaled), 5e-324);
  EXPECT_EQ(softplus_of(710.0, kSplit, kScaled), 710.0);
  EXPECT_TRUE(std::isnan(softplus_of(std::nan(""), kSplit, kScaled)));
}

TEST(ExpOfPair, TakesBothParts) {
  for (const double x : {-700.5, -1.25, 0.0, 0.75, 30.0, 708.5}) {
    for (const double part : {-1e-17, 0.0, 3e-16}) {
      const double rest = part * std::max(1.0, std::abs(x));
      const long double exact = std::exp(static_cast<long double>(x) + rest);
      EXPECT_LE(ulps(exp_of_pair({x, rest}, kScaled), exact), 1.0) << x << " " << rest;
    }
  }
  EXPECT_EQ(exp_of_pair({709.9, 0.0}, kScaled), HUGE_VAL);
  EXPECT_EQ(exp_of_pair({709.79, 0.0}, kScaled), HUGE_VAL);
  EXPECT_EQ(exp_of_pair({-745.3, 0.0}, kScaled), 0.0);
}

// What a sum or product of two numbers loses is the low part.
TEST(DoublePairs, AreExact) {
  RandomStream random(8);
  for (int n = 0; n < 20000; ++n) {
    const double a = std::ldexp(random.uniform(-1.0, 1.0), n % 60 - 30),
                 b = random.uniform(-9.0, 9.0);
    const DoublePair sum = exact_sum(a, b), product = exact_product(a, b);
    ASSERT_EQ(sum.high, a + b);
    ASSERT_EQ(static_cast<long double>(sum.high) + sum.low, static_cast<long double>(a) + b);
    ASSERT_EQ(product.high, a * b);
    ASSERT_EQ(product.low, std::fma(a, b, -product.high)) << a << " " << b;
    int exponent = 0;
    const double m = std::frexp(std::abs(a), &exponent);
    const long double exact = std::log(std::abs(static_cast<long double>(a)));
    const DoublePair log = log_pair(m, exponent);
    const long double error = static_cast<long double>(log.high) + log.low - exact;
    // 2^-63 of its own; as much of logl, and half of it of this sum.
    ASSERT_LE(std::abs(error), 0x1p-61L * std::abs(exact)) << a;
  }
}

TEST(WholeNumbers, OddAndEven) {
  for (const double y : {0.0, 1.0, 2.0, 3.0, 0x1p52 + 1, 0x1p53 - 1, 0x1p53, 0x1p53 + 2, 1e300}) {
    for (const double sign : {1.0, -1.0}) {
      EXPECT_TRUE(is_whole(sign * y)) << y;
      EXPECT_EQ(is_odd(sign * y), std::fmod(y, 2.0) == 1.0) << y;
    }
  }
  for (const double y : {0.5, 1.5, 0x1p51 + 0.5, 1e-300}) {
    EXPECT_FALSE(is_whole(y) || is_whole(-y) || is_odd(y)) << y;
  }
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
