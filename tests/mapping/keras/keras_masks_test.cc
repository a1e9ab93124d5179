// Functional models of Keras's files without Keras: what layers are called on, masks, models inside
// models, archives.
#include <gtest/gtest.h>

#include "mapping/keras/keras_text.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Inputs = std::vector<LayerOutput>;
using Names = std::vector<std::string>;

constexpr const char* kSigmoid = R"("recurrent_activation": "sigmoid")";

// Why the model has no layers; "" where it has some.
std::string fault_of(const MappedModel& model) {
  const std::string alone = "the model is read as its networks alone: ";
  for (const std::string& note : model.notes) {
    if (note.starts_with(alone)) return note.substr(alone.size());
  }
  return model.layers.empty() ? "neither layers nor a note" : "";
}

std::string at(const std::string& layer, int index = 0) {
  return message("[\"", layer, "\", 0, ", index, "]");
}

// One of Keras 3's operations in the form of '.h5', which says nothing of training.
std::string operation(const std::string& type, const std::string& name, const std::string& args,
                      const std::string& options = "", const std::string& named = "{}") {
  return message(R"({"class_name": ")", type, R"(", "name": ")", name, R"(", "config": {"name": ")",
                 name, "\"", options.empty() ? "" : ", ", options,
                 R"(}, "inbound_nodes": [{"args": [)", args, R"(], "kwargs": )", named, "}]}");
}

std::string layer_on(const std::string& type, const std::string& name, const std::string& args,
                     const std::string& options = "", const std::string& named = "{}") {
  return operation(type, name, args,
                   message(R"("trainable": true)", options.empty() ? "" : ", ", options), named);
}

std::string lstm_on(const std::string& name, const std::string& args,
                    const std::string& named = "{}", const std::string& options = "") {
  return layer_on("LSTM", name, args, message(kSigmoid, options), named);
}

std::string input_of(const std::string& name, const std::string& shape) {
  return layer_text("InputLayer", name, "\"batch_shape\": " + shape);
}

// The configuration of a model with one input and these outputs.
std::string functional(const Names& nodes, const std::string& input, const std::string& outputs) {
  std::string layers;
  for (const std::string& node : nodes) layers += (layers.empty() ? "" : ", ") + node;
  return message(R"("layers": [)", layers, R"(], "input_layers": [)", at(input),
                 R"(], "output_layers": [)", outputs, "]");
}

std::string model_text(const std::string& config) {
  return message(R"({"class_name": "Functional", "config": {)", config, "}}");
}

LayerTensors both_cells(const std::string& name) {
  LayerTensors both = cell_of(4, {12}, "forward_" + name + "/lstm_cell/");
  for (auto& tensor : cell_of(4, {12}, "backward_" + name + "/lstm_cell/")) {
    both.push_back(std::move(tensor));
  }
  return both;
}

// Words 'w', their Embedding 'e' with a mask, the same mask as an operation 'm', and these layers.
MappedModel of_words(Names nodes, const std::string& out = "l",
                     const std::string& version = "3.0.0") {
  nodes.insert(nodes.begin(), {input_of("w", "[null, null]"),
                               layer_on("Embedding", "e", at("w"),
                                        R"("input_dim": 9, "output_dim": 3, "mask_zero": true)"),
                               operation("NotEqual", "m", at("w") + ", 0")});
  const LayerTensors words{{"embeddings", array_of({9, 3})}};
  const LayerTensors dense{{"kernel", array_of({3, 3})}, {"bias", array_of({3})}};
  return loaded({.version = version,
                 .config = model_text(functional(nodes, "w", at(out))),
                 .layers = {{"e", words},
                            {"l", cell_of(4, {12})},
                            {"k", cell_of(4, {12})},
                            {"b", both_cells("i")},
                            {"d", dense}}});
}

// The last layer's inputs.
Inputs last_inputs(const MappedModel& model) {
  return model.layers.empty() ? Inputs() : model.layers.back().inputs;
}

