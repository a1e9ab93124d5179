// Why no network was made of tensors of PyTorch and TensorFlow: whole notes, and what stays a
// value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "mapping/torch/names.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Notes = std::vector<std::string>;
using Names = std::vector<std::string>;

Array array_of(Shape shape, DType dtype = DType::kFloat32) {
  return is_floating(dtype) ? values_of(dtype, std::move(shape), 1)
                            : Array(dtype, std::move(shape));
}

struct Tensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

MappedModel torch_file(const std::vector<Tensor>& tensors) {
  const TempFolder folder;
  std::vector<Array> arrays;
  for (const Tensor& one : tensors) arrays.push_back(array_of(one.shape, one.dtype));
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    views.push_back({tensors[i].name, arrays[i].view()});
  }
  write_torch_state_dict(folder / "m.pt", views);
  return load_networks(folder / "m.pt");
}

MappedModel tf_file(const std::vector<Tensor>& tensors, const MappingHints& hints = {}) {
  const TempFolder folder;
  std::vector<NamedTensor> named;
  for (const Tensor& one : tensors) named.push_back({one.name, array_of(one.shape, one.dtype)});
  write_tensor_bundle(folder / "m", named);
  return load_networks(folder / "m", hints);
}

TEST(NotesOfTensors, NamesOfPyTorch) {
  using mapping::parse_torch_name;
  for (const char* name : {"weight_ih_l0", "a.weight_ih_l10", "a.b.bias_hh_l9999_reverse",
                           "weight_hr_l0", "a.weight_hh", "bias_ih"}) {
    EXPECT_TRUE(parse_torch_name(name)) << name;
  }
  for (const char* name :
       {"weight_ih_l", "weight_ih_l00", "weight_ih_l01", "weight_ih_l12345", "weight_ih_lx",
        "weight_ih_l_reverse", "weight_ih_0", "weight_hr", "weight_ih.x", "my_weight_ih_l0"}) {
    EXPECT_FALSE(parse_torch_name(name)) << name;
  }
  EXPECT_TRUE(parse_torch_name("a.weight_hh")->is_cell);
  EXPECT_EQ(parse_torch_name("a.b.weight_hh_l1")->prefix, "a.b.");
}

TEST(NotesOfTensors, OfPyTorch) {
  const auto note_of = [](const std::vector<Tensor>& tensors) {
    const MappedModel model = torch_file(tensors);
    EXPECT_TRUE(model.networks.empty());
    EXPECT_EQ(model.not_understood.size(), tensors.size());
    return model.notes;
  };
  const auto why = [](const char* first, const std::string& reason) {
    return Notes{message("no network was made from '", first, "' and the like: ", reason)};
  };
  EXPECT_EQ(
      note_of({{"a.weight_ih_l0", {12, 2}}, {"a.weight_hh_l0", {0, 3}}}),
      why("a.weight_hh_l0", "weight_hh_l0 has shape [0, 3], expected two sizes of at least 1"));
  EXPECT_EQ(
      note_of({{"a.weight_ih_l0", {12, 2}}, {"a.weight_hh_l0", {10, 3}}}),
      why("a.weight_hh_l0", "weight_hh has shape [10, 3], expected 1, 3 or 4 gates of 3 rows"));
  for (const std::int64_t rows : {6, 15, 10, 1}) {
    EXPECT_EQ(note_of({{"a.weight_ih_l0", {rows, 2}}, {"a.weight_hh_l0", {rows, 3}}}),
              why("a.weight_hh_l0", message("weight_hh has shape [", rows,
                                            ", 3], expected 1, 3 or ", "4 gates of 3 rows")));
  }
  EXPECT_EQ(note_of({{"weight_ih", {12, 2}, DType::kInt64}, {"weight_hh", {12, 3}, DType::kInt64}}),
            why("weight_hh", "weight_ih is int64, expected floating point"));
  EXPECT_EQ(note_of({{"a.weight_ih_l0", {12, 2}}}),
            why("a.weight_ih_l0", "it has no weight_hh_l0"));
}

