#include "base/hash/content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace openrnn {
namespace {

using Bytes = std::vector<unsigned char>;

/// Contents by their hashes; counts those that differ from another of the same hash.
class Seen {
 public:
  explicit Seen(ContentHash hash) : hash_(hash) {}
  void add(const Bytes& content) {
    const auto [place, fresh] = all_.emplace(hash_(content.data(), content.size(), 5), content);
    if (!fresh && place->second != content) ++collisions_;
  }
  int collisions() const { return collisions_; }

 private:
  ContentHash hash_;
  std::map<std::uint64_t, Bytes> all_;
  int collisions_ = 0;
};

void flip(Bytes& content, std::size_t bit) {
  content[bit / 8] = static_cast<unsigned char>(content[bit / 8] ^ (1U << (bit % 8)));
}

void flip_each_bit_and_some_pairs(Bytes content, Seen& seen) {
  std::mt19937 random(3);
  const std::size_t bits = content.size() * 8;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    flip(content, bit);
    seen.add(content);
    const std::size_t other = random() % bits;
    flip(content, other);
    seen.add(content);
    flip(content, other);
    flip(content, bit);
  }
}

void exchange_words(Bytes content, Seen& seen) {
  constexpr std::size_t kWord = 4;
  for (std::size_t i = 0; i + kWord <= content.size(); i += kWord) {
    for (std::size_t j = i + kWord; j + kWord <= content.size(); j += 7 * kWord) {
      const auto at = [&](std::size_t place) {
        return content.begin() + static_cast<std::ptrdiff_t>(place);
      };
      std::swap_ranges(at(i), at(i + kWord), at(j));
      seen.add(content);
      std::swap_ranges(at(i), at(i + kWord), at(j));
    }
  }
}

Bytes floats(std::size_t bytes) {
  Bytes content(bytes);
  for (std::size_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
    const float value = 0.01F * static_cast<float>(i % 97);
    std::memcpy(&content[i], &value, sizeof value);
  }
  return content;
}

class ContentHashes : public testing::TestWithParam<ContentHash> {};

// Weights are zeros, or repeat, before they are trained: there a weak hash takes changes for none.
TEST_P(ContentHashes, TellsContentsApartThatDifferInAFewBits) {
  for (const std::size_t bytes : {1U, 4U, 31U, 32U, 127U, 400U, 1024U, 1100U}) {
    Seen seen(GetParam());
    flip_each_bit_and_some_pairs(Bytes(bytes), seen);
    flip_each_bit_and_some_pairs(floats(bytes), seen);
    EXPECT_EQ(seen.collisions(), 0) << bytes;
  }
}

TEST_P(ContentHashes, TellsOrdersApart) {
  for (const std::size_t bytes : {400U, 3000U}) {
    Seen seen(GetParam());
    exchange_words(floats(bytes), seen);
    EXPECT_EQ(seen.collisions(), 0) << bytes;
  }
}

TEST_P(ContentHashes, BlocksLengthsAndSeedsCount) {
  Bytes content = floats(4096);
  Seen seen(GetParam());
  for (std::size_t block = 0; block < 3; ++block) {
    const auto at = content.begin() + static_cast<std::ptrdiff_t>(1024 * block);
    std::swap_ranges(at, at + 1024, at + 1024);
    content[0] = 1;
    seen.add(content);
  }
  for (std::size_t bytes = 0; bytes < 200; ++bytes) seen.add(Bytes(bytes));
  EXPECT_EQ(seen.collisions(), 0);
  const ContentHash hash = GetParam();
  EXPECT_NE(hash(content.data(), 100, 1), hash(content.data(), 100, 2));
  EXPECT_EQ(hash(content.data(), 100, 1), hash(content.data(), 100, 1));
}

// Wherever the content lies: a copy of it elsewhere is the same.
TEST_P(ContentHashes, DoesNotDependOnTheAddress) {
  const Bytes content = floats(1100);
  Bytes moved(content.size() + 64);
  const std::uint64_t expected = GetParam()(content.data(), content.size(), 9);
  for (std::size_t start = 0; start < 64; ++start) {
    std::copy(content.begin(), content.end(), moved.begin() + static_cast<std::ptrdiff_t>(start));
    EXPECT_EQ(GetParam()(moved.data() + start, content.size(), 9), expected);
  }
}

// ---- What they compute, one word at a time -----------------------------------------------------