constexpr const char* kNotIts = "', which is not that of its input";

TEST(KerasMasks, OfAnEmbedding) {
  const std::string masked = message(R"({"mask": )", at("m"), "}");
  const MappedModel model = of_words({lstm_on("l", at("e"), masked)});
  EXPECT_EQ(fault_of(model), "");
  ASSERT_EQ(model.layers.size(), 3U);
  EXPECT_EQ(layer_option(model.layers[0], "dtype"), PlainValue(std::string("int32")));
  EXPECT_EQ(layer_option(model.layers[0], "shape"), PlainValue(std::vector<std::int64_t>{-1, -1}));
  EXPECT_EQ(layer_option(model.layers[1], "vocabulary"), PlainValue(std::int64_t{9}));
  EXPECT_EQ(layer_option(model.layers[1], "dim"), PlainValue(std::int64_t{3}));
  EXPECT_EQ(layer_option(model.layers[1], "mask_zero"), PlainValue(true));
  EXPECT_EQ(last_inputs(model), (Inputs{{"e", 0}}));
  EXPECT_EQ(layer_option(model.layers[2], "uses_mask"), PlainValue(true));
  // Of another number it is another mask.
  const MappedModel other =
      of_words({operation("NotEqual", "n", at("w") + ", 1"),
                lstm_on("l", at("e"), message(R"({"mask": )", at("n"), "}"))});
  EXPECT_EQ(fault_of(other), message("the layer 'l' is called with the mask 'n", kNotIts));
}

TEST(KerasMasks, LayersThatHandThemOn) {
  const std::string masked = message(R"({"mask": )", at("m"), "}");
  struct Case {
    std::string layer;
    const char* name;
    bool hands_on;
    int index = 0;
  };
  const std::string e = at("e"), steps = R"(, "return_sequences": true)";
  const std::string halves =
      message(R"("merge_mode": null, "layer": )", layer_text("LSTM", "i", kSigmoid + steps));
  const Case cases[] = {
      {layer_on("Dense", "d", e, R"("units": 3)"), "d", true},
      {layer_on("Activation", "a", e, R"("activation": "tanh")"), "a", true},
      {layer_on("Dropout", "o", e, R"("rate": 0.5)"), "o", true},
      {lstm_on("k", e, "{}", steps), "k", true},
      {layer_on("Bidirectional", "b", e, halves), "b", true, 0},
      {layer_on("Bidirectional", "b", e, halves), "b", true, 1},
      {layer_on("Reshape", "r", e, R"("target_shape": [-1, 3])"), "r", false},
      {layer_on("Concatenate", "c", message("[", e, ", ", e, "]")), "c", false},
  };
  for (const Case& one : cases) {
    const MappedModel model = of_words({one.layer, lstm_on("l", at(one.name, one.index), masked)});
    EXPECT_EQ(fault_of(model),
              one.hands_on ? "" : message("the layer 'l' is called with the mask 'm", kNotIts))
        << one.name;
    if (one.hands_on) {
      EXPECT_EQ(last_inputs(model), (Inputs{{one.name, one.index}}));
    }
  }
}

