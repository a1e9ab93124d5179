// What is beside the networks in TensorFlow's files: slots of several networks and of Keras's
// optimizers, single values, buffers of equal networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/objects/object_graph.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "openrnn/saveables.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;

Array floats(const Shape& shape, std::uint64_t seed) {
  return values_of(DType::kFloat32, shape, seed);
}

MappedModel loaded(const std::vector<NamedTensor>& tensors, const MappingHints& hints = {}) {
  const TempFolder folder;
  write_tensor_bundle(folder / "ck", tensors);
  return load_networks(folder / "ck", hints);
}

TEST(TfSlots, OfSeveralNetworks) {
  const RnnSpec spec{.num_units = 3, .input_size = 2, .forget_bias = 1.0, .single_bias = true};
  MappedModel model;
  for (const char* name : {"a", "b", "c"}) {
    const std::uint64_t seed = 10 * (model.networks.size() + 1);
    MappedNetwork network = network_of(spec, name, seed);
    if (network.name != "b") {
      network.slots.emplace("Adam", floats({params_size(spec)}, seed + 1));
      network.slots.emplace("Adam_1", floats({params_size(spec)}, seed + 2));
    }
    model.networks.push_back(std::move(network));
  }
  const TempFolder folder;
  save_networks(folder / "ck.index", model, ModelFormat::kTensorflow);
  EXPECT_TRUE(tensor_bundle_exists(folder / "ck"));
  const MappedModel found = load_networks(folder / "ck");
  ASSERT_EQ(found.networks.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const MappedNetwork &one = found.networks[i], &given = model.networks[i];
    EXPECT_EQ(one.name, given.name);
    EXPECT_TRUE(same_bytes(one.params, given.params));
    ASSERT_EQ(one.slots.size(), given.slots.size());
    for (const auto& [slot, values] : given.slots) {
      EXPECT_TRUE(same_bytes(one.slots.at(slot), values)) << one.name << slot;
    }
  }
  EXPECT_TRUE(found.not_understood.empty());
}

// Keras 3 names them after the variable with '_' in place of '/'.
TEST(TfSlots, OfKerasOptimizers) {
  const std::pair<const char*, Shape> parts[] = {
      {"kernel", {2, 12}}, {"recurrent_kernel", {3, 12}}, {"bias", {12}}};
  // The network whose tensors are made from this seed on, and these of its optimizer.
  const auto made = [&](std::uint64_t seed, const std::vector<NamedTensor>& more = {}) {
    std::vector<NamedTensor> tensors = more;
    for (const auto& [name, shape] : parts) {
      tensors.push_back({std::string("m/lstm/lstm_cell/") + name, floats(shape, seed++)});
    }
    return loaded(tensors);
  };
  const auto slots = [&](const std::string& before, const std::string& slot, std::uint64_t seed) {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : parts) {
      tensors.push_back({before + "m_lstm_lstm_cell_" + name + "_" + slot, floats(shape, seed++)});
    }
    return tensors;
  };
  std::vector<NamedTensor> both = slots("adam/", "momentum", 20);
  for (NamedTensor& tensor : slots("a/b/", "my_slot", 30)) both.push_back(std::move(tensor));
  const MappedModel model = made(1, both);
  ASSERT_EQ(model.networks.size(), 1U);
  const MappedNetwork& network = model.networks[0];
  ASSERT_EQ(network.slots.size(), 2U);
  EXPECT_TRUE(same_bytes(network.slots.at("momentum"), made(20).networks.at(0).params));
  EXPECT_TRUE(same_bytes(network.slots.at("my_slot"), made(30).networks.at(0).params));
  EXPECT_TRUE(model.not_understood.empty());
  // Without a folder, or with the name of another variable, they are no slots.
  for (const char* before : {"", "adam/n_"}) {
    const MappedModel none = made(1, slots(before, "momentum", 20));
    EXPECT_TRUE(none.networks.at(0).slots.empty()) << before;
    EXPECT_EQ(none.not_understood.size(), 3U) << before;
  }
}

/// An object-based checkpoint that is being made: variables with their keys and names.
struct ObjectCheckpoint {
  std::vector<NamedTensor> tensors;
  formats::ObjectGraph graph;

  // The number of the variable's object. A name of its graph may be empty.
  std::size_t add(const std::string& key, const std::string& name, const Shape& shape,
                  std::uint64_t seed, std::string_view attribute = formats::kValueAttribute) {
    graph.nodes.resize(std::max<std::size_t>(graph.nodes.size(), 1));
    tensors.push_back({key, floats(shape, seed)});
    graph.nodes[0].children.push_back({graph.nodes.size(), key});
    formats::ObjectNode node;
    node.attributes.push_back({std::string(attribute), name, key});
    graph.nodes.push_back(node);
    return graph.nodes.size() - 1;
  }
  MappedModel load() {
    tensors.push_back({std::string(formats::kObjectGraphKey),
                       StringTensor{{}, {formats::encode_object_graph(graph)}}});
    return loaded(tensors);
  }
};

