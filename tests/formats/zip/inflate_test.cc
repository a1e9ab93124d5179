// Deflate streams made bit by bit: every code of lengths and distances, every limit.
#include "formats/zip/inflate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace openrnn::formats {
namespace {

class BitWriter {
 public:
  // From the lowest bit.
  void put(std::uint32_t value, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i) {
      if (used_ % 8 == 0) bytes_ += '\0';
      bytes_.back() = static_cast<char>(bytes_.back() | ((value >> i & 1u) << (used_ % 8)));
      ++used_;
    }
  }
  // A code of Huffman, from the highest bit.
  void code(std::uint32_t value, unsigned bits) {
    for (unsigned i = bits; i-- > 0;) put(value >> i & 1u, 1);
  }
  void to_byte() { used_ = bytes_.size() * 8; }
  void append(std::string_view bytes) {
    bytes_ += bytes;
    used_ = bytes_.size() * 8;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t used_ = 0;
};

// The code of RFC 1951, section 3.2.6.
void put_fixed_symbol(BitWriter* out, unsigned symbol) {
  if (symbol < 144) return out->code(0x30 + symbol, 8);
  if (symbol < 256) return out->code(0x190 + symbol - 144, 9);
  if (symbol < 280) return out->code(symbol - 256, 7);
  out->code(0xc0 + symbol - 280, 8);
}

// As section 3.2.5 says it: groups of four codes of lengths, of two codes of distances.
void put_length(BitWriter* out, unsigned length) {
  if (length == 258) return put_fixed_symbol(out, 285);
  unsigned symbol = 257, base = 3, bits = 0;
  for (;; ++symbol) {
    bits = symbol < 265 ? 0 : (symbol - 261) / 4;
    if (length < base + (1u << bits)) break;
    base += 1u << bits;
  }
  put_fixed_symbol(out, symbol);
  out->put(length - base, bits);
}
void put_distance(BitWriter* out, unsigned distance) {
  unsigned symbol = 0, base = 1, bits = 0;
  for (;; ++symbol) {
    bits = symbol < 4 ? 0 : symbol / 2 - 1;
    if (distance < base + (1u << bits)) break;
    base += 1u << bits;
  }
  out->code(symbol, 5);
  out->put(distance - base, bits);
}

std::string inflated(const std::string& stream, std::size_t bytes) {
  std::string out(bytes, '\0');
  return inflate(stream, out.data(), bytes) ? out : "refused";
}

TEST(Inflate, EveryLengthAndDistance) {
  // Bytes that do not repeat soon, so that a wrong distance gives other bytes.
  std::string expected;
  std::uint32_t state = 1;
  BitWriter out;
  out.put(1, 1);
  out.put(1, 2);
  while (expected.size() < 33000) {
    state = state * 1664525u + 1013904223u;
    expected += static_cast<char>(state >> 24);
    put_fixed_symbol(&out, static_cast<unsigned char>(expected.back()));
  }
  const auto match = [&](unsigned length, unsigned distance) {
    put_length(&out, length);
    put_distance(&out, distance);
    for (unsigned i = 0; i < length; ++i) expected += expected[expected.size() - distance];
  };
  for (unsigned length = 3; length <= 258; ++length) match(length, 1000 + length);
  for (unsigned distance = 1; distance <= 32768; distance += 1 + distance / 7) {
    match(3, distance);
    match(5, distance + distance / 8 <= 32768 ? distance + distance / 8 : 32768);
  }
  match(10, 1);  // reaches into what it writes
  match(258, 32768);
  put_fixed_symbol(&out, 256);
  EXPECT_EQ(inflated(out.bytes(), expected.size()), expected);
  EXPECT_EQ(inflated(out.bytes(), expected.size() - 1), "refused");
  EXPECT_EQ(inflated(out.bytes(), expected.size() + 1), "refused");
  EXPECT_EQ(inflated(out.bytes() + "x", expected.size()), "refused");
}

std::string fixed_block(const std::vector<unsigned>& symbols, bool last = true) {
  BitWriter out;
  out.put(last, 1);
  out.put(1, 2);
  for (const unsigned symbol : symbols) put_fixed_symbol(&out, symbol);
  return out.bytes();
}

TEST(Inflate, FixedBlocks) {
  EXPECT_EQ(inflated(fixed_block({'a', 143, 144, 255, 'b', 256}), 5),
            "a\x8f\x90\xff"
            "b");
  EXPECT_EQ(inflated(fixed_block({256}), 0), "");
  EXPECT_EQ(inflated(fixed_block({'a', 'b', 256}), 1), "refused");
  EXPECT_EQ(inflated(fixed_block({'a', 256}), 2), "refused");
  EXPECT_EQ(inflated(fixed_block({'a'}), 1), "refused");              // does not end
  EXPECT_EQ(inflated(fixed_block({'a', 256}, false), 1), "refused");  // nor the last block
  EXPECT_EQ(inflated(fixed_block({'a', 286, 256}), 4), "refused");
  EXPECT_EQ(inflated("", 0), "refused");
  const auto match = [](unsigned length, unsigned distance_code, unsigned extra) {
    BitWriter out;
    out.put(1, 1);
    out.put(1, 2);
    put_fixed_symbol(&out, 'a');
    put_length(&out, length);
    out.code(distance_code, 5);
    out.put(extra, 0);
    put_fixed_symbol(&out, 256);
    return out.bytes();
  };
  EXPECT_EQ(inflated(match(3, 0, 0), 4), "aaaa");
  EXPECT_EQ(inflated(match(3, 1, 0), 4), "refused");   // before the first byte
  EXPECT_EQ(inflated(match(4, 0, 0), 4), "refused");   // beyond the last
  EXPECT_EQ(inflated(match(3, 30, 0), 4), "refused");  // no code
  EXPECT_EQ(inflated(match(3, 31, 0), 4), "refused");
}

TEST(Inflate, StoredBlocksAndSeveral) {
  const auto stored = [](std::string_view bytes, bool last, unsigned inverse_fault = 0) {
    BitWriter out;
    out.put(last, 1);
    out.put(0, 2);
    out.to_byte();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    out.put(size, 16);
    out.put(~size ^ inverse_fault, 16);
    out.append(bytes);
    return out.bytes();
  };
  EXPECT_EQ(inflated(stored("hello", true), 5), "hello");
  EXPECT_EQ(inflated(stored("", true), 0), "");
  EXPECT_EQ(inflated(stored("hello ", false) + stored("world", true), 11), "hello world");
  EXPECT_EQ(inflated(stored("hello ", false) + fixed_block({'y', 256}), 7), "hello y");
  EXPECT_EQ(inflated(stored("hello", true, 1), 5), "refused");
  EXPECT_EQ(inflated(stored("hello", true, 0x8000), 5), "refused");
  EXPECT_EQ(inflated(stored("hello", true), 4), "refused");
  EXPECT_EQ(inflated(stored("hello", true), 6), "refused");
  const std::string whole = stored("hello", true);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(inflated(whole.substr(0, size), 5), "refused") << size;
  }
  BitWriter reserved;
  reserved.put(1, 1);
  reserved.put(3, 2);
  reserved.put(0, 13);
  EXPECT_EQ(inflated(reserved.bytes(), 0), "refused");
  // Behind a block of codes, a stored one begins at the next byte, though bits were looked at.
  BitWriter both;
  both.put(0, 1);
  both.put(1, 2);
  put_fixed_symbol(&both, 'a');
  put_fixed_symbol(&both, 256);
  both.put(1, 1);
  both.put(0, 2);
  both.to_byte();
  both.put(2, 16);
  both.put(0xfffd, 16);
  both.append("bc");
  EXPECT_EQ(inflated(both.bytes(), 3), "abc");
}