using Words = std::vector<std::uint64_t>;
constexpr std::size_t kBlock = 1024;
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Words keys_from(std::uint64_t state) {
  Words keys(kBlock / 8);
  for (std::uint64_t& key : keys) key = scrambled(state += kGolden);
  return keys;
}

// Padded with zeros to whole steps; a block ends after 1024 bytes, and before a padded step.
std::vector<Words> blocks_of(const Bytes& content, std::size_t step) {
  std::vector<Words> blocks;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t left = content.size() - at;
    const std::size_t size = left < step ? left : std::min(left / step * step, kBlock);
    Bytes block(content.begin() + static_cast<std::ptrdiff_t>(at),
                content.begin() + static_cast<std::ptrdiff_t>(at + size));
    block.resize((size + step - 1) / step * step);
    Words words(block.size() / 8);
    std::memcpy(words.data(), block.data(), block.size());
    blocks.push_back(words);
    at += size;
  }
  return blocks;
}

std::uint64_t hash_of_long_words(const Bytes& content, std::uint64_t seed) {
  __extension__ using Wide = unsigned __int128;
  const Words keys = keys_from(1);
  std::uint64_t hash = scrambled(seed ^ content.size()) + seed;
  for (const Words& block : blocks_of(content, 32)) {
    Wide sums[2] = {0, 0};
    for (std::size_t i = 0; i < block.size(); i += 2) {
      const std::uint64_t a = block[i] + keys[i], b = block[i + 1] + keys[i + 1];
      sums[i / 2 % 2] += static_cast<Wide>(a) * b;
    }
    for (const Wide sum : sums) {
      hash = scrambled(hash + static_cast<std::uint64_t>(sum)) + kGolden;
      hash = scrambled(hash ^ static_cast<std::uint64_t>(sum >> 64));
    }
  }
  return hash;
}

// Of vectors of `lanes` words of 64 bits.
std::uint64_t hash_of_lanes(const Bytes& content, std::uint64_t seed, std::size_t lanes) {
  const Words keys[2] = {keys_from(1), keys_from(2)};
  const std::uint64_t start = scrambled(seed ^ content.size()) + seed;
  Words sums(2 * lanes, start);
  for (const Words& block : blocks_of(content, 8 * lanes)) {
    for (std::size_t which = 0; which < 2; ++which) {
      for (std::size_t i = 0; i < block.size(); ++i) {
        const std::uint64_t key = keys[which][i];
        const auto low = static_cast<std::uint32_t>(block[i] + key);
        const auto high = static_cast<std::uint32_t>((block[i] >> 32) + (key >> 32));
        sums[which * lanes + i % lanes] += std::uint64_t{low} * high;
      }
    }
    for (std::uint64_t& sum : sums) sum = (sum ^ (sum >> 29)) * 0x9e3779b1;
  }
  std::uint64_t hash = start;
  for (const std::uint64_t sum : sums) hash = scrambled((hash ^ sum) + kGolden);
  return hash;
}

// The widest first: each is the one of its instructions, whatever those are.
TEST(ContentHash, EachIsTheSumOfProductsThatItSaysToBe) {
  const std::size_t count = content_hashes().size();
  std::mt19937 random(8);
  for (const std::size_t bytes : {0, 1, 31, 32, 33, 64, 100, 1023, 1024, 1025, 2048, 2111, 4000}) {
    Bytes content(static_cast<std::size_t>(bytes));
    for (unsigned char& byte : content) byte = static_cast<unsigned char>(random());
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{5}}) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t lanes = i + 1 == count ? 0 : i + 2 == count ? 4 : 8;
        const std::uint64_t found = content_hashes()[i](content.data(), content.size(), seed);
        ASSERT_EQ(found,
                  lanes ? hash_of_lanes(content, seed, lanes) : hash_of_long_words(content, seed))
            << bytes << " bytes, " << lanes << " lanes";
      }
    }
  }
}

TEST(ContentHash, IsTheBestOfThem) {
  const Bytes content = floats(3001);
  EXPECT_EQ(content_hash(content.data(), content.size(), 4),
            content_hashes()[0](content.data(), content.size(), 4));
}

INSTANTIATE_TEST_SUITE_P(Functions, ContentHashes,
                         testing::ValuesIn(content_hashes().begin(), content_hashes().end()));

}  // namespace
}  // namespace openrnn
