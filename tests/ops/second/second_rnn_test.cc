#include "openrnn/graph_jvp.h"
#include "ops/rnn_call.h"
#include "ops/second/second_order.h"

namespace openrnn::testing {
namespace {

RnnCall make_call(const RnnSpec& spec, bool time_major = true, Sizes size = {3, 2}) {
  RnnCall call = rnn_call(spec, time_major, size);
  call.inputs.dropout = {.seed = 5, .call = 2};
  return call;
}

RnnSpec one_layer(RnnMode mode) {
  RnnSpec spec = small_spec(mode);
  spec.num_layers = 1;
  spec.num_units = 2;
  spec.input_size = 2;
  spec.direction = Direction::kUnidirectional;
  spec.training = {};
  return spec;
}

// What the engine of the default device cannot run at all has no gradient there either.
bool runs(const RnnSpec& spec) {
  const Engine* const engine = default_device().engine();
  return !engine || engine->unsupported(spec).empty();
}

void check(const RnnCall& call) {
  if (runs(call.spec)) check_second(call, call.sources(), 2e-5);
}

TEST(SecondRnn, MasksInsideOfStepsAndZoneout) {
  for (const RnnMode mode : kModes) {
    for (const auto form : {RecurrentDropoutForm::kState, RecurrentDropoutForm::kCandidate}) {
      RnnSpec spec = one_layer(mode);
      spec.training = {.recurrent_dropout = 0.375, .recurrent_dropout_form = form};
      spec.zoneout = 0.25;
      if (spec.has_cell()) spec.zoneout_cell = 0.375;
      spec.reset_after = mode != RnnMode::kGru || form == RecurrentDropoutForm::kState;
      SCOPED_TRACE(describe(spec));
      RnnCall call = make_call(spec);
      check(call);
      call.inputs.training = false;
      call.inputs.save = true;
      check(call);
    }
  }
}

TEST(SecondRnn, ProjectedGru) {
  RnnSpec spec = one_layer(RnnMode::kGru);
  spec.num_units = 3;
  spec.num_proj = 2;
  check(make_call(spec));
}

TEST(SecondRnn, EveryModeDirectionInputModeAndLayout) {
  for (const RnnMode mode : kModes) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const InputMode input : {InputMode::kLinearInput, InputMode::kSkipInput}) {
        SCOPED_TRACE(::testing::Message() << to_string(mode) << int(direction) << int(input));
        RnnSpec spec = one_layer(mode);
        spec.direction = direction;
        spec.input_mode = input;
        check(make_call(spec, direction == Direction::kUnidirectional));
      }
    }
  }
}

TEST(SecondRnn, LayersWithDropoutAndLengths) {
  for (const RnnMode mode : kModes) {
    for (const bool time_major : {false, true}) {
      SCOPED_TRACE(to_string(mode));
      RnnSpec spec = one_layer(mode);
      spec.num_layers = 2;
      spec.training.dropout = 0.5;
      spec.direction = Direction::kBidirectional;
      RnnCall call = make_call(spec, time_major, {.time = 3, .batch = 3});
      call.inputs.sequence_lengths = {{3, 0, 2}};
      check(call);
      call.inputs.training = false;
      call.inputs.save = true;
      check(call);
    }
  }
}

TEST(SecondRnn, OddSizesAndNoStates) {
  for (const RnnMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    RnnSpec spec = one_layer(mode);
    spec.num_units = 1;
    spec.input_size = 3;
    RnnCall call = make_call(spec, true, {.time = 1, .batch = 1});
    call.inputs.h0 = call.inputs.c0 = Tensor();
    check(call);
    spec.num_units = 3;
    check(make_call(spec, false, {.time = 5, .batch = 1}));
  }
}

