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

TEST(ContentHash, IsTheBestOfThem) {
  const Bytes content = floats(3001);
  EXPECT_EQ(content_hash(content.data(), content.size(), 4),
            content_hashes()[0](content.data(), content.size(), 4));
}

INSTANTIATE_TEST_SUITE_P(Functions, ContentHashes,
                         testing::ValuesIn(content_hashes().begin(), content_hashes().end()));

}  // namespace
}  // namespace openrnn
