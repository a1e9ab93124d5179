// Optimizers in object-based checkpoints: slots come back, also those that are not made yet, and
// move between a layer and cells without a sum or a half.
#include "formats/objects/object_graph.h"
#include "formats/temp_folder.h"
#include "openrnn/cells.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "openrnn/train.h"
#include "saveables/support.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;
using testing::same_bits;
using testing::thrown;

Array random_array(DType dtype, const Shape& shape, std::uint64_t seed) {
  Array values(dtype, shape);
  RandomStream random(seed);
  random_uniform_initializer(-1.0, 1.0)(values.view(), random);
  return values;
}

// A gradient whose halves are alike, as those of bW and bR are.
Array gradient_of(const layers::CudnnRnn& layer, std::uint64_t seed) {
  const ParamsLayout layout(layer.spec());
  const DType dtype = compute_dtype(layer.dtype());
  Array gradient = random_array(dtype, {layout.size()}, seed);
  CanonicalParams parts = slots_to_canonical(layout, gradient.view());
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != ParamRole::kRecurrentBias) continue;
    if (layer.network().mode == RnnMode::kGru && region.gate == 2) continue;
    const ParamRegion& input =
        layout.bias(region.layer, region.direction, ParamRole::kInputBias, region.gate);
    const auto index = [&](const ParamRegion& wanted) {
      return static_cast<std::size_t>(&wanted - layout.biases().data());
    };
    parts.biases[index(region)] = parts.biases[index(input)];
  }
  return canonical_to_slots(layout, testing::views(parts.weights), testing::views(parts.biases));
}

void step(Optimizer& optimizer, const std::vector<Variable>& variables,
          const std::vector<Array>& gradients) {
  std::vector<DeviceArray> on_device;
  for (const Array& gradient : gradients) {
    on_device.push_back(DeviceArray::from_host(default_device(), gradient.view()));
  }
  optimizer.apply_gradients(on_device, variables);
}

struct Trained {
  Graph graph;
  Graph::AsDefault current{graph};
  std::unique_ptr<layers::CudnnRnn> layer;
  std::unique_ptr<Optimizer> optimizer;

  Trained(RnnMode mode, Direction direction, std::string_view name, std::int64_t seed,
          DType dtype = DType::kFloat32)
      : layer(layers::make_cudnn_rnn({.network = {.mode = mode,
                                                  .num_layers = 2,
                                                  .num_units = 3,
                                                  .direction = direction,
                                                  .dtype = dtype,
                                                  .training = {.seed = seed}}})),
        optimizer(make_optimizer(name, 0.01)) {
    layer->build({1, 1, 4});
  }
  void train(std::uint64_t seed) {
    step(*optimizer, {layer->kernel()}, {gradient_of(*layer, seed)});
  }
  Checkpoint checkpoint() { return Checkpoint({{"net", *layer}, {"opt", optimizer->trackable()}}); }
};

TEST(Tracked, SlotsThatAreNotMadeYetComeBack) {
  const TempFolder folder;
  for (const std::string_view name : optimizer_names()) {
    for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
      for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat64}) {
        SCOPED_TRACE(name);
        Trained from(mode, Direction::kBidirectional, name, 1, dtype);
        from.train(3);
        from.train(4);
        from.checkpoint().write(folder / "a");
        Trained to(mode, Direction::kBidirectional, name, 2, dtype);
        to.checkpoint().read(folder / "a").assert_consumed();
        const auto slots = from.optimizer->slots(from.layer->kernel());
        if (!slots.empty()) {
          const auto restored = to.optimizer->slots(to.layer->kernel());
          ASSERT_EQ(restored.size(), slots.size());
          for (std::size_t i = 0; i < slots.size(); ++i) {
            EXPECT_TRUE(same_bits(slots[i].to_host(), restored[i].to_host()));
          }
        }
        // The biases began at zero and moved alike, so halves are exact and the runs are one.
        from.train(5);
        to.train(5);
        EXPECT_TRUE(same_bits(from.layer->kernel().to_host(), to.layer->kernel().to_host()));
      }
    }
  }
}

