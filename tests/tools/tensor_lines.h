// Tensors as lines of text, as the Python tests read and write them: name, dtype, dimensions,
// hexadecimal bytes.
#pragma once

#include <openrnn/formats.h>

#include <cstdio>
#include <cstring>
#include <iostream>

namespace openrnn::testing {

inline std::string to_hex(const void* data, std::size_t size) {
  std::string text;
  char two[3];
  for (std::size_t i = 0; i < size; ++i) {
    std::snprintf(two, sizeof two, "%02x", static_cast<const unsigned char*>(data)[i]);
    text += two;
  }
  return text;
}

inline std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

inline Shape parse_shape(const std::string& text) {
  Shape shape;
  if (text.empty()) return shape;
  for (const std::string& dim : split(text, ',')) shape.push_back(std::stoll(dim));
  return shape;
}

/// Of the fields of a line. Throws: ArgumentError.
inline Array parse_array(const std::vector<std::string>& field) {
  Array array(parse_dtype(field.at(1)), parse_shape(field.at(2)));
  const std::string bytes = from_hex(field.at(3));
  if (bytes.size() != array.size_bytes()) throw ArgumentError("wrong number of bytes");
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

inline void print(const TensorInfo& info, const std::string& hex) {
  std::cout << info.name << '\t' << info.dtype << '\t';
  for (std::size_t i = 0; i < info.shape.size(); ++i) std::cout << (i ? "," : "") << info.shape[i];
  std::cout << '\t' << hex << '\n';
}

}  // namespace openrnn::testing
