// Keras's whole models that are rare or damaged: which layers are made, and what the notes say.
#include <gtest/gtest.h>

#include "mapping/keras/keras_text.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

constexpr const char* kAlone = "the model is read as its networks alone: ";

// The note that says why there are no layers; "" where there are some.
std::string fault_of(const MappedModel& model) {
  for (const std::string& note : model.notes) {
    if (note.starts_with(kAlone)) return note.substr(std::string(kAlone).size());
  }
  return model.layers.empty() ? "neither layers nor a note" : "";
}

std::string lstm_text(const std::string& name, const std::string& options = "") {
  return layer_text(
      "LSTM", name,
      R"("recurrent_activation": "sigmoid")" + (options.empty() ? "" : ", " + options));
}

const LayerTensors& lstm_tensors() {
  static const auto* const tensors = new LayerTensors(cell_of(4, {12}));
  return *tensors;
}

const PlainValue& option_of(const MappedModel& model, std::size_t layer, const char* name) {
  return layer_option(model.layers.at(layer), name);
}

Array of_dtype(DType dtype, Shape shape) { return values_of(dtype, std::move(shape), 5); }

TEST(KerasDamaged, ALayerWhosePathTheConfigurationLacks) {
  // The outer layer is a recurrent one by its class and a model by its configuration.
  const MappedModel model =
      loaded({.config = sequential(lstm_text("m", "\"layers\": [" + lstm_text("inner") + "]")),
              .layers = {{"m", lstm_tensors()}}});
  EXPECT_EQ(model.networks.size(), 1U);
  EXPECT_EQ(fault_of(model), "no network was made from 'inner'");
}

// A functional model of Keras 3's form, of one LSTM 'l' with these inbound_nodes behind the input
// x.
TEST(KerasDamaged, CallsOfKeras3) {
  const auto model_of = [](const std::string& nodes) {
    return loaded(
        {.config = message(R"({"config": {"layers": [)",
                           layer_text("InputLayer", "x", R"("batch_shape": [null, null, 3])"),
                           R"(, {"class_name": "LSTM", "name": "l", "config": {"name": "l",)",
                           R"( "recurrent_activation": "sigmoid"}, "inbound_nodes": )", nodes,
                           R"(}], "input_layers": ["x", 0, 0], "output_layers": ["l", 0, 0]}})"),
         .layers = {{"l", lstm_tensors()}}});
  };
  const auto args = [](const std::string& values, const std::string& named = "{}") {
    return message(R"([{"args": )", values, R"(, "kwargs": )", named, "}]");
  };
  const std::string x = R"(["x", 0, 0])";
  const auto tensor = [](const std::string& config) {
    return message(R"([{"class_name": "__keras_tensor__", "config": {)", config, "}}]");
  };
  const std::pair<std::string, std::string> cases[] = {
      {"[[" + x + "]]", ""},
      {args("[" + x + "]"), ""},
      {args("[[" + x + "]]"), ""},
      {args("[[[" + x + "]]]"), "the layer 'l' has an input that is no layer's output"},
      {args(tensor(R"("keras_history": ["x", 0, 0])")), ""},
      {args(tensor("")), "the layer 'l' has an input without a history"},
      {args(tensor(R"("keras_history": ["x", 0])")),
       "the layer 'l' has an input without a history"},
      {"7", "the layer 'l' has no input"},
      {"[]", "the layer 'l' has no input"},
      {"[7]", "the layer 'l' has no input"},
      {"[{}]", "the layer 'l' has no input"},
      {"[[" + x + "], [" + x + "]]",
       "the layer 'l' is applied more than once, which is not computed here"},
      {R"([[["x", 0]]])", "the layer 'l' has an input that is no layer's output"},
      {R"([[[7, 0, 0]]])", "the layer 'l' has an input that is no layer's output"},
      {R"([[["x", 0.5, 0]]])", "the layer 'l' has an input that is no layer's output"},
      {R"([[["x", 0, "0"]]])", "the layer 'l' has an input that is no layer's output"},
      {R"([[["x", 0, 1]]])", "the layer 'l' its layer 'x' is used before it is there"},
      {R"([[["x", 0, -1]]])", "the layer 'l' its layer 'x' is used before it is there"},
      {R"([[["x", 1, 0]]])", "the layer 'x' is applied more than once, which is not computed here"},
      {args("[" + x + "]", R"({"constants": {"a": 1}})"),
       "the layer 'l' is called with constants, which is not computed here"},
      {args("[" + x + "]", R"({"mask": [null]})"), ""},
      {args("[" + x + "]", R"({"mask": {}})"),
       "the layer 'l' is called with a mask that is no layer's output"},
      {args("[" + x + "]", R"({"mask": ["x", 0, 0]})"),
       "the layer 'l' is called with the mask 'x', which is not that of its input"},
  };
  for (const auto& [nodes, expected] : cases) {
    const MappedModel model = model_of(nodes);
    EXPECT_EQ(model.networks.size(), 1U) << nodes;
    const std::string fault = fault_of(model);
    if (expected.find("its layer") != std::string::npos) {
      EXPECT_TRUE(expected.ends_with(fault) && fault.starts_with("its layer")) << nodes << fault;
    } else {
      EXPECT_EQ(fault, expected) << nodes;
    }
  }
}

