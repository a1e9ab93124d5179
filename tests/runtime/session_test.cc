#include <gtest/gtest.h>

#include <cmath>

#include "openrnn/runtime.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

RnnSpec small() {
  RnnSpec spec;
  spec.mode = RnnMode::kRnnTanh;
  spec.num_units = spec.input_size = 1;
  return spec;
}

// W, R, bW, bR.
const std::vector<float> kParams{0.5f, -0.6f, 0.01f, 0.2f};

std::shared_ptr<PackedModel> small_model() {
  return std::make_shared<PackedModel>(small(),
                                       ConstArrayView{kParams.data(), DType::kFloat32, {4}});
}

TEST(PackedModel, ChecksItsParameters) {
  EXPECT_EQ(small_model()->spec(), small());
  EXPECT_EQ(&small_model()->engine(), &choose_engine(small()));
  expect_error<ArgumentError>(
      [] {
        PackedModel(small(), {kParams.data(), DType::kFloat32, {3}});
      },
      "[PackedModel] params has 3 elements, expected 4 for rnn_tanh, 1 layer, 1 units, input size "
      "1, unidirectional, float32");
  // A deeper network's first layer is not this network.
  expect_error<ArgumentError>(
      [] {
        const std::vector<float> longer(8);
        PackedModel(small(), {longer.data(), DType::kFloat32, {8}});
      },
      "[PackedModel] params has 8 elements, expected 4 for rnn_tanh, 1 layer, 1 units, input size "
      "1, unidirectional, float32");
  expect_error<ArgumentError>(
      [] {
        PackedModel(small(), {nullptr, DType::kFloat32, {4}});
      },
      "[PackedModel] params is null, expected 4 elements");
  expect_error<ArgumentError>(
      [] {
        PackedModel(small(), {kParams.data(), DType::kFloat32, {2, 2}});
      },
      "[PackedModel] params has shape [2, 2], expected 1 dimension of 4");
  expect_error<ArgumentError>(
      [] {
        PackedModel(small(), {kParams.data(), DType::kFloat64, {4}});
      },
      "[PackedModel] params is float64, expected float32");
  RnnSpec wrong = small();
  wrong.training.dropout = 2.0;
  EXPECT_THROW(PackedModel(wrong, {kParams.data(), DType::kFloat32, {4}}), ArgumentError);
}

// The op level takes longer buffers, as TensorFlow does.
TEST(Engines, PackLongerParametersAndRefuseNullOnes) {
  const std::vector<float> longer{0.5f, -0.6f, 0.01f, 0.2f, 7.0f};
  for (const char* name : {"cpu", "reference"}) {
    engine(name).pack(small(), {longer.data(), DType::kFloat32, {5}}, PackFor::kInference);
    expect_error<ArgumentError>(
        [&] {
          engine(name).pack(small(), {nullptr, DType::kFloat32, {4}}, PackFor::kInference);
        },
        "[pack] params is null, expected 4 elements");
  }
}

TEST(InferenceSession, KeepsAStreamsStateInOnePlace) {
  InferenceSession session(small_model());
  session.prepare(1, 1);
  float h = 0.25f;
  double expected = 0.25;
  for (int step = 0; step < 5; ++step) {
    const float x = 0.3f * static_cast<float>(step) - 0.5f;
    float y = 0.0f;
    ForwardArgs args;
    args.max_time = args.batch = 1;
    args.x = &x;
    args.y = &y;
    args.h0 = args.hn = &h;
    session.run(args);
    expected = std::tanh(0.5 * static_cast<double>(x) - 0.6 * expected + 0.21);
    EXPECT_NEAR(y, expected, 1e-6);
    EXPECT_EQ(y, h);
  }
}

TEST(InferenceSession, RefusesWrongCalls) {
  expect_error<ArgumentError>([] { InferenceSession session(nullptr); },
                              "[InferenceSession] model is null, expected a PackedModel");
  InferenceSession session(small_model());
  expect_error<ArgumentError>([&] { session.prepare(-1, 3); },
                              "[prepare] max_batch is -1 and max_time 3, expected 0 or more");
  expect_error<ArgumentError>([&] { session.prepare(3, -1); },
                              "[prepare] max_batch is 3 and max_time -1, expected 0 or more");
  expect_error<ArgumentError>([] { InferenceSession(small_model(), {.max_threads = -1}); },
                              "[InferenceSession] max_threads is -1, expected 0 or more");
  expect_error<ArgumentError>(
      [] {
        PackedModel(small(), {kParams.data(), DType::kFloat32, {4}}, {.max_threads = -2});
      },
      "[PackedModel] max_threads is -2, expected 0 or more");
  ForwardArgs args;
  args.max_time = args.batch = 1;
  expect_error<ArgumentError>([&] { session.run(args); }, "[run] x is null, expected 1 elements");
  args.max_threads = -1;
  expect_error<ArgumentError>([&] { session.run(args); },
                              "[run] max_threads is -1, expected 0 or more");
  args.max_threads = 0;
  args.training = true;
  expect_error<ArgumentError>([&] { session.run(args); },
                              "[run] training is true, expected inference");
  args.training = false;
  float x = 0, y = 0;
  void* const cells[] = {&y};
  args.x = &x;
  args.y = &y;
  args.layer_cells = cells;
  expect_error<ArgumentError>([&] { session.run(args); },
                              "[run] layer_cells is given, expected null for rnn_tanh");
  args.layer_cells = nullptr;
  args.batch = 0;
  session.run(args);  // nothing to do is no error
}

}  // namespace
}  // namespace openrnn
