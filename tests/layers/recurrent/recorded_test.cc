// Options of a recurrent layer's call: each goes to the operation, is recorded, and is refused.
#include "cells/support.h"
#include "openrnn/layers.h"
#include "ops/check_gradient.h"

namespace openrnn {
namespace {

using layers::CudnnRnn;
using layers::RnnCallOptions;
using layers::RnnResult;
using testing::int_tensor;
using testing::same;
using testing::thrown;
using testing::varied;

constexpr std::int64_t kTime = 4, kBatch = 3, kDepth = 5, kUnits = 6;

class Recorded : public ::testing::Test {
 protected:
  static RnnSpec network(RnnMode mode) {
    return {.mode = mode,
            .num_layers = 2,
            .num_units = kUnits,
            .direction = Direction::kBidirectional,
            .num_proj = mode == RnnMode::kLstm ? 2 : 0,
            .training = {.dropout = 0.5, .seed = 3}};
  }
  static std::shared_ptr<CudnnRnn> layer_of(RnnMode mode) {
    std::shared_ptr<CudnnRnn> layer = layers::make_cudnn_rnn({.network = network(mode)});
    layer->build({-1, -1, kDepth});
    return layer;
  }
  static Shape three(bool time_major, std::int64_t first, std::int64_t width) {
    return time_major ? Shape{first, kBatch, width} : Shape{kBatch, first, width};
  }
  static std::vector<Tensor> states(const CudnnRnn& layer, bool time_major) {
    std::vector<Tensor> all;
    for (Shape shape : layer.state_shape(kBatch)) {
      if (!time_major) std::swap(shape[0], shape[1]);
      all.push_back(varied(shape, 7 + all.size()));
    }
    return all;
  }

  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

void expect_same(const std::vector<Tensor>& found, const RnnResult& wanted) {
  ASSERT_EQ(found.size(), wanted.state.size() + 1);
  EXPECT_TRUE(same(found[0], wanted.output));
  for (std::size_t i = 0; i < wanted.state.size(); ++i) {
    EXPECT_TRUE(same(found[i + 1], wanted.state[i])) << i;
  }
}

TEST_F(Recorded, AReplayIsTheCallWithItsOptions) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    const auto layer = layer_of(mode);
    for (const bool time_major : {true, false}) {
      for (const bool training : {true, false}) {
        for (const bool lengths : {true, false}) {
          for (const bool begun : {true, false}) {
            SCOPED_TRACE(::testing::Message() << time_major << training << lengths << begun);
            RnnCallOptions call{.time_major = time_major, .training = training};
            if (lengths) call.sequence_lengths = {{4, 0, 2}};
            const Tensor x = varied(three(time_major, kTime, kDepth));
            const std::vector<Tensor> given =
                begun ? states(*layer, time_major) : std::vector<Tensor>{};
            std::vector<Tensor> inputs{Input(x.shape())}, values{x};
            for (const Tensor& state : given) {
              inputs.push_back(Input(state.shape()));
              values.push_back(state);
            }
            const RnnResult made = (*layer)(inputs[0], {inputs.begin() + 1, inputs.end()}, call);
            std::vector<Tensor> outputs{made.output};
            outputs.insert(outputs.end(), made.state.begin(), made.state.end());
            Model model(inputs, outputs);
            layer->set_dropout_calls(5);
            const std::vector<Tensor> found = model(values);
            EXPECT_EQ(layer->dropout_calls(), training ? 6U : 5U);
            layer->set_dropout_calls(5);
            expect_same(found, (*layer)(x, given, call));
          }
        }
      }
    }
  }
}

// The operation with the same arguments gives the same.
TEST_F(Recorded, ACallIsItsOperation) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    const auto layer = layer_of(mode);
    for (const bool time_major : {true, false}) {
      SCOPED_TRACE(time_major);
      const std::vector<Tensor> given = states(*layer, time_major);
      std::vector<bool> mask(kTime * kBatch, true), reset(kTime * kBatch, false);
      mask[1] = mask[5] = false;
      reset[4] = true;
      ops::RnnInputs in{.x = varied(three(time_major, kTime, kDepth)),
                        .h0 = given[0],
                        .params = layer->kernel().read(),
                        .time_major = time_major,
                        .training = true};
      if (given.size() > 1) in.c0 = given[1];
      in.sequence_lengths = {{3, 4, 1}};
      in.flags = {.mask = mask, .reset = reset};
      in.every = true;
      in.dropout = layer->dropout_state().next();
      layer->set_dropout_calls(0);
      const ops::RnnOutputs wanted = ops::rnn(layer->spec(), in, nullptr);
      const RnnResult found = (*layer)(in.x, given,
                                       {.sequence_lengths = in.sequence_lengths,
                                        .flags = in.flags,
                                        .time_major = time_major,
                                        .every = true});
      EXPECT_TRUE(same(found.output, wanted.output));
      EXPECT_TRUE(same(found.state[0], wanted.h));
      if (mode == RnnMode::kLstm) {
        EXPECT_TRUE(same(found.state.at(1), wanted.c));
      }
      ASSERT_EQ(found.layer_outputs.size(), 2U);
      ASSERT_EQ(found.layer_cells.size(), wanted.layer_cells.size());
      for (std::size_t l = 0; l < 2; ++l) {
        EXPECT_TRUE(same(found.layer_outputs[l], wanted.layer_outputs[l]));
        if (mode != RnnMode::kLstm) continue;
        EXPECT_TRUE(same(found.layer_cells[l], wanted.layer_cells[l]));
      }
      layer->set_dropout_calls(0);
    }
  }
}