// Keras 3 gives a layer with states no mask, unless it is called with one.
TEST(KerasMasks, BesideStates) {
  const std::string states = message("[", at("k", 1), ", ", at("k", 2), "]");
  const auto model_of = [&](const std::string& named, const char* version = "3.0.0") {
    const std::string encoder = lstm_on("k", at("e"), "{}", R"(, "return_state": true)");
    return of_words({encoder, lstm_on("l", at("e"), named)}, "l", version);
  };
  const auto with_mask = [&](const std::string& mask) {
    return message(R"({"initial_state": )", states, R"(, "mask": )", mask, "}");
  };
  const auto uses_mask = [](const MappedModel& model) {
    EXPECT_EQ(fault_of(model), "");
    EXPECT_EQ(last_inputs(model), (Inputs{{"e", 0}, {"k", 1}, {"k", 2}}));
    return std::get<bool>(layer_option(model.layers.at(3), "uses_mask"));
  };
  const std::string plain = message(R"({"initial_state": )", states, "}");
  EXPECT_FALSE(uses_mask(model_of(plain)));
  EXPECT_TRUE(uses_mask(model_of(plain, "2.15.0")));
  EXPECT_TRUE(uses_mask(model_of(with_mask(at("m")))));
  EXPECT_TRUE(uses_mask(model_of(with_mask(message("[", at("m"), ", null, null]")))));
  EXPECT_EQ(fault_of(model_of(with_mask(message("[null, ", at("m"), "]")))),
            message("the layer 'l' is called with the mask 'm", kNotIts));
  // Where there is none, none is left out.
  const MappedModel unmasked = of_words(
      {layer_on("Reshape", "r", at("e"), R"("target_shape": [-1, 3])"),
       lstm_on("k", at("e"), "{}", R"(, "return_state": true)"), lstm_on("l", at("r"), plain)});
  EXPECT_EQ(fault_of(unmasked), "");
  EXPECT_FALSE(unmasked.layers.back().options.contains("uses_mask"));
}

TEST(KerasMasks, OperationsThatDropThem) {
  const std::string e = at("e"), r = at("r");
  const std::string reshaped = layer_on("Reshape", "r", e, R"("target_shape": [-1, 3])");
  const std::string inner = "\"layer\": " + layer_text("Softmax", "i");
  const std::string as_operation =
      "the layer 's' is an operation on values with a mask, which is not computed here";
  const std::string as_softmax =
      "the layer 's' is a Softmax on values with a mask, which is not computed here";
  const std::pair<std::string, std::string> cases[] = {
      {layer_on("Softmax", "s", e), as_softmax},
      {layer_on("TimeDistributed", "s", e, inner), as_softmax},
      {operation("Softmax", "s", e), as_operation},
      {operation("Multiply", "s", message(e, ", ", e)), as_operation},
      {operation("Multiply", "s", message(r, ", ", e)), as_operation},
      {layer_on("GlobalAveragePooling1D", "s", e), ""},
      {layer_on("Softmax", "s", r), ""},
      {operation("Multiply", "s", message(r, ", ", r)), ""},
      {layer_on("Average", "s", message("[", r, ", ", r, "]")), ""},
      {operation("Average", "s", message(r, ", ", r)),
       "the layer 's' is of class 'Average', which is not computed here"},
  };
  for (const auto& [layer, expected] : cases) {
    EXPECT_EQ(fault_of(of_words({reshaped, layer}, "s")), expected) << layer;
  }
}

// The mask of a Masking: where any element is another number.
TEST(KerasMasks, OfAMasking) {
  const auto fault = [](const Names& masks, const std::string& mask) {
    Names nodes{input_of("x", "[null, null, 3]"),
                layer_on("Masking", "z", at("x"), R"("mask_value": 0.5)"),
                operation("NotEqual", "n", at("x") + ", 0.5")};
    nodes.insert(nodes.end(), masks.begin(), masks.end());
    nodes.push_back(lstm_on("l", at("z"), message(R"({"mask": )", at(mask), "}")));
    return fault_of(loaded({.config = model_text(functional(nodes, "x", at("l"))),
                            .layers = {{"l", cell_of(4, {12})}}}));
  };
  const auto any = [](const char* name, const char* of, const char* options) {
    return operation("Any", name, at(of), options);
  };
  EXPECT_EQ(fault({any("a", "n", R"("axis": -1)")}, "a"), "");
  EXPECT_EQ(fault({any("a", "n", R"("axis": [-1])")}, "a"), "");
  EXPECT_EQ(fault({}, "n"), message("the layer 'l' is called with the mask 'n", kNotIts));
  const std::string other = operation("NotEqual", "o", at("x") + ", 0.25");
  EXPECT_EQ(fault({other, any("a", "o", R"("axis": -1)")}, "a"),
            message("the layer 'l' is called with the mask 'a", kNotIts));
  const auto none = [](const char* name) {
    return message("the layer '", name,
                   "' of class 'Any' computes no mask of an Embedding or Masking");
  };
  for (const char* options : {"", R"("axis": 1)", R"("axis": [-1, 1])", R"("axis": [])",
                              R"("axis": -1.0)", R"("axis": -1, "keepdims": true)"}) {
    EXPECT_EQ(fault({any("a", "n", options)}, "a"), none("a")) << options;
  }
  EXPECT_EQ(fault({any("a", "n", R"("axis": -1)"), any("c", "a", R"("axis": -1)")}, "c"),
            none("c"));
}

