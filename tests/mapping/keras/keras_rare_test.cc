// Keras's files as few programs write them: notes and errors word for word, names, versions,
// stacks.
#include <gtest/gtest.h>

#include <array>

#include "mapping/keras/keras_text.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;

void append(LayerTensors* to, LayerTensors from) {
  for (auto& tensor : from) to->push_back(std::move(tensor));
}

Names network_names(const MappedModel& model) {
  Names names;
  for (const MappedNetwork& network : model.networks) names.push_back(network.name);
  return names;
}

TEST(KerasRare, WhatFilesOfWeightsAloneAskFor) {
  const TempFolder folder;
  const Array kernel = array_of({3, 12}), recurrent = array_of({3, 12}, 2);
  const NamedView tensors[] = {{"l/a/kernel", kernel.view()},
                               {"l/a/recurrent_kernel", recurrent.view()}};
  const auto write = [&](const char* version) {
    const NamedValue values[] = {{"keras_version", std::string(version)},
                                 {"layer_names", Names{"l"}},
                                 {"l/weight_names", Names{"a/kernel", "a/recurrent_kernel"}}};
    write_hdf5(folder / "m.h5", tensors, values);
  };
  write("2.2.4");
  expect_error<ArgumentError>(
      [&] { load_networks(folder / "m.h5"); },
      message("[load_networks] the network 'l' in ", folder / "m.h5", " has no configuration, and ",
              "its version has sigmoid or hard_sigmoid, expected the hint recurrent_activation"));
  for (const char* version : {"3", "2.3", "2.10"}) {
    write(version);
    const MappedModel model = load_networks(folder / "m.h5");
    EXPECT_EQ(model.notes,
              Names{"of the network 'l' the file says no activations: they are Keras's "
                    "own"});
    EXPECT_EQ(model.values.size(), 3U);
  }
}

TEST(KerasRare, NotesOfCellsAndDirections) {
  const auto cells = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += message(i ? ", " : "", R"({"class_name": "LSTMCell", "config": {)",
                      R"("recurrent_activation": "sigmoid"}})");
    }
    return layer_text(
        "RNN", "r",
        R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": [)" + text + "]}}");
  };
  LayerTensors two = cell_of(4, {12}, "lstm_cell/");
  append(&two, cell_of(4, {12}, "lstm_cell_1/"));
  EXPECT_EQ(loaded({.config = sequential(cells(3)), .layers = {{"r", two}}}).notes.at(0),
            "no network was made from 'r': it has tensors of 2 cells, expected 3");
  EXPECT_EQ(loaded({.config = sequential(cells(2)), .layers = {{"r", two}}})
                .networks.at(0)
                .spec.num_layers,
            2);
  LayerTensors both = cell_of(4, {12}, "forward_l/lstm_cell/");
  append(&both, cell_of(4, {12}, "backward_l/lstm_cell/"));
  const std::string merged =
      layer_text("Bidirectional", "l",
                 R"("merge_mode": "ave", "layer": )" +
                     layer_text("LSTM", "i", R"("recurrent_activation": "sigmoid")"));
  EXPECT_EQ(loaded({.config = sequential(merged), .layers = {{"l", both}}}).notes,
            Names{"the network 'l' has merge_mode 'ave': its model merges the two halves of its "
                  "output"});
}