// Lengths as a list, a tensor and an input of a model.
TEST_F(Recorded, LengthsInEveryForm) {
  const auto layer = layer_of(RnnMode::kGru);
  for (const bool time_major : {true, false}) {
    const Tensor x = varied(three(time_major, kTime, kDepth)), in = Input(x.shape());
    const std::vector<std::int32_t> list{2, 4, 0};
    const RnnCallOptions by_list{
        .sequence_lengths = list, .time_major = time_major, .training = false};
    const RnnCallOptions by_tensor{
        .lengths = int_tensor({kBatch}, list), .time_major = time_major, .training = false};
    const RnnResult wanted = (*layer)(x, {}, by_list);
    expect_same({(*layer)(x, {}, by_tensor).output, (*layer)(x, {}, by_tensor).state[0]}, wanted);
    const RnnResult recorded = (*layer)(in, {}, by_tensor);
    expect_same(Model({in}, {recorded.output, recorded.state[0]})({x}), wanted);
    const Tensor lengths = Input({kBatch}, DType::kInt32);
    const RnnResult open =
        (*layer)(in, {}, {.lengths = lengths, .time_major = time_major, .training = false});
    Model model({in, lengths}, {open.output, open.state[0]});
    expect_same(model({x, int_tensor({kBatch}, list)}), wanted);
    EXPECT_EQ(thrown<ArgumentError>([&] {
                model({x, int_tensor({kBatch}, {2, 5, 0})});
              }),
              "[cudnn_gru] sequence_lengths[1] is 5, expected 0 to 4");
  }
}

// Each state of each layout, on values and recorded.
TEST_F(Recorded, StatesThatDoNotFit) {
  for (const bool time_major : {true, false}) {
    const auto lstm = layer_of(RnnMode::kLstm);
    const std::string at = "[" + lstm->name() + "] initial_state[";
    const std::string rest = time_major ? ", time-major" : ", batch-major";
    const Tensor x = varied(three(time_major, kTime, kDepth)), in = Input(x.shape());
    const std::vector<Tensor> good = states(*lstm, time_major);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string which = std::to_string(i) + "] (" + (i == 0 ? "h" : "c") + ")";
      const Shape right = good[i].shape();
      for (const Shape& shape : {Shape{3, 4, right[2] + 1}, Shape{5, 5, right[2]}, Shape{4, 3},
                                 Shape{right[0], right[1], right[2], 1}}) {
        std::vector<Tensor> given = good;
        given[i] = varied(shape);
        const std::string expected =
            at + which + " has shape " + to_string(shape) + ", expected " + to_string(right) + rest;
        for (const Tensor& from : {x, in}) {
          EXPECT_EQ(
              thrown<ArgumentError>([&] { (*lstm)(from, given, {.time_major = time_major}); }),
              expected);
        }
      }
      std::vector<Tensor> wide = good;
      wide[i] = ops::cast(good[i], DType::kFloat64);
      EXPECT_EQ(thrown<ArgumentError>([&] { (*lstm)(x, wide, {.time_major = time_major}); }),
                at + which + " is float64, expected float32");
    }
  }
}

TEST_F(Recorded, FlagsOfAnotherSize) {
  const auto layer = layer_of(RnnMode::kGru);
  for (const bool time_major : {true, false}) {
    const Tensor x = varied(three(time_major, kTime, kDepth));
    const std::string rest = " has 5 elements, expected one a step: 4 times 3";
    EXPECT_EQ(thrown<ArgumentError>([&] {
                (*layer)(x, {},
                         {.flags = {.mask = std::vector<bool>(5)}, .time_major = time_major});
              }),
              "[cudnn_gru] mask" + rest);
    EXPECT_EQ(thrown<ArgumentError>([&] {
                (*layer)(x, {},
                         {.flags = {.reset = std::vector<bool>(5)}, .time_major = time_major});
              }),
              "[cudnn_gru] reset" + rest);
  }
  EXPECT_EQ(layer->dropout_calls(), 0U);
}

// A loss of each result of a call: the output, then the states.
TEST_F(Recorded, EachResultIsRegularized) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kRnnRelu}) {
    std::shared_ptr<CudnnRnn> layer = layers::make_cudnn_rnn(
        {.network = {.mode = mode, .num_units = 3},
         .activity_regularizer = [](const Tensor& y) { return ops::l2_regularization(y, 2.0); }});
    const Tensor x = varied({kTime, kBatch, kDepth});
    const RnnResult out = (*layer)(x);
    std::vector<Tensor> results{out.output};
    results.insert(results.end(), out.state.begin(), out.state.end());
    ASSERT_EQ(layer->losses().size(), mode == RnnMode::kLstm ? 3U : 2U);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(layer->losses()[i].item(), ops::l2_regularization(results[i], 2.0).item());
    }
  }
}

// The layout of a state is known before there are values.
TEST_F(Recorded, ShapesAndLayoutsOfARecordedCall) {
  for (const bool time_major : {true, false}) {
    const auto layer = layer_of(RnnMode::kLstm);
    const RnnResult made = (*layer)(Input(time_major ? Shape{-1, 3, kDepth} : Shape{3, -1, kDepth}),
                                    {}, {.time_major = time_major});
    const StateLayout layout = time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
    EXPECT_EQ(made.output.shape(), time_major ? (Shape{-1, 3, 4}) : (Shape{3, -1, 4}));
    EXPECT_EQ(made.state[0].shape(), three(time_major, 4, 2));
    EXPECT_EQ(made.state[1].shape(), three(time_major, 4, kUnits));
    EXPECT_EQ(made.state[0].state_layout(), layout);
    EXPECT_EQ(made.state[1].state_layout(), layout);
    EXPECT_TRUE(made.layer_outputs.empty() && made.layer_cells.empty());
  }
}

}  // namespace
}  // namespace openrnn
