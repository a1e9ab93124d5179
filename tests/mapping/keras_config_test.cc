// What a configuration of Keras says of its layers: options, versions, what is left out.
#include <gtest/gtest.h>

#include "mapping/keras/keras_text.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

// 'kind option=value ...' of the last layer, then the notes.
std::string last_layer(const MappedModel& model) {
  std::string text;
  if (!model.layers.empty()) {
    text = model.layers.back().kind;
    for (const auto& [name, value] : model.layers.back().options) {
      text += message(" ", name, "=", shown(value));
    }
  }
  for (const std::string& note : model.notes) text += "; " + note;
  return text;
}

struct LeafCase {
  const char *type, *options, *expected;
  const char* version = "3.0.0";
};

// What keras_layers_test.cc does not compare as wholes.
const LeafCase kLeaves[] = {
    {"ReLU", R"("max_value": null, "negative_slope": 0.0)", "activation activation=relu"},
    {"ReLU", R"("threshold": 0.0)", "activation activation=relu"},
    {"Dropout", R"("p": 0.25)", "dropout rate=0.25"},
    {"Dropout", R"("p": 0.25, "rate": 1.0)", "dropout rate=1"},
    {"Dropout", R"("rate": 0.5, "noise_shape": [null, 1, 3])",
     "the layer 'e' drops single elements in training, in Keras what its noise_shape says"},
    {"GaussianNoise", R"("stddev": 0.5)", "the layer 'e' does nothing, in Keras it adds noise"},
    {"Reshape", R"("target_shape": [-1, 3, 1])", "reshape shape=[-1, 3, 1]"},
    {"Reshape", R"("target_shape": [null, 3])", "reshape shape=[-1, 3]"},
    {"RepeatVector", "", "the layer 'e' has no n"},
    {"RepeatVector", R"("n": 2)", "expected 2 dimensions"},
    {"Dense", R"("units": 2, "lora_rank": true)", "the option lora_rank"},
    {"Dense", R"("units": 2, "lora_rank": false)", "has 0 tensors in the file, expected 2"},
    {"ReLU", R"("max_value": false)", "activation activation=relu"},
    {"Dense", R"("units": 2)", "the layer 'e' has 0 tensors in the file, expected 2"},
    {"Dense", R"("units": 2, "use_bias": false)", "has 0 tensors in the file, expected 1"},
    {"Dense", R"("units": 2, "bias": false)", "has 0 tensors in the file, expected 1", "1.2.0"},
    {"Dense", "", "the layer 'e' has no units"},
    {"TimeDistributed", R"("layer": {"class_name": "TimeDistributed", "config": {}})",
     "is a TimeDistributed of another one"},
    {"TimeDistributed", "", "the layer 'e' has no layer"},
    {"TimeDistributed",
     R"("layer": {"class_name": "Activation", "config": {"activation": "hard_sigmoid"}})",
     "hard_sigmoid(0.2,0.5)", "2.15.0"},
    {"TimeDistributed", R"("layer": {"class_name": "Dropout", "config": {"rate": 0.5}})",
     "dropout rate=0.5"},
    {"TimeDistributed", R"("layer": {"class_name": "Identity", "config": {}})", "recurrent"},
    {"Activation", R"("activation": {"class_name": "function", "config": "hard_sigmoid"})",
     "hard_sigmoid(0.2,0.5)", "2.15.0"},
    {"Embedding", R"("input_dim": 2, "output_dim": 2, "lora_rank": 4)", "the option lora_rank"},
};

TEST(KerasConfig, LayersOfEachClass) {
  for (const LeafCase& one : kLeaves) {
    KerasText text = behind_lstm(layer_text(one.type, "e", one.options));
    text.version = one.version;
    const MappedModel model = loaded(text);
    EXPECT_EQ(model.networks.size(), 1U);
    const std::string found = last_layer(model);
    EXPECT_NE(found.find(one.expected), std::string::npos) << one.type << " " << one.options << "\n"
                                                           << found;
  }
}

