// Which region of the buffer lies where in which tensor, for each option that adds or moves one.
#include <sstream>

#include "saveables/support.h"

namespace openrnn {
namespace {

using testing::numbered;
using testing::rnn_spec;
using testing::same_bits;
using testing::views;

std::string region_at(const ParamsLayout& layout, std::int64_t offset) {
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      if (region.offset == offset && region.size() > 0) return region.name;
    }
  }
  return "?";
}

std::string in_words(TfTensorKind kind) {
  return kind == TfTensorKind::kWeight ? "weight" : kind == TfTensorKind::kBias ? "bias" : "proj";
}

/// "bias [8] bias: l0_fwd/bW_i+l0_fwd/bR_i@0,0 .." of each tensor, a line each.
std::string places(const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  std::ostringstream text;
  const TfCanonicalFormat format(spec);
  for (const TfTensor& tensor : format.tensors()) {
    text << tensor.suffix << ' ' << to_string(tensor.shape) << ' ' << in_words(tensor.kind) << ':';
    for (const TfPart& part : tensor.parts) {
      text << ' ' << region_at(layout, part.offset);
      if (part.second_offset >= 0) text << '+' << region_at(layout, part.second_offset);
      text << '@' << part.row << ',' << part.col;
    }
    text << '\n';
  }
  return text.str();
}

const char* const kLstmKernel =
    "kernel [3, 8] weight: l0_fwd/W_i@0,0 l0_fwd/R_i@1,0 l0_fwd/W_c@0,2 l0_fwd/R_c@1,2 "
    "l0_fwd/W_f@0,4 l0_fwd/R_f@1,4 l0_fwd/W_o@0,6 l0_fwd/R_o@1,6\n";
const char* const kLstmBias =
    "bias [8] bias: l0_fwd/bW_i@0,0 l0_fwd/bW_c@0,2 l0_fwd/bW_f@0,4 "
    "l0_fwd/bW_o@0,6\n";
const char* const kNorms =
    "kernel_norm/gamma [8] bias: l0_fwd/gW_i@0,0 l0_fwd/gW_c@0,2 l0_fwd/gW_f@0,4 l0_fwd/gW_o@0,6\n"
    "recurrent_norm/gamma [8] bias: l0_fwd/gR_i@0,0 l0_fwd/gR_c@0,2 l0_fwd/gR_f@0,4 "
    "l0_fwd/gR_o@0,6\n";
const char* const kStateNorm =
    "state_norm/gamma [2] bias: l0_fwd/gC@0,0\nstate_norm/beta [2] bias: l0_fwd/bC@0,0\n";

TEST(Places, OfLstms) {
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 2, 1);
  spec.use_peepholes = true;
  const std::string diagonals =
      "w_f_diag [2] bias: l0_fwd/p_f@0,0\nw_i_diag [2] bias: l0_fwd/p_i@0,0\n"
      "w_o_diag [2] bias: l0_fwd/p_o@0,0\n";
  EXPECT_EQ(places(spec), kLstmKernel +
                              std::string("bias [8] bias: l0_fwd/bW_i+l0_fwd/bR_i@0,0 "
                                          "l0_fwd/bW_c+l0_fwd/bR_c@0,2 l0_fwd/bW_f+l0_fwd/bR_f@0,4 "
                                          "l0_fwd/bW_o+l0_fwd/bR_o@0,6\n") +
                              diagonals);
  spec.single_bias = true;
  EXPECT_EQ(places(spec), kLstmKernel + std::string(kLstmBias) + diagonals);
  spec.single_bias = spec.use_bias = false;
  EXPECT_EQ(places(spec), kLstmKernel + diagonals);
  spec.use_peepholes = false;
  spec.num_proj = 1;
  EXPECT_EQ(places(spec),
            "kernel [2, 8] weight: l0_fwd/W_i@0,0 l0_fwd/R_i@1,0 l0_fwd/W_c@0,2 l0_fwd/R_c@1,2 "
            "l0_fwd/W_f@0,4 l0_fwd/R_f@1,4 l0_fwd/W_o@0,6 l0_fwd/R_o@1,6\n"
            "projection/kernel [2, 1] proj: l0_fwd/Wp@0,0\n");
}