TEST(SecondRnn, NoStepsOrNoRows) {
  for (const RnnMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    check(make_call(one_layer(mode), true, {.time = 0, .batch = 2}));
    const RnnCall call = make_call(one_layer(mode), true, {.time = 2, .batch = 0});
    const Tensors at = call.sources();
    const auto loss = [&](const Tensors& in) {
      return ops::add(ops::reduce_sum(call(in)[0]), ops::reduce_sum(ops::square(in[1])));
    };
    EXPECT_EQ(values_of(hvp(loss, at, at)[1]), values_of(ops::scale(at[1], 2.0)));
  }
}

TEST(SecondRnn, OptionsOfTheLstm) {
  const auto with = [](const std::function<void(RnnSpec&)>& set, bool both = true) {
    RnnSpec spec = one_layer(RnnMode::kLstm);
    if (both) spec.direction = Direction::kBidirectional;
    set(spec);
    RnnCall call = make_call(spec);
    call.inputs.sequence_lengths = {{3, 2}};
    check(call);
  };
  with([](RnnSpec& s) { s.use_peepholes = true; });
  with([](RnnSpec& s) { s.coupled_gates = true; });
  with([](RnnSpec& s) { s.coupled_gates = s.use_peepholes = true; });
  with([](RnnSpec& s) { s.forget_bias = 0.75; });
  with([](RnnSpec& s) { s.use_bias = false; });
  with([](RnnSpec& s) { s.single_bias = true; });
  with([](RnnSpec& s) { s.cell_clip = {{-0.2, 0.15}}; });
  with([](RnnSpec& s) { s.gate_clip = {{-0.3, 0.25}}; });
  with([](RnnSpec& s) { s.num_proj = 1; });
  with([](RnnSpec& s) {
    s.num_units = 3;
    s.num_layers = 2;
    s.num_proj = 2;
    s.proj_clip = {{-0.1, 0.12}};
    s.use_peepholes = true;
    s.cell_clip = {{-0.4, 0.5}};
  });
}

TEST(SecondRnn, OptionsOfTheOthers) {
  RnnSpec gru = one_layer(RnnMode::kGru);
  gru.reset_after = false;
  check(make_call(gru));
  gru.single_bias = true;
  gru.num_layers = 2;
  gru.direction = Direction::kBidirectional;
  RnnCall call = make_call(gru, false);
  call.inputs.sequence_lengths = {{1, 3}};
  check(call);
  gru.reset_after = true;
  gru.gate_clip = {{-0.3, 0.4}};
  check(make_call(gru));
  RnnSpec plain = one_layer(RnnMode::kRnnTanh);
  plain.num_proj = 1;
  check(make_call(plain));
  plain.proj_clip = {{-0.2, 0.3}};
  plain.use_bias = false;
  check(make_call(plain));
}

TEST(SecondRnn, LayerNormalization) {
  const auto with = [](RnnMode mode, LayerNorm norm, LayerNormCell cell = LayerNormCell::kNone) {
    RnnSpec spec = one_layer(mode);
    spec.num_units = 3;
    spec.direction = Direction::kBidirectional;
    spec.layer_norm = norm;
    spec.layer_norm_cell = cell;
    spec.layer_norm_epsilon = 1e-2;
    RnnCall call = make_call(spec);
    call.inputs.sequence_lengths = {{3, 2}};
    check(call);
  };
  with(RnnMode::kLstm, LayerNorm::kProducts, LayerNormCell::kOutput);
  with(RnnMode::kLstm, LayerNorm::kGates, LayerNormCell::kCarried);
  with(RnnMode::kGru, LayerNorm::kProducts);
  with(RnnMode::kGru, LayerNorm::kSplitProducts);
}

TEST(SecondRnn, EveryActivation) {
  for (const char* name : {"relu", "affine(0.7, 0.1)", "leaky_relu(0.2)", "thresholded_relu(0.1)",
                           "scaled_tanh(1.3, 0.6)", "hard_sigmoid(0.4, 0.5)", "elu(0.8)",
                           "softsign", "softplus", "sigmoid", "tanh"}) {
    SCOPED_TRACE(name);
    RnnSpec lstm = one_layer(RnnMode::kLstm);
    lstm.activation = lstm.output_activation = parse_cell_activation(name);
    check(make_call(lstm));
    RnnSpec gru = one_layer(RnnMode::kGru);
    gru.recurrent_activation = parse_cell_activation(name);
    check(make_call(gru));
  }
}

