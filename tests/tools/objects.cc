// Object-based checkpoints for the Python tests.
//   tool_objects save PREFIX NAMES mode=lstm layers=2 units=7 input=3 [direction=bidirectional]
//       [dtype=float32] [input_mode=linear_input] [proj=0]
//     builds a layer `net` and a variable `x`, takes one step of Adam, `opt`, saves all three by
//     objects to PREFIX, which gets a number, and by names to NAMES
//   tool_objects restore PREFIX NAMES mode=...
//     builds the same, restores it by objects from PREFIX, where everything must match, and saves
//     it by names to NAMES; with optimizer=0 the file has no `opt`, and none is restored
#include <openrnn/checkpoint.h>
#include <openrnn/layers.h>
#include <openrnn/ops.h>
#include <openrnn/train_optimizer.h>

#include <iostream>

using namespace openrnn;

namespace {

using Options = std::map<std::string, std::string>;

Options parse(const std::vector<std::string>& words) {
  Options options{{"direction", "unidirectional"},
                  {"dtype", "float32"},
                  {"input_mode", "linear_input"},
                  {"proj", "0"}};
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return options;
}

std::unique_ptr<layers::CudnnRnn> build(Options& options, std::int64_t seed) {
  layers::CudnnRnnOptions layer;
  RnnSpec& network = layer.network;
  network.mode = parse_rnn_mode(options["mode"]);
  network.num_layers = std::stoll(options["layers"]);
  network.num_units = std::stoll(options["units"]);
  network.direction = parse_direction(options["direction"]);
  network.input_mode = parse_input_mode(options["input_mode"]);
  network.dtype = parse_dtype(options["dtype"]);
  network.num_proj = std::stoll(options["proj"]);
  network.training.seed = seed;
  layer.kernel_initializer = layer.bias_initializer = random_uniform_initializer(-0.5, 0.5);
  auto built = layers::make_cudnn_rnn(layer);
  built->build({-1, -1, std::stoll(options["input"])});
  return built;
}

// One step of Adam from the gradients of the layer itself: those of its two biases are alike.
void train(layers::CudnnRnn& layer, train::Optimizer& optimizer) {
  Array inputs(layer.dtype(), {3, 2, layer.input_size()});
  RandomStream random(8);
  random_uniform_initializer(-1.0, 1.0)(inputs.view(), random);
  const GradientTape tape;
  const Tensor output = layer(Tensor(inputs.view())).output;
  const Tensor loss = ops::reduce_sum(ops::multiply(output, output));
  optimizer.minimize(tape, loss, {layer.kernel()});
}

void run(const std::vector<std::string>& words) {
  const bool saving = words.at(0) == "save";
  Options options = parse({words.begin() + 3, words.end()});
  const auto layer = build(options, saving ? 3 : 4);
  const Variable x("x", Array::of<double>({2}, std::vector<double>{saving ? 1.5 : 0.0, -2.5}));
  train::AdamOptimizer optimizer(0.01);
  NamedTrackables objects{{"net", *layer}, {"x", x}};
  if (options["optimizer"] != "0") objects.emplace_back("opt", optimizer.trackable());
  Checkpoint checkpoint(std::move(objects));
  if (saving) {
    train(*layer, optimizer);
    std::cout << checkpoint.save(words.at(1)) << '\n';
  } else {
    checkpoint.restore(words.at(1)).assert_consumed();
    std::cout << checkpoint.save_counter() << '\n';
  }
  Saver().write(words.at(2));
}

}  // namespace

int main(int argc, char** argv) try {
  run({argv + 1, argv + argc});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
