// Opaque buffers of TensorFlow's files word for word; places, values and names that our files keep.
#include <gtest/gtest.h>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "mapping/support/biases.h"
#include "openrnn/saveables.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;

const RnnSpec kSpec{.num_units = 3, .input_size = 2};

struct Tensor {
  std::string name;
  Array values;
};

MappedModel loaded(const TempFolder& folder, const std::vector<Tensor>& tensors,
                   const MappingHints& hints = {}) {
  std::vector<NamedTensor> named;
  for (const Tensor& one : tensors) named.push_back({one.name, one.values});
  write_tensor_bundle(folder / "m", named);
  return load_networks(folder / "m", hints);
}

Array buffer(DType dtype = DType::kFloat32, std::int64_t more = 0) {
  return values_of(dtype, {params_size(kSpec) + more}, 1);
}

TEST(OpaqueBuffers, AskForTheNetwork) {
  const TempFolder folder;
  EXPECT_EQ(loaded(folder, {{"a/opaque_kernel", buffer()}}).notes,
            Names{"'a/opaque_kernel' is an opaque buffer, whose network the file does not say, "
                  "expected the hint network"});
  for (const char* name : {"a/my_opaque_kernel", "opaque_kernel/a", "a/opaque_kernels"}) {
    EXPECT_TRUE(loaded(folder, {{name, buffer()}}).notes.empty()) << name;
  }
  const Array matrix = values_of(DType::kFloat32, {2, 3}, 1);
  EXPECT_TRUE(loaded(folder, {{"a/opaque_kernel", matrix}}).notes.empty());
  const auto wrong = [&](const Array& array, const char* is) {
    expect_error<ArgumentError>(
        [&] {
          loaded(folder, {{"a/opaque_kernel", array}}, {.network = kSpec});
        },
        message("[load_networks] 'a/opaque_kernel' in ", folder / "m", " is ", is,
                ", expected float32 of 84 elements of the hint network, ", describe(kSpec)));
  };
  wrong(buffer(DType::kFloat32, 1), "float32 [85]");
  wrong(buffer(DType::kFloat64), "float64 [84]");
}

TEST(OpaqueBuffers, AreReadWithTheirSlots) {
  const TempFolder folder;
  const MappedModel model = loaded(folder,
                                   {{"a/opaque_kernel", buffer()},
                                    {"a/opaque_kernel/Adam", buffer()},
                                    {"a/opaque_kernel/step", Array(DType::kInt32, {84})},
                                    {"a/opaque_kernel/wide", buffer(DType::kFloat32, 1)},
                                    {"a/opaque_kernel_2/Adam", buffer()}},
                                   {.network = kSpec});
  ASSERT_EQ(model.networks.size(), 1U);
  const MappedNetwork& network = model.networks[0];
  EXPECT_EQ(network.name, "a");
  EXPECT_EQ(network.spec, kSpec);
  EXPECT_TRUE(same_bytes(network.params, buffer()));
  EXPECT_EQ(network.tensors, Names{"a/opaque_kernel"});
  ASSERT_EQ(network.slots.size(), 1U);
  EXPECT_TRUE(same_bytes(network.slots.at("Adam"), buffer()));
  EXPECT_EQ(model.not_understood,
            (Names{"a/opaque_kernel/step", "a/opaque_kernel/wide", "a/opaque_kernel_2/Adam"}));
  EXPECT_EQ(model.notes,
            Names{"'a/opaque_kernel' was read as an opaque buffer, with the layout of cuDNN"});
  EXPECT_EQ(loaded(folder, {{"opaque_kernel", buffer()}}, {.network = kSpec}).networks.at(0).name,
            "");
}

struct BesideCells {
  const char* what;
  RnnSpec spec;
  bool taken = false;
  /// In place of that of the spec.
  const char* cell = "";
  DType of_buffer = DType::kFloat32;
};