struct RecurrentCase {
  std::string layer;
  LayerTensors tensors;
  /// In the description of the network, or in the notes.
  const char* expected;
  const char* version = "3.0.0";
};

TEST(KerasConfig, OptionsOfRecurrentLayers) {
  const auto lstm = [](const std::string& options) { return layer_text("LSTM", "l", options); };
  const auto gru = [](const std::string& options) { return layer_text("GRU", "l", options); };
  const LayerTensors four = cell_of(4, {12});
  const RecurrentCase cases[] = {
      {lstm(R"("recurrent_activation": "hard_sigmoid")"), four, "hard_sigmoid(0.16666666666666"},
      {lstm(R"("recurrent_activation": "hard_sigmoid")"), four, "hard_sigmoid(0.2", "2.4.0"},
      {lstm(R"("inner_activation": "hard_sigmoid")"), four, "hard_sigmoid(0.2", "1.2.0"},
      {lstm(R"("inner_activation": "relu", "recurrent_activation": "softsign")"), four, "softsign"},
      {lstm(R"("activation": {"class_name": "function", "config": "relu"})"), four, "relu"},
      {lstm(R"("activation": {"class_name": "Custom"})"), four, "is of class 'Custom'"},
      {lstm(R"("activation": "mish")"), four, "the activation is 'mish'"},
      {lstm(R"("go_backwards": true)"), four, "has go_backwards: its model gives"},
      {lstm(""), cell_of(3, {9}), "its tensors do not fit the class of its layer"},
      {lstm(""), cell_of(4, {11}), "does not fit the others"},
      {gru(R"("reset_after": true)"), cell_of(3, {9}), "reset_after is true in its configuration"},
      {gru(R"("reset_after": false)"), cell_of(3, {2, 9}), "reset_after is false"},
      {gru(""), cell_of(3, {2, 9}), "reset_after is false in its configuration and not"},
      {layer_text("CuDNNGRU", "l"), cell_of(3, {9}), "do not fit the class"},
      {layer_text("CuDNNLSTM", "l"), cell_of(4, {12}), "do not fit the class"},
      {layer_text("RNN", "l"), four, "the RNN has no cell"},
      {layer_text("RNN", "l", R"("cell": {"class_name": "Mine", "config": {}})"), four,
       "the cell is of class 'Mine'"},
      {layer_text("RNN", "l", R"("cell": {"class_name": "StackedRNNCells", "config": {}})"), four,
       "the RNN has no cell"},
      {layer_text("Bidirectional", "l"), four, "it has no layer"},
      {layer_text("Bidirectional", "l", "\"layer\": " + lstm("")), four,
       "it has tensors of 1 cells, expected 2"},
  };
  for (const RecurrentCase& one : cases) {
    const MappedModel model = loaded(
        {.version = one.version, .config = sequential(one.layer), .layers = {{"l", one.tensors}}});
    const std::string found = network_or_notes(model);
    EXPECT_NE(found.find(one.expected), std::string::npos) << one.layer << "\n" << found;
  }
}

