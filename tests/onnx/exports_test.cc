// Networks that are exported as ONNX models compute there what they compute here: each mode, depth
// and direction, with lengths and states that are inputs, or constants, or not there.
#include <openrnn/mapping_onnx.h>

#include <cmath>

#include "mapping/networks.h"
#include "onnx/operator_call.h"

namespace openrnn {
namespace {

constexpr std::int64_t kSteps = 4, kBatch = 3;

struct Inputs {
  Array x, lengths, h0, c0;
  bool with_lengths = false, with_states = false;
};

Inputs inputs_of(const RnnSpec& spec) {
  Inputs inputs{.x = values_of(spec.dtype, {kSteps, kBatch, spec.input_size}, 5),
                .lengths = Array::of<std::int32_t>({kBatch}, std::vector<std::int32_t>{4, 1, 3}),
                .h0 = values_of(spec.dtype, spec.h_shape(kBatch), 6),
                .c0 = {}};
  if (spec.is_lstm()) inputs.c0 = values_of(spec.dtype, spec.c_shape(kBatch), 7);
  return inputs;
}

// y, h and c of a session.
std::vector<Array> here(const MappedNetwork& network, const Inputs& inputs) {
  const RnnSpec& spec = network.spec;
  const bool lstm = spec.is_lstm();
  std::vector<Array> out;
  out.emplace_back(spec.dtype, Shape{kSteps, kBatch, spec.output_size()});
  out.emplace_back(spec.dtype, spec.h_shape(kBatch));
  if (lstm) out.emplace_back(spec.dtype, spec.c_shape(kBatch));
  ForwardArgs args;
  args.max_time = kSteps;
  args.batch = kBatch;
  args.x = inputs.x.data();
  if (inputs.with_lengths) args.sequence_lengths = inputs.lengths.as<std::int32_t>().data();
  if (inputs.with_states) args.h0 = inputs.h0.data();
  if (inputs.with_states && lstm) args.c0 = inputs.c0.data();
  args.y = out[0].data();
  args.hn = out[1].data();
  if (lstm) args.cn = out[2].data();
  InferenceSession(std::make_shared<const PackedModel>(spec, network.params.view())).run(args);
  return out;
}

std::vector<Array> there(const MappedNetwork& network, const Inputs& inputs) {
  MappedModel model;
  model.networks = {network};
  const OnnxProgram program(
      onnx_from_networks(model, {.lengths = inputs.with_lengths, .states = inputs.with_states}));
  const std::string prefix = network.name.empty() ? "" : network.name + "/";
  std::map<std::string, ConstArrayView> given{{prefix + "x", inputs.x.view()}};
  if (inputs.with_lengths) given.emplace(prefix + "lengths", inputs.lengths.view());
  if (inputs.with_states) given.emplace(prefix + "h0", inputs.h0.view());
  const bool lstm = network.spec.is_lstm();
  if (inputs.with_states && lstm) given.emplace(prefix + "c0", inputs.c0.view());
  std::map<std::string, Array> found = program.run(given);
  EXPECT_EQ(found.size(), lstm ? 3U : 2U);
  std::vector<Array> out{found.at(prefix + "y"), found.at(prefix + "h")};
  if (lstm) out.push_back(found.at(prefix + "c"));
  return out;
}

void expect_near(const std::vector<Array>& found, const std::vector<Array>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t n = 0; n < found.size(); ++n) {
    ASSERT_EQ(found[n].shape(), expected[n].shape()) << what << " output " << n;
    ASSERT_EQ(found[n].dtype(), expected[n].dtype()) << what;
    for (std::int64_t i = 0; i < found[n].size(); ++i) {
      ASSERT_NEAR(element(found[n].view(), i), element(expected[n].view(), i), 1e-14)
          << what << " output " << n << " at " << i;
    }
  }
}

TEST(OnnxExports, ComputeWhatTheNetworkDoes) {
  for (const RnnMode mode : {RnnMode::kRnnTanh, RnnMode::kRnnRelu, RnnMode::kGru, RnnMode::kLstm}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const std::int64_t layers : {1, 2, 3}) {
        const RnnSpec spec{.mode = mode,
                           .num_layers = layers,
                           .num_units = 3,
                           .input_size = 2,
                           .direction = direction,
                           .dtype = DType::kFloat64};
        const MappedNetwork network = network_of(spec, layers == 2 ? "a/b" : "");
        Inputs inputs = inputs_of(spec);
        for (const bool lengths : {false, true}) {
          for (const bool states : {false, true}) {
            inputs.with_lengths = lengths;
            inputs.with_states = states;
            expect_near(there(network, inputs), here(network, inputs),
                        describe(spec) + (lengths ? " lengths" : "") + (states ? " states" : ""));
          }
        }
      }
    }
  }
}

