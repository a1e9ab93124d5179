// Names, shapes, order and content of the cell format, against the tables written out by hand.
#include <functional>
#include <map>

#include "saveables/support.h"

namespace openrnn {
namespace {

using testing::numbered;
using testing::rnn_spec;

struct Expected {
  const char* name;
  Shape shape;
};

void expect_tensors(const RnnSpec& spec, const std::vector<Expected>& expected) {
  const TfCanonicalFormat format(spec);
  ASSERT_EQ(format.tensors().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(format.tensors()[i].name, expected[i].name) << i;
    EXPECT_EQ(format.tensors()[i].shape, expected[i].shape) << expected[i].name;
  }
}

// The name says that TensorFlow's cell computes the step: of no other network.
TEST(TfCellName, IsThatOfTheBasicCellForItsNetworkAlone) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const double epsilon = dtype == DType::kFloat16 ? 1e-3 : 1e-12;
    const RnnSpec basic{.num_units = 4,
                        .input_size = 4,
                        .dtype = dtype,
                        .layer_norm = LayerNorm::kGates,
                        .layer_norm_cell = LayerNormCell::kCarried,
                        .layer_norm_epsilon = epsilon};
    constexpr std::string_view kName = "layer_norm_basic_lstm_cell";
    EXPECT_EQ(tf_cell_name(basic), kName);
    RnnSpec same = basic;
    same.forget_bias = 1.0;
    EXPECT_EQ(tf_cell_name(same), kName);
    const std::function<void(RnnSpec&)> changes[] = {
        [](RnnSpec& spec) { spec.layer_norm = LayerNorm::kProducts; },
        [](RnnSpec& spec) { spec.layer_norm_cell = LayerNormCell::kOutput; },
        [](RnnSpec& spec) { spec.layer_norm_epsilon = 1e-5; },
        [](RnnSpec& spec) { spec.use_bias = false; },
        [](RnnSpec& spec) { spec.use_peepholes = true; },
        [](RnnSpec& spec) { spec.num_proj = 2; },
        [](RnnSpec& spec) { spec.coupled_gates = true; }};
    for (const auto& change : changes) {
      RnnSpec other = basic;
      change(other);
      EXPECT_NE(tf_cell_name(other), kName) << describe(other);
    }
  }
}

TEST(TfCanonicalFormat, LstmUnidirectional) {
  expect_tensors(rnn_spec(RnnMode::kLstm, 2, 7, 3),
                 {{"rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel", {10, 28}},
                  {"rnn/multi_rnn_cell/cell_1/cudnn_compatible_lstm_cell/kernel", {14, 28}},
                  {"rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/bias", {28}},
                  {"rnn/multi_rnn_cell/cell_1/cudnn_compatible_lstm_cell/bias", {28}}});
}

TEST(TfCanonicalFormat, LstmProjectionFollowsItsKernel) {
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 2, 6, 5);
  spec.num_proj = 4;
  expect_tensors(
      spec, {{"rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel", {9, 24}},
             {"rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/projection/kernel", {6, 4}},
             {"rnn/multi_rnn_cell/cell_1/cudnn_compatible_lstm_cell/kernel", {8, 24}},
             {"rnn/multi_rnn_cell/cell_1/cudnn_compatible_lstm_cell/projection/kernel", {6, 4}},
             {"rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/bias", {24}},
             {"rnn/multi_rnn_cell/cell_1/cudnn_compatible_lstm_cell/bias", {24}}});
}

TEST(TfCanonicalFormat, GruBidirectional) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 4, 3);
  spec.direction = Direction::kBidirectional;
  const std::string at = "stack_bidirectional_rnn/cell_0/bidirectional_rnn/";
  const TfCanonicalFormat format(spec);
  std::vector<std::string> expected;
  for (const char* kind : {"kernel", "bias"}) {
    for (const char* direction : {"fw", "bw"}) {
      for (const char* part :
           {"gates/", "candidate/input_projection/", "candidate/hidden_projection/"}) {
        expected.push_back(at + direction + "/cudnn_compatible_gru_cell/" + part + kind);
      }
    }
  }
  const std::vector<Shape> shapes{{7, 8}, {3, 4}, {4, 4}, {7, 8}, {3, 4}, {4, 4},
                                  {8},    {4},    {4},    {8},    {4},    {4}};
  ASSERT_EQ(format.tensors().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(format.tensors()[i].name, expected[i]);
    EXPECT_EQ(format.tensors()[i].shape, shapes[i]) << expected[i];
  }
}

