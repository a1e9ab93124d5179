// The cells of Keras's layers among tensors: names, shapes, paths of Keras 3.
#include <gtest/gtest.h>

#include "mapping/keras/keras_text.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;

void append(LayerTensors* to, LayerTensors from) {
  for (auto& tensor : from) to->push_back(std::move(tensor));
}

std::vector<std::string> names_of(const MappedModel& model) {
  std::vector<std::string> names;
  for (const MappedNetwork& network : model.networks) names.push_back(network.name);
  return names;
}

MappedModel of_layer(LayerTensors tensors, const std::string& layer = "l") {
  return loaded({.version = "2.4.0", .layers = {{layer, std::move(tensors)}}});
}

// Whatever Keras called them, cells below one layer are its stack.
TEST(KerasCells, NamesOfStackedCells) {
  const std::pair<const char*, const char*> pairs[] = {
      {"lstm_cell/", "lstm_cell_1/"},
      {"cell/", "lstm_cell/"},
      {"my_cell_a/", "lstm_cell/"},
      {"stacked_rnn_cells/a/", "stacked_rnn_cells/b/"},
      {"stacked_rnn_cells_1/a/", "stacked_rnn_cells_1/b/"},
      {"stacked_rnn_cells/a/cell/", "stacked_rnn_cells/stacked_rnn_cells/b/"}};
  for (const auto& [first, second] : pairs) {
    LayerTensors tensors = cell_of(4, {12}, first);
    append(&tensors, cell_of(4, {12}, second));
    const MappedModel model = of_layer(tensors);
    ASSERT_EQ(names_of(model), std::vector<std::string>{"l"}) << first << second;
    EXPECT_EQ(model.networks[0].spec.num_layers, 2) << first;
    EXPECT_TRUE(model.not_understood.empty());
  }
  // Two layers of a model inside.
  LayerTensors tensors = cell_of(4, {12}, "a/");
  append(&tensors, cell_of(4, {12}, "b/"));
  EXPECT_EQ(names_of(of_layer(tensors, "m")), (std::vector<std::string>{"m/m/a", "m/m/b"}));
  // A layer may be called like one of two directions.
  for (const char* name : {"backward_l", "forward_l"}) {
    const MappedModel model = of_layer(cell_of(4, {12}), name);
    ASSERT_EQ(names_of(model), std::vector<std::string>{name});
    EXPECT_EQ(model.networks[0].spec.direction, Direction::kUnidirectional);
  }
}

TEST(KerasCells, TensorsThatAreNoCell) {
  const Array kernel = array_of({3, 12}), recurrent = array_of({3, 12}, 2),
              bias = array_of({12}, 3);
  const std::vector<LayerTensors> cases = {
      {{"a/kernel", kernel}, {"a/other", recurrent}},
      {{"a/kernel", kernel}, {"b/recurrent_kernel", recurrent}},
      {{"a/kernel", kernel}},
      {{"a_W_i", kernel}, {"a_U_i", recurrent}},
      {{"aW", kernel}, {"aU", recurrent}, {"ab", bias}},
      {{"W", kernel}, {"U", recurrent}, {"b", bias}}};
  for (const LayerTensors& tensors : cases) {
    const MappedModel model = of_layer(tensors);
    EXPECT_TRUE(model.networks.empty()) << tensors[0].first;
    EXPECT_TRUE(model.notes.empty()) << tensors[0].first;
    EXPECT_EQ(model.not_understood.size(), tensors.size());
  }
  // The third one has to be a bias of the same cell.
  for (const char* third : {"a/scale", "b/bias"}) {
    const MappedModel model =
        of_layer({{"a/kernel", kernel}, {"a/recurrent_kernel", recurrent}, {third, bias}});
    ASSERT_EQ(model.networks.size(), 1U);
    EXPECT_FALSE(model.networks[0].spec.use_bias);
    EXPECT_EQ(model.not_understood, std::vector<std::string>{message("l/l/", third)});
  }
  EXPECT_TRUE(of_layer({{"a/kernel", kernel}, {"a/recurrent_kernel", recurrent}, {"a/bias", bias}})
                  .networks.at(0)
                  .spec.use_bias);
}

TEST(KerasCells, ShapesThatAreNoCell) {
  struct Case {
    Shape kernel, recurrent, bias;
    const char* why;
  };
  const Case cases[] = {
      {{12}, {3, 12}, {}, "'l/l/kernel' has shape [12], expected two sizes of at least 1"},
      {{3, 12},
       {3, 12, 1},
       {},
       "'l/l/recurrent_kernel' has shape [3, 12, 1], expected two sizes of at least 1"},
      {{3, 12},
       {0, 12},
       {},
       "'l/l/recurrent_kernel' has shape [0, 12], expected two sizes of at least 1"},
      {{3, 12},
       {3, 0},
       {},
       "'l/l/recurrent_kernel' has shape [3, 0], expected two sizes of at least 1"},
      {{2, 12},
       {5, 12},
       {},
       "the recurrent kernel has shape [5, 12], expected 1, 3 or 4 gates of 5 columns"},
      {{2, 14},
       {3, 14},
       {},
       "the recurrent kernel has shape [3, 14], expected 1, 3 or 4 gates of 3 columns"},
      {{2, 6},
       {3, 6},
       {},
       "the recurrent kernel has shape [3, 6], expected 1, 3 or 4 gates of 3 columns"},
      {{2, 15},
       {3, 15},
       {},
       "the recurrent kernel has shape [3, 15], expected 1, 3 or 4 gates of 3 columns"},
      {{2, 3}, {3, 3}, {6}, "'l/l/bias' is float32 [6], which does not fit the others"},
      {{2, 11}, {3, 12}, {12}, "'l/l/kernel' is float32 [2, 11], which does not fit the others"},
  };
  for (const Case& one : cases) {
    LayerTensors tensors{{"kernel", array_of(one.kernel)},
                         {"recurrent_kernel", array_of(one.recurrent)}};
    if (!one.bias.empty()) tensors.emplace_back("bias", array_of(one.bias));
    const MappedModel model = of_layer(tensors);
    EXPECT_TRUE(model.networks.empty()) << one.why;
    const std::string note = model.notes.empty() ? "" : model.notes.back();
    EXPECT_EQ(note, message("no network was made from 'l': ", one.why));
    EXPECT_EQ(model.not_understood.size(), tensors.size());
  }
  const MappedModel integers = of_layer(
      {{"kernel", Array(DType::kInt32, {3, 12})}, {"recurrent_kernel", array_of({3, 12})}});
  EXPECT_EQ(integers.notes.back(),
            "no network was made from 'l': its kernel is int32, expected floating point");
}