TEST(NotesOfTensors, OptimizersOfNoNetwork) {
  // No networks, no note; more dictionaries than any program has are not looked at.
  EXPECT_TRUE(torch_file({{"w", {3}}, {"optimizer.state.0.exp_avg", {3}}}).notes.empty());
  std::vector<Tensor> tensors{{"weight_ih_l0", {12, 2}}, {"weight_hh_l0", {12, 3}}};
  for (int i = 0; i < 257; ++i) tensors.push_back({message("o", i, ".state.0.m"), {3}});
  EXPECT_TRUE(torch_file(tensors).notes.empty());
  tensors.pop_back();
  const MappedModel many = torch_file(tensors);
  EXPECT_EQ(many.notes.size(), 256U);
  EXPECT_EQ(many.notes.front(),
            "of the optimizer's values at 'o0.state' the file does not tell which parameters they "
            "are of");
}

TEST(NotesOfTensors, OfTensorflow) {
  struct Case {
    std::vector<Tensor> tensors;
    Notes notes;
  };
  const auto why = [](const char* first, const std::string& reason) {
    return Notes{message("no network was made from '", first, "' and the like: ", reason)};
  };
  const std::string cell = "a/rnn/lstm_cell/", keras = "l/lstm_cell/";
  const Case cases[] = {
      {{{cell + "kernel", {0, 12}}, {cell + "bias", {12}}},
       why("a/rnn/lstm_cell/bias", "kernel has shape [0, 12], expected two sizes of at least 1")},
      {{{cell + "kernel", {5, 0}}, {cell + "bias", {12}}},
       why("a/rnn/lstm_cell/bias", "kernel has shape [5, 0], expected two sizes of at least 1")},
      {{{cell + "kernel", {5, 12}, DType::kInt32}, {cell + "bias", {12}, DType::kInt32}},
       why("a/rnn/lstm_cell/bias", "its elements are int32, expected floating point")},
      {{{cell + "kernel", {5, 11}}, {cell + "bias", {11}}},
       why("a/rnn/lstm_cell/bias",
           "its kernel has shape [5, 11], expected 4 gates of equally many columns")},
      {{{keras + "kernel", {2, 12}}, {keras + "recurrent_kernel", {5, 12}}},
       why("l/lstm_cell/kernel",
           "recurrent_kernel has shape [5, 12], expected 1, 3 or 4 gates of 5 columns")},
      {{{cell + "kernel", {5, 12}}, {cell + "bias", {11}}},
       {"no network was made from the tensors at 'a/rnn/lstm_cell': bias is float32 [11], expected "
        "float32 [12]"}},
      // These have no names of a cell.
      {{{"a/rnn/lstm_cell-1/kernel", {5, 12}}, {"a/rnn/lstm_cell-1/bias", {12}}}, {}},
      {{{"a/rnn/gru_cell/kernel", {5, 9}}, {"a/rnn/gru_cell/bias", {9}}}, {}},
      {{{"a/rnn/lstm_cell/bias", {12}}}, {}},
      {{{"a/rnn/lstm_cell/xkernel", {5, 12}}, {"a/rnn/lstm_cell/xbias", {12}}}, {}}};
  for (const Case& one : cases) {
    const MappedModel model = tf_file(one.tensors);
    EXPECT_TRUE(model.networks.empty()) << one.tensors[0].name;
    EXPECT_EQ(model.notes, one.notes);
    EXPECT_EQ(model.not_understood.size(), one.tensors.size()) << one.tensors[0].name;
  }
}

