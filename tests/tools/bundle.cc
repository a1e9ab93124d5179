// Tensor bundles for the Python tests, one tensor a line: name, dtype, dimensions, hexadecimal
// bytes.
//   tool_bundle dump PREFIX           bundle to lines
//   tool_bundle write PREFIX <lines   lines to bundle
//   tool_bundle copy FROM TO          bundle to bundle, in the order of the data file
//   tool_bundle list PREFIX           names, dtypes and dimensions alone
#include <openrnn/formats.h>

#include <cstring>
#include <iostream>

#include "tools/tensor_lines.h"
#include "tools/tool_main.h"

using namespace openrnn;
using namespace openrnn::testing;

namespace {

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
    writer.add(field[0], parse_array(field));
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