TEST(KerasDamaged, InputsAndOutputsOfAModel) {
  const auto model_of = [](const std::string& places) {
    return loaded(
        {.config = message(R"({"config": {"layers": [)",
                           layer_text("InputLayer", "x", R"("batch_shape": [null, null, 3])"),
                           R"(, {"class_name": "LSTM", "name": "l", "config": {"name": "l"},)",
                           R"( "inbound_nodes": [[["x", 0, 0]]]}])", places, "}}"),
         .layers = {{"l", lstm_tensors()}}});
  };
  const std::pair<const char*, const char*> cases[] = {
      {R"(, "input_layers": ["x", 0, 0], "output_layers": ["l", 0, 0])", ""},
      {R"(, "input_layers": [["x", 0, 0]], "output_layers": [["l", 0, 0]])", ""},
      {R"(, "input_layers": {"a": ["x", 0, 0]}, "output_layers": {"b": ["l", 0, 0]})", ""},
      {R"(, "input_layers": [[["x", 0, 0]]], "output_layers": ["l", 0, 0])",
       "its inputs or outputs are nested"},
      {R"(, "input_layers": ["x", 0, 0])", "it has no outputs"},
      {R"(, "input_layers": ["no", 0, 0], "output_layers": ["l", 0, 0])", "it has no layer 'no'"},
  };
  for (const auto& [places, expected] : cases) EXPECT_EQ(fault_of(model_of(places)), expected);
}

TEST(KerasDamaged, ModelsInsideModels) {
  const auto nested = [](int depth, const std::string& layers) {
    std::string text = layers;
    for (int i = 0; i < depth; ++i) {
      text = layer_text("Sequential", "s", "\"layers\": [" + text + "]");
    }
    return loaded({.config = sequential(text), .layers = {{"s", cell_of(4, {12}, "l/")}}});
  };
  const std::string lstm = lstm_text("l");
  EXPECT_EQ(fault_of(nested(63, lstm)), "");
  // The name of what is made there is that of the file's group.
  EXPECT_EQ(nested(63, lstm).networks.size(), 1U);
  EXPECT_NE(fault_of(nested(64, lstm)).find("its models are nested too deeply"), std::string::npos);
  EXPECT_TRUE(nested(64, lstm).networks.empty());
  const MappedModel nothing =
      loaded({.config = R"({"class_name": "Sequential", "config": {"layers": []}})",
              .layers = {{"l", lstm_tensors()}}});
  EXPECT_EQ(fault_of(nothing), "it has no layers");
  EXPECT_EQ(nothing.notes.at(0),
            "no network was made from 'l': the configuration has no recurrent layer that is known "
            "in its place");
}

TEST(KerasDamaged, TensorsOfADenseLayer) {
  const auto model_of = [](LayerTensors dense) {
    return loaded({.config = sequential(lstm_text("l", R"("return_sequences": true)") + ", " +
                                        layer_text("Dense", "d", R"("units": 2)")),
                   .layers = {{"l", lstm_tensors()}, {"d", std::move(dense)}}});
  };
  const Array kernel = array_of({3, 2}), bias = array_of({2});
  EXPECT_EQ(fault_of(model_of({{"kernel:0", kernel}, {"bias:0", bias}})), "");
  EXPECT_EQ(fault_of(model_of({{"a", kernel}, {"b", bias}})), "");
  EXPECT_EQ(fault_of(model_of({{"bias:0", bias}, {"kernel:0", kernel}})),
            "the layer 'd' has 'model_weights/d/d/bias:0', expected its kernel");
  EXPECT_EQ(fault_of(model_of({{"kernel", kernel}, {"embeddings", bias}})),
            "the layer 'd' has 'model_weights/d/d/embeddings', expected its bias");
  EXPECT_EQ(fault_of(model_of({{"kernel", kernel}})),
            "the layer 'd' has 1 tensors in the file, expected 2");
  EXPECT_EQ(fault_of(model_of({{"kernel", Array(DType::kInt32, {3, 2})}, {"bias", bias}})),
            "'model_weights/d/d/kernel' is int32, expected floating point");
  const MappedModel whole = model_of({{"kernel", kernel}, {"bias", bias}});
  EXPECT_EQ(whole.layers.at(2).tensors,
            (std::vector<std::string>{"model_weights/d/d/kernel", "model_weights/d/d/bias"}));
}