TEST(Places, OfNormalizedLstms) {
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 2, 1);
  spec.single_bias = true;
  spec.layer_norm = LayerNorm::kProducts;
  EXPECT_EQ(places(spec), kLstmKernel + std::string(kLstmBias) + kNorms);
  spec.use_peepholes = true;
  spec.layer_norm_cell = LayerNormCell::kOutput;
  EXPECT_EQ(places(spec), kLstmKernel + std::string(kLstmBias) + kNorms + kStateNorm +
                              "w_f_diag [2] bias: l0_fwd/p_f@0,0\nw_i_diag [2] bias: "
                              "l0_fwd/p_i@0,0\nw_o_diag [2] bias: l0_fwd/p_o@0,0\n");
  spec.use_peepholes = false;
  spec.layer_norm = LayerNorm::kGates;
  const std::string gates =
      "input/gamma [2] bias: l0_fwd/g_i@0,0\ninput/beta [2] bias: l0_fwd/bW_i@0,0\n"
      "transform/gamma [2] bias: l0_fwd/g_c@0,0\ntransform/beta [2] bias: l0_fwd/bW_c@0,0\n"
      "forget/gamma [2] bias: l0_fwd/g_f@0,0\nforget/beta [2] bias: l0_fwd/bW_f@0,0\n"
      "output/gamma [2] bias: l0_fwd/g_o@0,0\noutput/beta [2] bias: l0_fwd/bW_o@0,0\n";
  EXPECT_EQ(places(spec), kLstmKernel + gates +
                              "state/gamma [2] bias: l0_fwd/gC@0,0\n"
                              "state/beta [2] bias: l0_fwd/bC@0,0\n");
  spec.single_bias = spec.use_bias = false;
  spec.layer_norm_cell = LayerNormCell::kNone;
  EXPECT_EQ(places(spec), kLstmKernel + std::string("input/gamma [2] bias: l0_fwd/g_i@0,0\n"
                                                    "transform/gamma [2] bias: l0_fwd/g_c@0,0\n"
                                                    "forget/gamma [2] bias: l0_fwd/g_f@0,0\n"
                                                    "output/gamma [2] bias: l0_fwd/g_o@0,0\n"));
}

const char* const kGruWeights =
    "gates/kernel [3, 4] weight: l0_fwd/W_r@0,0 l0_fwd/R_r@1,0 l0_fwd/W_z@0,2 l0_fwd/R_z@1,2\n"
    "candidate/input_projection/kernel [1, 2] weight: l0_fwd/W_n@0,0\n"
    "candidate/hidden_projection/kernel [2, 2] weight: l0_fwd/R_n@0,0\n";
const char* const kGruGates =
    "gates/bias [4] bias: l0_fwd/bW_r+l0_fwd/bR_r@0,0 l0_fwd/bW_z+l0_fwd/bR_z@0,2\n";
const char* const kGruCandidates =
    "candidate/input_projection/bias [2] bias: l0_fwd/bW_n@0,0\n"
    "candidate/hidden_projection/bias [2] bias: l0_fwd/bR_n@0,0\n";

TEST(Places, OfGrus) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 2, 1);
  spec.layer_norm = LayerNorm::kSplitProducts;
  EXPECT_EQ(places(spec),
            kGruWeights + std::string(kGruGates) + kGruCandidates +
                "kernel_norm/gamma [6] bias: l0_fwd/gW_r@0,0 l0_fwd/gW_z@0,2 l0_fwd/gW_n@0,4\n"
                "recurrent_norm/gamma [6] bias: l0_fwd/gR_r@0,0 l0_fwd/gR_z@0,2 "
                "l0_fwd/gR_n@0,4\n");
  spec.layer_norm = LayerNorm::kNone;
  spec.use_bias = false;
  EXPECT_EQ(places(spec), kGruWeights);
  spec.use_bias = spec.single_bias = true;
  EXPECT_EQ(places(spec),
            kGruWeights + std::string("gates/bias [4] bias: l0_fwd/bW_r@0,0 l0_fwd/bW_z@0,2\n"
                                      "candidate/input_projection/bias [2] bias: "
                                      "l0_fwd/bW_n@0,0\n"));
  spec.single_bias = false;
  spec.num_proj = 1;
  EXPECT_EQ(places(spec),
            "gates/kernel [2, 4] weight: l0_fwd/W_r@0,0 l0_fwd/R_r@1,0 l0_fwd/W_z@0,2 "
            "l0_fwd/R_z@1,2\n"
            "candidate/input_projection/kernel [1, 2] weight: l0_fwd/W_n@0,0\n"
            "candidate/hidden_projection/kernel [1, 2] weight: l0_fwd/R_n@0,0\n"
            "projection/kernel [2, 1] proj: l0_fwd/Wp@0,0\n" +
                std::string(kGruGates) + kGruCandidates);
  spec.num_proj = 0;
  spec.reset_after = false;
  const std::string before =
      "gates/kernel [3, 4] weight: l0_fwd/W_r@0,0 l0_fwd/R_r@1,0 l0_fwd/W_z@0,2 l0_fwd/R_z@1,2\n"
      "candidate/kernel [3, 2] weight: l0_fwd/W_n@0,0 l0_fwd/R_n@1,0\n";
  EXPECT_EQ(places(spec),
            before + kGruGates + "candidate/bias [2] bias: l0_fwd/bW_n+l0_fwd/bR_n@0,0\n");
  spec.use_bias = false;
  EXPECT_EQ(places(spec), before);
}

