#include <thread>

#include "graph/tape/recording.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

TEST(Tape, NothingIsRecordedWithoutOne) {
  const Variable w("tape_a/w", random_tensor({3}, 1).to_host());
  EXPECT_EQ(ops::square(w.read()).node(), nullptr);
  GradientTape tape;
  EXPECT_NE(ops::square(w.read()).node(), nullptr);
  EXPECT_EQ(ops::square(random_tensor({3}, 1)).node(), nullptr) << "an input that is not watched";
  tape.close();
  EXPECT_EQ(ops::square(w.read()).node(), nullptr);
  tape.close();
  EXPECT_FALSE(recording({w.read()}));
}

TEST(Tape, OtherThreadsAreNotRecorded) {
  const Variable w("tape_b/w", random_tensor({3}, 1).to_host());
  const GradientTape tape;
  bool recorded = true;
  std::thread([&] { recorded = recording({w.read()}); }).join();
  EXPECT_FALSE(recorded);
  EXPECT_TRUE(recording({w.read()}));
}

TEST(Tape, NestedTapesRecordUntilTheLastIsClosed) {
  const Variable w("tape_c/w", random_tensor({1}, 1, 2.0, 3.0).to_host());
  Tensor y;
  GradientTape outer;
  { const GradientTape inner; }
  y = ops::reduce_sum(ops::square(w.read()));
  EXPECT_EQ(values_of(outer.gradient(y, std::vector{w})[0])[0], 2 * values_of(w.read())[0]);
}

TEST(Tape, PathsAddUpInOneOrder) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({257}, 1, -1, 1, DType::kFloat32));
  Tensor sum = ops::tanh(x);
  for (int i = 0; i < 20; ++i)
    sum = ops::add(ops::multiply(sum, ops::sigmoid(x)), ops::scale(x, 0.37 * i));
  const Tensor y = ops::reduce_sum(sum);
  const std::vector<double> first = values_of(tape.gradient(y, std::vector{x})[0]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values_of(tape.gradient(y, std::vector{x})[0]), first);
}

TEST(Tape, GradientAfterCloseAndAfterAssign) {
  const Variable w("tape_d/w", random_tensor({4}, 1).to_host());
  const Variable v("tape_d/v", random_tensor({4}, 2).to_host());
  GradientTape tape;
  const Tensor y = ops::reduce_sum(ops::multiply(w.read(), v.read()));
  tape.close();
  const std::vector<double> v_before = values_of(v.read());
  v.update([&](void* elements) {
    v.device().fill(DType::kFloat64, 1, 1e9, DType::kFloat64, nullptr, elements);
  });
  w.assign(random_tensor({4}, 3).to_host().view());
  EXPECT_EQ(values_of(tape.gradient(y, std::vector{w})[0]), v_before);
  EXPECT_EQ(values_of(v.read())[0], 1e9);
}

TEST(Tape, SourcesThatTheTargetDoesNotDependOn) {
  const Variable used("tape_e/used", random_tensor({2}, 1).to_host());
  const Variable unused("tape_e/unused", random_tensor({2}, 2).to_host());
  const Variable fixed("tape_e/fixed", random_tensor({2}, 3).to_host(), false);
  GradientTape tape;
  const Tensor y = ops::reduce_sum(ops::multiply(used.read(), fixed.read()));
  const auto gradients = tape.gradient(y, std::vector{used, unused, fixed});
  EXPECT_EQ(values_of(gradients[0]), values_of(fixed.read()));
  EXPECT_TRUE(gradients[1].empty());
  EXPECT_TRUE(gradients[2].empty());
}

TEST(Tape, WatchingWhatHasHistoryKeepsIt) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor middle = tape.watch(ops::square(x));
  const auto gradients =
      tape.gradient(ops::reduce_sum(ops::scale(middle, 3.0)), std::vector{x, middle});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(values_of(gradients[1])[i], 3.0);
    EXPECT_DOUBLE_EQ(values_of(gradients[0])[i], 6.0 * values_of(x)[i]);
  }
}

