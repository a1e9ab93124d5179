// Object-based checkpoints for the Python tests.
//   tool_objects save PREFIX NAMES mode=lstm layers=2 units=7 input=3 [direction=bidirectional]
//       [dtype=float32] [input_mode=linear_input] [proj=0]
//     builds a layer `net` and a variable `x`, takes one step of Adam, `opt`, saves all three by
//     objects to PREFIX, which gets a number, and by names to NAMES
//   tool_objects restore PREFIX NAMES mode=...
//     builds the same, restores it by objects from PREFIX, where everything must match, and saves
//     it by names to NAMES; with optimizer=0 the file has no `opt`, and none is restored
#include <openrnn/checkpoint.h>
#include <openrnn/ops.h>
#include <openrnn/train_optimizer.h>

#include "tools/layer_of_words.h"
#include "tools/tool_main.h"

using namespace openrnn;

namespace {

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
  const testing::Options options = testing::parse_options(std::span(words).subspan(3));
  const auto layer = testing::build_layer(options, saving ? 3 : 4);
  const Variable x("x", Array::of<double>({2}, std::vector<double>{saving ? 1.5 : 0.0, -2.5}));
  train::AdamOptimizer optimizer(0.01);
  NamedTrackables objects{{"net", *layer}, {"x", x}};
  if (!options.contains("optimizer")) objects.emplace_back("opt", optimizer.trackable());
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

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
