// Names in one checkpoint: prefixes of explicit and implicit builds, several saveables, and what
// collides.
#include "base/message.h"
#include "formats/temp_folder.h"
#include "openrnn/cells.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;
using formats::TempFolder;
using testing::thrown;

std::vector<std::string> names_in(const std::string& prefix) {
  const TensorBundleReader reader(prefix);
  std::vector<std::string> names;
  for (const TensorInfo& info : reader.tensors()) names.push_back(info.name);
  return names;
}

std::shared_ptr<SaveableObject> saveable_of(const RnnSpec& spec, const std::string& variable,
                                            const std::string& scope, const std::string& name) {
  return make_cudnn_saveable(Variable(variable, numbered(spec)),
                             {.network = {.mode = spec.mode,
                                          .num_layers = spec.num_layers,
                                          .num_units = spec.num_units,
                                          .input_size = spec.input_size},
                              .scope = scope,
                              .name = name});
}

class Names : public ::testing::Test {
 protected:
  TempFolder folder_;
  Graph graph_;
  Graph::AsDefault current_{graph_};
};

TEST_F(Names, TwoSaveablesEachUnderItsScope) {
  const RnnSpec encoder = rnn_spec(RnnMode::kRnnTanh, 1, 3, 2);
  const RnnSpec decoder = rnn_spec(RnnMode::kRnnRelu, 1, 3, 3);
  const auto enc = saveable_of(encoder, "a", "enc", "enc_saveable");
  const auto dec = saveable_of(decoder, "b", "dec", "dec_saveable");
  const Saver saver({.variables = std::vector<Variable>{}, .saveables = {{enc, dec}}});
  saver.write(folder_ / "a");
  EXPECT_EQ(names_in(folder_ / "a"),
            (std::vector<std::string>{"dec/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/bias",
                                      "dec/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel",
                                      "enc/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/bias",
                                      "enc/rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel"}));
  const auto before_enc = enc->specs(), before_dec = dec->specs();
  for (const auto& saveable : {enc, dec}) {
    saveable->variable().assign(Array(DType::kFloat32, saveable->variable().shape()).view());
  }
  saver.restore(folder_ / "a", {.refuse_unexpected = true});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same_bits(before_enc[i].tensor, enc->specs()[i].tensor));
    EXPECT_TRUE(same_bits(before_dec[i].tensor, dec->specs()[i].tensor));
  }
}

TEST_F(Names, TwoSaveablesOfOneName) {
  const RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 3, 2);
  const auto one = saveable_of(spec, "a", "enc", "cudnn_rnn_saveable");
  const auto two = saveable_of(spec, "b", "dec", "cudnn_rnn_saveable");
  const Saver saver({.variables = std::vector<Variable>{}, .saveables = {{one, two}}});
  EXPECT_EQ(thrown<ArgumentError>([&] { saver.write(folder_ / "a"); }),
            "[Saver::save] two saveables have the name cudnn_rnn_saveable, expected a different "
            "one for each");
  Saver({.variables = std::vector<Variable>{}, .saveables = {{one}}}).write(folder_ / "one");
  EXPECT_EQ(thrown<ArgumentError>([&] { saver.restore(folder_ / "one"); }),
            "[Saver::restore] two saveables have the name cudnn_rnn_saveable, expected a different "
            "one for each");
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"one.data-00000-of-00001", "one.index"}));
}

// Nothing is written, not even beside an older file; both owners are named.
TEST_F(Names, TwoLayersBuiltInOneScopeCollide) {
  layers::CudnnLSTM first({.num_units = 2}), second({.num_units = 2});
  {
    const VariableScope scope("m1");
    first.build({1, 1, 1});
    Saver().write(folder_ / "a");
    second.build({1, 1, 1});
  }
  const std::vector<std::string> before = folder_.names();
  const std::string bytes = read_file(folder_ / "a.index");
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().write(folder_ / "a"); }),
            "[Saver::save] two tensors have the name "
            "m1/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel, of "
            "m1/cudnn_lstm/opaque_kernel_saveable and of m1/cudnn_lstm_1/opaque_kernel_saveable, "
            "expected each once: layers that were built explicitly in one variable scope share "
            "their canonical names");
  EXPECT_EQ(folder_.names(), before);
  EXPECT_EQ(read_file(folder_ / "a.index"), bytes);
  // Names come first: the folder need not be there for this to be said.
  EXPECT_THROW(Saver().write(folder_ / "gone/a"), ArgumentError);
  // One of them alone is no trouble, and either may be restored from it.
  Saver({.variables = {{second.kernel()}}}).write(folder_ / "second");
  Saver({.variables = std::vector<Variable>{}, .saveables = {{first.saveable()}}})
      .restore(folder_ / "second");
  EXPECT_TRUE(same_bits(first.saveable()->specs()[0].tensor, second.saveable()->specs()[0].tensor));
}