// Stacked cells are one network where they are of one size and form.
TEST(KerasRare, CellsThatDiffer) {
  const auto cell = [](std::int64_t units, std::int64_t inputs, std::int64_t gates, bool bias,
                       const std::string& name) {
    LayerTensors tensors{{name + "/kernel", array_of({inputs, gates * units}, 1)},
                         {name + "/recurrent_kernel", array_of({units, gates * units}, 2)}};
    if (bias) tensors.emplace_back(name + "/bias", array_of({gates * units}, 3));
    return tensors;
  };
  const auto names_of = [&](LayerTensors second) {
    LayerTensors tensors = cell(3, 3, 4, true, "lstm_cell");
    append(&tensors, std::move(second));
    return network_names(loaded({.version = "2.4.0", .layers = {{"l", tensors}}}));
  };
  const Names one{"l"}, two{"l_0", "l_1"}, three{"l_0", "l_1", "l_2"};
  EXPECT_EQ(names_of(cell(3, 3, 4, true, "cell")), one);
  EXPECT_EQ(names_of(cell(2, 3, 4, true, "cell")), two);
  EXPECT_EQ(names_of(cell(3, 3, 3, true, "cell")), two);
  EXPECT_EQ(names_of(cell(3, 3, 4, false, "cell")), two);
  // By the configuration alone.
  LayerTensors equal = cell(3, 3, 4, true, "lstm_cell");
  append(&equal, cell(3, 3, 4, true, "lstm_cell_1"));
  for (const auto& [activation, names] : {std::pair("tanh", one), {"relu", two}}) {
    const std::string text =
        layer_text("RNN", "l",
                   message(R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": [)",
                           R"({"class_name": "LSTMCell", "config": {"activation": "tanh"}}, )",
                           R"({"class_name": "LSTMCell", "config": {"activation": ")", activation,
                           R"("}}]}})"));
    EXPECT_EQ(network_names(loaded({.config = sequential(text), .layers = {{"l", equal}}})), names);
  }
  // Of three cells the second or the third may be the one that differs.
  for (const auto& [units, activations, names] :
       {std::tuple(3, std::array{"tanh", "tanh", "tanh"}, one),
        {3, {"tanh", "relu", "tanh"}, three},
        {3, {"tanh", "tanh", "relu"}, three},
        {3, {"relu", "tanh", "tanh"}, three},
        {2, {"tanh", "tanh", "tanh"}, three}}) {
    LayerTensors tensors = cell(3, 3, 4, true, "lstm_cell");
    append(&tensors, cell(units, 3, 4, true, "lstm_cell_1"));
    append(&tensors, cell(3, units, 4, true, "lstm_cell_2"));
    std::string cells;
    for (const char* activation : activations) {
      cells += message(cells.empty() ? "" : ", ", R"({"class_name": "LSTMCell", "config": )",
                       R"({"activation": ")", activation, R"("}})");
    }
    const std::string text =
        layer_text("RNN", "l",
                   message(R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": [)",
                           cells, "]}}"));
    EXPECT_EQ(network_names(loaded({.config = sequential(text), .layers = {{"l", tensors}}})),
              names)
        << units << cells;
  }
}

// Which of several outputs a layer takes, and which of them are outputs of the model.
TEST(KerasRare, OutputsOfALayerKeepTheirNumbers) {
  MappedModel model;
  model.networks = {network_of({.num_units = 5, .input_size = 3, .single_bias = true}, "l")};
  model.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, -1, 3}}}},
      {.name = "l",
       .kind = "recurrent",
       .inputs = {{"x", 0}},
       .options = {{"network", std::string("l")},
                   {"return_sequences", false},
                   {"return_state", true}}},
      {.name = "s", .kind = "subtract", .inputs = {{"l", 2}, {"l", 0}}},
      {.name = "a", .kind = "add", .inputs = {{"l", 1}, {"s", 0}, {"l", 2}}},
      {.name = "r", .kind = "activation", .inputs = {{"l", 1}}}};
  model.outputs = {{"l", 2}, {"a", 0}, {"r", 0}, {"l", 1}};
  const TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  ASSERT_EQ(found.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    EXPECT_EQ(found.layers[i].inputs, model.layers[i].inputs) << i;
  }
  EXPECT_EQ(found.outputs, model.outputs);
  // A file of Keras is a chain of first outputs.
  model.layers.erase(model.layers.begin() + 2, model.layers.begin() + 4);
  model.outputs = {{"r", 0}};
  for (const auto& [format, what] : {std::pair(ModelFormat::kKeras, "a .keras file"),
                                     {ModelFormat::kKerasH5, "a Keras .h5 file"}}) {
    expect_error<UnsupportedError>(
        [&, format = format] { save_networks(folder / "n", model, format); },
        message("[save_networks] the layer 'r' has inputs other than the layer before it, which ",
                what, " cannot hold"));
  }
}