TEST(NotesOfTensors, HintsThatTensorflowNeeds) {
  const TempFolder folder;
  const auto error_of_file = [&](const std::vector<Tensor>& tensors) {
    std::vector<NamedTensor> named;
    for (const Tensor& one : tensors) named.push_back({one.name, array_of(one.shape)});
    write_tensor_bundle(folder / "m", named);
    return error_of<ArgumentError>([&] { load_networks(folder / "m"); });
  };
  const std::string plain =
      message(" in ", folder / "m", " is a plain one, of which TensorFlow's files do not say tanh ",
              "or relu, expected the hint mode: rnn_tanh or rnn_relu");
  EXPECT_EQ(
      error_of_file({{"a/rnn/basic_rnn_cell/kernel", {5, 3}}, {"a/rnn/basic_rnn_cell/bias", {3}}}),
      "[load_networks] the network 'a/rnn/basic_rnn_cell'" + plain);
  const std::vector<Tensor> simple{{"s/kernel", {2, 3}}, {"s/recurrent_kernel", {3, 3}}};
  EXPECT_EQ(error_of_file(simple), "[load_networks] the network 's'" + plain);
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(tf_file(simple, {.mode = mode}).networks.at(0).spec.mode, mode);
  }
  const std::vector<Tensor> gru{{"g/kernel", {2, 9}}, {"g/recurrent_kernel", {3, 9}}};
  EXPECT_EQ(
      error_of_file(gru),
      message("[load_networks] the network 'g' in ", folder / "m", " is a GRU without biases,",
              " of which the file does not say its form, expected the hint reset_after"));
  const RnnSpec spec = tf_file(gru, {.reset_after = false,
                                     .recurrent_activation = parse_cell_activation("softsign")})
                           .networks.at(0)
                           .spec;
  EXPECT_FALSE(spec.reset_after || spec.use_bias);
  EXPECT_EQ(spec.recurrent_activation, parse_cell_activation("softsign"));
}

TEST(NotesOfTensors, NamesOfVariablesAndFiles) {
  // ':0' is the output of an operation; more than four digits number no layer.
  const MappedModel outputs =
      tf_file({{"a/rnn/lstm_cell/kernel:0", {5, 12}}, {"a/rnn/lstm_cell/bias:0", {12}}});
  ASSERT_EQ(outputs.networks.size(), 1U);
  EXPECT_EQ(outputs.networks[0].name, "a");
  EXPECT_TRUE(outputs.not_understood.empty());
  const auto name_of = [](const std::string& scope) {
    return tf_file({{scope + "/kernel", {5, 12}}, {scope + "/bias", {12}}}).networks.at(0).name;
  };
  EXPECT_EQ(name_of("a/rnn/multi_rnn_cell/cell_0/lstm_cell"), "a");
  EXPECT_EQ(name_of("a/rnn/multi_rnn_cell/cell_1234/lstm_cell"),
            "a/rnn/multi_rnn_cell/cell_1234/lstm_cell");
  EXPECT_EQ(name_of("a/rnn/multi_rnn_cell/cell_12345/lstm_cell"),
            "a/rnn/multi_rnn_cell/cell_12345");
  EXPECT_EQ(name_of("a/rnn/multi_rnn_cell/cell_-1/lstm_cell"), "a/rnn/multi_rnn_cell/cell_-1");
  // A file may be named by its index.
  const TempFolder folder;
  MappedModel model;
  model.networks = {network_of({.num_units = 3, .input_size = 2, .single_bias = true}, "n")};
  save_networks(folder / "m.index", model, ModelFormat::kTensorflow);
  EXPECT_EQ(load_networks(folder / "m").networks.at(0).name, "n");
  Names expected{"m.data-00000-of-00001", "m.index"};
  Names found = folder.names();
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
}

