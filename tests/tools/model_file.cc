// Model files for the Python tests, one tensor a line: name, dtype, dimensions, hexadecimal bytes.
//   tool_model_file dump PATH                           file to lines
//   tool_model_file safetensors PATH [BYTES] <lines     lines to a file, or to shards of BYTES
//   tool_model_file torch PATH <lines                   lines to a state_dict
//   tool_model_file hdf5 PATH <lines                    lines to an HDF5 file
//   tool_model_file keras PATH <lines                   lines to an archive of Keras 3
// For the last two, a line 'name, text, string' or 'name, texts, string, ...' is an attribute.
#include <openrnn/formats_model_file.h>

#include "tools/tensor_lines.h"
#include "tools/tool_main.h"

using namespace openrnn;
using namespace openrnn::testing;

namespace {

void run(const std::vector<std::string>& words) {
  const std::string &verb = words.at(0), &path = words.at(1);
  if (verb == "dump") {
    const ModelFile file(path);
    for (const TensorInfo& info : file.tensors()) {
      const std::string bytes = file.read_bytes(info.name);
      print(info, to_hex(bytes.data(), bytes.size()));
    }
    return;
  }
  std::vector<std::pair<std::string, Array>> arrays;
  std::vector<NamedValue> values;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> field = split(line, '\t');
    if (field.at(1) == "text") {
      values.push_back({field[0], field.at(2)});
      continue;
    }
    if (field[1] == "texts") {
      values.push_back({field[0], std::vector<std::string>(field.begin() + 2, field.end())});
      continue;
    }
    arrays.emplace_back(field.at(0), parse_array(field));
  }
  std::vector<NamedView> named;
  for (const auto& [name, array] : arrays) named.push_back({name, array.view()});
  if (verb == "hdf5") return write_hdf5(path, named, values);
  if (verb == "keras") return write_keras_archive(path, named, values);
  if (verb == "torch") return write_torch_state_dict(path, named);
  SafetensorsOptions options{.metadata = {{"format", "np"}}};
  if (words.size() > 2) options.max_shard_bytes = std::stoull(words[2]);
  write_safetensors(path, named, options);
}

}  // namespace

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