TEST(KerasConfig, BothDirectionsAreOfOneForm) {
  LayerTensors both = cell_of(4, {12}, "forward_l/lstm_cell/");
  for (auto& tensor : cell_of(4, {12}, "backward_l/lstm_cell/")) both.push_back(std::move(tensor));
  const auto inner = [](const std::string& name, const std::string& options) {
    return layer_text("LSTM", name, R"("return_sequences": true)" + options);
  };
  const auto model_of = [&](const std::string& options, const char* version) {
    return loaded({.version = version,
                   .config = sequential(layer_text("Bidirectional", "l", options)),
                   .layers = {{"l", both}}});
  };
  const std::string plain = "\"layer\": " + inner("i", "");
  const auto flag_of = [](const MappedModel& model, const char* name) {
    return layer_option(model.layers.at(1), name);
  };
  // Keras 3 sets zero_output_for_mask by itself, Keras 2 as the layer inside says.
  EXPECT_EQ(flag_of(model_of(plain, "3.0.0"), "zero_output_for_mask"), PlainValue(true));
  EXPECT_EQ(flag_of(model_of(plain, "2.15.0"), "zero_output_for_mask"), PlainValue(false));
  const std::string zeros = "\"layer\": " + inner("i", R"(, "zero_output_for_mask": true)");
  EXPECT_EQ(flag_of(model_of(zeros, "2.15.0"), "zero_output_for_mask"), PlainValue(true));
  const std::string last =
      "\"layer\": " + layer_text("LSTM", "i", R"("zero_output_for_mask": true)");
  EXPECT_EQ(flag_of(model_of(last, "3.0.0"), "zero_output_for_mask"), PlainValue(false));
  // The merge of the outputs; null is none of it.
  for (const auto& [text, merge] : {std::pair("\"ave\"", "ave"),
                                    {"\"mul\"", "mul"},
                                    {"\"concat\"", "concat"},
                                    {"null", "none"}}) {
    const MappedModel merged = model_of(plain + ", \"merge_mode\": " + text, "3.0.0");
    EXPECT_EQ(flag_of(merged, "merge"), PlainValue(std::string(merge)));
    const bool noted = network_or_notes(merged).find("has merge_mode") != std::string::npos;
    EXPECT_EQ(noted, merge != std::string("concat")) << merge;
  }
  // The other direction may be said; then it has to be the same but for its direction.
  const auto backward = [&](const std::string& options) {
    return model_of(plain + ", \"backward_layer\": " + inner("j", options), "3.0.0");
  };
  EXPECT_EQ(backward(R"(, "go_backwards": true)").networks.size(), 1U);
  for (const char* options :
       {"", R"(, "go_backwards": true, "activation": "relu")",
        R"(, "go_backwards": true, "recurrent_activation": "hard_sigmoid")"}) {
    const MappedModel model = backward(options);
    EXPECT_TRUE(model.networks.empty()) << options;
    EXPECT_NE(network_or_notes(model).find("its two directions differ"), std::string::npos);
  }
  EXPECT_TRUE(
      model_of("\"layer\": " + inner("i", R"(, "go_backwards": true)"), "3.0.0").networks.empty());
}

// A functional model of one LSTM that is called with these arguments.
TEST(KerasConfig, ArgumentsOfCalls) {
  const auto model_of = [](const std::string& named) {
    const std::string config =
        R"({"class_name": "Functional", "config": {"layers": [)" +
        layer_text("InputLayer", "x", R"("batch_shape": [null, null, 3])") +
        R"(, {"class_name": "LSTM", "name": "l", "config": {"name": "l"}, "inbound_nodes": )" +
        R"([[["x", 0, 0, )" + named + R"(]]]}], "input_layers": [["x", 0, 0]], )" +
        R"("output_layers": [["l", 0, 0]]}})";
    return loaded({.version = "2.15.0", .config = config, .layers = {{"l", cell_of(4, {12})}}});
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{}", ""},
      {R"({"training": false})", ""},
      {R"({"training": null})", ""},
      {R"({"training": true})", "is called with training=True"},
      {R"({"mask": null})", ""},
      {R"({"mask": ["x", 0, 0]})", "is called with the mask 'x'"},
      {R"({"mask": 3})", "a mask that is no layer's output"},
      {R"({"initial_state": null})", ""},
      {R"({"initial_state": 3})", "an input that is no layer's output"},
      {R"({"constants": [1]})", "is called with constants"}};
  for (const auto& [named, expected] : cases) {
    const MappedModel model = model_of(named);
    EXPECT_EQ(model.networks.size(), 1U);
    EXPECT_EQ(model.layers.empty(), *expected != 0) << named << network_or_notes(model);
    EXPECT_NE(network_or_notes(model).find(expected), std::string::npos)
        << named << network_or_notes(model);
  }
}

