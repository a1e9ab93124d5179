// Layers of Keras's models as wholes: each class with its defaults and with every option that it
// heeds, in the words of each version.
#include <gtest/gtest.h>

#include "mapping/keras/keras_text.h"

namespace openrnn {
namespace {

using Names = std::vector<std::string>;

// 'd dense <- l/0: activation=linear units=2; kernel [3, 2] d/kernel'.
std::string shown_layer(const MappedLayer& layer) {
  std::string text = layer.name + " " + layer.kind + (layer.inputs.empty() ? "" : " <-");
  for (const LayerOutput& from : layer.inputs) text += message(" ", from.layer, "/", from.index);
  text += ":";
  for (const auto& [name, value] : layer.options) text += message(" ", name, "=", shown(value));
  for (std::size_t i = 0; i < layer.weights.size(); ++i) {
    text += message("; ", layer.weights[i].name, " ", to_string(layer.weights[i].values.shape()),
                    " ", layer.tensors.at(i));
  }
  return text;
}

Names layers_of(const MappedModel& model) {
  Names all;
  for (const MappedLayer& layer : model.layers) all.push_back(shown_layer(layer));
  for (const LayerOutput& out : model.outputs) all.push_back(message(out.layer, "/", out.index));
  all.insert(all.end(), model.notes.begin(), model.notes.end());
  return all;
}

std::string lstm(const std::string& name, const std::string& options = "") {
  return layer_text("LSTM", name, R"("recurrent_activation": "sigmoid")" + options);
}

struct LeafCase {
  const char *type, *options;
  /// The layer, or the note that says why there is none; another note.
  const char *layer, *note = "";
};

constexpr LeafCase kLeaves[] = {
    {"Dropout", "", "e dropout <- l/0: rate=0r"},
    {"Dropout", R"("rate": 0.5, "p": 0.25)", "e dropout <- l/0: rate=0.5r"},
    {"Dropout", R"("p": 0.25, "noise_shape": null)", "e dropout <- l/0: rate=0.25r"},
    {"Dropout", R"("rate": 0.5, "noise_shape": [1])", "e dropout <- l/0: rate=0.5r",
     "the layer 'e' drops single elements in training, in Keras what its noise_shape says"},
    {"SpatialDropout1D", R"("rate": 0.5)", "e dropout <- l/0: rate=0.5r",
     "the layer 'e' drops single elements in training, in Keras a unit at all its steps"},
    {"GaussianNoise", "", "", "the layer 'e' does nothing, in Keras it adds noise in training"},
    {"GaussianDropout", "", "", "the layer 'e' does nothing, in Keras it adds noise in training"},
    {"AlphaDropout", "", "", "the layer 'e' does nothing, in Keras it adds noise in training"},
    {"ActivityRegularization", "", ""},
    {"Identity", "", ""},
    {"Masking", "", "e masking <- l/0: mask_value=0r"},
    {"Masking", R"("mask_value": -1.5)", "e masking <- l/0: mask_value=-1.5r"},
    {"Masking", R"("mask_value": "a")", "the option mask_value of this form"},
    {"Activation", "", "e activation <- l/0: activation=linear"},
    {"Activation", R"("activation": null)", "e activation <- l/0: activation=linear"},
    {"Activation", R"("activation": {"class_name": "Mine"})", "an activation of class 'Mine'"},
    {"Activation", R"("activation": {"class_name": "function", "config": "elu"})",
     "e activation <- l/0: activation=elu"},
    {"Activation", R"("activation": "mish")", "the activation 'mish'"},
    {"ReLU", "", "e activation <- l/0: activation=relu"},
    {"ReLU", R"("negative_slope": 0.25)", "e activation <- l/0: activation=leaky_relu(0.25)"},
    {"ReLU", R"("max_value": 6.5)", "e activation <- l/0: activation=clip(0,6.5)"},
    {"ReLU", R"("threshold": 1.0)", "the option threshold"},
    {"ReLU", R"("max_value": 6.0, "negative_slope": 0.5)",
     "the option max_value beside negative_slope"},
    {"LeakyReLU", "", "e activation <- l/0: activation=leaky_relu(0.3)"},
    {"LeakyReLU", R"("alpha": 0.125)", "e activation <- l/0: activation=leaky_relu(0.125)"},
    {"LeakyReLU", R"("alpha": 0.125, "negative_slope": 0.5)",
     "e activation <- l/0: activation=leaky_relu(0.5)"},
    {"ELU", "", "e activation <- l/0: activation=elu(1)"},
    {"ELU", R"("alpha": 0.5)", "e activation <- l/0: activation=elu(0.5)"},
    {"Softmax", "", "e activation <- l/0: activation=softmax"},
    {"Softmax", R"("axis": -1)", "e activation <- l/0: activation=softmax"},
    {"Softmax", R"("axis": 1)", "the option axis"},
    {"Flatten", "", "e reshape <- l/0: shape=[-1]"},
    {"Reshape", R"("target_shape": [-1, 3])", "e reshape <- l/0: shape=[-1, 3]"},
    {"Reshape", R"("target_shape": [3, null])", "e reshape <- l/0: shape=[3, -1]"},
    {"GlobalAveragePooling1D", "", "e time_mean <- l/0:"},
    {"GlobalAveragePooling1D", R"("data_format": "channels_last", "keepdims": false)",
     "e time_mean <- l/0:"},
    {"GlobalAveragePooling1D", R"("data_format": "channels_first")", "the option data_format"},
    {"GlobalAveragePooling1D", R"("keepdims": true)", "the option keepdims"},
    {"Concatenate", "", "e concat <- l/0: axis=-1"},
    {"Concatenate", R"("axis": 2)", "e concat <- l/0: axis=2"},
    {"Add", "", "e add <- l/0:"},
    {"Multiply", "", "e multiply <- l/0:"},
    {"Average", "", "e average <- l/0:"},
    {"Conv1D", "", "is of class 'Conv1D'"},
};

TEST(KerasLayers, OfEachClass) {
  for (const char* version : {"2.15.0", "3.0.0"}) {
    for (const LeafCase& one : kLeaves) {
      KerasText text = behind_lstm(layer_text(one.type, "e", one.options));
      text.version = version;
      const MappedModel model = loaded(text);
      EXPECT_EQ(model.networks.size(), 1U);
      const std::string layer = one.layer;
      Names expected;
      if (!layer.empty() && !layer.starts_with("e ")) {
        const char* verb = layer.starts_with("is ") ? "" : "has ";
        expected = {message("the model is read as its networks alone: the layer 'e' ", verb, layer,
                            ", which is not computed here")};
      } else {
        expected = {"x input: dtype=float32 shape=[-1, -1, 3]",
                    "l recurrent <- x/0: network=l return_sequences=yes return_state=no reverse=no "
                    "stateful=no zero_output_for_mask=no"};
        if (!layer.empty()) expected.push_back(layer);
        expected.push_back(layer.empty() ? "l/0" : "e/0");
        if (*one.note) expected.push_back(one.note);
      }
      EXPECT_EQ(layers_of(model), expected) << one.type << " " << one.options << " " << version;
    }
  }
}

TEST(KerasLayers, WithWeights) {
  const auto dense = [](const std::string& options, bool bias, const char* version = "3.0.0") {
    KerasText text = behind_lstm(layer_text("Dense", "d", options));
    text.version = version;
    LayerTensors tensors{{"kernel", array_of({3, 2})}};
    if (bias) tensors.emplace_back("bias", array_of({2}));
    text.layers.emplace_back("d", tensors);
    const Names all = layers_of(loaded(text));
    return all.size() == 4 ? all[2] : all.at(0);
  };
  const std::string kernel = "; kernel [3, 2] model_weights/d/d/kernel",
                    bias = "; bias [2] model_weights/d/d/bias";
  EXPECT_EQ(dense(R"("units": 2)", true),
            "d dense <- l/0: activation=linear units=2 use_bias=yes" + kernel + bias);
  EXPECT_EQ(
      dense(R"("units": 2, "use_bias": false, "activation": "selu", "trainable": false)", false),
      "d dense <- l/0: activation=selu trainable=no units=2 use_bias=no" + kernel);
  // In the words of Keras 1.
  EXPECT_EQ(dense(R"("output_dim": 2, "bias": false)", false, "1.2.0"),
            "d dense <- l/0: activation=linear units=2 use_bias=no" + kernel);
  EXPECT_EQ(dense(R"("units": 2, "lora_rank": 4)", true),
            "the model is read as its networks alone: the layer 'd' has the option lora_rank, "
            "which is not computed here");
  const auto embedding = [](const std::string& options) {
    return layers_of(
        loaded({.config = message(
                    R"({"class_name": "Sequential", "config": {"layers": [)",
                    layer_text("Embedding", "e", R"("input_dim": 7, "output_dim": 3)" + options),
                    ", ", lstm("l"), "]}}"),
                .layers = {{"e", {{"embeddings", array_of({7, 3})}}}, {"l", cell_of(4, {12})}}}));
  };
  const auto expected = [](const std::string& options, const std::string& mask) {
    const std::string of_lstm =
        "return_sequences=no return_state=no reverse=no stateful=no zero_output_for_mask=no";
    return Names{"e_input input: dtype=int32 shape=[-1, -1]",
                 message("e embedding <- e_input/0: dim=3 dtype=float32 mask_zero=", mask, options,
                         " vocabulary=7; embeddings [7, 3] model_weights/e/e/embeddings"),
                 "l recurrent <- e/0: network=l " + of_lstm, "l/0"};
  };
  EXPECT_EQ(embedding(""), expected("", "no"));
  EXPECT_EQ(embedding(R"(, "mask_zero": true)"), expected("", "yes"));
  EXPECT_EQ(embedding(R"(, "trainable": false)"), expected(" trainable=no", "no"));
}

// As many tensors as the layer has weights, neither fewer nor more.
TEST(KerasLayers, OtherCountsOfTensors) {
  for (const bool use_bias : {true, false}) {
    for (std::size_t count = 1; count <= 3; ++count) {
      if (count == (use_bias ? 2U : 1U)) continue;
      KerasText text = behind_lstm(layer_text(
          "Dense", "d", message("\"units\": 2, \"use_bias\": ", use_bias ? "true" : "false")));
      LayerTensors tensors{
          {"kernel", array_of({3, 2})}, {"bias", array_of({2})}, {"more", array_of({2})}};
      tensors.resize(count);
      text.layers.emplace_back("d", tensors);
      EXPECT_EQ(layers_of(loaded(text)),
                Names{message("the model is read as its networks alone: the layer 'd' has ", count,
                              " tensors in the file, expected ", use_bias ? 2 : 1)});
    }
  }
}

// Of cells that differ the states are those of several networks, which one input cannot be.
TEST(KerasLayers, CellsThatDifferAndAState) {
  const auto cell = [](const char* type) {
    return message(R"({"class_name": ")", type,
                   R"(", "config": {"recurrent_activation": "sigmoid"}})");
  };
  const std::string config = message(
      R"("config": {"name": "l", "cell": {"class_name": "StackedRNNCells", "config": {"cells": [)",
      cell("LSTMCell"), ", ", cell("GRUCell"), "]}}}");
  LayerTensors tensors = cell_of(4, {12}, "lstm_cell/");
  for (auto& tensor : cell_of(3, {9}, "gru_cell/")) tensors.push_back(std::move(tensor));
  const auto faults_of = [&](const std::string& call) {
    const std::string input = R"("batch_shape": [null, null, 3])";
    const std::string state = R"("batch_shape": [null, 3])";
    return layers_of(
        loaded({.config = message(
                    R"({"config": {"layers": [)", layer_text("InputLayer", "x", input), ", ",
                    layer_text("InputLayer", "s", state),
                    R"(, {"class_name": "RNN", "name": "l", )", config, R"(, "inbound_nodes": [[)",
                    call, R"(]]}], "input_layers": [["x", 0, 0], ["s", 0, 0]], )",
                    R"("output_layers": ["l", 0, 0]}})"),
                .layers = {{"l", tensors}}}));
  };
  EXPECT_EQ(faults_of(R"(["x", 0, 0, {"initial_state": [["s", 0, 0]]}])"),
            Names{"the model is read as its networks alone: the layer 'l' of cells that differ has "
                  "states or go_backwards, which is not computed here"});
  EXPECT_EQ(faults_of(R"(["x", 0, 0, {}])").at(3),
            "l recurrent <- l_0/0: network=l_1 return_sequences=no return_state=no reverse=no "
            "stateful=no zero_output_for_mask=no");
}

