#include "graph/tape/recording.h"
#include "openrnn/graph_jvp.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

// sum of x^3, by an operation that is not in the library.
Tensor cubes(const Tensor& x, bool twice) {
  const auto slopes = [](const Tensor& at) { return ops::scale(ops::square(at), 3.0); };
  const auto backward = [slopes, value = x.value()](const std::vector<DeviceArray>& dy) {
    return std::vector{ops::multiply(slopes(Tensor(value)), Tensor(dy[0])).value()};
  };
  const GradientFunction gradient = [=](const GradientCall& call) {
    return Tensors{ops::multiply(slopes(call.inputs[0]), call.output_gradients[0])};
  };
  const Tensor cube = ops::multiply(ops::square(x.detached()), x.detached());
  return record("my_cube", {x}, {cube.value()}, backward, twice ? gradient : GradientFunction())[0];
}

TEST(Nested, GradientsAreRecordedByTheOuterTapeAlone) {
  const GradientTape outer;
  const Tensor x = outer.watch(random_tensor({3}, 1));
  const GradientTape inner;
  const Tensor gradient = inner.gradients({ops::reduce_sum(ops::exp(x))}, Tensors{x})[0];
  EXPECT_TRUE(outer.holds(gradient));
  EXPECT_FALSE(inner.holds(gradient));
  EXPECT_TRUE(inner.holds(ops::square(x))) << "it records again";
  // As without the outer tape, a gradient lies where it was computed.
  EXPECT_TRUE(gradient.placed());
}

TEST(Nested, WithoutAnOuterTapeNothingIsRecordedOrKept) {
  const GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor y = ops::exp(x);
  EXPECT_EQ(y.node()->history, nullptr);
  const Tensor gradient = tape.gradients({y}, Tensors{x})[0];
  EXPECT_FALSE(gradient.tracked());
  EXPECT_TRUE(gradient.placed());
  EXPECT_EQ(values_of(gradient), values_of(tape.gradient(y, Tensors{x})[0]));
}

TEST(Nested, OfVariables) {
  const Variable v("nested/v", random_tensor({4}, 1).to_host());
  GradientTape outer;
  Tensor gradient;
  {
    const GradientTape inner;
    const Tensor loss = ops::reduce_sum(ops::multiply(ops::square(v.read()), v.read()));
    gradient = inner.gradients({loss}, std::vector{v})[0];
  }
  const Tensor penalty = ops::reduce_sum(gradient);
  outer.close();
  const auto found = values_of(outer.gradient(penalty, std::vector{v})[0]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], 6 * values_of(v.read())[i], 1e-14);
}

TEST(Nested, TrackedOutputGradientsAndSourcesOfNoUse) {
  const GradientTape outer;
  const Tensor x = outer.watch(random_tensor({3}, 1)), u = outer.watch(random_tensor({3}, 2));
  const Tensor unused = outer.watch(random_tensor({3}, 3));
  const GradientTape inner;
  const Tensors found = inner.gradients({ops::square(x)}, Tensors{x, unused}, {u});
  EXPECT_TRUE(found[1].empty());
  const auto by_u = outer.gradient(ops::reduce_sum(found[0]), Tensors{u, x});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(values_of(by_u[0])[i], 2 * values_of(x)[i]);
    EXPECT_DOUBLE_EQ(values_of(by_u[1])[i], 2 * values_of(u)[i]);
  }
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { inner.gradients({ops::square(x)}, Tensors{x}, {random_tensor({2}, 2)}); }),
            "[gradient] an output gradient is float64 of shape [2], expected float64 of shape [3] "
            "as its target");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              inner.gradients({ops::square(x), ops::exp(x)}, Tensors{x}, {u});
            }),
            "[gradient] 1 output gradients, expected 2, one a target");
  EXPECT_EQ(message_of<StateError>([&] { inner.gradients({random_tensor({3}, 4)}, Tensors{x}); }),
            "[gradient] the target has no history on this tape, expected one computed from watched "
            "tensors or trainable variables while it was open");
}