TEST(SecondRnn, MasksResetsAndMasksAround) {
  RnnSpec spec = one_layer(RnnMode::kLstm);
  spec.direction = Direction::kBidirectional;
  spec.training = {.input_dropout = 0.3, .output_dropout = 0.2, .drop_connect = 0.3};
  RnnCall call = make_call(spec, true, {.time = 4, .batch = 2});
  check(call);
  call.inputs.flags.mask = {true, true, false, true, true, true, true, false};
  call.inputs.flags.reset = {false, false, false, false, true, false, false, false};
  call.inputs.flags.zero_output_for_mask = false;
  check(call);
}

// Over the engine's own second derivative and a third one that does not exist.
TEST(SecondRnn, JvpUnderATapeAndTheThirdDerivative) {
  const RnnCall call = make_call(one_layer(RnnMode::kLstm));
  const Tensors at = call.sources();
  Tensors v;
  for (std::size_t i = 0; i < at.size(); ++i) v.push_back(random_tensor(at[i].shape(), 10 + i));
  // d/dz of J(z) v, by differences.
  check_gradient([&](const Tensors& in) { return jvp(call, in, v).tangents; }, at, 2e-5);
  check_gradient([&](const Tensors& in) { return jvp(call, at, in).tangents; }, v, 2e-5);

  const GradientTape outer;
  const Tensor x = outer.watch(at[0]);
  Tensor found;
  {
    const GradientTape middle;
    Tensors in = at;
    in[0] = x;
    const Tensor first = ops::reduce_sum(ops::square(gradient_of(call)(in)[0]));
    found = middle.gradients({first}, Tensors{x})[0];
  }
  EXPECT_EQ(message_of<UnsupportedError>([&] { outer.gradient(found, Tensors{x}); }),
            "[gradient] a third derivative of 'rnn', expected first and second ones");
}

TEST(SecondRnn, TheHessianIsSymmetric) {
  for (const RnnMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    RnnSpec spec = small_spec(mode);
    const RnnCall call = make_call(spec);
    const Tensors at = call.sources();
    Tensors v, w;
    for (std::size_t i = 0; i < at.size(); ++i) {
      v.push_back(random_tensor(at[i].shape(), 20 + i));
      w.push_back(random_tensor(at[i].shape(), 30 + i));
    }
    const auto loss = [&](const Tensors& in) { return squared_sum(call(in)); };
    const auto dot = [](const Tensors& a, const Tensors& b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        sum += ops::reduce_sum(ops::multiply(a[i], b[i])).item();
      }
      return sum;
    };
    const double one = dot(w, hvp(loss, at, v)), other = dot(v, hvp(loss, at, w));
    EXPECT_NEAR(one, other, 1e-11 * (1 + std::abs(one)));
    EXPECT_GT(std::abs(one), 1e-3);
  }
}

TEST(SecondRnn, WhatIsNotAskedForChangesNothing) {
  RnnSpec spec = one_layer(RnnMode::kGru);
  const RnnCall call = make_call(spec);
  const auto second = [&](bool all) {
    const GradientTape outer;
    Tensors in = call.sources();
    in[0] = outer.watch(in[0]);
    if (all) in[1] = outer.watch(in[1]);
    const GradientTape inner;
    const Tensor gradient = inner.gradients({squared_sum(call(in))}, Tensors{in[0]})[0];
    return values_of(outer.gradient(ops::square(gradient), Tensors{in[0]})[0]);
  };
  EXPECT_EQ(second(true), second(false));
}

}  // namespace
}  // namespace openrnn::testing