TEST(KerasDamaged, TheInputHasTheDtypeOfTheWeights) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const LayerTensors cell{{"kernel", of_dtype(dtype, {3, 12})},
                            {"recurrent_kernel", of_dtype(dtype, {3, 12})},
                            {"bias", of_dtype(dtype, {12})}};
    const LayerTensors dense{{"kernel", of_dtype(dtype, {3, 2})}, {"bias", of_dtype(dtype, {2})}};
    const std::string lstm = lstm_text("l"), head = layer_text("Dense", "d", R"("units": 2)");
    for (const bool both : {false, true}) {
      KerasText text{.config = sequential(both ? lstm + ", " + head : lstm),
                     .layers = {{"l", cell}}};
      if (both) text.layers.emplace_back("d", dense);
      const MappedModel model = loaded(text);
      ASSERT_EQ(fault_of(model), "") << dtype_name(dtype);
      EXPECT_EQ(option_of(model, 0, "dtype"), PlainValue(std::string(dtype_name(dtype))));
    }
    const MappedModel alone = loaded({.config = sequential(head), .layers = {{"d", dense}}});
    EXPECT_EQ(option_of(alone, 0, "dtype"), PlainValue(std::string(dtype_name(dtype))));
  }
}

// Keras 1 says no shape of the sequence, or the one of a batch.
TEST(KerasDamaged, ShapesOfInputsThatTheFileDoesNotSay) {
  const LayerTensors cell{
      {"W_i", array_of({2, 3})}, {"U_i", array_of({3, 3})}, {"b_i", array_of({3})},
      {"W_c", array_of({2, 3})}, {"U_c", array_of({3, 3})}, {"b_c", array_of({3})},
      {"W_f", array_of({2, 3})}, {"U_f", array_of({3, 3})}, {"b_f", array_of({3})},
      {"W_o", array_of({2, 3})}, {"U_o", array_of({3, 3})}, {"b_o", array_of({3})}};
  LayerTensors named;
  for (const auto& [name, array] : cell) named.emplace_back("l_" + name, array);
  const auto shape_of = [&](const std::string& options) {
    const MappedModel model =
        loaded({.version = "1.2.2",
                .config = message(
                    R"({"class_name": "Sequential", "config": [)",
                    layer_text("LSTM", "l", R"("inner_activation": "sigmoid")" + options), "]}"),
                .layers = {{"l", named}}});
    EXPECT_EQ(fault_of(model), "");
    EXPECT_EQ(model.layers.at(0).name, "l_input");
    EXPECT_EQ(model.layers.at(1).name, "l");
    EXPECT_TRUE(model.networks.at(0).spec.single_bias);
    return std::get<std::vector<std::int64_t>>(option_of(model, 0, "shape"));
  };
  EXPECT_EQ(shape_of(""), (std::vector<std::int64_t>{-1, -1, 2}));
  EXPECT_EQ(shape_of(R"(, "batch_input_shape": [5, 7, 2])"), (std::vector<std::int64_t>{-1, 7, 2}));
  EXPECT_EQ(shape_of(R"(, "batch_input_shape": [5, "7", 2])"),
            (std::vector<std::int64_t>{-1, -1, 2}));
}

TEST(KerasDamaged, NotesOfDropout) {
  const auto noted = [](const std::string& layer) {
    std::vector<std::string> notes;
    for (const std::string& note :
         loaded({.config = sequential(layer), .layers = {{"l", lstm_tensors()}}}).notes) {
      if (note.find("in Keras's training") != std::string::npos) notes.push_back(note);
    }
    return notes;
  };
  for (const char* rate : {"dropout", "recurrent_dropout", "dropout_W", "dropout_U"}) {
    const std::string option = message("\"", rate, "\": 0.5");
    const std::vector<std::string> expected{
        message("the layer 'l' has ", rate, " in Keras's training, and none here")};
    EXPECT_EQ(noted(lstm_text("l", option)), expected);
    const std::string cell = R"("cell": {"class_name": "LSTMCell", "config": {)" + option + "}}";
    EXPECT_EQ(noted(layer_text("RNN", "l", cell)), expected);
  }
  EXPECT_TRUE(noted(lstm_text("l", R"("dropout": 0.0)")).empty());
}

