// Dropout of inputs and outputs and DropConnect: what is masked, how often, and its gradient.
#include <set>

#include "openrnn/runtime.h"
#include "ops/rnn_call.h"
#include "support/expect_error.h"

namespace openrnn::testing {
namespace {

RnnCall make_call(RnnMode mode, const TrainingOptions& training) {
  RnnCall call{small_spec(mode), {}};
  call.spec.training = training;
  call.inputs.x = random_tensor({5, 3, call.spec.input_size}, 1, 0.1, 0.9);
  call.inputs.params = random_tensor({params_size(call.spec) + 3}, 4, 0.1, 0.8);
  call.inputs.dropout = {.seed = 9, .call = 2};
  return call;
}

TEST(MasksAround, OfInputsAreThoseOfDropout) {
  RnnCall call = make_call(RnnMode::kGru, {.input_dropout = 0.5});
  GradientTape tape;
  call.inputs.x = tape.watch(call.inputs.x);
  const Tensor sum = ops::reduce_sum(call().output);
  tape.close();
  // Only where an input was kept has it a gradient.
  const std::vector<double> dx = values_of(tape.gradient(sum, {call.inputs.x})[0]);
  const auto kept = std::count_if(dx.begin(), dx.end(), [](double d) { return d != 0.0; });
  EXPECT_GT(kept, static_cast<std::ptrdiff_t>(dx.size() / 5));
  EXPECT_LT(kept, static_cast<std::ptrdiff_t>(dx.size() * 4 / 5));
  call.spec.training.input_dropout = 1.0;
  RnnCall without = call;
  without.spec.training = {};
  without.inputs.x = ops::scale(call.inputs.x, 0.0);
  EXPECT_EQ(values_of(call().output), values_of(without().output));
}

TEST(MasksAround, OfOutputsLeaveStates) {
  const RnnCall call = make_call(RnnMode::kLstm, {.output_dropout = 0.5});
  RnnCall without = call;
  without.spec.training = {};
  const std::vector<double> y = values_of(call().output), all = values_of(without().output);
  std::ptrdiff_t dropped = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] == 0.0) {
      ++dropped;
    } else {
      EXPECT_EQ(y[i], 2.0 * all[i]) << i;
    }
  }
  EXPECT_GT(dropped, static_cast<std::ptrdiff_t>(y.size() / 5));
  EXPECT_LT(dropped, static_cast<std::ptrdiff_t>(y.size() * 4 / 5));
  EXPECT_EQ(values_of(call().h), values_of(without().h));
  EXPECT_EQ(values_of(call().c), values_of(without().c));
}

TEST(MasksAround, OfWeightsAreTheRecurrentOnesAlone) {
  RnnCall call = make_call(RnnMode::kRnnTanh, {.drop_connect = 0.25});
  GradientTape tape;
  call.inputs.params = tape.watch(call.inputs.params);
  const Tensor sum = ops::reduce_sum(call().output);
  tape.close();
  const std::vector<double> d = values_of(tape.gradient(sum, {call.inputs.params})[0]);
  const ParamsLayout layout(call.spec);
  std::ptrdiff_t dropped = 0, all = 0;
  for (const auto regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      for (std::int64_t i = 0; i < region.size(); ++i) {
        const bool none = d[static_cast<std::size_t>(region.offset + i)] == 0.0;
        if (region.role != ParamRole::kRecurrentWeight) {
          EXPECT_FALSE(none) << region.name << " " << i;
        } else {
          dropped += none;
          ++all;
        }
      }
    }
  }
  EXPECT_GT(dropped, all / 10);
  EXPECT_LT(dropped, all / 2);
  // A mask of all recurrent weights: the state before has no effect.
  call.spec.training.drop_connect = 1.0;
  RnnCall started = call;
  started.inputs.h0 = random_tensor(call.spec.h_shape(3), 7);
  EXPECT_EQ(values_of(call().output), values_of(started().output));
}