TEST(KerasMasks, ModelsInsideModelsAndTheirWeights) {
  const auto model_of = [](const std::string& inputs) {
    const Names inside{input_of("gi", "[null, null, 3]"),
                       layer_on("Dense", "d1", at("gi"), R"("units": 2)"),
                       layer_on("TimeDistributed", "t", at("d1"),
                                "\"layer\": " + layer_text("Dense", "d2", R"("units": 3)")),
                       lstm_on("l", at("t"))};
    std::string config = functional(inside, "gi", at("l"));
    const std::string one = message(R"("input_layers": [)", at("gi"));
    config.insert(config.find(one) + one.size(), inputs);
    const std::string inner = operation("Functional", "inner", at("x"), config);
    const LayerTensors head{{"kernel", array_of({3, 2})}, {"bias", array_of({2})}};
    LayerTensors group{{"d1/kernel", array_of({3, 2})},
                       {"d1/bias", array_of({2})},
                       {"d2/kernel", array_of({2, 3})},
                       {"d2/bias", array_of({3})}};
    for (auto& tensor : cell_of(4, {12}, "l/")) group.push_back(std::move(tensor));
    const Names nodes{input_of("x", "[null, null, 3]"), inner,
                      layer_on("Dense", "d", at("inner"), R"("units": 2)")};
    return loaded({.config = model_text(functional(nodes, "x", at("inner") + ", " + at("d"))),
                   .layers = {{"inner", group}, {"d", head}}});
  };
  const MappedModel model = model_of("");
  ASSERT_EQ(fault_of(model), "");
  Names names;
  for (const MappedLayer& layer : model.layers) names.push_back(layer.name);
  EXPECT_EQ(names, (Names{"x", "d1", "t", "l", "d"}));
  EXPECT_EQ(model.outputs, (Inputs{{"l", 0}, {"d", 0}}));
  const std::string group = "model_weights/inner/inner/";
  EXPECT_EQ(model.layers[1].tensors, (Names{group + "d1/kernel", group + "d1/bias"}));
  EXPECT_EQ(model.layers[2].tensors, (Names{group + "d2/kernel", group + "d2/bias"}));
  EXPECT_EQ(model.layers[1].inputs, (Inputs{{"x", 0}}));
  EXPECT_EQ(model.layers[3].inputs, (Inputs{{"t", 0}}));
  EXPECT_EQ(last_inputs(model), (Inputs{{"l", 0}}));
  EXPECT_TRUE(model.not_understood.empty());
  EXPECT_EQ(fault_of(model_of(", " + at("gi"))),
            "the layer 'inner' a model inside it has more inputs than it is given");
}