// Equal cells are one network in either direction of the steps.
TEST(KerasLayers, StackedCellsThatGoBackwards) {
  const std::string cell =
      R"({"class_name": "LSTMCell", "config": {"recurrent_activation": "sigmoid"}})";
  const std::string cells =
      message(R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": [)", cell, ", ",
              cell, ", ", cell, R"(]}}, "go_backwards": true)");
  LayerTensors tensors;
  for (const char* folder : {"lstm_cell/", "lstm_cell_1/", "lstm_cell_2/"}) {
    for (auto& tensor : cell_of(4, {12}, folder)) tensors.push_back(std::move(tensor));
  }
  const MappedModel model =
      loaded({.config = sequential(layer_text("RNN", "l", cells)), .layers = {{"l", tensors}}});
  ASSERT_EQ(model.networks.size(), 1U);
  EXPECT_EQ(model.networks[0].spec.num_layers, 3);
  EXPECT_EQ(layers_of(model),
            (Names{"x input: dtype=float32 shape=[-1, -1, 3]",
                   "l recurrent <- x/0: network=l return_sequences=no return_state=no reverse=yes "
                   "stateful=no zero_output_for_mask=no",
                   "l/0",
                   "the network 'l' has go_backwards: its model gives it the steps from the last "
                   "to the first"}));
}

