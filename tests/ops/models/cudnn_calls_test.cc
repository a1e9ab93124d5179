// Functions and models of cuDNN's four networks against ops::rnn: each option, each refusal.
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

constexpr std::int64_t kLayers = 2, kUnits = 5, kDepth = 3, kTime = 4, kBatch = 2;

RnnSpec network(RnnMode mode, bool both = false, std::int64_t proj = 0) {
  return {.mode = mode,
          .num_layers = kLayers,
          .num_units = kUnits,
          .input_size = kDepth,
          .direction = both ? Direction::kBidirectional : Direction::kUnidirectional,
          .dtype = DType::kFloat64,
          .num_proj = proj,
          .training = {.dropout = 0.5, .seed = 6}};
}

/// x, h, c and params of a call in that layout.
struct Given {
  Tensor x, h, c, params;
  Given(const RnnSpec& spec, bool time_major) {
    const auto three = [&](Shape shape, std::uint64_t seed) {
      if (!time_major) std::swap(shape[0], shape[1]);
      return random_tensor(shape, seed, -0.9, 0.9);
    };
    x = three({kTime, kBatch, kDepth}, 1);
    h = three(spec.h_shape(kBatch), 2);
    if (spec.is_lstm()) c = three(spec.c_shape(kBatch), 3);
    params = random_tensor({params_size(spec)}, 4, -0.9, 0.9);
  }
};

void expect_same(const ops::RnnOutputs& found, const ops::RnnOutputs& wanted) {
  EXPECT_EQ(values_of(found.output), values_of(wanted.output));
  EXPECT_EQ(values_of(found.h), values_of(wanted.h));
  ASSERT_EQ(found.c.empty(), wanted.c.empty());
  EXPECT_EQ(found.h.state_layout(), wanted.h.state_layout());
  if (wanted.c.empty()) return;
  EXPECT_EQ(values_of(found.c), values_of(wanted.c));
  EXPECT_EQ(found.c.state_layout(), wanted.c.state_layout());
}

ops::RnnOutputs by_function(RnnMode mode, const Given& in, const ops::CudnnFunctionOptions& call) {
  switch (mode) {
    case RnnMode::kLstm:
      return ops::cudnn_lstm(in.x, in.h, in.c, in.params, call);
    case RnnMode::kGru:
      return ops::cudnn_gru(in.x, in.h, in.params, call);
    case RnnMode::kRnnTanh:
      return ops::cudnn_rnn_tanh(in.x, in.h, in.params, call);
    default:
      return ops::cudnn_rnn_relu(in.x, in.h, in.params, call);
  }
}

ops::RnnOutputs by_model(const RnnSpec& spec, const Given& in, bool training,
                         const ops::CudnnCallOptions& call) {
  switch (spec.mode) {
    case RnnMode::kLstm:
      return ops::CudnnLSTM(spec)(in.x, in.h, in.c, in.params, training, call);
    case RnnMode::kGru:
      return ops::CudnnGRU(spec)(in.x, in.h, in.params, training, call);
    case RnnMode::kRnnTanh:
      return ops::CudnnRNNTanh(spec)(in.x, in.h, in.params, training, call);
    default:
      return ops::CudnnRNNRelu(spec)(in.x, in.h, in.params, training, call);
  }
}

enum class LengthsAs : std::uint8_t { kNone, kList, kTensor };

void check_call(const RnnSpec& spec, bool time_major, bool training, LengthsAs as) {
  SCOPED_TRACE(::testing::Message()
               << describe(spec) << " " << time_major << training << static_cast<int>(as));
  const Given in(spec, time_major);
  ops::RnnInputs direct{.x = in.x,
                        .h0 = in.h,
                        .c0 = in.c,
                        .params = in.params,
                        .time_major = time_major,
                        .training = training};
  ops::CudnnFunctionOptions function{
      .is_training = training, .network = spec, .time_major = time_major};
  ops::CudnnCallOptions model{.time_major = time_major};
  if (as != LengthsAs::kNone) direct.sequence_lengths = {{3, 2}};
  if (as == LengthsAs::kList) function.sequence_lengths = model.sequence_lengths = {{3, 2}};
  if (as == LengthsAs::kTensor) function.lengths = model.lengths = int_tensor({2}, {3, 2});
  const auto in_graph = [](const auto& run) {
    Graph graph;
    const Graph::AsDefault current(graph);
    graph.set_seed(9);
    return run();
  };
  const ops::RnnOutputs wanted = in_graph([&] {
    direct.dropout = ops::DropoutState(Graph::current().op_seeds(spec.training.seed)).next();
    return ops::rnn(spec, direct, nullptr);
  });
  expect_same(in_graph([&] { return by_function(spec.mode, in, function); }), wanted);
  expect_same(in_graph([&] { return by_model(spec, in, training, model); }), wanted);
}