// ---- Blocks with codes of their own ------------------------------------------------------------

// The lengths of both codes, as runs: a symbol of the code of lengths, and what follows it.
struct CodeRun {
  unsigned symbol, extra = 0;
};

struct CodeBlock {
  unsigned literals, distances;
  std::vector<CodeRun> runs;
  // 13 symbols of 4 bits and 6 of 5 are a whole code.
  std::vector<unsigned> length_bits{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5};

  static void put_code(BitWriter* out, const std::vector<unsigned>& lengths, unsigned symbol) {
    unsigned code = 0;
    for (unsigned bits = 1; bits <= 15; ++bits) {
      code <<= 1;
      for (unsigned i = 0; i < lengths.size(); ++i) {
        if (lengths[i] != bits) continue;
        if (i == symbol) return out->code(code, bits);
        ++code;
      }
    }
    // None, where the test is of codes that are refused before.
  }

  std::vector<unsigned> lengths() const {
    std::vector<unsigned> all;
    for (const auto& [symbol, extra] : runs) {
      if (symbol < 16) all.push_back(symbol);
      if (symbol == 16) all.insert(all.end(), 3 + extra, all.empty() ? 0 : all.back());
      if (symbol == 17) all.insert(all.end(), 3 + extra, 0);
      if (symbol == 18) all.insert(all.end(), 11 + extra, 0);
    }
    return all;
  }

