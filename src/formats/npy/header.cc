#include "formats/npy/header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/tensors/contents.h"

namespace openrnn::formats {

namespace {

// Magic, two numbers of the version, and the length of the header: 2 bytes, from version 2 on 4.
constexpr std::uint64_t kNpyShortPrefix = 10, kNpyLongPrefix = 12;
// What NumPy itself reads without being asked to.
constexpr std::uint64_t kMostNpyHeader = 10000;
constexpr std::size_t kNpyMultiple = 64;

struct NpyCode {
  std::string_view code;
  std::string_view name;
  std::uint8_t bytes;
};
// Without the order of bytes. 'float32' and the like where there is a DType of that name.
constexpr NpyCode kNpyCodes[] = {
    {"f2", "float16", 2},   {"f4", "float32", 4},      {"f8", "float64", 8}, {"b1", "bool", 1},
    {"i1", "int8", 1},      {"i2", "int16", 2},        {"i4", "int32", 4},   {"i8", "int64", 8},
    {"u1", "uint8", 1},     {"u2", "uint16", 2},       {"u4", "uint32", 4},  {"u8", "uint64", 8},
    {"c8", "complex64", 8}, {"c16", "complex128", 16},
};

struct ScannedHeader {
  std::string descr;
  std::optional<bool> columns_first;
  std::optional<Shape> shape;
};

/// The header: a dictionary as Python prints it, of these three keys.
class NpyScanner {
 public:
  NpyScanner(const ByteSource& file, std::uint64_t offset, std::string_view text)
      : file_(file), offset_(offset), text_(text) {}

