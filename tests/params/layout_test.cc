#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "openrnn/params.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

struct Network {
  const char* mode;
  std::int64_t layers, units, input;
  bool both = false, skip = false;
  std::int64_t proj = 0;
};

RnnSpec spec_of(const Network& n) {
  RnnSpec spec;
  spec.mode = parse_rnn_mode(n.mode);
  spec.num_layers = n.layers;
  spec.num_units = n.units;
  spec.input_size = n.input;
  if (n.both) spec.direction = Direction::kBidirectional;
  if (n.skip) spec.input_mode = InputMode::kSkipInput;
  spec.num_proj = n.proj;
  return spec;
}

struct Size {
  Network network;
  std::int64_t weights, biases;
};

TEST(ParamsSize, IsTheSumOfTheWorkedExamples) {
  const Size sizes[] = {
      {{"lstm", 1, 128, 64}, 98304, 1024},
      {{"lstm", 2, 7, 3}, 672, 112},
      {{"lstm", 2, 7, 3, true}, 1736, 224},
      {{"lstm", 4, 200, 200, true}, 3520000, 12800},
      {{"gru", 1, 100, 50}, 45000, 600},
      {{"gru", 2, 6, 8, true}, 1152, 144},
      {{"rnn_tanh", 2, 8, 4}, 224, 32},
      {{"rnn_relu", 3, 16, 10, true}, 3904, 192},
      {{"lstm", 1, 100, 100, false, true}, 40000, 800},
      {{"gru", 2, 4, 4, true, true}, 384, 96},
      {{"lstm", 2, 6, 5, false, false, 4}, 456, 96},
      {{"lstm", 2, 6, 5, true, false, 4}, 1104, 192},
      {{"rnn_relu", 1, 1, 1, false, true}, 1, 2},
  };
  for (const Size& size : sizes) {
    const RnnSpec spec = spec_of(size.network);
    EXPECT_EQ(params_size(spec), size.weights + size.biases) << describe(spec);
    const ParamsLayout layout(spec);
    EXPECT_EQ(layout.biases().front().offset, size.weights) << describe(spec);
  }
}

std::vector<std::int64_t> offsets(std::span<const ParamRegion> regions, std::size_t first,
                                  std::size_t count) {
  std::vector<std::int64_t> list;
  for (const ParamRegion& region : regions.subspan(first, count)) list.push_back(region.offset);
  return list;
}

using Offsets = std::vector<std::int64_t>;

TEST(ParamsLayout, HasTheOffsetsOfTheBidirectionalExample) {
  const ParamsLayout layout(spec_of({"lstm", 2, 2, 3, true}));
  EXPECT_EQ(layout.size(), 240);
  EXPECT_EQ(offsets(layout.weights(), 0, 8), (Offsets{0, 6, 12, 18, 24, 28, 32, 36}));
  EXPECT_EQ(offsets(layout.weights(), 8, 8), (Offsets{40, 46, 52, 58, 64, 68, 72, 76}));
  EXPECT_EQ(offsets(layout.weights(), 16, 8), (Offsets{80, 88, 96, 104, 112, 116, 120, 124}));
  EXPECT_EQ(offsets(layout.weights(), 24, 8), (Offsets{128, 136, 144, 152, 160, 164, 168, 172}));
  ASSERT_EQ(layout.biases().size(), 32u);
  for (std::int64_t p = 0; p < 4; ++p) {
    for (std::int64_t k = 0; k < 8; ++k) {
      const ParamRegion& bias = layout.biases()[static_cast<std::size_t>(8 * p + k)];
      EXPECT_EQ(bias.offset, 176 + 16 * p + 2 * k);
      EXPECT_EQ(bias.slot, k);
      EXPECT_EQ(bias.layer, p / 2);
      EXPECT_EQ(bias.direction, p % 2);
      EXPECT_EQ(bias.gate, k % 4);
    }
  }
}

TEST(ParamsLayout, HasTheOffsetsOfTheProjectionExample) {
  const ParamsLayout layout(spec_of({"lstm", 1, 3, 2, false, false, 2}));
  EXPECT_EQ(layout.size(), 78);
  EXPECT_EQ(offsets(layout.weights(), 0, 9), (Offsets{0, 6, 12, 18, 24, 30, 36, 42, 48}));
  const ParamRegion& projection = layout.weights()[8];
  EXPECT_EQ(projection.name, "l0_fwd/Wp");
  EXPECT_EQ(projection.shape(), (Shape{2, 3}));
  EXPECT_EQ(projection.slot, 8);
  EXPECT_EQ(offsets(layout.biases(), 0, 8), (Offsets{54, 57, 60, 63, 66, 69, 72, 75}));
}