  // 1000 and more: a code of distances.
  std::string stream(const std::vector<unsigned>& symbols) const {
    static constexpr unsigned kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};
    BitWriter out;
    out.put(1, 1);
    out.put(2, 2);
    out.put(literals - 257, 5);
    out.put(distances - 1, 5);
    out.put(15, 4);
    for (const unsigned symbol : kOrder) out.put(length_bits[symbol], 3);
    for (const CodeRun& run : runs) {
      put_code(&out, length_bits, run.symbol);
      if (run.symbol > 15) out.put(run.extra, run.symbol == 16 ? 2 : run.symbol == 17 ? 3 : 7);
    }
    const std::vector<unsigned> all = lengths();
    const auto end = all.begin() + std::min<std::ptrdiff_t>(literals, std::ssize(all));
    for (const unsigned symbol : symbols) {
      symbol < 1000 ? put_code(&out, {all.begin(), end}, symbol)
                    : put_code(&out, {end, all.end()}, symbol - 1000);
    }
    return out.bytes();
  }
};

// 97 zeros, 'a' to 'f' of 3 bits, 138, 11 and 4 zeros, the end and a length of 3 with 3 bits; a
// distance of 1 bit.
CodeBlock few_symbols() {
  return {258, 1, {{18, 86}, {3}, {16, 2}, {18, 127}, {18, 0}, {17, 1}, {3}, {3}, {1}}};
}

TEST(Inflate, BlocksWithCodesOfTheirOwn) {
  const std::vector<unsigned> symbols{'b', 'f', 'a', 257, 1000, 256};
  EXPECT_EQ(inflated(few_symbols().stream(symbols), 6), "bfaaaa");
  const std::string whole = few_symbols().stream(symbols);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(inflated(whole.substr(0, size), 6), "refused") << size;
  }
  // As many codes as there may be.
  CodeBlock most = few_symbols();
  most.literals = 286;
  most.distances = 30;
  most.runs = {{18, 86}, {3}, {16, 2},  {18, 127}, {18, 0}, {17, 1},
               {3},      {3}, {18, 17}, {1},       {18, 18}};
  EXPECT_EQ(inflated(most.stream(symbols), 6), "bfaaaa");
}

TEST(Inflate, CodesThatAreNone) {
  const std::vector<unsigned> symbols{'a', 256};
  const auto refused = [&](const auto& change) {
    CodeBlock block = few_symbols();
    EXPECT_EQ(inflated(block.stream(symbols), 1), "a");
    change(&block);
    return inflated(block.stream(symbols), 1) == "refused";
  };
  EXPECT_TRUE(refused([](CodeBlock* b) {
    b->literals = 287;
    b->runs.insert(b->runs.end() - 1, {18, 18});
  }));
  EXPECT_TRUE(refused([](CodeBlock* b) {
    b->distances = 31;
    b->runs.push_back({18, 19});
  }));
  // A run of one too many.
  EXPECT_TRUE(refused([](CodeBlock* b) { b->runs.back() = {17, 0}; }));
  // Nothing to repeat.
  EXPECT_TRUE(refused([](CodeBlock* b) { b->runs[0] = {16, 3}; }));
  // Too many symbols for their bits, and too few.
  EXPECT_TRUE(refused([](CodeBlock* b) { b->runs[1] = {2}; }));
  EXPECT_TRUE(refused([](CodeBlock* b) { b->runs[1] = {4}; }));
  EXPECT_TRUE(refused([](CodeBlock* b) { b->length_bits[0] = 3; }));
  EXPECT_TRUE(refused([](CodeBlock* b) { b->length_bits[0] = 5; }));
  // One distance alone may have any length; it is then the code of zeros.
  EXPECT_FALSE(refused([](CodeBlock* b) { b->runs.back() = {4}; }));
  EXPECT_FALSE(refused([](CodeBlock* b) { b->runs.back() = {0}; }));
}