  ScannedHeader scan() {
    take('{');
    while (!skip_to('}')) {
      const std::string key(take_string());
      take(':');
      if (key == "descr" && header_.descr.empty()) {
        header_.descr = take_descr();
      } else if (key == "fortran_order" && !header_.columns_first) {
        header_.columns_first = take_bool();
      } else if (key == "shape" && !header_.shape) {
        header_.shape = take_shape();
      } else {
        fail(message("'", excerpt(key), "'"));
      }
      if (!skip_to(',')) {
        take('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("more behind it");
    if (header_.descr.empty() || !header_.columns_first || !header_.shape) fail("not all of them");
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw FormatError(file_.path(), offset_ + at_,
                      message("the header has ", found,
                              ", expected a dictionary of descr, fortran_order and shape"));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  /// Takes the character if it is next.
  bool skip_to(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void take(char c) {
    if (!skip_to(c)) fail("'" + excerpt(text_.substr(at_, 16)) + "'");
  }
  std::string_view take_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("'" + excerpt(text_.substr(at_, 16)) + "'");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  // Of structures it is a list, which is kept as it is.
  std::string take_descr() {
    skip_space();
    if (at_ == text_.size() || text_[at_] != '[') return std::string(take_string());
    std::size_t depth = 0;
    for (std::size_t at = at_; at < text_.size(); ++at) {
      depth += text_[at] == '[' ? 1U : 0U;
      if (text_[at] != ']' || --depth > 0) continue;
      const std::size_t first = std::exchange(at_, at + 1);
      return std::string(text_.substr(first, at_ - first));
    }
    fail("'" + excerpt(text_.substr(at_, 16)) + "'");
  }
  bool take_bool() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("'" + excerpt(text_.substr(at_, 16)) + "'");
  }
  Shape take_shape() {
    Shape shape;
    take('(');
    while (!skip_to(')')) {
      skip_space();
      std::int64_t size = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, size);
      if (error != std::errc() || size < 0) fail("'" + excerpt(text_.substr(at_, 24)) + "'");
      at_ = static_cast<std::size_t>(stop - text_.data());
      skip_to('L');  // which Python 2 wrote
      shape.push_back(size);
      if (!skip_to(',')) {
        take(')');
        break;
      }
    }
    return shape;
  }

  const ByteSource& file_;
  std::uint64_t offset_;
  std::string_view text_;
  std::size_t at_ = 0;
  ScannedHeader header_;
};

// 5 of 'U5'; nothing for what is no number of at most 9 digits.
std::optional<std::uint64_t> length_in(std::string_view digits) {
  constexpr std::size_t kMostDigits = 9;
  std::uint64_t length = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, length);
  if (error != std::errc() || stop != end || digits.size() > kMostDigits) return std::nullopt;
  return length;
}

NpyType type_of(const std::string& descr) {
  if (descr.starts_with('[')) return {.name = "structures", .kind = NpyKind::kOther};
  const bool has_order = descr.find_first_of("<>|=") == 0;
  const std::string_view code = std::string_view(descr).substr(has_order ? 1 : 0);
  if (code == "O") return {.name = "object", .kind = NpyKind::kObjects};
  for (const NpyCode& known : kNpyCodes) {
    if (known.code != code) continue;
    // A single byte has no order, and NumPy writes none.
    const bool has_orders = known.bytes > 1;
    if (descr[0] == '>' && has_orders) {
      return {.name = message("big-endian ", known.name), .element_bytes = known.bytes};
    }
    if (has_orders && descr[0] != '<') break;
    return {.name = std::string(known.name), .element_bytes = known.bytes};
  }
  const std::optional<std::uint64_t> length =
      length_in(code.substr(std::min<std::size_t>(1, code.size())));
  if (code.starts_with('U') && descr[0] == '<' && length) {
    return {.name = "string", .element_bytes = 4 * *length, .kind = NpyKind::kUnicode};
  }
  if (code.starts_with('S') && length) {
    return {.name = "string", .element_bytes = *length, .kind = NpyKind::kBytes};
  }
  // Such as V2, which is what NumPy makes of bfloat16.
  return {.name = excerpt(descr), .element_bytes = length.value_or(0), .kind = NpyKind::kOther};
}

// The bytes behind the header are the elements, and nothing else. How many a pickle or a structure
// has, only their readers would know.
void check_npy_size(const ByteSource& file, const NpyHeader& header) {
  const std::uint64_t there = file.size() - header.offset;
  const std::optional<std::uint64_t> count = element_count(header.shape);
  const bool known = header.type.kind == NpyKind::kNumbers || header.type.element_bytes > 0;
  std::uint64_t bytes = 0;
  if (count && (!known || (!__builtin_mul_overflow(*count, header.type.element_bytes, &bytes) &&
                           bytes == there))) {
    return;
  }
  throw FormatError(file.path(), header.offset,
                    message("there are ", there, " bytes, expected those of ", header.type.name,
                            " ", excerpt(to_string(header.shape))));
}

}  // namespace

NpyHeader read_npy_header(const ByteSource& file) {
  std::array<unsigned char, kNpyLongPrefix> prefix{};
  if (file.size() < kNpyLongPrefix) {
    throw FormatError(file.path(), 0, "the file ends in its header, expected an array of NumPy");
  }
  file.read_at(0, prefix.data(), prefix.size());
  if (std::memcmp(prefix.data(), kNpyMagic.data(), kNpyMagic.size()) != 0) {
    throw FormatError(file.path(), 0, "this is no array of NumPy, expected one of numpy.save");
  }
  const int version = prefix[6];
  if (version < 1 || version > 3 || prefix[7] != 0) {
    throw UnsupportedError(message("[read_npy] ", file.path(), " has version ", version, ".",
                                   int{prefix[7]}, ", expected 1.0 to 3.0"));
  }
  std::uint32_t size = 0;
  std::memcpy(&size, prefix.data() + 8, version == 1 ? 2 : 4);
  const std::uint64_t offset = version == 1 ? kNpyShortPrefix : kNpyLongPrefix;
  if (size > kMostNpyHeader || size > file.size() - offset) {
    throw FormatError(file.path(), 8,
                      message("the header has ", size, " bytes, expected at most ",
                              std::min(kMostNpyHeader, file.size() - offset)));
  }
  const std::string text = file.read_string(offset, size);
  ScannedHeader scanned = NpyScanner(file, offset, text).scan();
  NpyHeader header{.descr = scanned.descr,
                   .type = type_of(scanned.descr),
                   .shape = std::move(*scanned.shape),
                   .columns_first = *scanned.columns_first,
                   .offset = offset + size};
  check_npy_size(file, header);
  return header;
}

std::string npy_prefix(std::string_view descr, const Shape& of) {
  std::string shape;
  for (const std::int64_t size : of) shape += message(shape.empty() ? "" : ", ", size);
  if (of.size() == 1) shape += ',';
  std::string text =
      message("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t used = kNpyShortPrefix + text.size() + 1;
  text.append((kNpyMultiple - used % kNpyMultiple) % kNpyMultiple, ' ');
  text += '\n';
  const auto size = static_cast<std::uint16_t>(text.size());
  std::string prefix(kNpyMagic);
  prefix.append("\x01\x00", 2).append(reinterpret_cast<const char*>(&size), sizeof size);
  return prefix + text;
}

std::string npy_prefix(std::string_view call, const ConstArrayView& values) {
  for (const NpyCode& known : kNpyCodes) {
    if (known.name != dtype_name(values.dtype)) continue;
    return npy_prefix(message(known.bytes > 1 ? '<' : '|', known.code), values.shape);
  }
  throw UnsupportedError(message("[", call, "] the dtype is ", dtype_name(values.dtype),
                                 ", which NumPy's files have no name for"));
}

}  // namespace openrnn::formats
