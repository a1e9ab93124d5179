// Model files for the Python tests, one tensor a line: name, dtype, dimensions, hexadecimal bytes.
//   tool_model_file dump PATH                           file to lines
//   tool_model_file safetensors PATH [BYTES] <lines     lines to a file, or to shards of BYTES
//   tool_model_file torch PATH <lines                   lines to a state_dict
//   tool_model_file npz PATH <lines                     lines to an npz archive
//   tool_model_file hdf5 PATH <lines                    lines to an HDF5 file
//   tool_model_file keras PATH <lines                   lines to an archive of Keras 3
//   tool_model_file networks PATH [HINT=VALUE...]        networks, other tensors, notes
//   tool_model_file describe PATH [HINT=VALUE...]        'NAME, DESCRIPTION, SLOT, ...', notes,
//   others tool_model_file run PATH [HINT=VALUE...] <lines      a line of x [T, B, I] a network to
//   y tool_model_file run_named PATH [HINT=VALUE...] <lines  the same of the networks that lines
//   name tool_model_file convert PATH TO FORMAT               networks from one file to another
// For npz, hdf5 and keras, a line 'name, text, string' or 'name, texts, string, ...' is an
// attribute.
#include <openrnn/mapping.h>
#include <openrnn/runtime.h>
#include <openrnn/spec_fields.h>

#include "tools/tensor_lines.h"
#include "tools/tool_main.h"

using namespace openrnn;
using namespace openrnn::testing;

namespace {

MappingHints parse_hints(const std::vector<std::string>& words) {
  MappingHints hints;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::vector<std::string> pair = split(words[i], '=');
    if (pair[0] == "mode") hints.mode = parse_rnn_mode(pair.at(1));
    if (pair[0] == "reset_after") hints.reset_after = pair.at(1) == "true";
    if (pair[0] == "recurrent_activation") {
      hints.recurrent_activation = parse_cell_activation(pair.at(1));
    }
  }
  return hints;
}

void list(const MappedModel& model) {
  for (const MappedNetwork& network : model.networks) {
    std::cout << "network\t" << network.name << '\t' << describe(network.spec);
    for (const RnnField& field : rnn_fields()) {
      if (!field.always && field.stands_in(network.spec)) {
        std::cout << ", " << field.name << ' ' << to_string(field.get(network.spec));
      }
    }
    std::cout << '\t' << network.tensors.size() << '\n';
  }
  for (const std::string& name : model.not_understood) std::cout << "other\t" << name << '\n';
  for (const std::string& note : model.notes) std::cout << "note\t" << note << '\n';
}

void describe_all(const MappedModel& model) {
  for (const MappedNetwork& network : model.networks) {
    std::cout << network.name << '\t' << describe(network.spec);
    for (const auto& [slot, values] : network.slots) std::cout << '\t' << slot;
    std::cout << '\n';
  }
  for (const std::string& note : model.notes) std::cout << "note\t" << note << '\n';
  for (const std::string& name : model.not_understood) std::cout << "other\t" << name << '\n';
}

const MappedNetwork& network_called(const MappedModel& model, const std::string& name) {
  for (const MappedNetwork& network : model.networks) {
    if (network.name == name) return network;
  }
  throw ArgumentError("no network '" + name + "'");
}

void run_network(const MappedNetwork& network, const Array& x) {
  const RnnSpec& spec = network.spec;
  ForwardArgs args;
  args.max_time = x.shape().at(0);
  args.batch = x.shape().at(1);
  Array y(spec.dtype, {args.max_time, args.batch, spec.output_size()});
  args.x = x.data();
  args.y = y.data();
  InferenceSession(std::make_shared<const PackedModel>(spec, network.params.view())).run(args);
  print({.name = network.name, .dtype = std::string(dtype_name(spec.dtype)), .shape = y.shape()},
        to_hex(y.data(), y.size_bytes()));
}

// Verbs of networks; false for another one.
bool run_networks(const std::vector<std::string>& words) {
  const std::string &verb = words.at(0), &path = words.at(1);
  if (verb == "convert") {
    save_networks(words.at(2), load_networks(path), parse_model_format(words.at(3)));
    return true;
  }
  if (verb != "networks" && verb != "describe" && verb != "run" && verb != "run_named")
    return false;
  const MappedModel model = load_networks(path, parse_hints(words));
  if (verb == "networks") list(model);
  if (verb == "describe") describe_all(model);
  if (verb == "networks" || verb == "describe") return true;
  if (verb == "run_named") {
    for (std::string line; std::getline(std::cin, line);) {
      const std::vector<std::string> field = split(line, '\t');
      run_network(network_called(model, field.at(0)), parse_array(field));
    }
    return true;
  }
  for (const MappedNetwork& network : model.networks) {
    std::string line;
    std::getline(std::cin, line);
    run_network(network, parse_array(split(line, '\t')));
  }
  return true;
}

void run(const std::vector<std::string>& words) {
  const std::string &verb = words.at(0), &path = words.at(1);
  if (run_networks(words)) return;
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
  if (verb == "npz") return write_npz(path, named, values);
  SafetensorsOptions options{.metadata = {{"format", "np"}}};
  if (words.size() > 2) options.max_shard_bytes = std::stoull(words[2]);
  write_safetensors(path, named, options);
}

}  // namespace

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