TEST(TfCanonicalFormat, DeeperBidirectionalLayersReadBothDirections) {
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    RnnSpec spec = rnn_spec(mode, 2, 4, 3);
    spec.direction = Direction::kBidirectional;
    const std::string cell = "bidirectional_rnn/fw/basic_rnn_cell/";
    const TfCanonicalFormat format(spec);
    ASSERT_EQ(format.tensors().size(), 8u);
    EXPECT_EQ(format.tensors()[2].name, "stack_bidirectional_rnn/cell_1/" + cell + "kernel");
    EXPECT_EQ(format.tensors()[2].shape, (Shape{12, 4}));
    EXPECT_EQ(format.tensors()[6].name, "stack_bidirectional_rnn/cell_1/" + cell + "bias");
  }
}

TEST(TfCanonicalFormat, SkipInputLeavesRecurrentRowsAlone) {
  RnnSpec spec = rnn_spec(RnnMode::kGru, 2, 4, 4);
  spec.input_mode = InputMode::kAutoSelect;
  const TfCanonicalFormat format(spec);
  EXPECT_EQ(format.tensors()[0].shape, (Shape{4, 8}));
  EXPECT_EQ(format.tensors()[1].shape, (Shape{0, 4}));
  EXPECT_EQ(format.tensors()[2].shape, (Shape{4, 4}));
  EXPECT_EQ(format.tensors()[3].shape, (Shape{8, 8}));
}

double at(const Array& a, std::int64_t row, std::int64_t col) {
  return element(a.view(), row * a.shape().back() + col);
}

double region_at(const Array& params, const ParamRegion& region, std::int64_t row,
                 std::int64_t col) {
  return element(params.view(), region.offset + row * region.cols + col);
}

// Column blocks i, c, f, o are cuDNN's slots 0, 2, 1, 3; rows are inputs, then hidden units.
TEST(TfCanonicalFormat, LstmBlocks) {
  const RnnSpec spec = rnn_spec(RnnMode::kLstm, 2, 5, 3);
  const ParamsLayout layout(spec);
  const Array params = numbered(spec);
  const std::vector<Array> tensors = TfCanonicalFormat(spec).from_opaque("test", params.view());
  const std::vector<std::int64_t> slots{0, 2, 1, 3};
  for (std::int64_t block = 0; block < 4; ++block) {
    const std::int64_t slot = slots[static_cast<std::size_t>(block)];
    const ParamRegion& input = layout.weights()[static_cast<std::size_t>(8 + slot)];
    const ParamRegion& hidden = layout.weights()[static_cast<std::size_t>(8 + 4 + slot)];
    const ParamRegion& input_bias = layout.biases()[static_cast<std::size_t>(8 + slot)];
    const ParamRegion& hidden_bias = layout.biases()[static_cast<std::size_t>(8 + 4 + slot)];
    for (std::int64_t unit = 0; unit < 5; ++unit) {
      const std::int64_t col = 5 * block + unit;
      for (std::int64_t k = 0; k < 5; ++k) {
        EXPECT_EQ(at(tensors[1], k, col), region_at(params, input, unit, k));
        EXPECT_EQ(at(tensors[1], 5 + k, col), region_at(params, hidden, unit, k));
      }
      EXPECT_EQ(at(tensors[3], 0, col),
                region_at(params, input_bias, unit, 0) + region_at(params, hidden_bias, unit, 0));
    }
  }
}