TEST(Tape, WatchingTwiceKeepsWhatWasComputedBefore) {
  const Variable v("tape_i/v", random_tensor({3}, 2).to_host());
  const Variable fixed("tape_i/fixed", random_tensor({3}, 2).to_host(), false);
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor y = ops::square(x);
  const Tensor again = tape.watch(x);
  EXPECT_EQ(again.leaf_id(), x.leaf_id());
  const Tensor sum = ops::reduce_sum(ops::add(y, ops::multiply(again, tape.watch(v.read()))));
  const std::vector<double> gradient = values_of(tape.gradient(sum, std::vector{again})[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(gradient[i], 2 * values_of(x)[i] + values_of(v.read())[i]);
  }
  EXPECT_EQ(values_of(tape.gradient(sum, std::vector{v})[0]), values_of(x));
  // A leaf that wanted none gets one of its own.
  const Tensor watched = tape.watch(fixed.read());
  const Tensor squared = ops::reduce_sum(ops::square(watched));
  EXPECT_EQ(values_of(tape.gradient(squared, std::vector{watched})[0]),
            values_of(ops::scale(fixed.read(), 2.0)));
}

TEST(Tape, OutputGradientsStandByTheirTargets) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor untracked = random_tensor({3}, 5);
  const Tensor a = ops::scale(x, 2.0), b = ops::scale(x, -1.0);
  const DeviceArray of_none = random_tensor({3}, 2).value(), of_a = random_tensor({3}, 3).value();
  const DeviceArray of_b = random_tensor({3}, 4).value();
  const auto gradient =
      tape.gradient({untracked, a, untracked, b}, {x}, {of_none, of_a, DeviceArray(), of_b});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(values_of(gradient[0])[i], 2 * values_of(of_a)[i] - values_of(of_b)[i]);
  }
}

TEST(Tape, SeveralTargetsAndOutputGradients) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor a = ops::scale(x, 2.0), b = ops::scale(x, -1.0);
  const DeviceArray upstream = random_tensor({3}, 2).value();
  const auto gradient = tape.gradient({a, b, x}, {x}, {upstream, DeviceArray(), DeviceArray()});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(values_of(gradient[0])[i], 2 * values_of(upstream)[i] - 1.0 + 1.0);
  }
}

TEST(Tape, DetachedStopsTheGradient) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3}, 1));
  const Tensor y = ops::reduce_sum(ops::multiply(x, ops::square(x).detached()));
  const std::vector<double> gradient = values_of(tape.gradient(y, std::vector{x})[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gradient[i], values_of(x)[i] * values_of(x)[i]);
  }
}

TEST(Tape, ALongHistory) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({1}, 1));
  Tensor y = x;
  for (int i = 0; i < 300000; ++i) y = ops::reshape(y, {1});
  EXPECT_EQ(values_of(tape.gradient(y, std::vector{x})[0])[0], 1.0);
}

