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

#include <algorithm>

#include "tools/layer_of_words.h"
#include "tools/tool_main.h"

using namespace openrnn;

namespace {

void run_layer(layers::CudnnRnn& layer, const std::string& prefix) {
  const TensorBundleReader data(prefix + "-data");
  std::vector<Tensor> state{Tensor(data.read("h0").view())};
  const bool lstm = layer.network().has_cell();
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
  const testing::Options options = testing::parse_options(std::span(words).subspan(3));
  const auto layer = testing::build_layer(options, 3);
  SaverOptions saver;
  saver.only_saveables = options.contains("saver") && options.at("saver") == "saveables";
  if (words.at(1) != "-") Saver(saver).restore(words.at(1));
  Saver().write(words.at(2));
  run_layer(*layer, words.at(2));
}

}  // namespace

int main(int argc, char** argv) { return testing::tool_main(argc, argv, run); }
