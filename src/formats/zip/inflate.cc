#include "formats/zip/inflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace openrnn::formats {

namespace {

constexpr unsigned kMaxCodeBits = 15;
constexpr std::size_t kLiterals = 286, kDistances = 30, kEndOfBlock = 256;

// What a symbol of lengths or distances starts at, and how many bits follow it.
struct RangeOfCode {
  std::uint16_t base;
  std::uint8_t bits;
};
constexpr RangeOfCode kLengthCodes[] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr RangeOfCode kDistanceCodes[kDistances] = {
    {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
    {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
    {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
    {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};
// The order in which the lengths of the code of lengths are stored.
constexpr std::uint8_t kLengthOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                         11, 4,  12, 3, 13, 2, 14, 1, 15};

// Bits from the lowest of each byte.
class DeflateBits {
 public:
  explicit DeflateBits(std::string_view bytes) : bytes_(bytes) {}

  // The next bits, zeros behind the end; at most 32.
  std::uint32_t peek(unsigned bits) {
    while (count_ < bits) {
      const std::uint64_t byte = at_ < bytes_.size() ? static_cast<unsigned char>(bytes_[at_]) : 0;
      ++at_;
      buffer_ |= byte << count_;
      count_ += 8;
    }
    return static_cast<std::uint32_t>(buffer_ & ((std::uint64_t{1} << bits) - 1));
  }
  void drop(unsigned bits) {
    buffer_ >>= bits;
    count_ -= bits;
  }
  std::uint32_t take(unsigned bits) {
    const std::uint32_t value = peek(bits);
    drop(bits);
    return value;
  }
  // Whether more was taken than there is.
  bool overrun() const { return at_ - count_ / 8 > bytes_.size(); }
  // Goes to the next whole byte, and gives up what was peeked beyond it.
  std::string_view rest_of_bytes() {
    at_ -= count_ / 8;
    buffer_ = 0;
    count_ = 0;
    return bytes_.substr(std::min(at_, bytes_.size()));
  }
  void skip_bytes(std::size_t count) { at_ += count; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t buffer_ = 0;
  unsigned count_ = 0;
};

// One Huffman code: for each value of the next 15 bits the symbol and its length, 0 for none.
class HuffmanCode {
 public:
  HuffmanCode() : table_(std::size_t{1} << kMaxCodeBits) {}

  // False for lengths that are no code. A code of a single symbol may be incomplete.
  bool assign(std::span<const std::uint8_t> lengths) {
    std::array<std::uint32_t, kMaxCodeBits + 1> counts{}, next{};
    for (const std::uint8_t length : lengths) ++counts[length];
    counts[0] = 0;
    std::uint32_t code = 0, used = 0, symbols = 0;
    for (unsigned bits = 1; bits <= kMaxCodeBits; ++bits) {
      code = (code + counts[bits - 1]) << 1;
      next[bits] = code;
      used += counts[bits] << (kMaxCodeBits - bits);
      symbols += counts[bits];
    }
    if (used > table_.size() || (used < table_.size() && symbols > 1)) return false;
    std::fill(table_.begin(), table_.end(), 0);
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol]) fill(symbol, next[lengths[symbol]]++, lengths[symbol]);
    }
    return true;
  }

  // The next symbol; nothing that has a code gives kNoSymbol.
  static constexpr std::size_t kNoSymbol = 0xffff;
  std::size_t read(DeflateBits* in) const {
    const std::uint16_t entry = table_[in->peek(kMaxCodeBits)];
    if (!entry) return kNoSymbol;
    in->drop(entry & 15u);
    return entry >> 4;
  }

 private:
  // Codes are stored from their highest bit.
  void fill(std::size_t symbol, std::uint32_t code, unsigned bits) {
    std::uint32_t reversed = 0;
    for (unsigned i = 0; i < bits; ++i) reversed |= ((code >> i) & 1u) << (bits - 1 - i);
    const auto entry = static_cast<std::uint16_t>(symbol << 4 | bits);
    for (std::size_t at = reversed; at < table_.size(); at += std::size_t{1} << bits) {
      table_[at] = entry;
    }
  }

  std::vector<std::uint16_t> table_;
};

class Inflater {
 public:
  // Of a start everything behind its bytes is left alone.
  Inflater(std::string_view in, char* out, std::size_t bytes, bool is_start = false)
      : in_(in), out_(out), bytes_(bytes), is_start_(is_start) {}

  bool run() {
    for (bool last = false; !last && !is_done();) {
      last = in_.take(1) != 0;
      const std::uint32_t type = in_.take(2);
      if (in_.overrun()) return false;
      if (!(type == 0 ? copy_stored() : type == 1 ? fixed_block() : type == 2 && dynamic_block())) {
        return false;
      }
    }
    return written_ == bytes_;
  }
  // What follows the stream.
  std::string_view rest() { return in_.rest_of_bytes(); }

 private:
  bool is_done() const { return is_start_ && written_ == bytes_; }
  // How much of a run of that length there is room for; nothing where it would not fit.
  bool fit(std::size_t& length) const {
    const std::size_t room = bytes_ - written_;
    if (is_start_) length = std::min(length, room);
    return length <= room;
  }

  bool copy_stored() {
    const std::string_view rest = in_.rest_of_bytes();
    if (rest.size() < 4) return false;
    std::uint16_t size = 0, inverse = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    std::memcpy(&inverse, rest.data() + 2, sizeof inverse);
    std::size_t length = size;
    if ((size ^ inverse) != 0xffff || !fit(length) || rest.size() - 4 < length) return false;
    if (length) std::memcpy(out_ + written_, rest.data() + 4, length);
    written_ += length;
    in_.skip_bytes(4u + size);
    return true;
  }

  bool fixed_block() {
    std::array<std::uint8_t, 288> lengths{};
    std::fill_n(lengths.begin(), 144, std::uint8_t{8});
    std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
    std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
    std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
    // 30 and 31 are part of the code and never valid.
    std::array<std::uint8_t, 32> distances{};
    distances.fill(5);
    return literals_.assign(lengths) && distances_.assign(distances) && symbols();
  }

  bool dynamic_block() {
    const std::size_t literals = in_.take(5) + 257, distances = in_.take(5) + 1;
    const std::size_t stored = in_.take(4) + 4;
    if (literals > kLiterals || distances > kDistances) return false;
    std::array<std::uint8_t, 19> order{};
    for (std::size_t i = 0; i < stored; ++i) {
      order[kLengthOrder[i]] = static_cast<std::uint8_t>(in_.take(3));
    }
    if (in_.overrun() || !literals_.assign(order)) return false;
    std::array<std::uint8_t, kLiterals + kDistances> lengths{};
    if (!code_lengths({lengths.data(), literals + distances})) return false;
    const std::span<const std::uint8_t> all(lengths);
    return all[kEndOfBlock] != 0 && literals_.assign(all.first(literals)) &&
           distances_.assign(all.subspan(literals, distances)) && symbols();
  }

  // Lengths are themselves compressed: 16 repeats the last one, 17 and 18 are runs of zeros.
  bool code_lengths(std::span<std::uint8_t> lengths) {
    for (std::size_t i = 0; i < lengths.size();) {
      const std::size_t symbol = literals_.read(&in_);
      if (symbol > 18 || in_.overrun()) return false;
      if (symbol < 16) {
        lengths[i++] = static_cast<std::uint8_t>(symbol);
        continue;
      }
      if (symbol == 16 && i == 0) return false;
      const std::uint8_t length = symbol == 16 ? lengths[i - 1] : std::uint8_t{0};
      const std::size_t times = symbol == 16   ? 3 + in_.take(2)
                                : symbol == 17 ? 3 + in_.take(3)
                                               : 11 + in_.take(7);
      if (times > lengths.size() - i) return false;
      std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), times, length);
      i += times;
    }
    return true;
  }