// Two rows of biases are those of a GRU that resets after the product, one row those of another.
TEST(KerasRare, AConfigurationAndABiasThatDiffer) {
  for (const auto& [said, bias, agree] : {std::tuple("true", Shape{9}, false),
                                          {"false", Shape{2, 9}, false},
                                          {"true", Shape{2, 9}, true},
                                          {"false", Shape{9}, true}}) {
    const MappedModel model =
        loaded({.config = sequential(layer_text(
                    "GRU", "l",
                    message(R"("recurrent_activation": "sigmoid", )", R"("reset_after": )", said))),
                .layers = {{"l", cell_of(3, bias)}}});
    ASSERT_EQ(model.networks.size(), agree ? 1U : 0U) << said;
    if (agree) {
      EXPECT_EQ(model.networks[0].spec.reset_after, bias.size() == 2);
      continue;
    }
    EXPECT_EQ(model.notes.at(0), message("no network was made from 'l': reset_after is ", said,
                                         " in its configuration and not by its bias"));
  }
}

TEST(KerasRare, NamesOfLayersDiffer) {
  const auto relu = [](const char* name) { return layer_text("ReLU", name); };
  const MappedModel model =
      loaded({.config = message(R"({"config": {"layers": [)",
                                layer_text("InputLayer", "in", R"("batch_shape": [null, null, 3])"),
                                ", ", layer_text("LSTM", "e"), ", ", relu("e"), ", ", relu("e"),
                                ", ", relu(""), ", ", relu("e"), "]}}"),
              .layers = {{"e", cell_of(4, {12})}}});
  Names names;
  for (const MappedLayer& layer : model.layers) names.push_back(layer.name);
  // An LSTM hands on its last step alone.
  EXPECT_EQ(names, (Names{"in", "e", "e_1", "e_2", "layer", "e_3"}));
}

TEST(KerasRare, VersionsOfArchives) {
  const TempFolder folder;
  const Array kernel = array_of({3, 12}), recurrent = array_of({3, 12}, 2),
              bias = array_of({12}, 3);
  const std::string config =
      sequential(layer_text("LSTM", "l", R"("recurrent_activation": "hard_sigmoid")"));
  const auto spec_of = [&](const std::string& root, const std::string& metadata) {
    const NamedView tensors[] = {{root + "lstm/cell/vars/0", kernel.view()},
                                 {root + "lstm/cell/vars/1", recurrent.view()},
                                 {root + "lstm/cell/vars/2", bias.view()}};
    const NamedValue values[] = {{"config.json", config}, {"metadata.json", metadata}};
    write_keras_archive(folder / "m.keras", tensors, values);
    const MappedModel model = load_networks(folder / "m.keras");
    EXPECT_EQ(model.layers.size(), 2U) << network_or_notes(model);
    return model.networks.at(0).spec.recurrent_activation->alpha;
  };
  // The root of Keras 3 before its first release, and of Keras 2.12.
  for (const char* root : {"layers/", "_layer_checkpoint_dependencies/"}) {
    EXPECT_EQ(spec_of(root, R"({"keras_version": "3.1.0"})"), 1.0 / 6.0);
    EXPECT_EQ(spec_of(root, R"({"keras_version": "2.15.0"})"), 0.2);
    EXPECT_EQ(spec_of(root, R"({"keras_version": 2})"), 1.0 / 6.0);
    EXPECT_EQ(spec_of(root, "7"), 1.0 / 6.0);
  }
}

