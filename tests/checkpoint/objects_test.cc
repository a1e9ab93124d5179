// What object-based checkpoints hold, and that every kind of object comes back.
#include "checkpoint/networks.h"
#include "formats/objects/object_graph.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;
using formats::TempFolder;
using testing::thrown;

std::vector<std::string> keys_of(const std::string& prefix) {
  std::vector<std::string> keys;
  const TensorBundleReader reader(prefix);
  for (const TensorInfo& info : reader.tensors()) keys.push_back(info.name);
  return keys;
}

Variable filled(const std::string& name, std::vector<float> values) {
  return {name, Array::of<float>({static_cast<std::int64_t>(values.size())}, values)};
}

std::unique_ptr<layers::CudnnRnn> projected(const RnnSpec& spec, std::int64_t seed) {
  auto layer = layers::make_cudnn_rnn({.network = {.mode = spec.mode,
                                                   .num_layers = spec.num_layers,
                                                   .num_units = spec.num_units,
                                                   .input_mode = spec.input_mode,
                                                   .direction = spec.direction,
                                                   .dtype = spec.dtype,
                                                   .num_proj = spec.num_proj,
                                                   .training = {.seed = seed}},
                                       .kernel_initializer = random_uniform_initializer(-0.6, 0.6),
                                       .bias_initializer = random_uniform_initializer(-0.6, 0.6)});
  layer->build({-1, -1, spec.input_size});
  return layer;
}

TEST(Objects, EveryLayerComesBack) {
  const TempFolder folder;
  for (const RnnSpec& base : all_specs()) {
    for (const std::int64_t num_layers : {1, 3}) {
      RnnSpec spec = base;
      spec.num_layers = num_layers;
      SCOPED_TRACE(describe(spec));
      Graph graph;
      const Graph::AsDefault current(graph);
      const auto from = projected(spec, 1), to = projected(spec, 2);
      Checkpoint({{"model", *from}}).write(folder / "a");
      const CheckpointStatus status = Checkpoint({{"model", *to}}).read(folder / "a");
      status.assert_consumed();
      const auto before = from->saveable()->specs(), after = to->saveable()->specs();
      EXPECT_EQ(status.restored.size(), before.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(same_bits(before[i].tensor, after[i].tensor)) << before[i].name;
      }
      // Halved biases, and so another buffer than the one before.
      const Array raw = to->kernel().to_host(), old = from->kernel().to_host();
      EXPECT_TRUE(same_bits(raw, to->saveable()->from_tensors([&] {
        std::vector<Array> tensors;
        for (const auto& spec_of_tensor : before) tensors.push_back(spec_of_tensor.tensor);
        return tensors;
      }())));
      EXPECT_FALSE(same_bits(raw, old));
    }
  }
}

TEST(Objects, KeysOfOneLayerAndOfSeveral) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 5, 3);
  const auto one = projected(spec, 1);
  Checkpoint({{"m.x/y", *one}}).write(folder / "one");
  EXPECT_EQ(keys_of(folder / "one"),
            (std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH",
                                      "m..x.Sy/bias/.ATTRIBUTES/VARIABLE_VALUE",
                                      "m..x.Sy/kernel/.ATTRIBUTES/VARIABLE_VALUE"}));
  spec.num_layers = 2;
  spec.num_proj = 4;
  const auto two = projected(spec, 1);
  Checkpoint({{"m", *two}}).write(folder / "two");
  EXPECT_EQ(
      keys_of(folder / "two"),
      (std::vector<std::string>{
          "_CHECKPOINTABLE_OBJECT_GRAPH", "m/cell-0/bias/.ATTRIBUTES/VARIABLE_VALUE",
          "m/cell-0/kernel/.ATTRIBUTES/VARIABLE_VALUE",
          "m/cell-0/projection.Skernel/.ATTRIBUTES/VARIABLE_VALUE",
          "m/cell-1/bias/.ATTRIBUTES/VARIABLE_VALUE", "m/cell-1/kernel/.ATTRIBUTES/VARIABLE_VALUE",
          "m/cell-1/projection.Skernel/.ATTRIBUTES/VARIABLE_VALUE"}));
  spec = rnn_spec(RnnMode::kRnnTanh, 1, 5, 3);
  spec.direction = Direction::kBidirectional;
  const auto both = projected(spec, 1);
  Checkpoint({{"m", *both}}).write(folder / "both");
  EXPECT_EQ(keys_of(folder / "both"),
            (std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH",
                                      "m/cells_bw-0/bias/.ATTRIBUTES/VARIABLE_VALUE",
                                      "m/cells_bw-0/kernel/.ATTRIBUTES/VARIABLE_VALUE",
                                      "m/cells_fw-0/bias/.ATTRIBUTES/VARIABLE_VALUE",
                                      "m/cells_fw-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"}));
}