TEST(Tracked, KeysAreThoseOfTensorFlow) {
  const TempFolder folder;
  Trained trained(RnnMode::kRnnTanh, Direction::kUnidirectional, "adam", 1);
  trained.train(3);
  trained.checkpoint().write(folder / "a");
  std::vector<std::string> keys;
  const TensorBundleReader reader(folder / "a");
  for (const TensorInfo& info : reader.tensors()) keys.push_back(info.name);
  const std::string end = "/.ATTRIBUTES/VARIABLE_VALUE";
  std::vector<std::string> expected{"_CHECKPOINTABLE_OBJECT_GRAPH"};
  for (const std::string cell : {"net/cell-0/", "net/cell-1/"}) {
    for (const std::string name : {"bias", "kernel"}) {
      expected.push_back(cell + name + end);
      for (const std::string slot : {"m", "v"}) {
        expected.push_back(cell + name + "/.OPTIMIZER_SLOT/opt/" + slot + end);
      }
    }
  }
  expected.push_back("opt/beta1_power" + end);
  expected.push_back("opt/beta2_power" + end);
  EXPECT_EQ(keys, expected);
  // One power ahead of the steps.
  EXPECT_EQ(reader.read("opt/beta1_power" + end).as<float>()[0], 0.9F * 0.9F);
  EXPECT_EQ(reader.read("opt/beta2_power" + end).as<float>()[0], 0.999F * 0.999F);
}

// A moment of a cell's one bias is that of each of the two here, and back.
TEST(Tracked, SlotsMoveBetweenLayerAndCells) {
  const TempFolder folder;
  Trained trained(RnnMode::kLstm, Direction::kUnidirectional, "momentum", 1);
  trained.train(3);
  trained.checkpoint().write(folder / "layer");
  const auto saveable = std::dynamic_pointer_cast<const ObjectSaveable>(trained.layer->saveable());
  const Array moments = trained.optimizer->slots(trained.layer->kernel())[0].to_host();
  const std::vector<Array> parts = saveable->slot_to_tensors(moments.view());

  Graph graph;
  const Graph::AsDefault current(graph);
  CompatibleCellOptions options;
  options.num_units = 3;
  MultiRNNCell cells({make_compatible_cell(RnnMode::kLstm, options),
                      make_compatible_cell(RnnMode::kLstm, options)});
  dynamic_rnn(cells, Tensor(random_array(DType::kFloat32, {1, 1, 4}, 2).view()),
              {.dtype = DType::kFloat32});
  MomentumOptimizer optimizer(0.01, 0.9);
  const Layer& layer = cells;
  const Checkpoint checkpoint({{"net", layer}, {"opt", optimizer.trackable()}});
  checkpoint.read(folder / "layer").assert_consumed();
  const std::vector<std::string> names = saveable->spec_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Variable slot = optimizer.slots(graph.variable(names[i]))[0];
    EXPECT_TRUE(same_bits(slot.to_host(), parts[i])) << names[i];
  }
  checkpoint.write(folder / "cells");
  trained.train(4);
  trained.checkpoint().read(folder / "cells").assert_consumed();
  EXPECT_TRUE(same_bits(trained.optimizer->slots(trained.layer->kernel())[0].to_host(), moments));
}

// Moments that differ between the biases are kept; a cell with one bias has no place for them.
TEST(Tracked, SlotsThatDifferBetweenTheBiases) {
  const TempFolder folder;
  Trained trained(RnnMode::kGru, Direction::kUnidirectional, "adagrad", 1);
  trained.train(3);
  const Variable slot = trained.optimizer->slots(trained.layer->kernel())[0];
  const Array uneven = random_array(DType::kFloat32, slot.shape(), 8);
  slot.assign(uneven.view());
  trained.checkpoint().write(folder / "a");
  slot.assign(Array(DType::kFloat32, slot.shape()).view());
  trained.checkpoint().read(folder / "a").assert_consumed();
  EXPECT_TRUE(same_bits(slot.to_host(), uneven));

  Graph graph;
  const Graph::AsDefault current(graph);
  CompatibleCellOptions options;
  options.num_units = 3;
  MultiRNNCell cells(
      {make_compatible_cell(RnnMode::kGru, options), make_compatible_cell(RnnMode::kGru, options)});
  dynamic_rnn(cells, Tensor(random_array(DType::kFloat32, {1, 1, 4}, 2).view()),
              {.dtype = DType::kFloat32});
  AdagradOptimizer optimizer(0.01);
  const Layer& layer = cells;
  const Checkpoint checkpoint({{"net", layer}, {"opt", optimizer.trackable()}});
  EXPECT_NE(thrown<ArgumentError>([&] { checkpoint.read(folder / "a"); })
                .find("net/cell-0/gates.Sbias/.OPTIMIZER_SLOT/opt/accumulator differs between the "
                      "input and the recurrent bias"),
            std::string::npos);
}