// TensorFlow's j is the new memory: its gain and bias are `transform`.
TEST(TfCanonicalFormat, ScopesOfNormalizedGates) {
  RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 3, 2);
  spec.layer_norm = LayerNorm::kGates;
  spec.layer_norm_cell = LayerNormCell::kCarried;
  spec.single_bias = true;
  const ParamsLayout layout(spec);
  const TfCanonicalFormat format(spec);
  std::map<std::string, std::int64_t> offsets;
  for (const TfTensor& tensor : format.tensors()) offsets[tensor.suffix] = tensor.parts[0].offset;
  const std::pair<const char*, std::int64_t> scopes[] = {
      {"input/", 0}, {"forget/", 1}, {"transform/", 2}, {"output/", 3}};
  for (const auto& [scope, gate] : scopes) {
    EXPECT_EQ(offsets.at(std::string(scope) + "gamma"),
              layout.bias(0, 0, ParamRole::kSumGain, gate).offset)
        << scope;
    EXPECT_EQ(offsets.at(std::string(scope) + "beta"),
              layout.bias(0, 0, ParamRole::kInputBias, gate).offset)
        << scope;
  }
  EXPECT_EQ(offsets.at("state/gamma"), layout.bias(0, 0, ParamRole::kCellGain, 0).offset);
  EXPECT_EQ(offsets.at("state/beta"), layout.bias(0, 0, ParamRole::kCellBias, 0).offset);
}

// Gates reset | update are slots 0, 1; the candidate keeps its matrices and both biases apart.
TEST(TfCanonicalFormat, GruBlocks) {
  const RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 3, 2);
  const Array params = numbered(spec);
  const std::vector<Array> tensors = TfCanonicalFormat(spec).from_opaque("test", params.view());
  const auto raw = params.as<float>();
  // W_r 0, W_z 6, W_n 12, R_r 18, R_z 27, R_n 36; bW_r 45, .. bW_n 51, bR_r 54, bR_n 60.
  EXPECT_EQ(at(tensors[0], 1, 2), raw[0 + 2 * 2 + 1]);
  EXPECT_EQ(at(tensors[0], 1, 3 + 2), raw[6 + 2 * 2 + 1]);
  EXPECT_EQ(at(tensors[0], 2 + 1, 3 + 2), raw[27 + 2 * 3 + 1]);
  EXPECT_EQ(at(tensors[1], 1, 2), raw[12 + 2 * 2 + 1]);
  EXPECT_EQ(at(tensors[2], 1, 2), raw[36 + 2 * 3 + 1]);
  EXPECT_EQ(at(tensors[3], 0, 3 + 1), raw[48 + 1] + raw[57 + 1]);
  EXPECT_EQ(at(tensors[4], 0, 1), raw[51 + 1]);
  EXPECT_EQ(at(tensors[5], 0, 1), raw[60 + 1]);
}

// One name for each form that a step can have.
TEST(TfCellName, OfEveryForm) {
  EXPECT_EQ(tf_cell_name(RnnMode::kLstm), "cudnn_compatible_lstm_cell");
  EXPECT_EQ(tf_cell_name(RnnMode::kGru), "cudnn_compatible_gru_cell");
  EXPECT_EQ(tf_cell_name(RnnMode::kRnnTanh), "basic_rnn_cell");
  EXPECT_EQ(tf_cell_name(RnnMode::kRnnRelu), "basic_rnn_cell");
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(tf_cell_name(rnn_spec(mode, 1, 3, 2)), tf_cell_name(mode));
  }
  RnnSpec gru = rnn_spec(RnnMode::kGru, 1, 3, 2);
  gru.reset_after = false;
  EXPECT_EQ(tf_cell_name(gru), "gru_cell");
  gru.reset_after = true;
  gru.layer_norm = LayerNorm::kProducts;
  EXPECT_EQ(tf_cell_name(gru), "layer_norm_gru_cell");
  gru.layer_norm = LayerNorm::kSplitProducts;
  EXPECT_EQ(tf_cell_name(gru), "layer_norm_split_gru_cell");
  const std::pair<LayerNormCell, const char*> cells[] = {
      {LayerNormCell::kNone, "layer_norm_lstm_cell"},
      {LayerNormCell::kOutput, "layer_norm_output_lstm_cell"},
      {LayerNormCell::kCarried, "layer_norm_carried_lstm_cell"}};
  for (const LayerNorm norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    for (const auto& [cell, name] : cells) {
      RnnSpec lstm = rnn_spec(RnnMode::kLstm, 1, 3, 2);
      lstm.layer_norm = norm;
      lstm.layer_norm_cell = cell;
      lstm.layer_norm_epsilon = 0.25;
      EXPECT_EQ(tf_cell_name(lstm), name);
    }
  }
}