// Keras's gates were hard_sigmoid before version 2.3.
TEST(KerasConfig, VersionsOfFilesOfWeightsAlone) {
  for (const auto& [version, known] : {std::pair("2.3.0", true),
                                       {"2.4.0", true},
                                       {"3.0.0", true},
                                       {"2.10.0", true},
                                       {"2.2.4", false},
                                       {"2.2.4-tf", false},
                                       {"1.2.2", false}}) {
    KerasText text{.version = version, .layers = {{"l", cell_of(4, {12})}}};
    if (known) {
      EXPECT_NE(network_or_notes(loaded(text)).find("the file says no activations"),
                std::string::npos);
    } else {
      EXPECT_NE(
          error_of<ArgumentError>([&] { loaded(text); }).find("the hint recurrent_activation"),
          std::string::npos)
          << version;
    }
    text.hints.recurrent_activation = make_cell_activation(CellActivationKind::kSoftsign);
    const MappedModel hinted = loaded(text);
    EXPECT_TRUE(hinted.notes.empty());
    EXPECT_EQ(hinted.networks.at(0).spec.recurrent_activation, text.hints.recurrent_activation);
  }
  // A GRU without biases does not show when it resets.
  KerasText gru{.layers = {{"l", cell_of(3, {})}}};
  EXPECT_NE(error_of<ArgumentError>([&] { loaded(gru); }).find("the hint reset_after"),
            std::string::npos);
  for (const bool after : {false, true}) {
    gru.hints.reset_after = after;
    EXPECT_EQ(loaded(gru).networks.at(0).spec.reset_after, after);
  }
}

struct SlotCase {
  std::string optimizer;
  bool frozen;
  std::size_t variables;
  std::vector<std::string> slots;
};

// The optimizer has the variables of the layers that are trained, one behind the other.
TEST(KerasConfig, SlotsOfOptimizers) {
  const SlotCase cases[] = {{"adam", false, 8, {"m", "v"}},
                            {"adam", true, 6, {"m", "v"}},
                            {"adam", true, 8, {}},
                            {"adam", false, 6, {}},
                            {"adam", false, 7, {}},
                            {"sgd", false, 4, {"momentum"}},
                            {"rmsprop", false, 4, {"rms"}},
                            {"rm_sprop", false, 4, {"rms"}},
                            {"adagrad", true, 3, {"accumulator"}},
                            {"lion", false, 4, {}},
                            {"adam", false, 0, {}}};
  for (const SlotCase& one : cases) {
    const LayerTensors cell = cell_of(4, {12});
    const LayerTensors dense{{"kernel", array_of({3, 2}, 4)}};
    KerasText text{
        .config = sequential(layer_text("LSTM", "l", R"("return_sequences": true)") + ", " +
                             layer_text("Dense", "d",
                                        message(R"("units": 2, "use_bias": false, "trainable": )",
                                                one.frozen ? "false" : "true"))),
        .layers = {{"l", cell}, {"d", dense}}};
    const std::size_t trained = one.frozen ? 3 : 4;
    const std::size_t each = std::max<std::size_t>(one.variables / trained, 1);
    for (const char* counter : {"/iteration", "/learning_rate"}) {
      text.optimizer.emplace_back(one.optimizer + counter, array_of({1}));
    }
    for (std::size_t i = 0; i < one.variables; ++i) {
      const std::size_t of = i / each;
      const Array& like = of < 3 ? cell[of].second : dense[0].second;
      text.optimizer.emplace_back(message(one.optimizer, "/v", i), array_of(like.shape(), 10 + i));
    }
    const MappedModel model = loaded(text);
    ASSERT_EQ(model.networks.size(), 1U);
    ASSERT_EQ(model.layers.size(), 3U) << network_or_notes(model);
    std::vector<std::string> found;
    for (const auto& [slot, values] : model.networks[0].slots) found.push_back(slot);
    const std::string what = message(one.optimizer, " ", one.frozen, " ", one.variables);
    EXPECT_EQ(found, one.slots) << what;
    const bool noted =
        network_or_notes(model).find("variables of the optimizer") != std::string::npos;
    EXPECT_EQ(noted, one.slots.empty() && one.variables > 0) << what;
    EXPECT_EQ(model.layers[2].weights.at(0).slots.size(), one.frozen ? 0 : one.slots.size())
        << what;
  }
}

}  // namespace
}  // namespace openrnn