// Rows of the state as constants, repeated for each row of the batch; as inputs they give way.
TEST(OnnxExports, BeginWithTheStatesOfTheNetwork) {
  for (const RnnMode mode : {RnnMode::kGru, RnnMode::kLstm}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      const RnnSpec spec{.mode = mode,
                         .num_layers = 2,
                         .num_units = 3,
                         .input_size = 2,
                         .direction = direction,
                         .dtype = DType::kFloat64};
      MappedNetwork network = network_of(spec);
      const std::int64_t rows = spec.num_pseudo_layers();
      const auto repeated = [&](const Array& row) {
        Array all(spec.dtype, spec.h_shape(kBatch));
        for (std::int64_t i = 0; i < all.size(); ++i) {
          all.as<double>()[static_cast<std::size_t>(i)] =
              element(row.view(), i / (3 * kBatch) * 3 + i % 3);
        }
        return all;
      };
      network.initial_h = values_of(spec.dtype, {rows, 3}, 8);
      if (spec.is_lstm()) network.initial_c = values_of(spec.dtype, {rows, 3}, 9);
      Inputs inputs = inputs_of(spec), begun = inputs;
      begun.with_states = true;
      begun.h0 = repeated(*network.initial_h);
      if (spec.is_lstm()) begun.c0 = repeated(*network.initial_c);
      expect_near(there(network, inputs), here(network, begun), describe(spec));
      inputs.with_states = true;
      expect_near(there(network, inputs), here(network, inputs), describe(spec));
      // One of the two alone: the other begins with zeros.
      if (!spec.is_lstm()) continue;
      network.initial_h.reset();
      inputs.with_states = false;
      begun.h0 = Array(spec.dtype, spec.h_shape(kBatch));
      expect_near(there(network, inputs), here(network, begun), "c alone");
    }
  }
}

TEST(OnnxExports, HoldEveryOption) {
  std::vector<RnnSpec> specs;
  const auto add = [&](RnnMode mode, const auto& change) {
    specs.push_back({.mode = mode,
                     .num_layers = 2,
                     .num_units = 3,
                     .input_size = 2,
                     .direction = Direction::kBidirectional,
                     .dtype = DType::kFloat64});
    change(specs.back());
  };
  const auto activation = [](const char* text) { return parse_cell_activation(text); };
  add(RnnMode::kLstm, [&](RnnSpec& spec) {
    spec.activation = activation("scaled_tanh(1.5, 0.5)");
    spec.recurrent_activation = activation("hard_sigmoid(0.25, 0.375)");
    spec.output_activation = activation("elu(0.25)");
  });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.use_peepholes = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.coupled_gates = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.gate_clip = {-0.125, 0.125}; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.use_bias = false; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.single_bias = true; });
  add(RnnMode::kLstm, [](RnnSpec& spec) { spec.forget_bias = 0.75; });
  add(RnnMode::kGru, [](RnnSpec& spec) { spec.reset_after = false; });
  add(RnnMode::kGru, [&](RnnSpec& spec) { spec.activation = activation("affine(0.5, 0.25)"); });
  add(RnnMode::kGru, [](RnnSpec& spec) {
    spec.input_size = 3;
    spec.input_mode = InputMode::kSkipInput;
  });
  for (const char* text : {"leaky_relu(0.25)", "thresholded_relu(0.125)", "softplus", "softsign",
                           "sigmoid", "affine(0.25, 0.5)"}) {
    add(RnnMode::kRnnTanh, [&](RnnSpec& spec) { spec.activation = activation(text); });
  }
  for (const RnnSpec& spec : specs) {
    const MappedNetwork network = network_of(spec, "n");
    Inputs inputs = inputs_of(spec);
    inputs.with_lengths = inputs.with_states = true;
    expect_near(there(network, inputs), here(network, inputs), describe(spec));
  }
}

}  // namespace
}  // namespace openrnn