TEST(Inflate, AnEndIsNeeded) {
  // 'a' to 'f' and two codes of lengths: no code of 256.
  const CodeBlock block{
      259, 1, {{18, 86}, {3}, {16, 2}, {18, 127}, {18, 0}, {17, 1}, {0}, {3}, {3}, {1}}};
  EXPECT_EQ(inflated(block.stream({'a'}), 1), "refused");
  // A distance that has no code.
  const CodeBlock few = few_symbols();
  const std::string one = few.stream({'a', 257, 1000, 256});
  EXPECT_EQ(inflated(one, 4), "aaaa");
  CodeBlock none = few;
  none.runs.back() = {0};
  EXPECT_EQ(inflated(none.stream({'a', 257}) + std::string(4, '\0'), 4), "refused");
}

// ---- zlib --------------------------------------------------------------------------------------

std::uint32_t checksum(const std::string& bytes) {
  std::uint64_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return static_cast<std::uint32_t>(b << 16 | a);
}

std::string zlib_of(const std::string& bytes) {
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < bytes.size() || at == 0; at += 65535) {
    const std::string part = bytes.substr(at, 65535);
    out += at + 65535 >= bytes.size() ? '\1' : '\0';
    for (const std::size_t size : {part.size(), ~part.size()}) {
      out += static_cast<char>(size);
      out += static_cast<char>(size >> 8);
    }
    out += part;
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(checksum(bytes) >> shift);
  }
  return out;
}

std::string unzlibbed(const std::string& stream, std::size_t bytes) {
  std::string out(bytes, '\0');
  return inflate_zlib(stream, out.data(), bytes) ? out : "refused";
}

TEST(Inflate, Zlib) {
  // The sums of the last one leave 32 bits unless they are reduced every 5552 bytes.
  for (const std::size_t size : {0, 1, 5551, 5552, 5553, 70000, 1 << 20}) {
    const std::string bytes(size, '\xff');
    EXPECT_EQ(unzlibbed(zlib_of(bytes), size), bytes) << size;
  }
  const std::string whole = zlib_of("hello");
  EXPECT_EQ(unzlibbed(whole, 5), "hello");
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1}, whole.size() - 1, whole.size() - 4}) {
    for (const int change : {1, 0x20, 0x80}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      EXPECT_EQ(unzlibbed(changed, 5), "refused") << at;
    }
  }
  // Another method with a right check; a preset dictionary with one.
  EXPECT_EQ(unzlibbed("\x79\x18" + whole.substr(2), 5), "refused");
  EXPECT_EQ(unzlibbed("\x78\x20" + whole.substr(2), 5), "refused");
  EXPECT_EQ(unzlibbed("\x78\x9c" + whole.substr(2), 5), "hello");
  EXPECT_EQ(unzlibbed(whole + "x", 5), "refused");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(unzlibbed(whole.substr(0, size), 5), "refused") << size;
  }
}

TEST(Inflate, Growth) {
  constexpr std::uint64_t kFree = std::uint64_t{1} << 20;
  EXPECT_TRUE(may_grow_to(0, kFree));
  EXPECT_TRUE(may_grow_to(0, kFree + 63));
  EXPECT_FALSE(may_grow_to(0, kFree + 64));
  EXPECT_TRUE(may_grow_to(10, kFree + 640 + 63));
  EXPECT_FALSE(may_grow_to(10, kFree + 640 + 64));
}

}  // namespace
}  // namespace openrnn::formats
