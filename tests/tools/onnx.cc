// ONNX models for the Python tests, tensors as lines.
//   tool_onnx export PATH [lengths] [states] FIELD=VALUE.. <lines   a network: params, and
//   initial_h
//                                                                   and initial_c where it has them
//   tool_onnx networks PATH      of each network its name and fields, then its tensors; notes
//   tool_onnx run PATH <lines    inputs to outputs
//   tool_onnx operators          their names
#include <openrnn/mapping_onnx.h>
#include <openrnn/onnx.h>
#include <openrnn/spec_fields.h>

#include "tools/tensor_lines.h"
#include "tools/tool_main.h"

using namespace openrnn;
using namespace openrnn::testing;

namespace {

std::map<std::string, Array> read_arrays() {
  std::map<std::string, Array> arrays;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> field = split(line, '\t');
    arrays.insert_or_assign(field.at(0), parse_array(field));
  }
  return arrays;
}

void print_array(const std::string& name, const Array& array) {
  print({.name = name, .dtype = std::string(dtype_name(array.dtype())), .shape = array.shape()},
        to_hex(array.data(), array.size_bytes()));
}

FieldValue to_value(FieldType type, const std::string& text) {
  switch (type) {
    case FieldType::kBool:
      return text == "True" || text == "true";
    case FieldType::kInteger:
      return std::int64_t{std::stoll(text)};
    case FieldType::kNumber:
      return std::stod(text);
    case FieldType::kPair:
      return std::array{std::stod(text), std::stod(text.substr(text.find(':') + 1))};
    default:
      return text;
  }
}

void export_network(const std::vector<std::string>& words) {
  OnnxExportOptions options;
  MappedNetwork network;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    options.lengths |= words[i] == "lengths";
    options.states |= words[i] == "states";
    if (equals == std::string::npos) continue;
    const RnnField& field = rnn_field(words[i].substr(0, equals));
    field.put(network.spec, to_value(field.type, words[i].substr(equals + 1)));
  }
  std::map<std::string, Array> arrays = read_arrays();
  network.params = arrays.at("params");
  if (arrays.count("initial_h")) network.initial_h = arrays.at("initial_h");
  if (arrays.count("initial_c")) network.initial_c = arrays.at("initial_c");
  MappedModel model;
  model.networks.push_back(std::move(network));
  write_onnx(words.at(1), onnx_from_networks(model, options));
}

void print_networks(const std::string& path) {
  const MappedModel model = load_networks(path);
  for (const MappedNetwork& network : model.networks) {
    std::cout << "network\t" << network.name;
    for (const RnnField& field : rnn_fields()) {
      if (field.stands_in(network.spec)) {
        std::cout << '\t' << field.name << '=' << to_string(field.get(network.spec));
      }
    }
    std::cout << '\n';
    print_array("params", network.params);
    if (network.initial_h) print_array("initial_h", *network.initial_h);
    if (network.initial_c) print_array("initial_c", *network.initial_c);
    for (const std::string& tensor : network.tensors) std::cout << "made of\t" << tensor << '\n';
  }
  for (const std::string& name : model.not_understood) std::cout << "left\t" << name << '\n';
  for (const std::string& note : model.notes) std::cout << "note\t" << note << '\n';
}

void run_program(const std::string& path) {
  const OnnxProgram program(path);
  const std::map<std::string, Array> arrays = read_arrays();
  std::map<std::string, ConstArrayView> inputs;
  for (const auto& [name, array] : arrays) inputs.emplace(name, array.view());
  for (const auto& [name, array] : program.run(inputs)) print_array(name, array);
}

void run(const std::vector<std::string>& words) {
  if (words.at(0) == "operators") {
    for (const std::string& name : onnx_operators()) std::cout << name << '\n';
  } else if (words.at(0) == "export") {
    export_network(words);
  } else if (words.at(0) == "networks") {
    print_networks(words.at(1));
  } else {
    run_program(words.at(1));
  }
}

}  // namespace

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