// The tensors of the cells that say what the buffer says, and the buffer.
std::vector<Tensor> with_buffer(const BesideCells& one, std::uint64_t seed = 1) {
  const TfCanonicalFormat format(one.spec);
  const Array params = values_of(one.spec.dtype, {params_size(one.spec)}, seed);
  std::vector<Array> values = format.from_opaque("test", params.view());
  std::vector<Tensor> tensors{{"x/opaque_kernel", cast(params.view(), one.of_buffer)}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string name = format.tensors()[i].name;
    const std::string own(tf_cell_name(one.spec));
    if (*one.cell) name.replace(name.find(own), own.size(), one.cell);
    tensors.push_back({"a/" + name, std::move(values[i])});
  }
  return tensors;
}

// cuDNN has two biases and nothing beside them: a buffer is that of cells that it could have.
TEST(OpaqueBuffers, BesideCellsOfEachClass) {
  const RnnSpec lstm = kSpec;
  RnnSpec gru = kSpec, before = kSpec, tanh = kSpec, relu = kSpec, wide = kSpec;
  gru.mode = before.mode = RnnMode::kGru;
  before.reset_after = false;
  tanh.mode = RnnMode::kRnnTanh;
  relu.mode = RnnMode::kRnnRelu;
  wide.dtype = DType::kFloat64;
  const BesideCells cases[] = {{"lstm", lstm, true},
                               {"gru", gru, true},
                               {"tanh", tanh, true},
                               {"relu", relu, true},
                               {"float64", wide, true, "", DType::kFloat64},
                               {"forget_bias", lstm, false, "lstm_cell"},
                               {"reset before", before},
                               {"narrow", wide},
                               {"wide", lstm, false, "", DType::kFloat64}};
  for (const BesideCells& one : cases) {
    const TempFolder folder;
    const std::vector<Tensor> tensors = with_buffer(one);
    MappingHints hints{.forget_bias = 1.0};
    if (one.spec.num_gates() == 1) hints.mode = one.spec.mode;
    const MappedModel model = loaded(folder, tensors, hints);
    ASSERT_EQ(model.networks.size(), 1U) << one.what;
    const MappedNetwork& network = model.networks[0];
    EXPECT_EQ(same_bytes(network.params, tensors[0].values), one.taken) << one.what;
    EXPECT_EQ(network.tensors.size(), tensors.size() - (one.taken ? 0 : 1)) << one.what;
    EXPECT_EQ(network.tensors.back() == "x/opaque_kernel", one.taken) << one.what;
    if (one.taken) {
      EXPECT_EQ(network.spec, one.spec) << one.what << describe(network.spec);
    }
    EXPECT_EQ(model.notes,
              one.taken ? Names()
                        : Names{"'x/opaque_kernel' is an opaque buffer, whose network the file "
                                "does not say, expected the hint network"})
        << one.what;
    EXPECT_EQ(model.not_understood, one.taken ? Names() : Names{"x/opaque_kernel"}) << one.what;
  }
}

// A cell of Keras has kernels of its own; and of two networks that say the same none is taken,
// whatever a third one says.
TEST(OpaqueBuffers, BesideCellsThatAreNone) {
  const TempFolder folder;
  const Array kernel = values_of(DType::kFloat32, {2, 12}, 2),
              recurrent = values_of(DType::kFloat32, {3, 12}, 3),
              bias = values_of(DType::kFloat32, {12}, 4);
  const MappedModel keras = loaded(folder, {{"x/opaque_kernel", buffer()},
                                            {"k/kernel", kernel},
                                            {"k/recurrent_kernel", recurrent},
                                            {"k/bias", bias}});
  EXPECT_EQ(keras.networks.at(0).tensors.size(), 3U);
  EXPECT_EQ(keras.notes, Names{"'x/opaque_kernel' is an opaque buffer, whose network the file does "
                               "not say, expected the hint network"});
  std::vector<Tensor> tensors = with_buffer({"one", kSpec}, 1);
  const auto add = [&](const char* name, std::uint64_t seed) {
    std::vector<Tensor> more = with_buffer({"more", kSpec}, seed);
    more.erase(more.begin());
    for (Tensor& one : more) tensors.push_back({name + one.name.substr(1), one.values});
  };
  add("b", 1);
  add("c", 2);
  const MappedModel several = loaded(folder, tensors);
  EXPECT_EQ(several.networks.size(), 3U);
  EXPECT_EQ(several.notes, Names());
  EXPECT_EQ(several.not_understood, Names{"x/opaque_kernel"});
}