TEST(KerasMasks, ModelsThatBeginWithAnEmbedding) {
  for (const auto& [shape, expected] :
       {std::pair("", std::vector<std::int64_t>{-1, -1}),
        {R"(, "batch_input_shape": [null, 7])", std::vector<std::int64_t>{-1, 7}}}) {
    const std::string first =
        layer_text("Embedding", "e", message(R"("input_dim": 9, "output_dim": 3)", shape));
    const LayerTensors words{{"embeddings", array_of({9, 3})}};
    const MappedModel model =
        loaded({.config = message(R"({"class_name": "Sequential", "config": {"layers": [)", first,
                                  ", ", layer_text("LSTM", "l", kSigmoid), "]}}"),
                .layers = {{"e", words}, {"l", cell_of(4, {12})}}});
    ASSERT_EQ(fault_of(model), "") << shape;
    EXPECT_EQ(model.layers[0].name, "e_input");
    EXPECT_EQ(layer_option(model.layers[0], "shape"), PlainValue(expected));
    EXPECT_EQ(layer_option(model.layers[0], "dtype"), PlainValue(std::string("int32")));
    EXPECT_EQ(layer_option(model.layers[1], "mask_zero"), PlainValue(false));
  }
}

// Weights by paths, at the roots of both versions, and the state of an optimizer.
TEST(KerasMasks, Archives) {
  const std::string inner = "\"layer\": " + layer_text("Dense", "i", R"("units": 3)");
  const std::string config = sequential(layer_text("TimeDistributed", "t", inner) + ", " +
                                        layer_text("LSTM", "l", kSigmoid) + ", " +
                                        layer_text("Dense", "d", R"("units": 2)"));
  const std::pair<const char*, Shape> variables[] = {{"time_distributed/layer/vars/0", {3, 3}},
                                                     {"time_distributed/layer/vars/1", {3}},
                                                     {"lstm/cell/vars/0", {3, 12}},
                                                     {"lstm/cell/vars/1", {3, 12}},
                                                     {"lstm/cell/vars/2", {12}},
                                                     {"dense/vars/0", {3, 2}},
                                                     {"dense/vars/1", {2}}};
  for (const std::string root : {"layers/", "_layer_checkpoint_dependencies/"}) {
    std::vector<std::pair<std::string, Array>> arrays;
    for (const auto& [path, shape] : variables) arrays.emplace_back(root + path, array_of(shape));
    Names counters{"optimizer/vars/0", "optimizer/vars/1"};
    for (const std::string& counter : counters) arrays.emplace_back(counter, array_of({1}));
    std::size_t number = 2;
    for (const auto& [path, shape] : variables) {
      for (int slot = 0; slot < 2; ++slot, ++number) {
        arrays.emplace_back(message("optimizer/vars/", number), array_of(shape, 10 + number));
      }
    }
    std::vector<NamedView> tensors;
    for (const auto& [name, array] : arrays) tensors.push_back({name, array.view()});
    const NamedValue values[] = {{"config.json", config},
                                 {"metadata.json", std::string(R"({"keras_version": "3.1.0"})")},
                                 {"optimizer/vars/name", std::string("adam")}};
    const TempFolder folder;
    write_keras_archive(folder / "m.keras", tensors, values);
    const MappedModel model = load_networks(folder / "m.keras");
    ASSERT_EQ(fault_of(model), "");
    ASSERT_EQ(model.layers.size(), 4U);
    EXPECT_EQ(model.not_understood, counters);
    EXPECT_EQ(model.layers[1].tensors,
              (Names{root + variables[0].first, root + variables[1].first}));
    EXPECT_EQ(model.layers[3].tensors,
              (Names{root + variables[5].first, root + variables[6].first}));
    const LayerWeight& bias = model.layers[1].weights.at(1);
    EXPECT_TRUE(same_bytes(bias.slots.at("m"), array_of({3}, 14)));
    EXPECT_TRUE(same_bytes(bias.slots.at("v"), array_of({3}, 15)));
    EXPECT_TRUE(same_bytes(model.layers[3].weights.at(0).slots.at("m"), array_of({3, 2}, 22)));
    EXPECT_EQ(model.networks.at(0).slots.size(), 2U);
  }
}

}  // namespace
}  // namespace openrnn