TEST(KerasLayers, ActivationsByName) {
  const std::string sixth = "0.16666666666666666,0.5)";
  const std::tuple<const char*, std::string, std::string> names[] = {
      {"linear", "linear", "linear"},
      {"relu", "relu", "relu"},
      {"tanh", "tanh", "tanh"},
      {"sigmoid", "sigmoid", "sigmoid"},
      {"softmax", "softmax", "softmax"},
      {"exponential", "exponential", "exponential"},
      {"softsign", "softsign", "softsign"},
      {"silu", "silu", "silu"},
      {"swish", "silu", "silu"},
      {"elu", "elu", "elu"},
      {"selu", "selu", "selu"},
      {"relu6", "clip(0,6)", "clip(0,6)"},
      {"leaky_relu", "leaky_relu(0.2)", "leaky_relu(0.2)"},
      {"hard_silu", "hard_silu(" + sixth, "hard_silu(" + sixth},
      {"hard_swish", "hard_silu(" + sixth, "hard_silu(" + sixth},
      {"hard_sigmoid", "hard_sigmoid(0.2,0.5)", "hard_sigmoid(" + sixth},
  };
  for (const auto& [name, in_2, in_3] : names) {
    for (const auto& [version, expected] : {std::pair("2.15.0", in_2), {"3.0.0", in_3}}) {
      KerasText text =
          behind_lstm(layer_text("Activation", "e", message("\"activation\": \"", name, "\"")));
      text.version = version;
      EXPECT_EQ(layers_of(loaded(text)).at(2), "e activation <- l/0: activation=" + expected)
          << name << " " << version;
    }
  }
}