TEST(CudnnCalls, EachOptionIsThatOfTheCall) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const bool both : {false, true}) {
      for (const bool time_major : {false, true}) {
        for (const LengthsAs as : {LengthsAs::kNone, LengthsAs::kList, LengthsAs::kTensor}) {
          check_call(network(mode, both), time_major, both == time_major, as);
          check_call(network(mode, both), time_major, both != time_major, as);
        }
      }
    }
  }
  check_call(network(RnnMode::kLstm, true, 2), true, true, LengthsAs::kList);
  check_call(network(RnnMode::kLstm, false, 4), false, true, LengthsAs::kNone);
}

// The three arrays of a call, each of another rank or dtype.
TEST(CudnnCalls, EachArrayHasThreeDimensions) {
  const RnnSpec spec = network(RnnMode::kLstm);
  const Given good(spec, true);
  const std::vector<std::pair<std::string, Tensor Given::*>> arrays{{"input_h", &Given::h},
                                                                    {"input_c", &Given::c}};
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 5}, Shape{2, 2, 5, 1}}) {
    const std::string rest = " has shape " + to_string(shape) + ", expected 3 dimensions";
    for (const auto& [name, array] : arrays) {
      Given in = good;
      in.*array = random_tensor(shape, 1);
      EXPECT_EQ(message_of<ArgumentError>([&] { by_function(spec.mode, in, {.network = spec}); }),
                "[cudnn_lstm] " + name + rest);
      EXPECT_EQ(message_of<ArgumentError>([&] { by_model(spec, in, true, {}); }),
                "[CudnnLSTM] " + name + rest);
    }
    Given in = good;
    in.x = random_tensor(shape, 1);
    EXPECT_EQ(message_of<ArgumentError>([&] { by_function(spec.mode, in, {.network = spec}); }),
              "[cudnn_lstm] inputs" + rest);
    EXPECT_EQ(message_of<ArgumentError>([&] { by_model(spec, in, true, {}); }),
              "[CudnnLSTM] input_data" + rest);
  }
  for (const auto& [name, array] : arrays) {
    Given in = good;
    in.*array = Tensor();
    const std::string rest = name + " is empty, expected a floating tensor";
    EXPECT_EQ(message_of<ArgumentError>([&] { by_function(spec.mode, in, {.network = spec}); }),
              "[cudnn_lstm] " + rest);
    EXPECT_EQ(message_of<ArgumentError>([&] { by_model(spec, in, true, {}); }),
              "[CudnnLSTM] " + rest);
  }
}

TEST(CudnnCalls, ErrorsNameTheFunctionAndTheModel) {
  const std::tuple<RnnMode, std::string, std::string> names[] = {
      {RnnMode::kLstm, "cudnn_lstm", "CudnnLSTM"},
      {RnnMode::kGru, "cudnn_gru", "CudnnGRU"},
      {RnnMode::kRnnTanh, "cudnn_rnn_tanh", "CudnnRNNTanh"},
      {RnnMode::kRnnRelu, "cudnn_rnn_relu", "CudnnRNNRelu"}};
  for (const auto& [mode, function, model] : names) {
    const RnnSpec spec = network(mode, true);
    for (const bool time_major : {true, false}) {
      Given in(spec, time_major);
      in.h = random_tensor(time_major ? Shape{3, kBatch, kUnits} : Shape{kBatch, 3, kUnits}, 1);
      EXPECT_EQ(message_of<ArgumentError>([&, m = mode] {
                  by_function(m, in, {.network = spec, .time_major = time_major});
                }),
                "[" + function + "] input_h has shape " + to_string(in.h.shape()) +
                    ", expected a multiple of 2 states");
      const std::string wanted =
          to_string(time_major ? Shape{4, kBatch, kUnits} : Shape{kBatch, 4, kUnits});
      EXPECT_EQ(
          message_of<ArgumentError>([&] { by_model(spec, in, true, {.time_major = time_major}); }),
          "[" + model + "] input_h has shape " + to_string(in.h.shape()) + ", expected " + wanted +
              " for " + describe(spec) + (time_major ? ", time-major" : ", batch-major"));
    }
  }
}