TEST(ParamsLayout, HasTheOffsetsOfTheSkipExample) {
  const ParamsLayout layout(spec_of({"gru", 1, 3, 3, false, true}));
  EXPECT_EQ(layout.size(), 45);
  ASSERT_EQ(layout.weights().size(), 6u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(layout.weights()[k].shape(), (Shape{3, 0}));
    EXPECT_EQ(layout.weights()[k].offset, 0);
  }
  EXPECT_EQ(offsets(layout.weights(), 3, 3), (Offsets{0, 9, 18}));
  EXPECT_EQ(layout.biases().front().offset, 27);
}

TEST(ParamsLayout, HasNoGapAndNoOverlap) {
  const Network networks[] = {{"lstm", 3, 5, 4, true, false, 2},
                              {"gru", 3, 5, 4, true},
                              {"rnn_tanh", 2, 5, 5, true, true},
                              {"lstm", 1, 1, 1}};
  for (const Network& network : networks) {
    const ParamsLayout layout(spec_of(network));
    std::int64_t next = 0;
    for (const auto regions : {layout.weights(), layout.biases()}) {
      for (const ParamRegion& region : regions) {
        EXPECT_EQ(region.offset, next) << region.name;
        next += region.size();
      }
    }
    EXPECT_EQ(layout.size(), next);
  }
}

// A slot is one region of a layer and direction, whatever the options are.
TEST(ParamsLayout, NoSlotIsThereTwice) {
  std::vector<RnnSpec> specs;
  for (const char* mode : {"lstm", "gru"}) {
    for (const LayerNorm norm :
         {LayerNorm::kNone, LayerNorm::kProducts, LayerNorm::kSplitProducts, LayerNorm::kGates}) {
      RnnSpec spec = spec_of({mode, 2, 5, 4, true});
      spec.layer_norm = norm;
      const bool is_for_lstm = norm == LayerNorm::kGates,
                 is_for_gru = norm == LayerNorm::kSplitProducts;
      if (spec.is_lstm() ? is_for_gru : is_for_lstm) continue;
      spec.use_peepholes = spec.is_lstm();
      if (norm != LayerNorm::kNone && spec.is_lstm()) spec.layer_norm_cell = LayerNormCell::kOutput;
      specs.push_back(spec);
    }
  }
  for (const RnnSpec& spec : specs) {
    const ParamsLayout layout(spec);
    for (const auto regions : {layout.weights(), layout.biases()}) {
      std::set<std::array<std::int64_t, 3>> places;
      for (const ParamRegion& region : regions) {
        EXPECT_TRUE(places.insert({region.layer, region.direction, region.slot}).second)
            << describe(spec) << " " << region.name;
      }
    }
  }
}

TEST(ParamsLayout, FindsARegionByItsPlace) {
  const ParamsLayout layout(spec_of({"lstm", 2, 6, 5, true, false, 4}));
  const ParamRegion& r = layout.weight(1, 1, ParamRole::kRecurrentWeight, 3);
  EXPECT_EQ(r.name, "l1_bwd/R_o");
  EXPECT_EQ(r.slot, 7);
  EXPECT_EQ(r.shape(), (Shape{6, 4}));
  const ParamRegion& w = layout.weight(1, 0, ParamRole::kInputWeight, 2);
  EXPECT_EQ(w.name, "l1_fwd/W_c");
  EXPECT_EQ(w.shape(), (Shape{6, 8}));
  EXPECT_EQ(layout.bias(0, 1, ParamRole::kRecurrentBias, 0).name, "l0_bwd/bR_i");
  EXPECT_EQ(layout.bias(0, 1, ParamRole::kInputBias, 1).shape(), (Shape{6}));
  const auto missing = [](auto call, const std::string& place) {
    expect_error<ArgumentError>(call, "[ParamsLayout] no region at " + place);
  };
  missing([&] { layout.weight(2, 0, ParamRole::kInputWeight, 1); }, "layer 2, direction 0, gate 1");
  missing([&] { layout.weight(0, 1, ParamRole::kInputWeight, 4); }, "layer 0, direction 1, gate 4");
  missing([&] { layout.bias(0, 2, ParamRole::kInputBias, 0); }, "layer 0, direction 2, gate 0");
  missing([&] { layout.bias(0, 1, ParamRole::kPeephole, 3); }, "layer 0, direction 1, gate 3");
}