// ---- Recurrent layers --------------------------------------------------------------------------

LayerTensors of_both() {
  LayerTensors both = cell_of(4, {12}, "forward_l/lstm_cell/");
  for (auto& tensor : cell_of(4, {12}, "backward_l/lstm_cell/")) both.push_back(std::move(tensor));
  return both;
}

Names recurrent(const std::string& layer, const LayerTensors& tensors,
                const char* version = "3.0.0") {
  return layers_of(
      loaded({.version = version, .config = sequential(layer), .layers = {{"l", tensors}}}));
}

// All options of a layer, each with a value of its own.
TEST(KerasLayers, OptionsOfRecurrentLayers) {
  const std::string input = "x input: dtype=float32 shape=[-1, -1, 3]";
  const LayerTensors one = cell_of(4, {12});
  const auto expected = [&](const std::string& options) {
    return Names{input, "l recurrent <- x/0: " + options, "l/0"};
  };
  EXPECT_EQ(recurrent(lstm("l"), one),
            expected("network=l return_sequences=no return_state=no reverse=no stateful=no "
                     "zero_output_for_mask=no"));
  const char* const flags[] = {"return_sequences", "return_state", "stateful",
                               "zero_output_for_mask"};
  for (const char* version : {"2.15.0", "3.0.0"}) {
    for (const std::string given : flags) {
      std::string options = "network=l";
      for (const std::string name :
           {"return_sequences", "return_state", "reverse", "stateful", "zero_output_for_mask"}) {
        options += message(" ", name, "=", name == given ? "yes" : "no");
      }
      EXPECT_EQ(recurrent(lstm("l", message(", \"", given, "\": true")), one, version),
                expected(options));
      // Of two directions one direction has no reverse, and Keras 3 zeros what is masked.
      const bool both_zero = version[0] == '3' ? given == flags[0] : given == flags[3];
      options = "network=l";
      for (const std::string name : {"return_sequences", "return_state", "stateful"}) {
        options += message(" ", name, "=", name == given ? "yes" : "no");
      }
      options += message(" zero_output_for_mask=", both_zero ? "yes" : "no");
      const std::string inner = "\"layer\": " + lstm("i", message(", \"", given, "\": true"));
      EXPECT_EQ(recurrent(layer_text("Bidirectional", "l", inner), of_both(), version),
                expected(options));
    }
  }
  EXPECT_EQ(recurrent(lstm("l", R"(, "trainable": false)"), one)[1],
            "l recurrent <- x/0: network=l return_sequences=no return_state=no reverse=no "
            "stateful=no trainable=no zero_output_for_mask=no");
  EXPECT_EQ(recurrent(lstm("l", R"(, "go_backwards": true)"), one)[1],
            "l recurrent <- x/0: network=l return_sequences=no return_state=no reverse=yes "
            "stateful=no zero_output_for_mask=no");
  const std::string cell =
      R"("return_sequences": true, "cell": {"class_name": "LSTMCell", "config": )"
      R"({"recurrent_activation": "sigmoid", "dropout": 0.5}})";
  EXPECT_EQ(recurrent(layer_text("RNN", "l", cell), one),
            (Names{input,
                   "l recurrent <- x/0: network=l return_sequences=yes return_state=no reverse=no "
                   "stateful=no zero_output_for_mask=no",
                   "l/0", "the layer 'l' has dropout in Keras's training, and none here"}));
}