TEST(Objects, SavesAreNumberedAndNamedInTheStateFile) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x = filled("x", {1, 2});
  Checkpoint checkpoint({{"x", x}});
  EXPECT_EQ(checkpoint.save_counter(), 0);
  EXPECT_EQ(checkpoint.save(folder / "ck"), folder / "ck-1");
  x.assign(Array::of<float>({2}, std::vector<float>{3, 4}).view());
  EXPECT_EQ(checkpoint.save(folder / "ck"), folder / "ck-2");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ck-2");
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"checkpoint", "ck-1.data-00000-of-00001", "ck-1.index",
                                      "ck-2.data-00000-of-00001", "ck-2.index"}));

  Checkpoint resumed({{"x", x}});
  resumed.restore(folder / "ck-1").assert_consumed();
  EXPECT_EQ(resumed.save_counter(), 1);
  EXPECT_EQ(x.to_host().as<float>()[1], 2.0F);
  resumed.read(folder / "ck-2").assert_consumed();
  EXPECT_EQ(resumed.save_counter(), 1);
  EXPECT_EQ(resumed.save(folder / "ck"), folder / "ck-2");
  // A save that fails does not count.
  EXPECT_THROW(resumed.save(folder / "gone/ck"), IoError);
  EXPECT_EQ(resumed.save_counter(), 2);
  EXPECT_EQ(resumed.write(folder / "plain"), folder / "plain");
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "ck-2");
}

TEST(Objects, WhatIsReachedTwiceIsStoredOnce) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x = filled("x", {1, 2}), y = filled("y", {3});
  const auto layer = projected(rnn_spec(RnnMode::kGru, 1, 5, 3), 1);
  const Checkpoint checkpoint({{"net", *layer},
                               {"again", *layer},
                               {"list", Trackable::list({x, y, x})},
                               {"dict", NamedTrackables{{"y", y}, {"net", *layer}}}});
  checkpoint.write(folder / "a");
  EXPECT_EQ(keys_of(folder / "a").size(), 1U + 6U + 2U);
  // Each path leads to it when only one of them is restored.
  const Variable x2 = filled("x2", {0, 0});
  const auto other = projected(rnn_spec(RnnMode::kGru, 1, 5, 3), 2);
  const CheckpointStatus status =
      Checkpoint({{"list", NamedTrackables{{"2", x2}}}, {"dict", NamedTrackables{{"net", *other}}}})
          .read(folder / "a");
  EXPECT_EQ(status.unused, std::vector<std::string>{"list/1/.ATTRIBUTES/VARIABLE_VALUE"});
  EXPECT_EQ(status.missing, std::vector<std::string>{});
  EXPECT_TRUE(same_bits(x2.to_host(), x.to_host()));
  EXPECT_TRUE(
      same_bits(other->saveable()->specs()[0].tensor, layer->saveable()->specs()[0].tensor));
}

TEST(Objects, LayersThatAreBuiltLaterAreStoredThen) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  layers::CudnnLSTM lstm({.num_units = 4});
  layers::Dense dense({.units = 2});
  const Checkpoint checkpoint({{"lstm", lstm}, {"dense", dense}});
  checkpoint.write(folder / "a");
  EXPECT_EQ(keys_of(folder / "a"), std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH"});
  lstm.build({2, 3, 3});
  dense.build({3, 4});
  checkpoint.write(folder / "a");
  EXPECT_EQ(keys_of(folder / "a"),
            (std::vector<std::string>{
                "_CHECKPOINTABLE_OBJECT_GRAPH", "dense/bias/.ATTRIBUTES/VARIABLE_VALUE",
                "dense/kernel/.ATTRIBUTES/VARIABLE_VALUE", "lstm/bias/.ATTRIBUTES/VARIABLE_VALUE",
                "lstm/kernel/.ATTRIBUTES/VARIABLE_VALUE"}));
  checkpoint.read(folder / "a").assert_consumed().assert_nontrivial_match();
}