TEST_F(Names, AVariableInTheWayOfASaveable) {
  layers::CudnnRNNTanh layer({.num_units = 2});
  layer.build({1, 1, 1});
  const std::string kernel = layer.saveable()->spec_names()[0];
  const Variable other(kernel, Array(DType::kFloat32, {1}));
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().write(folder_ / "a"); })
                .rfind("[Saver::save] two tensors have the name " + kernel + ", of the variable " +
                           kernel + " and of cudnn_rnn_tanh/opaque_kernel_saveable",
                       0),
            0U);
  const Variable extra("openrnn/note", Array(DType::kFloat32, {1}));
  Extras extras;
  extras.set_int("note", 1);
  EXPECT_NE(thrown<ArgumentError>([&] {
              Saver({.variables = {{extra}}}).write(folder_ / "a", extras);
            }).find("openrnn/note, of the variable openrnn/note and of the extras"),
            std::string::npos);
  EXPECT_TRUE(folder_.names().empty());
}

// An explicit build takes the scope around as its prefix, the first call the layer's own.
TEST_F(Names, PrefixesOfBothBuilds) {
  const auto first_name = [](const layers::CudnnRnn& layer) {
    return layer.saveable()->spec_names()[0];
  };
  const std::string cell = "rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel";
  const Tensor x(Array(DType::kFloat32, {1, 1, 2}).view());
  layers::CudnnRNNTanh top({.num_units = 2}), inner({.num_units = 2}), top_call({.num_units = 2}),
      inner_call({.num_units = 2}), bi({.num_units = 2, .direction = Direction::kBidirectional});
  top.build({1, 1, 2});
  top_call(x);
  {
    const VariableScope outer("m1");
    inner.build({1, 1, 2});
    inner_call(x);
    const VariableScope deeper("m2");
    bi.build({1, 1, 2});
  }
  EXPECT_EQ(first_name(top), cell);
  EXPECT_EQ(first_name(top_call), "cudnn_rnn_tanh_1/" + cell);
  EXPECT_EQ(first_name(inner), "m1/" + cell);
  EXPECT_EQ(first_name(inner_call), "m1/cudnn_rnn_tanh_1/" + cell);
  EXPECT_EQ(first_name(bi),
            "m1/m2/stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/basic_rnn_cell/kernel");
  // All five in one file, and back.
  const std::vector<Variable> kernels = graph_.variables();
  Saver().write(folder_ / "a");
  std::vector<Array> before;
  for (const Variable& kernel : kernels) {
    before.push_back(kernel.to_host());
    kernel.assign(Array(DType::kFloat32, kernel.shape()).view());
  }
  Saver().restore(folder_ / "a", {.refuse_unexpected = true});
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_TRUE(same_bits(kernels[i].to_host(), before[i])) << kernels[i].name();
  }
}

// Normalized or not, peepholes or not: each is another network.
std::vector<RnnSpec> forms_of(RnnMode mode) {
  RnnSpec plain = rnn_spec(mode, 2, 4, 3);
  std::vector<RnnSpec> forms{plain};
  if (mode == RnnMode::kGru) {
    for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kSplitProducts}) {
      forms.push_back(plain);
      forms.back().layer_norm = norm;
    }
    return forms;
  }
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    for (const LayerNormCell cell :
         {LayerNormCell::kNone, LayerNormCell::kOutput, LayerNormCell::kCarried}) {
      forms.push_back(plain);
      forms.back().layer_norm = norm;
      forms.back().layer_norm_cell = cell;
    }
  }
  forms.push_back(forms.back());
  forms.back().layer_norm_epsilon = 1e-12;
  forms.push_back(plain);
  forms.back().use_peepholes = true;
  forms.push_back(plain);
  forms.back().use_bias = false;
  return forms;
}