TEST(Nested, AnOperationWithoutASecondDerivativeIsNamed) {
  const GradientTape outer;
  const Tensor x = outer.watch(random_tensor({3}, 1));
  const GradientTape inner;
  const auto first = [&](bool twice) { return inner.gradients({cubes(x, twice)}, Tensors{x})[0]; };
  EXPECT_EQ(values_of(first(true)), values_of(first(false)));
  const std::vector<double> second = values_of(outer.gradient(first(true), Tensors{x})[0]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(second[i], 6 * values_of(x)[i], 1e-14);
  EXPECT_EQ(message_of<UnsupportedError>([&] { outer.gradient(first(false), Tensors{x}); }),
            "[gradient] 'my_cube' has no second derivative, expected operations that have one");
}

TEST(Nested, AnOperationWithoutASecondDerivativeIsNamedToWhoAsksByItsOutputGradient) {
  const GradientTape outer;
  const Tensor x = random_tensor({3}, 1), u = outer.watch(random_tensor({3}, 2));
  const GradientTape inner;
  const Tensor source = inner.watch(x);
  const Tensor found = inner.gradients({cubes(source, false)}, Tensors{source}, {u})[0];
  EXPECT_TRUE(outer.holds(found));
  EXPECT_EQ(message_of<UnsupportedError>([&] { outer.gradient(found, Tensors{u}); }),
            "[gradient] 'my_cube' has no second derivative, expected operations that have one");
}

TEST(Nested, WhatWasRecordedBeforeTheOuterTapeIsNamed) {
  const GradientTape inner;
  const Tensor x = inner.watch(random_tensor({3}, 1));
  const Tensor y = ops::exp(x);
  const GradientTape outer;
  const Tensor gradient = inner.gradients({y}, Tensors{x})[0];
  EXPECT_EQ(values_of(gradient), values_of(y));
  EXPECT_EQ(message_of<UnsupportedError>([&] { outer.gradient(gradient, Tensors{x}); }),
            "[gradient] 'exp' was recorded before the outer tape was opened, expected an outer "
            "tape that is open around what it differentiates twice");
}

TEST(Nested, JvpIsTheDirectionalDerivative) {
  const auto function = [](const Tensors& in) {
    return Tensors{ops::matmul(ops::tanh(in[0]), in[1]), ops::exp(in[1]), random_tensor({2}, 9),
                   in[0]};
  };
  const Tensors at{random_tensor({2, 3}, 1), random_tensor({3, 2}, 2)};
  const Tensors v{random_tensor({2, 3}, 3), random_tensor({3, 2}, 4)};
  const Jvp found = jvp(function, at, v);
  const double delta = 1e-5;
  const auto moved = [&](double by) {
    return function({ops::add(at[0], ops::scale(v[0], by)), ops::add(at[1], ops::scale(v[1], by))});
  };
  const Tensors up = moved(delta), down = moved(-delta);
  for (std::size_t i = 0; i < up.size(); ++i) {
    EXPECT_EQ(values_of(found.outputs[i]), values_of(function(at)[i]));
    const std::vector<double> tangent = values_of(found.tangents[i]);
    for (std::size_t k = 0; k < tangent.size(); ++k) {
      EXPECT_NEAR(tangent[k], (values_of(up[i])[k] - values_of(down[i])[k]) / (2 * delta), 1e-9);
    }
  }
}

TEST(Nested, JvpOfOneLeafGivenTwiceAndUnderATape) {
  const GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const auto product = [](const Tensors& in) {
    return Tensors{ops::multiply(ops::square(in[0]), in[1])};
  };
  const Tensor one = ops::add_scalar(ops::scale(random_tensor({3}, 1), 0.0), 1.0);
  const Tensor two = ops::scale(one, 2.0);
  const Jvp found = jvp(product, {x, x}, {one, two});
  const auto by_x = values_of(tape.gradient(found.tangents[0], Tensors{x})[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    const double at = values_of(x)[i];
    EXPECT_NEAR(values_of(found.tangents[0])[i], 2 * at * at + 2 * at * at, 1e-14);
    EXPECT_NEAR(by_x[i], 8 * at, 1e-13);
  }
}

TEST(Nested, HvpIsTheHessianTimesAVector) {
  const auto function = [](const Tensors& in) {
    return ops::reduce_sum(ops::add(ops::multiply(ops::square(in[0]), in[1]), in[2]));
  };
  const Tensors at{random_tensor({3}, 1), random_tensor({3}, 2), random_tensor({3}, 3)};
  const Tensors v{random_tensor({3}, 4), random_tensor({3}, 5), random_tensor({3}, 6)};
  const Tensors found = hvp(function, at, v);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto value = [i](const Tensor& tensor) { return values_of(tensor)[i]; };
    EXPECT_NEAR(value(found[0]), 2 * value(at[1]) * value(v[0]) + 2 * value(at[0]) * value(v[1]),
                1e-14);
    EXPECT_NEAR(value(found[1]), 2 * value(at[0]) * value(v[0]), 1e-14);
    EXPECT_EQ(value(found[2]), 0.0) << "linear";
  }
}

TEST(Nested, ArgumentsOfJvpAndHvp) {
  const Tensor x = random_tensor({3}, 1);
  const auto same = [](const Tensors& in) { return in; };
  EXPECT_EQ(message_of<ArgumentError>([&] { jvp(same, {x}, {}); }),
            "[jvp] 0 tangents, expected 1, one a primal");
  EXPECT_EQ(message_of<ArgumentError>([&] { jvp(same, {x}, {random_tensor({2}, 1)}); }),
            "[jvp] tangents[0] is float64 of shape [2], expected float64 of shape [3] as its "
            "primal");
  EXPECT_EQ(message_of<ArgumentError>([&] { jvp(same, {int_tensor({1}, {1})}, {x}); }),
            "[jvp] primals[0] is int32, expected a floating tensor");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { hvp([](const Tensors& in) { return ops::square(in[0]); }, {x}, {x}); }),
            "[hvp] the function returned [3], expected one element");
}