TEST(Places, OfPlainNetworks) {
  RnnSpec spec = rnn_spec(RnnMode::kRnnRelu, 1, 2, 1);
  spec.direction = Direction::kBidirectional;
  EXPECT_EQ(places(spec),
            "kernel [3, 2] weight: l0_fwd/W_h@0,0 l0_fwd/R_h@1,0\n"
            "kernel [3, 2] weight: l0_bwd/W_h@0,0 l0_bwd/R_h@1,0\n"
            "bias [2] bias: l0_fwd/bW_h+l0_fwd/bR_h@0,0\n"
            "bias [2] bias: l0_bwd/bW_h+l0_bwd/bR_h@0,0\n");
}

TEST(TfCellName, IsThatOfItsNetwork) {
  RnnSpec lstm = rnn_spec(RnnMode::kLstm, 1, 2, 1), gru = rnn_spec(RnnMode::kGru, 1, 2, 1);
  const auto with = [](RnnSpec spec, LayerNorm norm, LayerNormCell cell) {
    spec.layer_norm = norm;
    spec.layer_norm_cell = cell;
    return tf_cell_name(spec);
  };
  constexpr auto kNone = LayerNormCell::kNone;
  EXPECT_EQ(with(lstm, LayerNorm::kNone, kNone), "cudnn_compatible_lstm_cell");
  EXPECT_EQ(with(gru, LayerNorm::kNone, kNone), "cudnn_compatible_gru_cell");
  EXPECT_EQ(with(gru, LayerNorm::kProducts, kNone), "layer_norm_gru_cell");
  EXPECT_EQ(with(gru, LayerNorm::kSplitProducts, kNone), "layer_norm_split_gru_cell");
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    EXPECT_EQ(with(lstm, norm, kNone), "layer_norm_lstm_cell");
    EXPECT_EQ(with(lstm, norm, LayerNormCell::kOutput), "layer_norm_output_lstm_cell");
    EXPECT_EQ(with(lstm, norm, LayerNormCell::kCarried), "layer_norm_carried_lstm_cell");
  }
  gru.reset_after = false;
  EXPECT_EQ(tf_cell_name(gru), "gru_cell");
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(tf_cell_name(mode), "basic_rnn_cell");
  }
}

// With one bias a gate, or none, and with vectors of their own, parameters come back as they were.
TEST(Places, WhereNothingIsSummedNothingChanges) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (const bool use_bias : {true, false}) {
      RnnSpec lstm = rnn_spec(RnnMode::kLstm, 2, 7, 3, dtype), gru = lstm;
      lstm.use_bias = gru.use_bias = use_bias;
      lstm.single_bias = gru.single_bias = use_bias;
      lstm.use_peepholes = true;
      lstm.direction = Direction::kBidirectional;
      lstm.layer_norm = LayerNorm::kProducts;
      lstm.layer_norm_cell = LayerNormCell::kOutput;
      gru.mode = RnnMode::kGru;
      gru.reset_after = false;
      for (const RnnSpec& spec : {lstm, gru}) {
        SCOPED_TRACE(describe(spec));
        const TfCanonicalFormat format(spec);
        const Array params = numbered(spec);
        const std::vector<Array> tensors = format.from_opaque("test", params.view());
        EXPECT_TRUE(same_bits(params, format.to_opaque("test", "", views(tensors))));
        const std::vector<Array> slots = format.slots_from_opaque("test", params.view());
        ASSERT_EQ(slots.size(), tensors.size());
        EXPECT_TRUE(same_bits(params, format.slots_to_opaque("test", "", views(slots))));
      }
    }
  }
}

}  // namespace
}  // namespace openrnn
