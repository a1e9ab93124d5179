// Layer normalization in a spec: what is refused, and where its parameters lie.
#include <gtest/gtest.h>

#include <cmath>

#include "openrnn/params.h"
#include "openrnn/spec_fields.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

RnnSpec with(RnnMode mode, LayerNorm norm, LayerNormCell cell = LayerNormCell::kNone) {
  return {
      .mode = mode, .num_units = 3, .input_size = 2, .layer_norm = norm, .layer_norm_cell = cell};
}

void expect_refused(const RnnSpec& spec, const std::string& text) {
  expect_error<ArgumentError>([&] { spec.validate(); }, "[RnnSpec] " + text);
}

TEST(LayerNormSpec, RefusesWhatNobodyHasPublished) {
  expect_refused(with(RnnMode::kRnnTanh, LayerNorm::kProducts),
                 "layer_norm is 'products' for rnn_tanh, expected it for lstm and gru only");
  expect_refused(with(RnnMode::kGru, LayerNorm::kGates),
                 "layer_norm is 'gates' for gru, expected 'products' or 'split_products'");
  expect_refused(with(RnnMode::kLstm, LayerNorm::kSplitProducts),
                 "layer_norm is 'split_products' for lstm, expected 'products' or 'gates'");
  expect_refused(with(RnnMode::kGru, LayerNorm::kProducts, LayerNormCell::kOutput),
                 "layer_norm_cell is set for gru, expected it for lstm only");
  expect_refused(with(RnnMode::kLstm, LayerNorm::kNone, LayerNormCell::kCarried),
                 "layer_norm_cell is 'carried' with layer_norm 'none', expected 'products' or "
                 "'gates' with it");
  RnnSpec before = with(RnnMode::kGru, LayerNorm::kProducts);
  before.reset_after = false;
  expect_refused(before,
                 "layer_norm is 'products' with reset_after false, expected reset_after true: the "
                 "product with the state is normalized as a whole");
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kSplitProducts}) {
    RnnSpec projected = with(RnnMode::kGru, norm);
    projected.num_proj = 2;
    expect_refused(projected, "layer_norm is '" + std::string(to_string(norm)) +
                                  "' with num_proj of a gru, expected one of them");
    projected.num_proj = 3;  // as wide as the units: off
    EXPECT_NO_THROW(projected.validate());
  }
  RnnSpec zones = with(RnnMode::kLstm, LayerNorm::kGates);
  zones.zoneout = 0.5;
  expect_refused(zones,
                 "layer_norm is 'gates' with zoneout or recurrent_dropout, expected none of them");
  std::swap(zones.zoneout, zones.zoneout_cell);
  expect_refused(zones,
                 "layer_norm is 'gates' with zoneout or recurrent_dropout, expected none of them");
  zones.zoneout_cell = 0.0;
  zones.training.recurrent_dropout = 0.5;
  expect_refused(zones,
                 "layer_norm is 'gates' with zoneout or recurrent_dropout, expected none of them");
  RnnSpec coupled = with(RnnMode::kLstm, LayerNorm::kProducts);
  coupled.coupled_gates = true;
  expect_refused(coupled,
                 "layer_norm is 'products' with coupled_gates, expected 'gates': the statistics of "
                 "a product would be those of the forget gate's unused weights, too");
  coupled.layer_norm = LayerNorm::kGates;
  EXPECT_NO_THROW(coupled.validate());
}

TEST(LayerNormSpec, EpsilonIsAPositiveNumber) {
  RnnSpec spec = with(RnnMode::kLstm, LayerNorm::kGates);
  for (const double wrong : {0.0, -1.0, 1e-31, 1e31, HUGE_VAL, std::nan("")}) {
    spec.layer_norm_epsilon = wrong;
    EXPECT_THROW(spec.validate(), ArgumentError) << wrong;
  }
  spec.layer_norm_epsilon = 0.0;
  expect_refused(spec, "layer_norm_epsilon is 0, expected 1e-30 to 1e+30");
  for (const double right : {1e-30, 1e-12, 1e30}) {
    spec.layer_norm_epsilon = right;
    EXPECT_NO_THROW(spec.validate()) << right;
  }
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    spec = with(mode, LayerNorm::kNone);
    spec.layer_norm_epsilon = 1e-12;
    expect_refused(spec,
                   "layer_norm_epsilon is set with layer_norm 'none', expected layer_norm with it");
  }
  spec = with(RnnMode::kRnnRelu, LayerNorm::kNone);
  spec.layer_norm_epsilon = 1e-12;
  expect_refused(spec, "layer_norm_epsilon is set for rnn_relu, expected it for lstm and gru only");
}

std::vector<std::string> last_names(const RnnSpec& spec, std::size_t count) {
  const ParamsLayout layout(spec);
  std::vector<std::string> names;
  for (const ParamRegion& region : layout.biases().last(count)) names.push_back(region.name);
  return names;
}

TEST(LayerNormSpec, ItsParametersLieBehindAllOthers) {
  RnnSpec spec = with(RnnMode::kLstm, LayerNorm::kProducts, LayerNormCell::kOutput);
  spec.use_peepholes = true;
  spec.num_layers = 2;
  using Names = std::vector<std::string>;
  EXPECT_EQ(last_names(spec, 21),
            (Names{"l1_fwd/p_o",  "l0_fwd/gW_i", "l0_fwd/gW_f", "l0_fwd/gW_c", "l0_fwd/gW_o",
                   "l0_fwd/gR_i", "l0_fwd/gR_f", "l0_fwd/gR_c", "l0_fwd/gR_o", "l1_fwd/gW_i",
                   "l1_fwd/gW_f", "l1_fwd/gW_c", "l1_fwd/gW_o", "l1_fwd/gR_i", "l1_fwd/gR_f",
                   "l1_fwd/gR_c", "l1_fwd/gR_o", "l0_fwd/gC",   "l0_fwd/bC",   "l1_fwd/gC",
                   "l1_fwd/bC"}));
  EXPECT_EQ(last_names(with(RnnMode::kLstm, LayerNorm::kGates), 5),
            (Names{"l0_fwd/bR_o", "l0_fwd/g_i", "l0_fwd/g_f", "l0_fwd/g_c", "l0_fwd/g_o"}));
  EXPECT_EQ(last_names(with(RnnMode::kGru, LayerNorm::kSplitProducts), 2),
            (Names{"l0_fwd/gR_z", "l0_fwd/gR_n"}));
  for (const RnnSpec& each :
       {spec, with(RnnMode::kLstm, LayerNorm::kGates, LayerNormCell::kCarried),
        with(RnnMode::kGru, LayerNorm::kProducts)}) {
    EXPECT_EQ(ParamsLayout(each).size(), params_size(each)) << describe(each);
  }
}

TEST(LayerNormSpec, GainsAreOneAtFirst) {
  const RnnSpec spec = with(RnnMode::kLstm, LayerNorm::kGates, LayerNormCell::kCarried);
  const ParamsLayout layout(spec);
  const Array params = initialize_params(layout, 7, {}, constant_initializer(0.25));
  for (const ParamRegion& region : layout.biases()) {
    const float wanted = region.is_gain() ? 1.0f : region.is_bias() ? 0.25f : 0.0f;
    for (std::int64_t i = 0; i < region.size(); ++i) {
      EXPECT_EQ(params.as<float>()[static_cast<std::size_t>(region.offset + i)], wanted)
          << region.name;
    }
  }
}

}  // namespace
}  // namespace openrnn