  bool symbols() {
    while (!is_done()) {
      const std::size_t symbol = literals_.read(&in_);
      if (in_.overrun()) return false;
      if (symbol == kEndOfBlock) return true;
      if (symbol < kEndOfBlock) {
        if (written_ == bytes_) return false;
        out_[written_++] = static_cast<char>(symbol);
      } else if (!copy_match(symbol - kEndOfBlock - 1)) {
        return false;
      }
    }
    return true;
  }

  bool copy_match(std::size_t code) {
    if (code >= std::size(kLengthCodes)) return false;
    std::size_t length = kLengthCodes[code].base + in_.take(kLengthCodes[code].bits);
    const std::size_t far = distances_.read(&in_);
    if (far >= kDistances) return false;
    const std::size_t distance = kDistanceCodes[far].base + in_.take(kDistanceCodes[far].bits);
    if (in_.overrun() || distance > written_ || !fit(length)) return false;
    // Byte by byte: a match may reach into what it writes.
    for (std::size_t i = 0; i < length; ++i, ++written_) out_[written_] = out_[written_ - distance];
    return true;
  }

  DeflateBits in_;
  char* out_;
  std::size_t bytes_, written_ = 0;
  bool is_start_;
  HuffmanCode literals_, distances_;
};

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t kPrime = 65521;
  // The most bytes before the sums leave 32 bits.
  constexpr std::size_t kPiece = 5552;
  std::uint32_t a = 1, b = 0;
  while (!bytes.empty()) {
    for (const char c : bytes.substr(0, kPiece)) {
      a += static_cast<unsigned char>(c);
      b += a;
    }
    a %= kPrime;
    b %= kPrime;
    bytes.remove_prefix(std::min(kPiece, bytes.size()));
  }
  return b << 16 | a;
}

}  // namespace

bool inflate(std::string_view compressed, char* out, std::size_t bytes) {
  Inflater inflater(compressed, out, bytes);
  return inflater.run() && inflater.rest().empty();
}

bool inflate_start(std::string_view compressed, char* out, std::size_t bytes) {
  return Inflater(compressed, out, bytes, true).run();
}

bool inflate_zlib(std::string_view compressed, char* out, std::size_t bytes) {
  if (compressed.size() < 2) return false;
  const auto method = static_cast<unsigned char>(compressed[0]);
  const auto flags = static_cast<unsigned char>(compressed[1]);
  // 8: deflate; 0x20: a preset dictionary, which nobody else has.
  if ((method & 15u) != 8 || (method * 256u + flags) % 31 != 0 || (flags & 0x20u) != 0)
    return false;
  Inflater inflater(compressed.substr(2), out, bytes);
  if (!inflater.run()) return false;
  const std::string_view rest = inflater.rest();
  std::uint32_t sum = 0;
  if (rest.size() != sizeof sum) return false;
  for (const char c : rest) sum = sum << 8 | static_cast<unsigned char>(c);
  return sum == adler32({out, bytes});
}

}  // namespace openrnn::formats
