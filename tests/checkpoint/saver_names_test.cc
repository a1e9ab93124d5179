// Names in one checkpoint: prefixes of explicit and implicit builds, several saveables, and what
// collides.
#include "formats/temp_folder.h"
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

}  // namespace
}  // namespace openrnn