// Lists of names that are longer than an attribute may be, and layers that have one name.
TEST(KerasRare, ManyAndEqualNames) {
  MappedModel model;
  for (int i = 0; i < 300; ++i) {
    const RnnSpec spec{.num_units = 1, .input_size = 1, .single_bias = true};
    model.networks.push_back(network_of(spec, std::string(240, 'n') + std::to_string(i)));
  }
  const TempFolder folder;
  save_networks(folder / "m.h5", model, ModelFormat::kKerasH5);
  EXPECT_EQ(network_names(load_networks(folder / "m.h5")), network_names(model));
  const Array kernel = array_of({3, 12});
  std::vector<NamedView> tensors;
  std::vector<NamedValue> values;
  for (const char* layer : {"a", "b"}) {
    for (const char* at : {"0", "1"}) {
      tensors.push_back({message("layers/", layer, "/cell/vars/", at), kernel.view()});
    }
    values.push_back({message("layers/", layer, "/vars/name"), std::string("same")});
  }
  write_hdf5(folder / "m.weights.h5", tensors, values);
  EXPECT_EQ(network_names(load_networks(folder / "m.weights.h5")), (Names{"same", "layers/b"}));
}

TEST(KerasRare, AnOptimizerWhoseTensorsAreNotThere) {
  const MappedModel model =
      loaded({.config = sequential(layer_text("LSTM", "l", R"("recurrent_activation": "sigmoid")")),
              .layers = {{"l", cell_of(4, {12})}},
              .values = {{"optimizer_weights/weight_names", Names{"adam/a", "adam/b", "adam/c"}}}});
  EXPECT_EQ(model.layers.size(), 2U);
  EXPECT_TRUE(model.notes.empty());
}

TEST(KerasRare, ThreeLayersOfOneNetwork) {
  std::string layers;
  KerasText text{.values = {{"openrnn_networks", std::string(R"({"n": ["a", "b", "c"]})")}}};
  for (const char* name : {"a", "b", "c"}) {
    layers += message(
        layers.empty() ? "" : ", ",
        layer_text("LSTM", name, R"("recurrent_activation": "sigmoid", "return_sequences": true)"));
    text.layers.emplace_back(name, cell_of(4, {12}));
  }
  text.config = sequential(layers + ", " + layer_text("ReLU", "r"));
  const MappedModel model = loaded(text);
  ASSERT_EQ(model.layers.size(), 3U);
  EXPECT_EQ(model.layers[1].name, "c");
  EXPECT_EQ(model.layers[2].name, "r");
  EXPECT_EQ(model.layers[1].inputs, (std::vector<LayerOutput>{{"x", 0}}));
  EXPECT_EQ(model.networks.at(0).spec.num_layers, 3);
}

TEST(KerasRare, ADenseLayerOfKeras2) {
  const MappedModel model =
      loaded({.version = "2.15.0",
              .config = sequential(
                  layer_text("Dense", "d", R"("units": 2, "activation": "hard_sigmoid")")),
              .layers = {{"d", {{"kernel", array_of({3, 2})}, {"bias", array_of({2})}}}}});
  ASSERT_EQ(model.layers.size(), 2U);
  EXPECT_EQ(layer_option_as<std::string>(model.layers[1], "activation"), "hard_sigmoid(0.2,0.5)");
}

// More rows than are read at a time.
TEST(KerasRare, ALargeKernel) {
  const RnnSpec spec{.num_units = 64, .input_size = 5000, .single_bias = true};
  MappedModel model;
  model.networks = {network_of(spec, "n")};
  const TempFolder folder;
  for (const ModelFormat format : {ModelFormat::kKerasH5, ModelFormat::kTensorflow}) {
    save_networks(folder / "m", model, format);
    const std::string path = folder / "m";
    EXPECT_TRUE(same_bytes(load_networks(path, {.forget_bias = 0.0}).networks.at(0).params,
                           model.networks[0].params));
  }
}

}  // namespace
}  // namespace openrnn