// What came back may have been trained since.
TEST(Objects, ALaterBuildChangesNothingThatWasGiven) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  layers::Dense first({.units = 2}), second({.units = 3}), a({.units = 2}), b({.units = 3});
  first.build({3, 4});
  second.build({3, 5});
  Checkpoint({{"first", first}, {"second", second}}).write(folder / "a");
  const Checkpoint later({{"first", a}, {"second", b}});
  later.read(folder / "a");
  a.build({3, 4});
  EXPECT_TRUE(same_bits(a.get_weights()[0], first.get_weights()[0]));
  const Array trained(DType::kFloat32, {4, 2});
  a.weights()[0].assign(trained.view());
  b.build({3, 5});
  EXPECT_TRUE(same_bits(b.get_weights()[0], second.get_weights()[0]));
  EXPECT_TRUE(same_bits(a.get_weights()[0], trained));
}

// The same of the pieces of a network and of what an optimizer keeps.
TEST(Objects, ALaterBuildLeavesPiecesAndSlotsAsTheyAre) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 5, 3);
  const auto from = projected(spec, 1), to = projected(spec, 2);
  const Variable x = filled("x", {1, 2});
  const auto optimizer = [&](const Variable& kernel, const Variable& of_kernel,
                             const Variable& of_x) {
    return Trackable::from([=] {
      TrackedObject object;
      object.slots = {{"m", kernel, of_kernel}, {"m", x, of_x}};
      return object;
    });
  };
  layers::Dense first({.units = 2}), second({.units = 2});
  first.build({3, 4});
  Checkpoint(
      {{"net", *from},
       {"x", x},
       {"opt", optimizer(from->kernel(), {"a", from->kernel().to_host()}, filled("b", {3, 4}))},
       {"dense", first}})
      .write(folder / "a");
  const Variable of_kernel("c", to->kernel().to_host()), of_x = filled("d", {5, 6});
  const Checkpoint later({{"net", *to},
                          {"x", x},
                          {"opt", optimizer(to->kernel(), of_kernel, of_x)},
                          {"dense", second}});
  const CheckpointStatus status = later.read(folder / "a");
  EXPECT_TRUE(same_bits(to->saveable()->specs()[0].tensor, from->saveable()->specs()[0].tensor));
  EXPECT_EQ(of_x.to_host().as<float>()[1], 4.0F);
  std::vector<Array> trained;
  const std::vector<Variable> all{to->kernel(), of_kernel, of_x};
  for (const Variable& each : all) {
    trained.push_back(varied(DType::kFloat32, each.shape(), 7 + trained.size()));
    each.assign(trained.back().view());
  }
  second.build({3, 4});
  EXPECT_TRUE(same_bits(second.get_weights()[0], first.get_weights()[0]));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(same_bits(all[i].to_host(), trained[i])) << all[i].name();
  }
  status.assert_consumed();
}

TEST(Objects, AModelOfLayers) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto lstm =
      std::make_shared<layers::CudnnLSTM>(layers::CudnnRnnOptions{.network = {.num_units = 4}});
  const auto dense = std::make_shared<layers::Dense>(layers::DenseOptions{.units = 2});
  // Without weights, so that it is not counted.
  const auto dropout = std::make_shared<layers::Dropout>(layers::DropoutOptions{.rate = 0.5});
  const Tensor in = Input({-1, -1, 3});
  const Model model({in}, {(*dense)((*dropout)((*lstm)(in).output, false))});
  const Layer& whole = model;
  const Checkpoint checkpoint({{"model", whole}});
  checkpoint.write(folder / "a");
  const std::string end = "/.ATTRIBUTES/VARIABLE_VALUE", first = "model/layer_with_weights-0/";
  const std::string second = "model/layer_with_weights-1/";
  EXPECT_EQ(keys_of(folder / "a"),
            (std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH", first + "bias" + end,
                                      first + "kernel" + end, second + "bias" + end,
                                      second + "kernel" + end}));
  const Array before = lstm->kernel().to_host();
  lstm->kernel().assign(Array(DType::kFloat32, lstm->kernel().shape()).view());
  checkpoint.read(folder / "a").assert_consumed();
  EXPECT_TRUE(same_bits(before, lstm->kernel().to_host()));
}

