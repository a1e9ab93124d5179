// Layers and checkpoints for the Python tests.
//   tool_checkpoint run FROM TO mode=lstm layers=2 units=7 input=3 [direction=bidirectional]
//       [dtype=float32] [input_mode=linear_input] [proj=0] [scope=m1] [saver=all|saveables]
//     builds a layer in the scope, restores it from FROM unless that is '-', saves it to TO, runs
//     it on the tensors x h0 c0 lengths of the bundle TO-data, and writes output h c to TO-results
//   tool_checkpoint describe PREFIX
//     one line a network and a remark
//   tool_checkpoint loop FOLDER
//     goes on from the latest checkpoint and saves every step, saying so, until it is killed
#include <openrnn/checkpoint.h>
#include <openrnn/layers.h>

#include <algorithm>
#include <iostream>

using namespace openrnn;

namespace {

std::map<std::string, std::string> parse(const std::vector<std::string>& words) {
  std::map<std::string, std::string> options{{"direction", "unidirectional"},
                                             {"dtype", "float32"},
                                             {"input_mode", "linear_input"},
                                             {"proj", "0"},
                                             {"scope", ""},
                                             {"saver", "all"}};
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return options;
}

std::unique_ptr<layers::CudnnRnn> build(std::map<std::string, std::string>& options) {
  layers::CudnnRnnOptions layer;
  RnnSpec& network = layer.network;
  network.mode = parse_rnn_mode(options["mode"]);
  network.num_layers = std::stoll(options["layers"]);
  network.num_units = std::stoll(options["units"]);
  network.direction = parse_direction(options["direction"]);
  network.input_mode = parse_input_mode(options["input_mode"]);
  network.dtype = parse_dtype(options["dtype"]);
  network.num_proj = std::stoll(options["proj"]);
  network.training.seed = 3;
  layer.kernel_initializer = layer.bias_initializer = random_uniform_initializer(-0.5, 0.5);
  auto built = layers::make_cudnn_rnn(layer);
  const Shape input{-1, -1, std::stoll(options["input"])};
  if (options["scope"].empty()) {
    built->build(input);
  } else {
    const VariableScope scope(options["scope"]);
    built->build(input);
  }
  return built;
}

void run_layer(layers::CudnnRnn& layer, const std::string& prefix) {
  const TensorBundleReader data(prefix + "-data");
  std::vector<Tensor> state{Tensor(data.read("h0").view())};
  const bool lstm = layer.network().is_lstm();
  if (lstm) state.push_back(Tensor(data.read("c0").view()));
  layers::RnnCallOptions call;
  const Array lengths = data.read("lengths");
  call.sequence_lengths.emplace(lengths.as<std::int32_t>().begin(),
                                lengths.as<std::int32_t>().end());
  call.training = false;
  const layers::RnnResult result = layer(Tensor(data.read("x").view()), state, call);
  std::vector<NamedTensor> results{{"y", result.output.to_host()},
                                   {"h", result.state[0].to_host()}};
  if (lstm) results.push_back({"c", result.state[1].to_host()});
  write_tensor_bundle(prefix + "-results", results);
}

// Every element is the step, so that a mixture of two saves would show.
void loop(const std::string& folder) {
  const Variable weights("weights", Array(DType::kInt64, {40000}));
  const Saver saver;
  CheckpointManager manager(folder, {.keep = 2});
  std::int64_t step = 0;
  if (const auto latest = manager.latest()) {
    step = saver.restore(*latest).get_int("step");
    const Array restored = weights.to_host();
    for (const std::int64_t element : restored.as<std::int64_t>()) {
      if (element != step) throw StateError("the checkpoint mixes two steps");
    }
  }
  std::cout << "restored " << step << std::endl;
  for (;;) {
    ++step;
    weights.update(
        [&](void* elements) { std::fill_n(static_cast<std::int64_t*>(elements), 40000, step); });
    Extras extras;
    extras.set_int("step", step);
    manager.save(saver, step, extras);
    std::cout << "saved " << step << std::endl;
  }
}

void run(const std::vector<std::string>& words) {
  if (words.at(0) == "loop") return loop(words.at(1));
  if (words.at(0) == "describe") {
    const CheckpointContents contents = describe_network(TensorBundleReader(words.at(1)));
    for (const NetworkDescription& network : contents.networks) {
      std::cout << network.scope << '\t' << network.text << '\t' << network.raw_variable << '\n';
    }
    for (const std::string& remark : contents.remarks) std::cout << "remark\t" << remark << '\n';
    return;
  }
  auto options = parse({words.begin() + 3, words.end()});
  const auto layer = build(options);
  SaverOptions saver;
  saver.only_saveables = options["saver"] == "saveables";
  if (words.at(1) != "-") Saver(saver).restore(words.at(1));
  Saver().write(words.at(2));
  run_layer(*layer, words.at(2));
}

}  // namespace

int main(int argc, char** argv) try {
  run({argv + 1, argv + argc});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