TEST(KerasCells, ListsOfNamesThatAreNotTrue) {
  const TempFolder folder;
  const Array kernel = array_of({3, 12});
  const NamedView tensors[] = {{"l/a/kernel", kernel.view()}};
  const NamedValue values[] = {
      {"layer_names", std::vector<std::string>{"l"}},
      {"l/weight_names", std::vector<std::string>{"a/kernel", "a/recurrent_kernel"}}};
  write_hdf5(folder / "m.h5", tensors, values);
  const std::string error = error_of<FormatError>([&] { load_networks(folder / "m.h5"); });
  EXPECT_NE(error.find("there is no 'l/a/recurrent_kernel', expected it as weight_names says"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(folder / "m.h5"), std::string::npos);
}

// Weights of Keras 3 alone, by paths.
MappedModel of_paths(const std::vector<std::pair<std::string, Shape>>& shapes,
                     std::vector<NamedValue> values = {}) {
  const TempFolder folder;
  std::vector<Array> arrays;
  for (const auto& [path, shape] : shapes) arrays.push_back(array_of(shape, arrays.size()));
  std::vector<NamedView> tensors;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    tensors.push_back({"layers/" + shapes[i].first, arrays[i].view()});
  }
  values.push_back({"layers/other", std::int64_t{1}});
  write_hdf5(folder / "m.weights.h5", tensors, values);
  return load_networks(folder / "m.weights.h5");
}

TEST(KerasCells, PathsOfKeras3) {
  const MappedModel named = of_paths({{"a/cell/vars/0", {2, 12}},
                                      {"a/cell/vars/1", {3, 12}},
                                      {"b/cell/vars/0", {2, 3}},
                                      {"b/cell/vars/1", {3, 3}},
                                      {"b/cell/vars/2", {3}}},
                                     {{"layers/a/vars/name", std::string("mine")}});
  EXPECT_EQ(named.kind, FileKind::kKerasWeights);
  EXPECT_EQ(names_of(named), (std::vector<std::string>{"mine", "layers/b"}));
  EXPECT_EQ(named.networks[1].spec.input_size, 2);
  EXPECT_TRUE(named.networks[1].spec.single_bias);
  EXPECT_TRUE(named.not_understood.empty());
  // The states of a generator of random numbers are behind the weights.
  const MappedModel four = of_paths({{"a/cell/vars/0", {2, 12}},
                                     {"a/cell/vars/1", {3, 12}},
                                     {"a/cell/vars/2", {12}},
                                     {"a/cell/vars/3", {2}}});
  EXPECT_EQ(names_of(four), std::vector<std::string>{"layers/a"});
  EXPECT_EQ(four.not_understood, std::vector<std::string>{"layers/a/cell/vars/3"});
  // Backward comes first by name, and is the second direction.
  const MappedModel both = of_paths({{"b/backward_layer/cell/vars/0", {2, 12}},
                                     {"b/backward_layer/cell/vars/1", {3, 12}},
                                     {"b/forward_layer/cell/vars/0", {2, 12}},
                                     {"b/forward_layer/cell/vars/1", {3, 12}}});
  ASSERT_EQ(both.networks.size(), 1U);
  EXPECT_EQ(both.networks[0].spec.direction, Direction::kBidirectional);
  EXPECT_EQ(both.networks[0].tensors.at(0), "layers/b/forward_layer/cell/vars/0");
}

TEST(KerasCells, PathsThatAreNoCell) {
  const std::vector<std::vector<std::pair<std::string, Shape>>> cases = {
      {{"a/vars/0", {2, 12}}, {"a/vars/1", {3, 12}}},
      {{"a/cell/vars/0", {2, 12}}},
      {{"a/cell/vars/0", {12}}, {"a/cell/vars/1", {3, 12}}},
      {{"a/cell/vars/0", {2, 12}}, {"a/cell/vars/1", {12}}},
      {{"a/cell/vars/0", {2, 12}}, {"a/cell/vars/1", {3, 9}}},
      {{"a/cell/0", {2, 12}}, {"a/cell/1", {3, 12}}}};
  for (const auto& shapes : cases) {
    const MappedModel model = of_paths(shapes);
    EXPECT_TRUE(model.networks.empty()) << shapes[0].first;
    EXPECT_TRUE(model.notes.empty()) << shapes[0].first;
    EXPECT_EQ(model.not_understood.size(), shapes.size());
  }
}

}  // namespace
}  // namespace openrnn