// An optimizer of slots alone has no attribute of its own; TensorFlow counts the slots.
TEST(Objects, AnOptimizerOfSlotsAloneHasValues) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x = filled("x", {1, 2}), slot = filled("x/Momentum", {3, 4});
  const auto optimizer = [&](bool with_slot) {
    return Trackable::from([=] {
      TrackedObject object;
      if (with_slot) object.slots.push_back({"momentum", x, slot});
      return object;
    });
  };
  Checkpoint({{"x", x}, {"with", optimizer(true)}, {"without", optimizer(false)}})
      .write(folder / "a");
  const auto objects = formats::decode_object_graph(
      "a", TensorBundleReader(folder / "a").read_string(formats::kObjectGraphKey));
  EXPECT_TRUE(objects.nodes[objects.nodes[0].child("with")->node].has_values);
  EXPECT_FALSE(objects.nodes[objects.nodes[0].child("without")->node].has_values);
}

// What is kept beside the two biases may differ, as the float32 values of a float16 network do.
TEST(Objects, SlotsOfBothBiasesComeBack) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto layer = projected(rnn_spec(RnnMode::kLstm, 2, 5, 3), 1);
  const Variable slot("master", layer->kernel().to_host());
  const Trackable optimizer = Trackable::from([&] {
    TrackedObject object;
    object.slots.push_back({"master", layer->kernel(), slot});
    return object;
  });
  const Checkpoint checkpoint({{"net", *layer}, {"optimizer", optimizer}});
  checkpoint.write(folder / "a");
  const Array before = slot.to_host();
  slot.assign(Array(DType::kFloat32, slot.shape()).view());
  checkpoint.read(folder / "a").assert_consumed();
  EXPECT_TRUE(same_bits(slot.to_host(), before));
}

// TensorFlow reads a checkpoint of names into objects, and the other way round, by these.
TEST(Objects, SlotsAreNamedAfterTheirVariables) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto layer = projected(rnn_spec(RnnMode::kGru, 1, 5, 3), 1);
  const Variable x = filled("x", {1, 2}), of_x = filled("x/Momentum", {3, 4});
  const Variable adam(layer->kernel().name() + "/Adam_1", layer->kernel().to_host());
  const Variable other("kept", layer->kernel().to_host());
  const Trackable optimizer = Trackable::from([&] {
    TrackedObject object;
    object.slots = {
        {"momentum", x, of_x}, {"v", layer->kernel(), adam}, {"other", layer->kernel(), other}};
    return object;
  });
  Checkpoint({{"x", x}, {"net", *layer}, {"optimizer", optimizer}}).write(folder / "a");
  const auto objects = formats::decode_object_graph(
      "a", TensorBundleReader(folder / "a").read_string(formats::kObjectGraphKey));
  const auto full_name = [&](std::size_t node) {
    return objects.nodes[node].attributes.at(0).full_name;
  };
  std::multiset<std::string> found, expected{"x/Momentum"};
  for (const auto& slot : objects.nodes[objects.nodes[0].child("optimizer")->node].slots) {
    found.insert(full_name(slot.node));
    const std::string variable = full_name(slot.original);
    EXPECT_EQ(full_name(slot.node).rfind(variable + "/", 0), 0u) << variable;
  }
  // Two differing biases of a sum have one name.
  const auto saveable = std::dynamic_pointer_cast<const ObjectSaveable>(layer->saveable());
  ASSERT_NE(saveable, nullptr);
  const std::vector<std::string> names = saveable->spec_names();
  const std::vector<bool> sums = saveable->bias_sums();
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (int n = 0; n < (sums[i] ? 2 : 1); ++n) {
      expected.insert(names[i] + "/Adam_1");
      expected.insert(names[i] + "/other");
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(Objects, ASaveableAlone) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const RnnSpec spec = rnn_spec(RnnMode::kRnnRelu, 2, 3, 4);
  const Variable raw("raw", numbered(spec));
  const auto saveable = std::make_shared<CudnnRNNReluSaveable>(
      raw, CudnnSaveableOptions{.network = {.num_layers = 2, .num_units = 3, .input_size = 4}});
  Checkpoint checkpoint({{"net", std::shared_ptr<const ObjectSaveable>(saveable)}});
  checkpoint.write(folder / "a");
  const auto before = saveable->specs();
  raw.assign(Array(DType::kFloat32, raw.shape()).view());
  checkpoint.read(folder / "a").assert_consumed();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(same_bits(before[i].tensor, saveable->specs()[i].tensor));
  }
  EXPECT_EQ(thrown<ArgumentError>([] { Trackable(std::shared_ptr<const ObjectSaveable>()); }),
            "[Trackable] saveable is null, expected an object");
}

