#include "formats/npy/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "formats/tensors/contents.h"
#include "openrnn/formats_model_file.h"

namespace openrnn {

namespace formats {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
// Magic, two numbers of the version, and the length of the header: 2 bytes, from version 2 on 4.
constexpr std::uint64_t kNpyShortPrefix = 10, kNpyLongPrefix = 12;
// What NumPy itself reads without being asked to.
constexpr std::uint64_t kMostNpyHeader = 10000;
constexpr std::size_t kNpyMultiple = 64;

struct NpyType {
  std::string_view code;
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"<f2", DType::kFloat16}, {"<f4", DType::kFloat32}, {"<f8", DType::kFloat64},
    {"<i4", DType::kInt32},   {"<i8", DType::kInt64},   {"|u1", DType::kUInt8},
    {"|b1", DType::kBool},
};

struct NpyHeader {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// The header: a dictionary as Python prints it, of these three keys.
class NpyScanner {
 public:
  NpyScanner(const ByteSource& file, std::uint64_t offset, std::string_view text)
      : file_(file), offset_(offset), text_(text) {}

  NpyHeader scan() {
    take('{');
    while (!skip_to('}')) {
      const std::string key(take_string());
      take(':');
      if (key == "descr" && header_.descr.empty()) {
        header_.descr = take_string();
      } else if (key == "fortran_order" && !header_.fortran_order) {
        header_.fortran_order = take_bool();
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
    if (header_.descr.empty() || !header_.fortran_order || !header_.shape) fail("not all of them");
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
    if (quote == '[') {
      throw UnsupportedError(
          message("[read_npy] ", file_.path(), " has structures, expected an array of numbers"));
    }
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("'" + excerpt(text_.substr(at_, 16)) + "'");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
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
  NpyHeader header_;
};

DType npy_dtype(const ByteSource& file, const std::string& descr) {
  for (const NpyType& type : kNpyTypes) {
    if (type.code == descr || (type.code[0] == '|' && type.code.substr(1) == descr)) {
      return type.dtype;
    }
  }
  throw UnsupportedError(message("[read_npy] ", file.path(), " has elements '", excerpt(descr),
                                 "', expected one of OpenRNN's dtypes, little-endian"));
}

// Columns first: the first index is the fastest.
Array from_columns(const Array& columns, const Shape& shape) {
  Array rows(columns.dtype(), shape);
  const std::size_t width = dtype_size(columns.dtype());
  std::vector<std::int64_t> index(shape.size(), 0);
  const auto* const from = static_cast<const std::byte*>(columns.data());
  auto* const to = static_cast<std::byte*>(rows.data());
  for (std::int64_t at = 0; at < columns.size(); ++at) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      place = place * shape[axis] + index[axis];
    std::memcpy(to + static_cast<std::size_t>(place) * width,
                from + static_cast<std::size_t>(at) * width, width);
    for (std::size_t axis = 0; axis < shape.size() && ++index[axis] == shape[axis]; ++axis) {
      index[axis] = 0;
    }
  }
  return rows;
}

// The bytes behind the header are the elements, and nothing else.
Array read_elements(const ByteSource& file, std::uint64_t offset, const NpyHeader& header) {
  const DType dtype = npy_dtype(file, header.descr);
  const std::optional<std::uint64_t> count = element_count(*header.shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, std::uint64_t{dtype_size(dtype)}, &bytes) ||
      bytes != file.size() - offset) {
    throw FormatError(file.path(), offset,
                      message("there are ", file.size() - offset, " bytes, expected those of ",
                              dtype_name(dtype), " ", excerpt(to_string(*header.shape))));
  }
  Array values(dtype, *header.shape);
  if (bytes > 0) file.read_at(offset, values.data(), values.size_bytes());
  if (dtype == DType::kBool) {
    const auto* const first = static_cast<const unsigned char*>(values.data());
    const auto* const bad =
        std::find_if(first, first + values.size(), [](unsigned char c) { return c > 1; });
    if (bad != first + values.size()) {
      throw FormatError(file.path(), offset + static_cast<std::uint64_t>(bad - first),
                        message("a bool is ", int{*bad}, ", expected 0 or 1"));
    }
  }
  return *header.fortran_order && header.shape->size() > 1 ? from_columns(values, *header.shape)
                                                           : std::move(values);
}

std::string npy_header(const ConstArrayView& values) {
  const auto* const type =
      std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                   [&](const NpyType& one) { return one.dtype == values.dtype; });
  if (type == std::end(kNpyTypes)) {
    throw UnsupportedError(message("[write_npy] the dtype is ", dtype_name(values.dtype),
                                   ", which NumPy's files have no name for"));
  }
  std::string shape;
  for (const std::int64_t size : values.shape) shape += message(shape.empty() ? "" : ", ", size);
  if (values.shape.size() == 1) shape += ',';
  std::string text =
      message("{'descr': '", type->code, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t used = kNpyShortPrefix + text.size() + 1;
  text.append((kNpyMultiple - used % kNpyMultiple) % kNpyMultiple, ' ');
  return text + '\n';
}

}  // namespace

Array read_npy(const ByteSource& file) {
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
  return read_elements(file, offset + size, NpyScanner(file, offset, text).scan());
}

}  // namespace formats

Array read_npy(const std::string& path) { return formats::read_npy(formats::FileSource(path)); }

void write_npy(const std::string& path, const ConstArrayView& values) {
  const std::string header = formats::npy_header(values);
  formats::replace_file(path, [&](formats::OutputFile& file) {
    file.write(formats::kNpyMagic);
    file.write(std::string_view("\x01\x00", 2));
    const auto size = static_cast<std::uint16_t>(header.size());
    file.write(&size, sizeof size);
    file.write(header);
    file.write(values.data, values.size_bytes());
  });
}

}  // namespace openrnn