TEST(Tracked, APartOfTheSlots) {
  const TempFolder folder;
  Trained trained(RnnMode::kRnnRelu, Direction::kUnidirectional, "momentum", 1);
  trained.train(3);
  trained.checkpoint().write(folder / "a");
  const TensorBundleReader reader(folder / "a");
  std::vector<NamedTensor> tensors;
  const std::string graph_key(formats::kObjectGraphKey);
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
    if (info.name != graph_key) continue;
    formats::ObjectGraph objects = formats::decode_object_graph("a", reader.read_string(graph_key));
    objects.nodes[objects.nodes[0].child("opt")->node].slots.pop_back();
    tensors.back().value = StringTensor{{}, {formats::encode_object_graph(objects)}};
  }
  write_tensor_bundle(folder / "b", tensors);
  const Array before = trained.layer->kernel().to_host();
  EXPECT_NE(thrown<ArgumentError>([&] { trained.checkpoint().read(folder / "b"); })
                .find("holds a part of the slots of cudnn_rnn_relu/opaque_kernel and lacks "
                      "net/cell-1/bias/.OPTIMIZER_SLOT/opt/momentum"),
            std::string::npos);
  EXPECT_TRUE(same_bits(trained.layer->kernel().to_host(), before));
}

// A file without the optimizer gives the weights, and says which slots kept what they had.
TEST(Tracked, SlotsThatTheFileLacks) {
  const TempFolder folder;
  Trained trained(RnnMode::kRnnRelu, Direction::kUnidirectional, "momentum", 1);
  trained.train(3);
  Checkpoint({{"net", *trained.layer}}).write(folder / "net");
  const Array moments = trained.optimizer->slots(trained.layer->kernel())[0].to_host();
  const CheckpointStatus status = trained.checkpoint().read(folder / "net");
  EXPECT_EQ(status.missing,
            (std::vector<std::string>{"net/cell-0/kernel/.OPTIMIZER_SLOT/opt/momentum",
                                      "net/cell-1/kernel/.OPTIMIZER_SLOT/opt/momentum",
                                      "net/cell-0/bias/.OPTIMIZER_SLOT/opt/momentum",
                                      "net/cell-1/bias/.OPTIMIZER_SLOT/opt/momentum"}));
  EXPECT_EQ(status.restored.size(), 4U);
  EXPECT_TRUE(same_bits(trained.optimizer->slots(trained.layer->kernel())[0].to_host(), moments));
}

TEST(Tracked, SlotNames) {
  EXPECT_EQ(AdamOptimizer().slot_names(), (std::vector<std::string>{"m", "v"}));
  EXPECT_EQ(MomentumOptimizer(0.1, 0.9).slot_names(), std::vector<std::string>{"momentum"});
  EXPECT_EQ(AdagradOptimizer(0.1).slot_names(), std::vector<std::string>{"accumulator"});
  EXPECT_EQ(RMSPropOptimizer(0.1).slot_names(), (std::vector<std::string>{"rms", "momentum"}));
  EXPECT_EQ(RMSPropOptimizer(0.1, 0.9, 0.0, 1e-10, true).slot_names(),
            (std::vector<std::string>{"rms", "mg", "momentum"}));
  EXPECT_EQ(GradientDescentOptimizer(0.1).slot_names(), std::vector<std::string>{});
}

TEST(Tracked, SlotsOfAnotherDtypeAreRefusedAsAWhole) {
  Trained run(RnnMode::kGru, Direction::kUnidirectional, "momentum", 1);
  run.train(2);
  Checkpoint checkpoint({{"net", *run.layer}, {"optimizer", run.optimizer->trackable()}});
  const TempFolder folder;
  const TensorBundleReader reader(checkpoint.write(folder / "good"));
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
    if (info.name.find(".OPTIMIZER_SLOT") == std::string::npos) continue;
    tensors.back().value = cast(reader.read(info.name).view(), DType::kFloat64);
  }
  write_tensor_bundle(folder / "wide", tensors);
  run.train(3);
  const Variable kernel = run.layer->kernel();
  const Array before = kernel.to_host(), slot = run.optimizer->slots(kernel)[0].to_host();
  const std::string text = thrown<ArgumentError>([&] { checkpoint.read(folder / "wide"); });
  EXPECT_NE(text.find("the slot 'momentum' of " + kernel.name() + " is float64, expected float32"),
            std::string::npos)
      << text;
  EXPECT_TRUE(same_bits(kernel.to_host(), before));
  EXPECT_TRUE(same_bits(run.optimizer->slots(kernel)[0].to_host(), slot));
}