TEST(KerasDamaged, WhatIsFrozenAndMixed) {
  LayerTensors both = cell_of(4, {12}, "forward_l/lstm_cell/");
  for (auto& tensor : cell_of(4, {12}, "backward_l/lstm_cell/")) both.push_back(std::move(tensor));
  const auto trainable = [](const MappedModel& model) {
    EXPECT_EQ(fault_of(model), "");
    return std::get<bool>(option_of(model, 1, "trainable"));
  };
  const auto of_lstm = [](const std::string& options) {
    return loaded(
        {.config = sequential(lstm_text("l", options)), .layers = {{"l", lstm_tensors()}}});
  };
  EXPECT_TRUE(trainable(of_lstm("")));
  EXPECT_FALSE(trainable(of_lstm(R"("trainable": false)")));
  const auto of_both = [&](const char* outer, const char* inner) {
    const std::string layer = lstm_text("l", message("\"trainable\": ", inner));
    return loaded(
        {.config = sequential(layer_text(
             "Bidirectional", "l", message("\"trainable\": ", outer, ", \"layer\": ", layer))),
         .layers = {{"l", both}}});
  };
  // Keras trains both or none, as the outer layer says.
  EXPECT_FALSE(trainable(of_both("false", "true")));
  EXPECT_TRUE(trainable(of_both("true", "false")));
  const MappedModel mixed = of_lstm(R"("dtype": {"config": {"name": "mixed_bfloat16"}})");
  EXPECT_EQ(mixed.notes.back(),
            "the model is computed in the dtype of its weights, in Keras by a mixed policy");
}

TEST(KerasDamaged, CellsThatDifferHaveNoStatesAndNoDirection) {
  LayerTensors cells = cell_of(4, {12}, "lstm_cell/");
  for (auto& tensor : cell_of(3, {9}, "gru_cell/")) cells.push_back(std::move(tensor));
  const auto model_of = [&](const std::string& options) {
    return loaded(
        {.config = sequential(layer_text(
             "RNN", "l",
             options +
                 R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": [)"
                 R"({"class_name": "LSTMCell", "config": {}}, {"class_name": "GRUCell", "config": )"
                 R"({}}]}})")),
         .layers = {{"l", cells}}});
  };
  const MappedModel plain = model_of("");
  EXPECT_EQ(fault_of(plain), "");
  ASSERT_EQ(plain.networks.size(), 2U);
  EXPECT_EQ(plain.networks[0].name, "l_0");
  EXPECT_EQ(plain.networks[1].name, "l_1");
  EXPECT_EQ(plain.layers.at(1).name, "l_0");
  EXPECT_EQ(plain.layers.at(2).name, "l");
  EXPECT_EQ(plain.layers[2].inputs, (std::vector<LayerOutput>{{"l_0", 0}}));
  EXPECT_EQ(option_of(plain, 1, "return_sequences"), PlainValue(true));
  EXPECT_EQ(option_of(plain, 2, "return_sequences"), PlainValue(false));
  const std::string refused =
      "the layer 'l' of cells that differ has states or go_backwards, which is not computed here";
  EXPECT_EQ(fault_of(model_of(R"("return_state": true, )")), refused);
  const MappedModel backwards = model_of(R"("go_backwards": true, )");
  EXPECT_EQ(fault_of(backwards), refused);
  const auto is_said = [](const std::string& note) {
    return note ==
           "the network 'l_0' has go_backwards: its model gives it the steps from the last "
           "to the first";
  };
  EXPECT_EQ(std::ranges::count_if(backwards.notes, is_said), 1);
  EXPECT_EQ(std::ranges::count_if(backwards.notes,
                                  [](const std::string& note) {
                                    return note.find("has go_backwards") != std::string::npos;
                                  }),
            1);
}