TEST(KerasLayers, OfTwoDirections) {
  const std::string inner = "\"layer\": " + lstm("i", R"(, "return_sequences": true)");
  for (const auto& [text, merge] : {std::pair("\"concat\"", "concat"),
                                    {"\"sum\"", "sum"},
                                    {"\"mul\"", "mul"},
                                    {"\"ave\"", "ave"},
                                    {"null", "none"}}) {
    const Names found = recurrent(
        layer_text("Bidirectional", "l", inner + ", \"trainable\": false, \"merge_mode\": " + text),
        of_both());
    EXPECT_EQ(found.at(1),
              message("l recurrent <- x/0: merge=", merge, " network=l return_sequences=yes ",
                      "return_state=no stateful=no trainable=no zero_output_for_mask=yes"));
    EXPECT_EQ(found.size(), merge == std::string("concat") ? 3U : 4U);
    if (found.size() == 4) {
      EXPECT_EQ(found[3], message("the network 'l' has merge_mode '", merge,
                                  "': its model merges the two halves of its output"));
    }
  }
}

// A layer that works step by step is that layer, under the name of its wrapper.
TEST(KerasLayers, TimeDistributed) {
  const auto wrapped = [](const char* type, const std::string& options) {
    return layer_text("TimeDistributed", "t", "\"layer\": " + layer_text(type, "i", options));
  };
  EXPECT_EQ(layers_of(loaded(behind_lstm(wrapped("ELU", R"("alpha": 0.5)")))).at(2),
            "t activation <- l/0: activation=elu(0.5)");
  EXPECT_EQ(layers_of(loaded(behind_lstm(wrapped("Dropout", R"("rate": 0.5)")))).at(2),
            "t dropout <- l/0: rate=0.5r");
  EXPECT_EQ(layers_of(loaded(behind_lstm(wrapped("Identity", "")))).at(2), "l/0");
  for (const char* type : {"Flatten", "Masking", "Add", "GlobalAveragePooling1D"}) {
    EXPECT_EQ(layers_of(loaded(behind_lstm(wrapped(type, "")))),
              Names{message("the model is read as its networks alone: the layer 't' is a ",
                            "TimeDistributed '", type, "', which is not computed here")});
  }
  KerasText text = behind_lstm(wrapped("Dense", R"("units": 2)"));
  text.layers.push_back({"t", {{"kernel", array_of({3, 2})}, {"bias", array_of({2})}}});
  EXPECT_EQ(layers_of(loaded(text)).at(2),
            "t dense <- l/0: activation=linear units=2 use_bias=yes; kernel [3, 2] "
            "model_weights/t/t/kernel; bias [2] model_weights/t/t/bias");
}