// The outputs of a layer may be several, by number.
TEST(OwnPlaces, OutputsByNumber) {
  RnnSpec spec = kSpec;
  spec.direction = Direction::kBidirectional;
  MappedModel model;
  model.networks = {network_of(spec, "n")};
  model.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, -1, 2}}}},
      {.name = "r",
       .kind = "recurrent",
       .inputs = {{"x", 0}},
       .options = {{"network", "n"}, {"merge", "none"}}},
      {.name = "a", .kind = "activation", .inputs = {{"r", 1}}}};
  model.outputs = {{"a", 0}, {"r", 1}};
  const TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  EXPECT_TRUE(found.verified);
  EXPECT_EQ(found.outputs, model.outputs);
  EXPECT_EQ(found.layers.at(2).inputs, model.layers[2].inputs);
}

TEST(OwnPlaces, ValuesOfSafetensors) {
  const Array w = values_of(DType::kFloat32, {12, 2}, 1),
              r = values_of(DType::kFloat32, {12, 3}, 2);
  const NamedView views[] = {{"weight_ih_l0", w.view()}, {"weight_hh_l0", r.view()}};
  const TempFolder folder;
  write_safetensors(folder / "m", views,
                    {.metadata = {{"openrnn.json", R"([7, "a", "b", "c"])"},
                                  {"a", "18446744073709551615"},
                                  {"b", "9223372036854775807"},
                                  {"c", "\"text\""},
                                  {"d", "3"}}});
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : load_networks(folder / "m").values)
    values[value.name] = value.value;
  if (values.contains("openrnn.json")) values.erase("openrnn.json");
  const std::map<std::string, PlainValue> expected{{"a", 18446744073709551615.0},
                                                   {"b", std::int64_t{9223372036854775807}},
                                                   {"c", std::string("\"text\"")},
                                                   {"d", std::string("3")}};
  EXPECT_EQ(values, expected);
}

TEST(OwnPlaces, BiasesThatCannotGo) {
  RnnSpec gru = kSpec;
  gru.mode = RnnMode::kGru;
  const ParamsLayout layout(gru);
  // Gate 2 is the candidate, whose recurrent bias is inside the reset.
  const ParamRegion& candidate = layout.bias(0, 0, ParamRole::kRecurrentBias, 2);
  MappedNetwork network = network_of(gru, "n");
  expect_error<UnsupportedError>([&] { mapping::with_biases(network, 1); },
                                 message("[save_networks] the network 'n' has ", candidate.name,
                                         " that is not 0, which one bias a gate cannot hold"));
  expect_error<UnsupportedError>(
      [&] { mapping::with_biases(network, 0); },
      "[save_networks] the network 'n' has biases that are not 0, expected none");
  for (std::int64_t i = 0; i < candidate.rows; ++i) {
    network.params.as<float>()[static_cast<std::size_t>(candidate.offset + i)] = 0.0F;
  }
  EXPECT_TRUE(mapping::with_biases(network, 1).spec.single_bias);
  gru.reset_after = false;
  EXPECT_TRUE(mapping::with_biases(network_of(gru, "n"), 1).spec.single_bias);
  EXPECT_TRUE(mapping::with_biases(network_of(kSpec, "n"), 1).spec.single_bias);
}

}  // namespace
}  // namespace openrnn