// Two objects that refer to each other, and what one of them holds.
struct Pair {
  NamedTrackables of_first, of_second;
  int first_id = 0, second_id = 0;
  std::function<bool()> then;
  Trackable second() const {
    return Trackable::from([this] {
      TrackedObject object{.identity = &second_id, .children = of_second};
      object.children.emplace_back("first", first(true));
      return object;
    });
  }
  Trackable first(bool with_second) const {
    return Trackable::from([this, with_second] {
      TrackedObject object{.identity = &first_id, .children = of_first};
      if (with_second) object.children.emplace_back("second", second());
      return object;
    });
  }
  // Without the second, which may come.
  Trackable growing(bool unbuilt = false) {
    return Trackable::from([this, unbuilt] {
      TrackedObject object{.identity = &first_id, .children = of_first, .unbuilt = unbuilt};
      object.when_changed = [this](const std::function<bool()>& changed) { then = changed; };
      object.token = std::make_shared<int>();
      return object;
    });
  }
};

// Nothing is waited for that holds no value, wherever its references lead.
TEST(Objects, OfACircleWithoutValuesNoneIsAwaited) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x = filled("x", {1, 2}), other = filled("other", {3});
  Pair pair{.of_first = {{"x", x}}, .of_second = {}};
  Checkpoint({{"net", pair.first(true)}, {"other", other}}).write(folder / "a");
  Pair here{.of_first = {{"x", x}}, .of_second = {}};
  const Checkpoint whole({{"net", here.growing()}, {"other", other}});
  whole.read(folder / "a").assert_consumed();
  EXPECT_FALSE(here.then);
  // Something that is not built may still get what the file has for it, which here is nothing.
  const Pair empty;
  Checkpoint({{"net", empty.first(true)}, {"other", other}}).write(folder / "b");
  Pair bare;
  EXPECT_NE(thrown<ArgumentError>([&] {
              Checkpoint({{"net", bare.growing(true)}}).read(folder / "b");
            }).find("[Checkpoint::read] nothing of "),
            std::string::npos);
  EXPECT_FALSE(bare.then);
}

TEST(Objects, OfACircleWithValuesTheyAreAwaited) {
  const TempFolder folder;
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable x = filled("x", {1, 2}), y = filled("y", {3});
  Pair pair{.of_first = {{"x", x}}, .of_second = {{"y", y}}};
  Checkpoint({{"net", pair.first(true)}}).write(folder / "a");
  Pair here{.of_first = {{"x", x}}, .of_second = {}};
  const CheckpointStatus status = Checkpoint({{"net", here.growing()}}).read(folder / "a");
  EXPECT_EQ(status.unused, std::vector<std::string>{"net/second/y/.ATTRIBUTES/VARIABLE_VALUE"});
  ASSERT_TRUE(here.then);
  y.assign(Array(DType::kFloat32, {1}).view());
  here.of_first.emplace_back("second", NamedTrackables{{"y", y}});
  EXPECT_TRUE(here.then());
  EXPECT_EQ(y.to_host().as<float>()[0], 3.0F);
}

}  // namespace
}  // namespace openrnn