void expect_no_way_in(const TempFolder& folder, const RnnSpec& from, const RnnSpec& to) {
  SCOPED_TRACE(describe(to));
  Graph graph;
  const Graph::AsDefault current(graph);
  const auto layer = layers::make_cudnn_rnn({.network = to});
  layer->build({1, 1, 3});
  const Array before = layer->kernel().to_host();
  const Saver all, canonical({.only_saveables = true});
  EXPECT_THROW(all.restore(folder / "a"), ArgumentError);
  EXPECT_THROW(canonical.restore(folder / "a"), ArgumentError);
  EXPECT_THROW(canonical.restore(folder / "canonical"), ArgumentError);
  // What is left in a file of objects, such as a bias, is for assert_consumed.
  if (to.use_bias && (from.normalizes() || to.normalizes())) {
    EXPECT_THROW(Checkpoint({{"net", *layer}}).read(folder / "objects"), ArgumentError);
  }
  EXPECT_TRUE(same_bits(layer->kernel().to_host(), before));
}

TEST(OtherNetworks, AreNeverLoaded) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (RnnSpec from : forms_of(mode)) {
        from.direction = direction;
        SCOPED_TRACE(describe(from));
        const TempFolder folder;
        Graph graph;
        const Graph::AsDefault current(graph);
        const auto saved = layers::make_cudnn_rnn({.network = from});
        saved->build({1, 1, 3});
        Saver().write(folder / "a");
        Saver({.only_saveables = true}).write(folder / "canonical");
        Checkpoint({{"net", *saved}}).write(folder / "objects");
        for (RnnSpec to : forms_of(mode)) {
          to.direction = direction;
          to.input_size = from.input_size;
          if (to != from) expect_no_way_in(folder, from, to);
        }
      }
    }
  }
}

// Twelve layers: in the order of names 10 and 11 lie before 2, and 9 is the last.
TEST_F(Names, ForeignTensorsOfAnyLayerAreRefused) {
  RnnSpec spec = rnn_spec(RnnMode::kRnnTanh, 12, 2, 2);
  const auto layer = layers::make_cudnn_rnn(
      {.network = {.mode = spec.mode, .num_layers = spec.num_layers, .num_units = spec.num_units}});
  layer->build({1, 1, 2});
  Saver({.only_saveables = true}).write(folder_ / "a");
  const TensorBundleReader reader(folder_ / "a");
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
  }
  const auto restored_with = [&](const std::string& name) {
    std::vector<NamedTensor> all = tensors;
    all.push_back({name, Array(DType::kFloat32, {2, 2})});
    write_tensor_bundle(folder_ / "b", all);
    try {
      Saver({.only_saveables = true}).restore(folder_ / "b");
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto extra = [](int cell) {
    return message("rnn/multi_rnn_cell/cell_", cell, "/basic_rnn_cell/projection/kernel");
  };
  for (const int cell : {0, 1, 9, 10, 11}) {
    EXPECT_NE(restored_with(extra(cell)).find(" holds " + extra(cell) + ", which "),
              std::string::npos)
        << cell;
  }
  // Those are of no layer of this network: of a deeper one, another scope, or both directions.
  for (const std::string& name :
       {extra(12), "other/" + extra(3),
        std::string("stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/basic_rnn_cell/"
                    "projection/kernel")}) {
    EXPECT_EQ(restored_with(name), "") << name;
  }
}

// A file of one network may hold another of the same mode beside it, whose tensors have names of
// their own; where it lacks those of this one, the other is what was saved.
TEST_F(Names, AnotherNetworkBesideOneOfItsOwn) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 4, 3);
  const auto layer = layers::make_cudnn_rnn({.network = spec});
  layer->build({1, 1, 3});
  Saver({.only_saveables = true}).write(folder_ / "own");
  const std::string other = "rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel";
  std::vector<NamedTensor> tensors{{other, Array(DType::kFloat32, {7, 8})}};
  write_tensor_bundle(folder_ / "other", tensors);
  const Saver saver({.only_saveables = true});
  EXPECT_NE(thrown<ArgumentError>([&] {
              saver.restore(folder_ / "other");
            }).find(" holds " + other + ", which cudnn_gru/opaque_kernel_saveable has not"),
            std::string::npos);
  const TensorBundleReader reader(folder_ / "own");
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
  }
  write_tensor_bundle(folder_ / "both", tensors);
  const Array before = layer->kernel().to_host();
  layer->kernel().assign(Array(DType::kFloat32, before.shape()).view());
  saver.restore(folder_ / "both");
  EXPECT_TRUE(same_bits(layer->kernel().to_host(), before));
}