// A pause inside another one of the same tape ends nothing.
TEST(Nested, APauseLastsAsLongAsTheOuterOne) {
  const auto tape = std::make_shared<graph::Recording>();
  graph::OpenTapes& tapes = *graph::OpenTapes::of_this_thread();
  tapes.open(tape);
  EXPECT_TRUE(tapes.any());
  {
    const graph::Pause outer(*tape);
    EXPECT_FALSE(tapes.any());
    { const graph::Pause inner(*tape); }
    EXPECT_FALSE(tapes.any());
    ops::scale(Tensor(random_tensor({2}, 1)), 2.0);
  }
  EXPECT_TRUE(tapes.any());
  EXPECT_TRUE(tape->nodes().empty());
  tapes.close(*tape);
  EXPECT_FALSE(tapes.any());
}

// Directions stand by their primals, whatever those before them have no part in.
TEST(Nested, DirectionsBelongToTheirOwnPrimals) {
  Tensors at, v;
  for (std::uint64_t i = 0; i < 5; ++i) {
    at.push_back(random_tensor({3}, 1 + i));
    v.push_back(random_tensor({3}, 11 + i));
  }
  // The first has no part in it, the second and the fourth a linear one.
  const auto product = [](const Tensors& in) {
    const Tensor curved = ops::multiply(ops::square(in[2]), in[4]);
    return ops::reduce_sum(ops::add_n({curved, in[1], ops::scale(in[3], 2.0)}));
  };
  const Tensors found = hvp(product, at, v);
  ASSERT_EQ(found.size(), 5U);
  const Jvp moved = jvp(
      [&](const Tensors& in) {
        return Tensors{product(in), in[3], in[0]};
      },
      at, v);
  ASSERT_EQ(moved.tangents.size(), 3U);
  EXPECT_EQ(values_of(moved.tangents[1]), values_of(v[3]));
  EXPECT_EQ(values_of(moved.tangents[2]), values_of(v[0]));
  double slope = 0.0;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto value = [i](const Tensor& tensor) { return values_of(tensor)[i]; };
    const double a = value(at[2]), b = value(at[4]), to_a = value(v[2]), to_b = value(v[4]);
    EXPECT_NEAR(value(found[2]), 2 * b * to_a + 2 * a * to_b, 1e-14);
    EXPECT_NEAR(value(found[4]), 2 * a * to_a, 1e-14);
    for (const std::size_t none : {0U, 1U, 3U}) EXPECT_EQ(value(found[none]), 0.0);
    slope += 2 * a * b * to_a + a * a * to_b + value(v[1]) + 2 * value(v[3]);
  }
  EXPECT_NEAR(moved.tangents[0].item(), slope, 1e-13);
}

TEST(Nested, EveryArgumentIsCheckedByItsNumber) {
  const Tensor x = random_tensor({3}, 1), y = random_tensor({2, 2}, 2);
  const auto sum = [](const Tensors& in) { return ops::reduce_sum(in[0]); };
  const auto same = [](const Tensors& in) { return in; };
  const auto of_jvp = [&](const Tensors& primals, const Tensors& given) {
    return message_of<ArgumentError>([&] { jvp(same, primals, given); });
  };
  const auto of_hvp = [&](const Tensors& primals, const Tensors& given) {
    return message_of<ArgumentError>([&] { hvp(sum, primals, given); });
  };
  EXPECT_EQ(of_jvp({x, y}, {x, y, x}), "[jvp] 3 tangents, expected 2, one a primal");
  EXPECT_EQ(of_hvp({x, y}, {x}), "[hvp] 1 vectors, expected 2, one a primal");
  EXPECT_EQ(of_jvp({x, y}, {x, Tensor()}),
            "[jvp] tangents[1] is empty, expected float64 of shape [2, 2] as its primal");
  EXPECT_EQ(of_hvp({x, y}, {x, ops::cast(y, DType::kFloat32)}),
            "[hvp] vectors[1] is float32 of shape [2, 2], expected float64 of shape [2, 2] as its "
            "primal");
  EXPECT_EQ(of_hvp({x, Tensor()}, {x, y}), "[hvp] primals[1] is empty, expected a floating tensor");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { hvp([](const Tensors&) { return Tensor(); }, {x}, {x}); }),
      "[hvp] the function returned nothing, expected one element");
  const Tensor constant = hvp([](const Tensors&) { return random_tensor({}, 3); }, {x}, {x})[0];
  EXPECT_EQ(values_of(constant), std::vector<double>(3, 0.0));
}

}  // namespace
}  // namespace openrnn::testing
