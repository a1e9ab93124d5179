// Tensor bundles for the Python tests, one tensor a line: name, dtype, dimensions, hexadecimal
// bytes.
//   tool_bundle dump PREFIX           bundle to lines
//   tool_bundle write PREFIX <lines   lines to bundle
//   tool_bundle copy FROM TO          bundle to bundle, in the order of the data file
//   tool_bundle list PREFIX           names, dtypes and dimensions alone
#include <openrnn/formats.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "tools/tool_main.h"

using namespace openrnn;

namespace {

std::string to_hex(const void* data, std::size_t size) {
  std::string text;
  char two[3];
  for (std::size_t i = 0; i < size; ++i) {
    std::snprintf(two, sizeof two, "%02x", static_cast<const unsigned char*>(data)[i]);
    text += two;
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::vector<std::string> split(const std::string& text, char at) {
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

Shape parse_shape(const std::string& text) {
  Shape shape;
  if (text.empty()) return shape;
  for (const std::string& dim : split(text, ',')) shape.push_back(std::stoll(dim));
  return shape;
}

std::string hex_of(const TensorValue& value) {
  if (const auto* array = std::get_if<Array>(&value)) {
    return to_hex(array->data(), array->size_bytes());
  }
  std::string text;
  for (const std::string& item : std::get<StringTensor>(value).values) {
    text += to_hex(item.data(), item.size()) + ",";
  }
  return text;
}

void print(const TensorInfo& info, const std::string& hex) {
  std::cout << info.name << '\t' << info.dtype << '\t';
  for (std::size_t i = 0; i < info.shape.size(); ++i) std::cout << (i ? "," : "") << info.shape[i];
  std::cout << '\t' << hex << '\n';
}

void write(const std::string& prefix) {
  TensorBundleWriter writer(prefix);
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> field = split(line, '\t');
    const Shape shape = parse_shape(field.at(2));
    if (field.at(1) == "string") {
      StringTensor tensor{shape, split(field.at(3), ',')};
      tensor.values.pop_back();  // each string ends in a comma
      for (std::string& value : tensor.values) value = from_hex(value);
      writer.add(field[0], tensor);
      continue;
    }
    Array array(parse_dtype(field[1]), shape);
    const std::string bytes = from_hex(field.at(3));
    if (bytes.size() != array.size_bytes()) throw ArgumentError("wrong number of bytes");
    if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
    writer.add(field[0], array);
  }
  writer.finish();
}

void run(const std::vector<std::string>& words) {
  const std::string& verb = words.at(0);
  if (verb == "write") return write(words.at(1));
  const TensorBundleReader reader(words.at(1));
  if (verb == "copy") {
    TensorBundleWriter writer(words.at(2));
    for (const std::string& name : reader.names_in_file_order()) {
      writer.add({name, reader.read_value(name)});
    }
    return writer.finish();
  }
  for (const TensorInfo& info : reader.tensors()) {
    print(info, verb == "dump" ? hex_of(reader.read_value(info.name)) : "");
  }
}

}  // namespace

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