// An object-based checkpoint says whose slot a variable is; keys say nothing of it.
TEST(TfSlots, AreThoseThatAnObjectGraphNames) {
  ObjectCheckpoint made;
  const std::size_t kernel = made.add("a", "rnn/lstm_cell/kernel", {5, 12}, 1),
                    bias = made.add("b", "rnn/lstm_cell/bias", {12}, 2),
                    unnamed = made.add("c", "", {7}, 3);
  std::vector<formats::ObjectSlot> slots{
      {kernel, "m", made.add("d", "", {5, 12}, 4)},    {bias, "m", made.add("e", "", {12}, 5)},
      {kernel, "\x01", made.add("f", "", {5, 12}, 6)}, {bias, "\x01", made.add("g", "", {12}, 7)},
      {unnamed, "m", made.add("h", "", {7}, 8)},       {bias, "v", 0}};  // which has no value
  made.graph.nodes[0].slots = slots;
  const MappedModel model = made.load();
  ASSERT_EQ(model.networks.size(), 1U);
  const MappedNetwork& network = model.networks[0];
  ASSERT_EQ(network.slots.size(), 1U);
  const MappedModel plain = loaded(
      {{"rnn/lstm_cell/kernel", floats({5, 12}, 4)}, {"rnn/lstm_cell/bias", floats({12}, 5)}});
  EXPECT_TRUE(same_bytes(network.slots.at("m"), plain.networks.at(0).params));
  EXPECT_EQ(model.not_understood, (Names{"c", "f", "g", "h"}));
}

// Neither the name of another attribute nor one that cannot be shown is a variable's.
TEST(TfSlots, AreOfVariablesWithNames) {
  ObjectCheckpoint made;
  made.add("a", "rnn/lstm_cell/kernel", {5, 12}, 1);
  made.add("b", "rnn/lstm_cell/bias", {12}, 2);
  made.add("c", "rnn/lstm_cell/w_f_diag", {3}, 3, "OTHER");
  made.add("d", "\x01/lstm_cell/kernel", {5, 12}, 4);
  made.add("e", "\x01/lstm_cell/bias", {12}, 5);
  const MappedModel model = made.load();
  ASSERT_EQ(model.networks.size(), 1U);
  EXPECT_EQ(model.not_understood, (Names{"c", "d", "e"}));
  EXPECT_EQ(model.notes.size(), 1U);  // of the forget gate
}

// Lists have no place.
TEST(TfSlots, ValuesThereAndBack) {
  const std::map<std::string, PlainValue> expected{{"d", 0.1},
                                                   {"flag", true},
                                                   {"i64", std::int64_t{5'000'000'000}},
                                                   {"text", std::string("two\nlines")}};
  MappedModel given;
  given.networks = {network_of({.num_units = 3, .input_size = 2}, "n")};
  for (const auto& [name, value] : expected) given.values.push_back({name, value});
  given.values.push_back({"list", std::vector<double>{1.0}});
  const TempFolder folder;
  save_networks(folder / "ck", given, ModelFormat::kTensorflow);
  const MappedModel found = load_networks(folder / "ck");
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : found.values) values[value.name] = value.value;
  EXPECT_EQ(values, expected);
  EXPECT_TRUE(found.not_understood.empty());
}

// A buffer takes the place of the cells' sums where it is certain whose it is.
TEST(TfSlots, BuffersBesideSeveralNetworks) {
  const RnnSpec spec{.num_units = 3, .input_size = 2};
  const TfCanonicalFormat format(spec);
  const Array own = floats({params_size(spec)}, 5), slot = floats({params_size(spec)}, 6);
  const auto model_of = [&](std::uint64_t seed_of_a, std::uint64_t seed_of_b) {
    std::vector<NamedTensor> tensors{{"x/opaque_kernel", own}, {"x/opaque_kernel/Adam", slot}};
    for (const auto& [name, seed] : {std::pair("a/", seed_of_a), {"b/", seed_of_b}}) {
      const Array params = floats({params_size(spec)}, seed);
      std::vector<Array> cells = format.from_opaque("test", params.view());
      for (std::size_t i = 0; i < cells.size(); ++i) {
        tensors.push_back({name + format.tensors()[i].name, std::move(cells[i])});
      }
    }
    return loaded(tensors);
  };
  const MappedModel one = model_of(7, 5);
  ASSERT_EQ(one.networks.size(), 2U);
  EXPECT_EQ(one.networks[1].name, "b");
  EXPECT_TRUE(same_bytes(one.networks[1].params, own));
  EXPECT_TRUE(same_bytes(one.networks[1].slots.at("Adam"), slot));
  EXPECT_EQ(one.networks[1].tensors.back(), "x/opaque_kernel");
  EXPECT_TRUE(one.networks[0].slots.empty());
  EXPECT_FALSE(same_bytes(one.networks[0].params, own));
  EXPECT_TRUE(one.not_understood.empty());
  EXPECT_TRUE(one.notes.empty());
  const MappedModel two = model_of(5, 5);
  ASSERT_EQ(two.networks.size(), 2U);
  for (const MappedNetwork& network : two.networks) {
    EXPECT_FALSE(same_bytes(network.params, own)) << network.name;
    EXPECT_TRUE(network.slots.empty()) << network.name;
  }
  EXPECT_EQ(two.not_understood, (Names{"x/opaque_kernel", "x/opaque_kernel/Adam"}));
  EXPECT_TRUE(two.notes.empty());
}

}  // namespace
}  // namespace openrnn