TEST(Tracked, AnOptimizerThatIsGoneIsAnError) {
  const TempFolder folder;
  Trained trained(RnnMode::kRnnTanh, Direction::kUnidirectional, "adam", 1);
  trained.train(3);
  const Checkpoint checkpoint = trained.checkpoint();
  checkpoint.write(folder / "a");
  trained.optimizer.reset();
  EXPECT_EQ(thrown<StateError>([&] { checkpoint.write(folder / "b"); }),
            "[Checkpoint] the object 'opt' is gone, expected it to outlive the checkpoint");
}

std::string bytes_of(const std::string& prefix) {
  return fingerprint(read_file(prefix + ".index") + read_file(prefix + ".data-00000-of-00001"));
}

// TensorFlow reads such files, and another version of the library: names, order and values.
TEST(Files, OfObjectsAndOfNamesHaveTheseBytes) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x("x", random_array(DType::kFloat32, {3}, 1)),
      y("y", random_array(DType::kFloat64, {2, 2}, 2)),
      half("half", random_array(DType::kFloat16, {5}, 3));
  const layers::CudnnRnnOptions sizes{.network = {.num_layers = 2,
                                                  .num_units = 3,
                                                  .direction = Direction::kBidirectional,
                                                  .training = {.seed = 4}}};
  layers::CudnnLSTM lstm(sizes);
  layers::CudnnGRU gru({.network = {.num_units = 2, .training = {.seed = 5}}});
  layers::Dense dense({.units = 2, .seed = 6});
  lstm.build({1, 1, 2});
  gru.build({1, 1, 3});
  dense.build({1, 4});
  AdamOptimizer adam(0.01);
  adam.prepare({x, half, lstm.kernel(), gru.kernel(), dense.weights()[0]});
  RMSPropOptimizer rms(0.01, 0.9, 0.5, 1e-3, true);
  rms.prepare({y, gru.kernel()});
  Checkpoint checkpoint({{"net.x/y", lstm},
                         {"gru", gru},
                         {"list", Trackable::list({x, dense, x, half})},
                         {"dict", NamedTrackables{{"y", y}, {"again", lstm}}},
                         {"adam", adam.trackable()},
                         {"rms", rms.trackable()}});
  EXPECT_EQ(bytes_of(checkpoint.write(folder / "plain")), "d4ccc74b5c134d27");
  EXPECT_EQ(bytes_of(checkpoint.save(folder / "objects")), "36827949118ff49a");
  Extras extras;
  extras.set_string("text", "some text");
  extras.set_int("number", 7);
  extras.set_float("real", 0.25);
  Saver().write(folder / "names", extras);
  EXPECT_EQ(bytes_of(folder / "names"), "0b5ce28397bb01fc");
  Saver({.only_saveables = true}).write(folder / "saveables");
  EXPECT_EQ(bytes_of(folder / "saveables"), "23b204bad24559ed");
  Saver({.by_name = {{{"a", x}, {"b/c", half}}}}).write(folder / "chosen");
  EXPECT_EQ(bytes_of(folder / "chosen"), "ee28aa9f7ec401a5");
  const CheckpointContents contents = describe_network(TensorBundleReader(folder / "names"));
  std::string text;
  for (const NetworkDescription& each : contents.networks) {
    text += each.scope + "|" + each.raw_variable + "|" + each.text + "\n";
  }
  for (const std::string& remark : contents.remarks) text += remark + "\n";
  EXPECT_EQ(text,
            "|cudnn_gru/opaque_kernel|gru, 1 layer, 2 units, input size 3, unidirectional, "
            "float32\n|cudnn_lstm/opaque_kernel|lstm, 2 layers, 3 units, input size 2, "
            "bidirectional, float32\n");
}

}  // namespace
}  // namespace openrnn::train