TEST(TfCellName, Scopes) {
  constexpr Direction kOne = Direction::kUnidirectional, kTwo = Direction::kBidirectional;
  EXPECT_EQ(tf_cell_scope(kOne, 0, 0), "rnn/multi_rnn_cell/cell_0");
  EXPECT_EQ(tf_cell_scope(kOne, 12, 0), "rnn/multi_rnn_cell/cell_12");
  EXPECT_EQ(tf_cell_scope(kTwo, 3, 0), "stack_bidirectional_rnn/cell_3/bidirectional_rnn/fw");
  EXPECT_EQ(tf_cell_scope(kTwo, 3, 1), "stack_bidirectional_rnn/cell_3/bidirectional_rnn/bw");
}

// The networks of two layers in both directions that each option can have.
std::vector<RnnSpec> option_specs() {
  const std::function<void(RnnSpec&)> options[] = {
      [](RnnSpec&) {},
      [](RnnSpec& spec) { spec.single_bias = true; },
      [](RnnSpec& spec) { spec.use_bias = false; },
      [](RnnSpec& spec) { spec.use_peepholes = true; },
      [](RnnSpec& spec) { spec.num_proj = 2; },
      [](RnnSpec& spec) { spec.reset_after = false; },
      [](RnnSpec& spec) { spec.layer_norm = LayerNorm::kProducts; },
      [](RnnSpec& spec) { spec.layer_norm = LayerNorm::kSplitProducts; },
      [](RnnSpec& spec) {
        spec.layer_norm = LayerNorm::kGates;
        spec.layer_norm_cell = LayerNormCell::kCarried;
        spec.single_bias = true;
      },
      [](RnnSpec& spec) {
        spec.layer_norm = LayerNorm::kProducts;
        spec.layer_norm_cell = LayerNormCell::kOutput;
        spec.use_bias = false;
      }};
  std::vector<RnnSpec> specs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const auto& option : options) {
      for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
        RnnSpec spec = rnn_spec(mode, 2, 4, 3);
        spec.direction = direction;
        option(spec);
        if (testing::thrown<ArgumentError>([&] { spec.validate(); }).empty()) specs.push_back(spec);
      }
    }
  }
  return specs;
}

// Each element of the buffer has one place, and each place one element or the sum of two.
TEST(TfCanonicalFormat, EveryElementHasItsPlace) {
  const std::vector<RnnSpec> specs = option_specs();
  EXPECT_EQ(specs.size(), 46U);
  for (const RnnSpec& spec : specs) {
    SCOPED_TRACE(describe(spec));
    const TfCanonicalFormat format(spec);
    std::vector<int> uses(static_cast<std::size_t>(format.opaque_size()));
    for (const TfTensor& tensor : format.tensors()) {
      EXPECT_EQ(tensor.name, tf_cell_scope(spec.direction, tensor.layer, tensor.direction) + "/" +
                                 std::string(tf_cell_name(spec)) + "/" + tensor.suffix);
      std::vector<int> filled(static_cast<std::size_t>(shape_size(tensor.shape)));
      for (const TfPart& part : tensor.parts) {
        for (std::int64_t i = 0; i < part.rows * part.cols; ++i) {
          const std::int64_t row = part.row + i % part.cols, col = part.col + i / part.cols;
          ++filled.at(static_cast<std::size_t>(row * tensor.shape.back() + col));
          ++uses.at(static_cast<std::size_t>(part.offset + i));
          if (part.second_offset >= 0) ++uses.at(static_cast<std::size_t>(part.second_offset + i));
        }
      }
      EXPECT_EQ(filled, std::vector<int>(filled.size(), 1)) << tensor.name;
    }
    EXPECT_EQ(uses, std::vector<int>(uses.size(), 1));
    // Slots that are taken apart and put together are the same.
    const Array params = numbered(spec);
    const std::vector<Array> slots = format.slots_from_opaque("test", params.view());
    EXPECT_TRUE(
        testing::same_bits(params, format.slots_to_opaque("test", "", testing::views(slots))));
  }
}

}  // namespace
}  // namespace openrnn