// Each alone on another device, where the model does not look.
TEST(CudnnCalls, EachArrayLiesWhereTheModelIs) {
  RnnSpec spec = network(RnnMode::kLstm);
  spec.compute.device = &test_device(0);
  const Given good(spec, true);
  const std::string text = "[CudnnLSTM] one input lies on " + std::string(test_device(1).name()) +
                           ", expected " + std::string(test_device(0).name()) +
                           ", the device of the model: to() copies a tensor to another";
  for (Tensor Given::*const array : {&Given::x, &Given::h, &Given::c, &Given::params}) {
    Given in = good;
    in.*array = (in.*array).to(test_device(1));
    EXPECT_EQ(message_of<ArgumentError>([&] { by_model(spec, in, true, {}); }), text);
    in.*array = (good.*array).to(test_device(0));
    EXPECT_EQ(&by_model(spec, in, true, {}).output.device(), &test_device(0));
  }
}

TEST(CudnnCalls, CanonicalFormIsTheModels) {
  for (const Device* const device : {static_cast<const Device*>(nullptr), &test_device(1)}) {
    RnnSpec spec = network(RnnMode::kGru, true);
    spec.compute.device = device;
    const ops::CudnnGRU gru(spec);
    const Tensor params = random_tensor({params_size(spec)}, 4);
    EXPECT_EQ(ops::cudnn_rnn_opaque_params_size(spec), gru.params_size());
    EXPECT_EQ(gru.params_size(), params_size(spec));
    const CanonicalParams by_model = gru.params_to_canonical(params),
                          found = ops::cudnn_rnn_opaque_params_to_canonical(spec, params);
    ASSERT_EQ(found.weights.size(), by_model.weights.size());
    ASSERT_EQ(found.biases.size(), by_model.biases.size());
    std::vector<ConstArrayView> weights, biases;
    for (std::size_t i = 0; i < found.weights.size(); ++i) {
      EXPECT_EQ(values_of(Tensor(found.weights[i].view())),
                values_of(Tensor(by_model.weights[i].view())));
      weights.push_back(found.weights[i].view());
    }
    for (const Array& bias : found.biases) biases.push_back(bias.view());
    const Tensor again = ops::cudnn_rnn_canonical_to_opaque_params(spec, weights, biases);
    EXPECT_EQ(values_of(again), values_of(params));
    EXPECT_EQ(values_of(gru.canonical_to_params(weights, biases)), values_of(params));
    EXPECT_EQ(&again.device(), device ? device : &default_device());
    EXPECT_EQ(again.placed(), device != nullptr);
  }
}

// Of the device that the model named when the call was recorded.
TEST(CudnnCalls, ARecordedCallRunsOnTheDeviceOfItsModel) {
  ops::CudnnGRU gru({.num_layers = 1,
                     .num_units = 3,
                     .input_size = 4,
                     .dtype = DType::kFloat64,
                     .compute = {.device = &cpu_device()}});
  const Tensor params = random_tensor({gru.params_size()}, 4);
  const Tensor x = random_tensor({5, 2, 4}, 1), h = random_tensor({1, 2, 3}, 2);
  const Tensor in = Input(x.shape(), x.dtype());
  Model model({in}, {gru(in, h, params).output});
  const Tensor here = Tensor(x.to_host().view(), cpu_device());
  const Tensor out = model({here})[0];
  EXPECT_EQ(&out.device(), &cpu_device());
  EXPECT_EQ(values_of(out), values_of(gru(here, h, params).output));
  EXPECT_EQ(message_of<ArgumentError>([&] { model({x.to(test_device(1))}); }),
            "[CudnnGRU] one input lies on test:1, expected cpu, the device of the model: to() "
            "copies a tensor to another");
}

}  // namespace
}  // namespace openrnn::testing