TEST(ParamsLayout, RefusesABadSpec) {
  expect_error<ArgumentError>(
      [] {
        params_size(spec_of({"lstm", 0, 3, 3}));
      },
      "[RnnSpec] num_layers is 0, expected 1 to 1024");
}

/// "name slot gate RxC" of each region behind the two biases.
std::string behind_biases(const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  std::string text;
  for (const ParamRegion& region : layout.biases()) {
    if (region.is_bias()) continue;
    text += region.name + ' ' + std::to_string(region.slot) + ' ' + std::to_string(region.gate) +
            ' ' + std::to_string(region.rows) + 'x' + std::to_string(region.cols) + '\n';
    EXPECT_EQ(region.shape(), (Shape{spec.num_units})) << region.name;
  }
  return text;
}

TEST(ParamsLayout, HasTheSlotsOfPeepholesAndGains) {
  RnnSpec lstm = spec_of({"lstm", 1, 5, 3});
  lstm.use_peepholes = true;
  const std::string peepholes = "l0_fwd/p_i 9 0 5x1\nl0_fwd/p_f 10 1 5x1\nl0_fwd/p_o 12 3 5x1\n";
  EXPECT_EQ(behind_biases(lstm), peepholes);
  lstm.layer_norm = LayerNorm::kGates;
  lstm.layer_norm_cell = LayerNormCell::kCarried;
  const std::string cell = "l0_fwd/gC 21 0 5x1\nl0_fwd/bC 22 0 5x1\n";
  EXPECT_EQ(behind_biases(lstm),
            peepholes +
                "l0_fwd/g_i 13 0 5x1\nl0_fwd/g_f 14 1 5x1\nl0_fwd/g_c 15 2 5x1\n"
                "l0_fwd/g_o 16 3 5x1\n" +
                cell);
  lstm.use_peepholes = false;
  lstm.layer_norm = LayerNorm::kProducts;
  EXPECT_EQ(behind_biases(lstm),
            "l0_fwd/gW_i 13 0 5x1\nl0_fwd/gW_f 14 1 5x1\nl0_fwd/gW_c 15 2 5x1\n"
            "l0_fwd/gW_o 16 3 5x1\nl0_fwd/gR_i 17 0 5x1\nl0_fwd/gR_f 18 1 5x1\n"
            "l0_fwd/gR_c 19 2 5x1\nl0_fwd/gR_o 20 3 5x1\n" +
                cell);
  RnnSpec gru = spec_of({"gru", 1, 5, 3});
  gru.layer_norm = LayerNorm::kSplitProducts;
  EXPECT_EQ(behind_biases(gru),
            "l0_fwd/gW_r 10 0 5x1\nl0_fwd/gW_z 11 1 5x1\nl0_fwd/gW_n 12 2 5x1\n"
            "l0_fwd/gR_r 13 0 5x1\nl0_fwd/gR_z 14 1 5x1\nl0_fwd/gR_n 15 2 5x1\n");
}

TEST(ParamsSize, IsThatOfTheLayoutWhateverTheOptions) {
  std::vector<RnnSpec> specs;
  for (const Network& network : {Network{"lstm", 3, 5, 4, true, false, 2},
                                 {"lstm", 2, 3, 3},
                                 {"gru", 3, 5, 4, true, false, 2},
                                 {"gru", 2, 5, 5, true, true},
                                 {"rnn_tanh", 2, 5, 7},
                                 {"rnn_relu", 2, 5, 5, false, true}}) {
    RnnSpec spec = spec_of(network);
    specs.push_back(spec);
    spec.single_bias = true;
    specs.push_back(spec);
    spec.single_bias = spec.use_bias = false;
    specs.push_back(spec);
    if (!spec.is_lstm()) continue;
    spec.use_peepholes = true;
    specs.push_back(spec);
    spec.layer_norm = LayerNorm::kGates;
    specs.push_back(spec);
    spec.layer_norm_cell = LayerNormCell::kOutput;
    specs.push_back(spec);
  }
  for (const RnnSpec& spec : specs) {
    EXPECT_EQ(params_size(spec), ParamsLayout(spec).size()) << describe(spec);
  }
}

}  // namespace
}  // namespace openrnn