// Each gate, layer and direction has a mask of its own.
TEST(MasksAround, OfWeightsDifferFromMatrixToMatrix) {
  for (const RnnMode mode : kModes) {
    RnnCall call = make_call(mode, {.drop_connect = 0.5});
    call.spec.num_units = 6;
    call.inputs.params = random_tensor({params_size(call.spec)}, 4, 0.1, 0.3);
    GradientTape tape;
    call.inputs.params = tape.watch(call.inputs.params);
    const Tensor sum = ops::reduce_sum(call().output);
    tape.close();
    const std::vector<double> d = values_of(tape.gradient(sum, {call.inputs.params})[0]);
    const ParamsLayout layout(call.spec);
    std::set<std::vector<bool>> masks;
    std::size_t matrices = 0;
    for (const ParamRegion& region : layout.weights()) {
      if (region.role != ParamRole::kRecurrentWeight) continue;
      ++matrices;
      std::vector<bool> kept;
      for (std::int64_t i = 0; i < region.size(); ++i) {
        kept.push_back(d[static_cast<std::size_t>(region.offset + i)] != 0.0);
      }
      masks.insert(kept);
    }
    EXPECT_EQ(matrices, static_cast<std::size_t>(4 * call.spec.num_gates()));
    EXPECT_EQ(masks.size(), matrices) << to_string(mode);
  }
}

TEST(MasksAround, HaveGradientsAndChangeWithTheCall) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    const RnnCall call = make_call(
        mode,
        {.dropout = 0.25, .input_dropout = 0.25, .output_dropout = 0.5, .drop_connect = 0.375});
    check_gradient(call, call.sources());
    std::set<std::vector<double>> seen;
    for (const std::uint64_t number : {0, 1, 2}) {
      RnnCall other = call;
      other.inputs.dropout.call = number;
      seen.insert(values_of(other().output));
    }
    EXPECT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen.count(values_of(call().output)), 1u);
  }
}

// Each by itself: among several, another's change would hide one that stays.
TEST(MasksAround, OfEachKindChangeWithTheCallAndTheSeed) {
  for (const TrainingOptions& training :
       {TrainingOptions{.dropout = 0.5}, TrainingOptions{.input_dropout = 0.5},
        TrainingOptions{.output_dropout = 0.5}, TrainingOptions{.drop_connect = 0.5},
        TrainingOptions{.recurrent_dropout = 0.5}}) {
    const RnnCall call = make_call(RnnMode::kLstm, training);
    std::set<std::vector<double>> seen;
    for (const DropoutKey key :
         {DropoutKey{.seed = 9, .call = 2}, DropoutKey{.seed = 9, .call = 3},
          DropoutKey{.seed = 9, .call = 0}, DropoutKey{.seed = 10, .call = 2},
          DropoutKey{.seed = 9, .call = std::uint64_t{1} << 40U}}) {
      RnnCall other = call;
      other.inputs.dropout = key;
      seen.insert(values_of(other().output));
      EXPECT_EQ(seen.count(values_of(other().output)), 1U) << "the same key, the same masks";
    }
    EXPECT_EQ(seen.size(), 5U) << describe(call.spec);
  }
}

TEST(MasksAround, AreOfTrainingAlone) {
  RnnCall call = make_call(RnnMode::kGru, {.input_dropout = 0.5, .drop_connect = 0.5});
  call.inputs.training = false;
  RnnCall without = call;
  without.spec.training = {};
  EXPECT_EQ(values_of(call().output), values_of(without().output));
  without.inputs.training = true;
  EXPECT_EQ(values_of(call().output), values_of(without().output));
}

TEST(MasksAround, AreNotOfTheEngines) {
  const RnnSpec spec{.num_units = 4, .input_size = 3, .training = {.drop_connect = 0.5}};
  const Array params(DType::kFloat32, {params_size(spec)});
  std::vector<float> x(6), y(8);
  for (const char* name : {"cpu", "reference"}) {
    ForwardArgs args;
    args.params = engine(name).pack(spec, params.view(), PackFor::kTraining);
    args.max_time = 1;
    args.batch = 2;
    args.x = x.data();
    args.y = y.data();
    engine(name).forward(args);
    args.training = true;
    try {
      engine(name).forward_saving(args);
      ADD_FAILURE() << name;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find("operations apply those"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