// Extras are what the prefix is followed by: not the prefix alone.
TEST_F(Names, ExtrasHaveANameAfterThePrefix) {
  const std::vector<NamedTensor> tensors{{"openrnn/", Array(DType::kFloat32, {2})},
                                         {"openrnn/n", Array(DType::kInt64, {})},
                                         {"openrnn_n", Array(DType::kInt64, {})}};
  write_tensor_bundle(folder_ / "a", tensors);
  const Extras extras = read_extras(folder_ / "a");
  ASSERT_EQ(extras.values().size(), 1u);
  EXPECT_EQ(extras.get_int("n"), 0);
}

// Its file needs no raw buffer beside it to be refused, nor one to be taken for another.
TEST_F(Names, ARawBufferOfTheSameSizeIsNoWayIn) {
  RnnSpec split = rnn_spec(RnnMode::kGru, 1, 4, 3);
  split.layer_norm = LayerNorm::kSplitProducts;
  RnnSpec products = split;
  products.layer_norm = LayerNorm::kProducts;
  ASSERT_EQ(params_size(split), params_size(products));
  {
    Graph graph;
    const Graph::AsDefault current(graph);
    const auto other = layers::make_cudnn_rnn({.network = split});
    other->build({1, 1, 3});
    Saver().write(folder_ / "a");
  }
  const auto layer = layers::make_cudnn_rnn({.network = products});
  layer->build({1, 1, 3});
  const std::string cell = "rnn/multi_rnn_cell/cell_0/layer_norm_";
  const std::string what = thrown<ArgumentError>([&] { Saver().restore(folder_ / "a"); });
  EXPECT_TRUE(what.starts_with("[Saver::restore] " + (folder_ / "a") + " holds ")) << what;
  EXPECT_NE(what.find(cell + "split_gru_cell/gates/kernel, "), std::string::npos) << what;
  EXPECT_NE(what.find(", which cudnn_gru/opaque_kernel_saveable has not, expected the tensors of "
                      "its own network alone: " +
                      cell + "gru_cell/gates/kernel, "),
            std::string::npos)
      << what;
}

// Other layers of the file, and cells of another mode, are not in the way.
TEST_F(Names, WhatBelongsToOtherLayersIsLeftAlone) {
  layers::CudnnLSTM lstm({.num_layers = 2, .num_units = 2});
  layers::CudnnGRU gru({.num_units = 2});
  lstm.build({1, 1, 3});
  gru.build({1, 1, 3});
  Saver().write(folder_ / "a");
  Graph other;
  const Graph::AsDefault current(other);
  layers::CudnnLSTM lower({.num_units = 2});
  lower.build({1, 1, 3});
  Saver({.only_saveables = true}).restore(folder_ / "a");
  EXPECT_TRUE(same_bits(lower.saveable()->specs()[0].tensor, lstm.saveable()->specs()[0].tensor));
}

// The compatible cells find nothing of a normalized network.
TEST_F(Names, TheCompatibleCellsFindNoNormalizedOne) {
  for (RnnSpec spec : {forms_of(RnnMode::kLstm)[2], forms_of(RnnMode::kGru)[1]}) {
    spec.num_layers = 1;
    {
      Graph graph;
      const Graph::AsDefault current(graph);
      const auto layer = layers::make_cudnn_rnn({.network = spec});
      layer->build({1, 1, 3});
      Saver().write(folder_ / "a");
    }
    Graph graph;
    const Graph::AsDefault current(graph);
    CompatibleCellOptions options;
    options.num_units = spec.num_units;
    const auto cell = make_compatible_cell(spec.mode, options);
    {
      const VariableScope scope("rnn/multi_rnn_cell/cell_0");
      (*cell)(Tensor(Array(DType::kFloat32, {1, 3}).view()), cell->zero_state(1, DType::kFloat32));
    }
    EXPECT_EQ(graph.variables()[0].name().find("rnn/multi_rnn_cell/cell_0/cudnn_compatible_"), 0U);
    EXPECT_THROW(Saver().restore(folder_ / "a"), ArgumentError);
  }
}

}  // namespace
}  // namespace openrnn
