#include "formats/npy/npz_values.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "base/utf8.h"

namespace openrnn::formats {

namespace {

// Strings of one character take eight times as many bytes in memory as in the file.
constexpr std::uint64_t kMostValueBytes = std::uint64_t{1} << 20;
constexpr std::size_t kUnicodeBytes = 4;

// NumPy fills strings up with zeros.
std::string without_padding(std::string text) {
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

std::string text_of_unicode(const ByteSource& file, std::uint64_t offset, std::string_view bytes) {
  constexpr std::uint32_t kEnd = 0x110000;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += kUnicodeBytes) {
    std::uint32_t character = 0;
    std::memcpy(&character, bytes.data() + at, sizeof character);
    if (character >= kEnd || (character >= 0xd800 && character < 0xe000)) {
      throw FormatError(file.path(), offset + at,
                        message("a character is ", character, ", expected one of Unicode"));
    }
    text += utf8_of(static_cast<std::int32_t>(character));
  }
  return without_padding(std::move(text));
}

template <class T>
std::vector<T> elements_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
PlainValue one_or_all(const NpyHeader& header, std::vector<T> values) {
  if (header.shape.empty()) return std::move(values.at(0));
  return values;
}

/// The type and the elements of a value.
struct EncodedValue {
  std::string descr;
  Shape shape;
  std::string bytes;
};

template <class T>
std::string bytes_of(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

std::vector<std::uint32_t> characters_of(const std::string& text) {
  std::vector<std::uint32_t> characters;
  for (std::size_t at = 0; at < text.size();) {
    characters.push_back(static_cast<std::uint32_t>(next_code_point(text, at)));
  }
  return characters;
}

EncodedValue encoded_texts(const std::vector<std::string>& texts, Shape shape) {
  const bool unicode = std::ranges::all_of(texts, is_valid_utf8);
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    longest = std::max(longest, unicode ? characters_of(text).size() : text.size());
  }
  EncodedValue out{message(unicode ? "<U" : "|S", longest), std::move(shape), {}};
  for (const std::string& text : texts) {
    if (unicode) {
      std::vector<std::uint32_t> characters = characters_of(text);
      characters.resize(longest);
      out.bytes += bytes_of(characters.data(), characters.size());
    } else {
      out.bytes += text + std::string(longest - text.size(), '\0');
    }
  }
  return out;
}

EncodedValue encoded(std::monostate) { return {"|b1", {0}, {}}; }
EncodedValue encoded(bool value) { return {"|b1", {}, std::string(1, value ? '\1' : '\0')}; }
EncodedValue encoded(std::int64_t value) { return {"<i8", {}, bytes_of(&value, 1)}; }
EncodedValue encoded(double value) { return {"<f8", {}, bytes_of(&value, 1)}; }
EncodedValue encoded(const std::string& value) { return encoded_texts({value}, {}); }
EncodedValue encoded(const std::vector<std::int64_t>& values) {
  return {"<i8", {std::ssize(values)}, bytes_of(values.data(), values.size())};
}
EncodedValue encoded(const std::vector<double>& values) {
  return {"<f8", {std::ssize(values)}, bytes_of(values.data(), values.size())};
}
EncodedValue encoded(const std::vector<std::string>& values) {
  return encoded_texts(values, {std::ssize(values)});
}

}  // namespace

bool is_npz_value(const NpyHeader& header, std::uint64_t bytes) {
  constexpr std::string_view kNames[] = {"string", "int64", "float64", "bool"};
  return header.shape.size() <= 1 && bytes <= kMostValueBytes && header.type.element_bytes > 0 &&
         std::ranges::find(kNames, header.type.name) != std::end(kNames);
}

PlainValue read_npz_value(const ByteSource& file, const NpyHeader& header) {
  if (!is_npz_value(header, file.size() - header.offset)) {
    throw FormatError(file.path(), header.offset, "this is no value, expected a small one");
  }
  const std::string bytes = file.read_string(header.offset, file.size() - header.offset);
  if (header.type.name == "int64") return one_or_all(header, elements_of<std::int64_t>(bytes));
  if (header.type.name == "float64") return one_or_all(header, elements_of<double>(bytes));
  if (header.type.name == "bool") {
    if (bytes.size() == 1 && header.shape.empty()) return bytes[0] != '\0';
    if (bytes.empty()) return std::monostate();
    return std::vector<std::int64_t>(bytes.begin(), bytes.end());
  }
  std::vector<std::string> texts;
  const auto each = static_cast<std::size_t>(header.type.element_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += each) {
    const std::string_view one = std::string_view(bytes).substr(at, each);
    texts.push_back(header.type.kind == NpyKind::kUnicode
                        ? text_of_unicode(file, header.offset + at, one)
                        : without_padding(std::string(one)));
  }
  return one_or_all(header, std::move(texts));
}

std::string npz_value(const PlainValue& value) {
  const EncodedValue out = std::visit([](const auto& held) { return encoded(held); }, value);
  return npy_prefix(out.descr, out.shape) + out.bytes;
}

}  // namespace openrnn::formats