TEST(NotesOfTensors, ScalarsOfCheckpointsAreValues) {
  const TempFolder folder;
  const std::vector<NamedTensor> tensors{
      {"a", Array::of<std::int32_t>({}, std::vector<std::int32_t>{-3})},
      {"b", Array::of<std::int64_t>({}, std::vector<std::int64_t>{1LL << 40})},
      {"c", Array::of<float>({}, std::vector<float>{0.5F})},
      {"d", Array::of<double>({}, std::vector<double>{0.1})},
      {"e", StringTensor{{}, {"text"}}},
      {"f", StringTensor{{}, {"\xff"}}},
      {"g", StringTensor{{1}, {"text"}}},
      {"h", Array::of<float>({1}, std::vector<float>{0.5F})},
      {"i", Array(DType::kBool, {})}};
  write_tensor_bundle(folder / "m", tensors);
  const MappedModel model = load_networks(folder / "m");
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : model.values) values[value.name] = value.value;
  const std::map<std::string, PlainValue> expected{{"a", std::int64_t{-3}},
                                                   {"b", std::int64_t{1LL << 40}},
                                                   {"c", 0.5},
                                                   {"d", 0.1},
                                                   {"e", std::string("text")},
                                                   {"i", false}};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(model.not_understood, (Names{"f", "g", "h"}));
}

TEST(NotesOfTensors, WhatIsNotFinite) {
  const TempFolder folder;
  MappedModel model;
  model.networks = {network_of({.num_units = 3, .input_size = 2, .dtype = DType::kFloat16}, "n")};
  MappedNetwork& network = model.networks[0];
  const Half nan = to_half(NAN), infinite = to_half(-INFINITY);
  network.initial_h = values_of(DType::kFloat16, {1, 3}, 1);
  network.initial_c = values_of(DType::kFloat16, {1, 3}, 2);
  network.slots.emplace("m", network.params);
  network.initial_h->as<Half>()[0] = nan;
  network.initial_c->as<Half>()[1] = infinite;
  network.initial_c->as<Half>()[2] = infinite;
  network.slots.at("m").as<Half>()[5] = nan;
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  EXPECT_EQ(load_networks(folder / "m").notes,
            (Notes{"the network 'n' has 1 NaN and 0 infinite of 3 values in initial_h",
                   "the network 'n' has 0 NaN and 2 infinite of 3 values in initial_c",
                   "the network 'n' has 1 NaN and 0 infinite of 84 values in the slot 'm'"}));
}

TEST(NotesOfTensors, ValuesOfCheckpointsKeepTheirNames) {
  const auto again = [](MappedModel model, FileKind kind = FileKind::kUnknown) {
    const TempFolder folder;
    model.kind = kind;
    save_networks(folder / "m", model, ModelFormat::kTorch);
    const MappedModel found = load_networks(folder / "m");
    EXPECT_EQ(found.networks.at(0).name, model.networks[0].name);
    std::map<std::string, PlainValue> values;
    for (const NamedValue& value : found.values) values[value.name] = value.value;
    return values;
  };
  using Values = std::map<std::string, PlainValue>;
  MappedModel model;
  model.networks = {network_of({.num_units = 3, .input_size = 2}, "models.rnn")};
  // A part of a name may be a value of its own, unless it is a dictionary already.
  model.values = {{"a", std::int64_t{1}}, {"a.b", std::int64_t{2}}};
  EXPECT_EQ(again(model), (Values{{"a", std::int64_t{1}}, {"a.b", std::int64_t{2}}}));
  std::swap(model.values[0], model.values[1]);
  expect_error<ArgumentError>([&] { again(model); },
                              "[save_networks] the value 'a' has the name of a dictionary of the "
                              "file, expected another");
  model.values = {{"a", std::int64_t{1}}, {"producer_name", std::string("p")}};
  EXPECT_EQ(again(model, FileKind::kOnnx), (Values{{"a", std::int64_t{1}}}));
  EXPECT_EQ(again(model, FileKind::kTorch).size(), 2U);
  for (const FileKind kind :
       {FileKind::kKerasH5, FileKind::kKerasWeights, FileKind::kKerasArchive, FileKind::kHdf5}) {
    EXPECT_TRUE(again(model, kind).empty());
  }
}

}  // namespace
}  // namespace openrnn