// ---- Networks of several layers ----------------------------------------------------------------

// Two layers that read the tensors of one: as many as a network has parts, and no more, make one.
TEST(KerasLayers, ANetworkThatTwoLayersHave) {
  const auto inside = [](const char* type, const char* name, const char* layer) {
    return message(R"({"class_name": ")", type, R"(", "config": {"name": ")", name,
                   R"(", "layers": [)", lstm(layer, R"(, "return_sequences": true)"), "]}}");
  };
  // The third model is of a class whose name is that of the second one's place.
  KerasText text{
      .config = sequential(inside("Sequential", "s", "a") + ", " + inside("Sequential", "t", "b") +
                           ", " + inside("Sequential_1", "u", "c")),
      .layers = {{"s", cell_of(4, {12}, "a/")},
                 {"t", cell_of(4, {12}, "b/")},
                 {"u", cell_of(4, {12}, "c/")}}};
  const auto networks_of = [](const MappedModel& model) {
    Names names;
    for (const MappedLayer& layer : model.layers) {
      if (layer.kind == "recurrent")
        names.push_back(layer_option_as<std::string>(layer, "network"));
    }
    return names;
  };
  ASSERT_EQ(networks_of(loaded(text)), (Names{"s", "t", "t"}));
  text.values = {{"openrnn_networks", std::string(R"({"n": ["t"]})")}};
  EXPECT_TRUE(loaded(text).layers.empty());
  text.values = {{"openrnn_networks", std::string(R"({"n": ["s"]})")}};
  EXPECT_EQ(networks_of(loaded(text)), (Names{"n", "t", "t"}));
}

}  // namespace
}  // namespace openrnn