TEST(KerasDamaged, OptionsThatFewFilesHave) {
  LayerTensors both = cell_of(4, {12}, "forward_l/lstm_cell/");
  for (auto& tensor : cell_of(4, {12}, "backward_l/lstm_cell/")) both.push_back(std::move(tensor));
  const std::string hard = R"("recurrent_activation": "hard_sigmoid")";
  const std::string inner = "\"layer\": " + layer_text("LSTM", "i", hard);
  const std::string back = R"("go_backwards": true, )" + hard;
  const std::string cell = R"("cell": {"class_name": "LSTMCell", "config": {)" + hard + "}}";
  const std::string stacked =
      R"("cell": {"class_name": "StackedRNNCells", "config": {"cells": 7}})";
  struct Case {
    std::string layer;
    const LayerTensors& tensors;
    /// Of the network's description, or of the notes.
    const char* expected;
  };
  const LayerTensors& lstm = lstm_tensors();
  const LayerTensors simple = cell_of(1, {3});
  const Case cases[] = {
      {layer_text("SimpleRNN", "l", R"("activation": null)"), simple, "activation affine"},
      {layer_text(
           "LSTM", "l",
           R"("recurrent_activation": {"class_name": "function", "config": "hard_sigmoid"})"),
       lstm, "hard_sigmoid(0.2"},
      {layer_text("RNN", "l", cell), lstm, "hard_sigmoid(0.2"},
      {layer_text("RNN", "l", stacked), lstm, "no network was made from 'l': the RNN has no cell"},
      {layer_text("Bidirectional", "l", inner), both, "hard_sigmoid(0.2"},
      {layer_text("Bidirectional", "l", inner + ", \"backward_layer\": null"), both,
       "hard_sigmoid(0.2"},
      {layer_text("Bidirectional", "l",
                  inner + ", \"backward_layer\": " + layer_text("LSTM", "j", back)),
       both, "hard_sigmoid(0.2"},
      {layer_text("Bidirectional", "l",
                  "\"layer\": " + layer_text("LSTM", "i", back) +
                      ", \"backward_layer\": " + layer_text("LSTM", "j", back)),
       both, "its two directions differ by more than the direction"},
      {layer_text("Bidirectional", "l", "\"layer\": " + layer_text("Dense", "i")), both,
       "no network was made from 'l': the class 'Dense' is not known"},
  };
  for (const Case& one : cases) {
    const MappedModel model = loaded(
        {.version = "2.15.0", .config = sequential(one.layer), .layers = {{"l", one.tensors}}});
    const std::string found = network_or_notes(model);
    EXPECT_NE(found.find(one.expected), std::string::npos) << one.layer << "\n" << found;
  }
  const std::string error = error_of<FormatError>([] {
    loaded({.config = "{", .layers = {{"l", lstm_tensors()}}});
  });
  EXPECT_TRUE(error.ends_with("the model's configuration is no JSON, expected JSON")) << error;
  EXPECT_NE(error.find("m.h5"), std::string::npos);
  const MappedModel object =
      loaded({.config = R"({"config": {"layers": {"a": )" + lstm_text("l") + "}}}",
              .layers = {{"l", lstm}}});
  EXPECT_TRUE(object.networks.empty());
  EXPECT_EQ(fault_of(object), "it has no layers");
}

// Keras 3's operations for masks, in the form that '.h5' has.
TEST(KerasDamaged, MasksThatAreNone) {
  const auto model_of = [](const std::string& mask, const std::string& out) {
    return loaded(
        {.config = message(R"({"config": {"layers": [)",
                           layer_text("InputLayer", "in", R"("batch_shape": [null, null, 3])"),
                           R"(, {"class_name": "LSTM", "name": "l", "config": {"name": "l",)",
                           R"( "trainable": true}, "inbound_nodes": [{"args": [["in", 0, 0]]}]}, )",
                           mask, R"(], "input_layers": ["in", 0, 0], "output_layers": [")", out,
                           R"(", 0, 0]}})"),
         .layers = {{"l", lstm_tensors()}}});
  };
  const auto mask_of = [](const char* type, const char* args) {
    return message(R"({"class_name": ")", type, R"(", "name": "m", "config": {"name": "m"}, )",
                   R"("inbound_nodes": [{"args": )", args, "}]}");
  };
  const std::string equal = mask_of("NotEqual", R"([["in", 0, 0], 0.5])");
  EXPECT_EQ(fault_of(model_of(equal, "l")), "");
  EXPECT_EQ(fault_of(model_of(equal, "m")),
            "the mask 'm' is used as values, which is not computed here");
  const auto none = [](const char* type) {
    return message("the layer 'm' of class '", type,
                   "' computes no mask of an Embedding or Masking");
  };
  EXPECT_EQ(fault_of(model_of(mask_of("NotEqual", R"([["in", 0, 0]])"), "l")), none("NotEqual"));
  EXPECT_EQ(fault_of(model_of(mask_of("NotEqual", R"([["in", 0, 0], "x"])"), "l")),
            none("NotEqual"));
  EXPECT_EQ(fault_of(model_of(mask_of("Any", R"([["in", 0, 0]])"), "l")), none("Any"));
  EXPECT_EQ(fault_of(model_of(mask_of("NotEqual", R"([["no", 0, 0], 0.5])"), "l")),
            "its layer 'no' is used before it is there");
}

}  // namespace
}  // namespace openrnn