TEST(Tape, FreesWhatItRecordedThoughResultsLive) {
  const Variable w("tape_f/w", random_tensor({3}, 1).to_host());
  auto kept = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = kept;
  std::vector<Tensor> results;
  {
    const GradientTape tape;
    results = record("keeping", {w.read()}, {random_tensor({3}, 2).value()},
                     [kept](const auto& gradients) { return gradients; });
    kept.reset();
    EXPECT_TRUE(results[0].tracked());
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
  EXPECT_FALSE(results[0].tracked());
  EXPECT_EQ(results[0].node(), nullptr);
  EXPECT_EQ(values_of(results[0]), values_of(random_tensor({3}, 2)));
}

TEST(Tape, AStateThatIsCarriedBeginsAnew) {
  const Variable w("tape_g/w", random_tensor({1}, 1, 2.0, 3.0).to_host());
  const double value = values_of(w.read())[0];
  Tensor state = random_tensor({1}, 2, 1.0, 2.0);
  std::vector<std::unique_ptr<GradientTape>> tapes;  // the earlier ones live on
  for (int step = 0; step < 3; ++step) {
    const double before = values_of(state)[0];
    tapes.push_back(std::make_unique<GradientTape>());
    state = ops::multiply(w.read(), state);
    tapes.back()->close();
    EXPECT_EQ(values_of(tapes.back()->gradient(state, std::vector{w})[0])[0], before) << step;
    EXPECT_EQ(values_of(state)[0], value * before);
  }
}

TEST(Tape, AnOuterTapeSeesAllAndAnInnerOneItsOwn) {
  GradientTape outer;
  const Tensor x = outer.watch(random_tensor({1}, 1, 2.0, 3.0));
  const double value = values_of(x)[0];
  const Tensor squared = ops::square(x);
  GradientTape inner;
  const Tensor y = ops::multiply(squared, x);
  inner.close();
  EXPECT_EQ(values_of(inner.gradient(y, std::vector{x})[0])[0], value * value);
  EXPECT_DOUBLE_EQ(values_of(outer.gradient(y, std::vector{x})[0])[0], 3 * value * value);
  EXPECT_TRUE(outer.holds(squared));
  EXPECT_FALSE(inner.holds(squared));
  EXPECT_EQ(message_of<StateError>([&] { inner.gradient(squared, std::vector{x}); }),
            "[gradient] the target has no history on this tape, expected one computed from watched "
            "tensors or trainable variables while it was open");
}

TEST(Tape, MayBeClosedAndAskedByAnotherThread) {
  const Variable w("tape_h/w", random_tensor({3}, 1).to_host());
  auto tape = std::make_unique<GradientTape>();
  const Tensor y = ops::reduce_sum(ops::scale(w.read(), 3.0));
  std::vector<double> gradient;
  std::thread([&] {
    gradient = values_of(tape->gradient(y, std::vector{w})[0]);
    tape.reset();
  }).join();
  EXPECT_EQ(gradient, (std::vector<double>{3, 3, 3}));
  EXPECT_FALSE(recording({w.read()}));
}

TEST(Tape, ClosedWhileItIsPausedStaysClosed) {
  graph::OpenTapes& open = *graph::OpenTapes::of_this_thread();
  const auto tape = std::make_shared<graph::Recording>();
  open.open(tape);
  {
    const graph::Pause pause(*tape);
    EXPECT_FALSE(open.any());
    const graph::Pause again(*tape);
  }
  EXPECT_TRUE(open.any());
  {
    const graph::Pause pause(*tape);
    open.close(*tape);
  }
  EXPECT_FALSE(open.any());
}

TEST(Tape, Errors) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({2}, 1));
  const Tensor plain = random_tensor({2}, 2);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              tape.gradient(ops::square(x), std::vector{x, plain});
            }),
            "[gradient] sources[1] is no leaf, expected a tensor from watch() or a variable");
  EXPECT_EQ(message_of<StateError>([&] { tape.gradient(plain, std::vector{x}); }),
            "[gradient] the target has no history on this tape, expected one computed from watched "
            "tensors or trainable variables while it was open");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              tape.gradient(ops::square(x), std::vector{x}, random_tensor({3}, 1).value());
            }),
            "[gradient] an output gradient is float64 of shape [3], expected float64 of shape [2] "
            "as its target");
  EXPECT_EQ(message_of<ArgumentError>([&] { tape.watch(Tensor()); }),
            "[watch] the tensor is empty, expected one with a value");
  EXPECT_EQ(message_of<ArgumentError>([&] { Tensor().item(); }),
            "[item] the tensor has shape of nothing, expected exactly one element");
  const DeviceArray one = random_tensor({2}, 1).value();
  EXPECT_EQ(message_of<ArgumentError>([&] {
              tape.gradient(std::vector{ops::square(x)}, std::vector{x}, {one, one});
            }),
            "[gradient] 2 output gradients, expected 1, one a target");
  EXPECT_EQ(message_of<ArgumentError>([&] { plain.item(); }),
            "[item] the tensor has shape [2], expected exactly one element");
}

}  // namespace
}  // namespace openrnn::testing
