#include "runtime/model_file/header.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/text/json.h"
#include "base/utf8.h"

namespace openrnn::runtime {

namespace {

constexpr std::size_t kLengthBytes = 8;
// What safetensors allows.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

struct TypeCode {
  std::string_view code;
  DType dtype;
};
constexpr TypeCode kTypeCodes[] = {
    {"F16", DType::kFloat16}, {"BF16", DType::kBfloat16}, {"F32", DType::kFloat32},
    {"F64", DType::kFloat64}, {"I32", DType::kInt32},     {"I64", DType::kInt64},
    {"U8", DType::kUInt8},    {"BOOL", DType::kBool},
};

/// Where a tensor says that it lies, from the end of the header on.
struct Range {
  std::string_view name;
  std::uint64_t begin = 0, end = 0;
};

std::uint64_t header_size(const std::string& path, std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < kLengthBytes) {
    throw FormatError(path, 0,
                      message("the file has ", bytes.size(), " bytes, expected at least ",
                              kLengthBytes, " with the size of the header"));
  }
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > kMostHeaderBytes || size > bytes.size() - kLengthBytes) {
    throw FormatError(
        path, 0,
        message("the header has ", size, " bytes, expected at most ",
                std::min<std::uint64_t>(kMostHeaderBytes, bytes.size() - kLengthBytes)));
  }
  return size;
}

class HeaderScanner {
 public:
  HeaderScanner(const std::string& path, std::string_view text, std::span<const std::byte> data)
      : path_(path), json_(path, kLengthBytes, text), data_(data) {}

  FileHeader scan() {
    json_.object([this](const std::string& name) {
      if (name == "__metadata__") {
        if (has_metadata_) json_.fail("the metadata are there twice, expected once");
        has_metadata_ = true;
        scan_metadata();
      } else {
        scan_tensor(name);
      }
    });
    json_.end();
    check_tiling();
    return std::move(header_);
  }

 private:
  void check_name(const std::string& name, std::string_view what, bool is_new) const {
    if (!is_printable_utf8(name)) {
      json_.fail(message(what, " '", excerpt(name), "' holds a control character, expected none"));
    }
    if (!is_new) json_.fail(message(what, " '", excerpt(name), "' is there twice, expected once"));
  }

  void scan_metadata() {
    std::set<std::string> keys;
    json_.object([&](const std::string& key) {
      check_name(key, "the key of metadata", keys.insert(key).second);
      header_.metadata.emplace_back(key, json_.string());
    });
  }

  void scan_tensor(const std::string& name) {
    const auto [at, is_new] = header_.tensors.try_emplace(name);
    check_name(name, "tensor", is_new);
    FileTensor& tensor = at->second;
    Range range{at->first};
    std::string code;
    std::size_t offsets = 0;
    std::set<std::string> keys;
    json_.object([&](const std::string& key) {
      if (!keys.insert(key).second)
        json_.fail(
            message("tensor '", excerpt(name), "' has ", excerpt(key), " twice, expected it once"));
      if (key == "dtype") {
        code = json_.string();
      } else if (key == "shape") {
        json_.array([&] { tensor.shape.push_back(scan_size(name)); });
      } else if (key == "data_offsets") {
        json_.array([&] {
          const std::uint64_t offset = json_.size();
          if (offsets < 2) (offsets == 0 ? range.begin : range.end) = offset;
          ++offsets;
        });
      } else {
        json_.fail(message("tensor '", excerpt(name), "' has '", excerpt(key),
                           "', expected dtype, shape and data_offsets"));
      }
    });
    if (keys.size() != 3 || offsets != 2) {
      json_.fail(
          message("tensor '", excerpt(name), "' has not all of dtype, shape and two data_offsets"));
    }
    if (range.end < range.begin || range.end > data_.size()) {
      json_.fail(message("tensor '", excerpt(name), "' has bytes ", range.begin, " to ", range.end,
                         ", expected them among the ", data_.size(), " behind the header"));
    }
    tensor.bytes = data_.subspan(range.begin, range.end - range.begin);
    ranges_.push_back(range);
    set_type(name, code, tensor);
  }

  std::int64_t scan_size(const std::string& name) {
    const std::uint64_t size = json_.size();
    if (size <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(size);
    json_.fail(message("tensor '", excerpt(name), "' has a size of ", size,
                       ", expected at most 2^63 - 1"));
  }

  // Types without a DType are none of a network, and their sizes are not looked at.
  void set_type(const std::string& name, const std::string& code, FileTensor& tensor) const {
    const auto* const type = std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                                          [&](const TypeCode& one) { return one.code == code; });
    if (type == std::end(kTypeCodes)) return;
    tensor.dtype = type->dtype;
    std::uint64_t bytes = dtype_size(type->dtype);
    bool fits = true;
    for (const std::int64_t size : tensor.shape) {
      fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes);
    }
    if (fits && bytes == tensor.bytes.size()) return;
    json_.fail(message("tensor '", excerpt(name), "' has ", tensor.bytes.size(),
                       " bytes, expected those of ", code, " ", excerpt(to_string(tensor.shape))));
  }

  void check_tiling() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (const Range& range : ranges_) {
      if (range.begin != end) {
        throw FormatError(path_, kLengthBytes,
                          message("tensor '", excerpt(range.name), "' begins at ", range.begin,
                                  ", expected ", end, ", where the one before it ends"));
      }
      end = range.end;
    }
    if (end == data_.size()) return;
    throw FormatError(path_, kLengthBytes,
                      message("the tensors have ", end, " bytes, expected ", data_.size(),
                              ", as follow the header"));
  }

  const std::string& path_;
  JsonScanner json_;
  std::span<const std::byte> data_;
  FileHeader header_;
  std::vector<Range> ranges_;
  bool has_metadata_ = false;
};

}  // namespace

FileHeader read_header(const std::string& path, std::span<const std::byte> bytes) {
  const std::uint64_t size = header_size(path, bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              static_cast<std::size_t>(size));
  return HeaderScanner(path, text, bytes.subspan(kLengthBytes + size)).scan();
}

}  // namespace openrnn::runtime
