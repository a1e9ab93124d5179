// Gradients that travel while the backward pass goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "openrnn/ops.h"
#include "openrnn/train_fit.h"
#include "support/expect_error.h"
#include "train/group/ranks.h"

namespace openrnn::train {
namespace {

/// Hands on, and counts what other threads than the one that made it have sent.
class Watched : public Forwarding {
 public:
  using Forwarding::Forwarding;
  bool takes_any_thread() const override { return true; }
  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    Forwarding::all_to_all(send, receive, bytes);
    if (std::this_thread::get_id() == home_) return;
    ++beside;
    if (fails) throw EngineError("[cable] it is cut");
  }

  std::atomic<int> beside = 0;
  bool fails = false;  // in another thread, when it has sent

 private:
  const std::thread::id home_ = std::this_thread::get_id();
};

/// x as it is; its gradient is computed when `until` says so.
Tensor waits(const Tensor& x, std::function<void()> until) {
  return record("waits", {x}, {x.value()}, [until](const std::vector<DeviceArray>& dy) {
    until();
    return dy;
  })[0];
}

/// The mean over its rows of ((x a)^2 b)^2; b is more than a message.
class TwoMatrices : public Task {
 public:
  enum Used : std::uint8_t { kA = 1, kB = 2, kBoth = 3 };
  explicit TwoMatrices(DType dtype = DType::kFloat32)
      : a("a", cast(values({3, 700}, 1).view(), dtype)),
        b("b", values({700, 600}, 2)),
        x(Tensor(cast(values({8, 3}, 3, 5.0).view(), dtype).view())) {}
  static Array values(const Shape& shape, std::uint64_t seed, double most = 0.05) {
    Array made(DType::kFloat32, shape);
    RandomStream random(seed);
    for (float& each : made.as<float>()) each = static_cast<float>(random.uniform(-most, most));
    return made;
  }
  std::vector<Variable> variables() const override {
    if (order == 0) return {a, b};
    return order == 1 ? std::vector<Variable>{b, a} : std::vector<Variable>{b};
  }
  std::int64_t batch() const override { return 8; }
  std::int64_t windows() const override { return 1; }
  std::int64_t rows(const DataPosition&) const override { return 8; }
  std::int64_t items(const DataPosition&) const override { return 8; }
  std::string_view metric_name() const override { return "loss"; }
  void save(Extras&) const override {}
  void load(const Extras&) override {}
  Tensor loss(const DataPosition& at) override { return loss_of_part(at, {0, 8, 8}); }
  Tensor loss_of_part(const DataPosition& at, const ops::BatchPart& part) override {
    const Tensor rows = ops::slice(x, {.axis = 0, .begin = part.first_row, .size = part.rows});
    const int used = uses ? uses(at.epoch, part.first_row) : kBoth;
    const Tensor left = used & kA ? a.read() : Tensor(values({3, 700}, 4).view());
    Tensor h = ops::square(ops::matmul(rows, left));
    if (until) h = waits(h, until);
    if (used & kB) h = ops::matmul(h, ops::cast(b.read(), h.dtype()));
    return ops::reduce_mean(ops::square(h));
  }
  double validate(bool) override { return 0.0; }
  double metric(double loss) const override { return loss; }

  Variable a, b;
  Tensor x;
  int order = 0;  // of the variables that are trained
  /// Which of them the part that begins with a row has in a step; others are constants there.
  std::function<int(std::int64_t step, std::int64_t first_row)> uses;
  std::function<void()> until;
};

std::string bytes_of(const Variable& variable) {
  const Array host = variable.to_host();
  return {static_cast<const char*>(host.data()), host.size_bytes()};
}

/// What a run of 5 steps leaves; `prepare` is called before each.
std::string run(Communicator* all, bool overlap, std::int64_t parts,
                const std::function<void(TwoMatrices&, std::int64_t)>& prepare = {},
                DType dtype = DType::kFloat32) {
  Graph graph;
  const Graph::AsDefault current(graph);
  TwoMatrices task(dtype);
  const auto optimizer = make_optimizer("momentum", 0.1);
  Fit fit(task, *optimizer,
          {.steps = 5,
           .schedule = {ScheduleKind::kConstant, 100.0},  // gradients are small
           .micro_batches = parts,
           .communicator = all,
           .overlap = overlap});
  if (prepare) prepare(task, 0);
  fit.run({[&](const StepReport& report) {
    if (prepare) prepare(task, report.step);
    return true;
  }});
  return bytes_of(task.a) + bytes_of(task.b);
}

TEST(Overlap, MessagesTravelWhileTheBackwardPassGoesOn) {
  if (default_device().engine()) GTEST_SKIP() << "gradients of the cpu alone travel early";
  const std::string expected = run(nullptr, false, 4);
  const auto errors = on_ranks(2, [&](Communicator& inner) {
    Watched all(inner);
    // In the second step, when the order is known: b's gradient is complete before a's begins.
    const auto prepare = [&](TwoMatrices& task, std::int64_t step) {
      task.until = [&all, step] {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (step == 1 && all.beside == 0 && std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
      };
    };
    // Of several own parts the last one sends: parts 2 of 2 here.
    EXPECT_EQ(run(&all, true, 2, prepare), run(&inner, false, 2));
    EXPECT_GE(all.beside, 1);
  });
  for (const std::string& each : errors) EXPECT_EQ(each, "");
  for (const int ranks : {2, 4}) {
    on_ranks(ranks, [&](Communicator& all) { EXPECT_EQ(run(&all, true, 4), expected); });
  }
}

TEST(Overlap, AnErrorOfOneRanksBackwardPassEndsAllByName) {
  const auto errors = on_ranks(2, [&](Communicator& all) {
    run(&all, true, 2, [&](TwoMatrices& task, std::int64_t step) {
      task.until = [&all, step] {
        if (step == 2 && all.rank() == 1) throw EngineError("[waits] no memory");
      };
    });
  });
  EXPECT_EQ(errors[0], "[Group] rank 1 of 2 has failed: [waits] no memory");
  EXPECT_EQ(errors[1], "[waits] no memory");
}

// With 16 bits a loss is scaled: gradients are divided by it before they are sent, those of
// variables of 32 bits too.
TEST(Overlap, OfAScaledLossIsOfTheGradientsThemselves) {
  const std::string expected = run(nullptr, false, 2, {}, DType::kFloat16);
  const TwoMatrices before(DType::kFloat16);
  EXPECT_TRUE(expected != bytes_of(before.a) + bytes_of(before.b)) << "steps were applied";
  const auto errors = on_ranks(2, [&](Communicator& all) {
    EXPECT_TRUE(run(&all, true, 2, {}, DType::kFloat16) == expected);
  });
  for (const std::string& each : errors) EXPECT_EQ(each, "");
}

// A plan is of some variables in some order: of others a new one is made.
TEST(Overlap, OfOtherVariablesIsPlannedAnew) {
  const auto prepare = [](TwoMatrices& task, std::int64_t step) {
    task.order = static_cast<int>(step + 1) / 2;  // each but the first of two steps
  };
  const std::string expected = run(nullptr, false, 2, prepare);
  EXPECT_TRUE(run(nullptr, false, 2) != expected) << "the last steps change b alone";
  const auto errors =
      on_ranks(2, [&](Communicator& all) { EXPECT_EQ(run(&all, true, 2, prepare), expected); });
  for (const std::string& each : errors) EXPECT_EQ(each, "");
}

// No gradient is not a gradient of zeros, by which a momentum would go on; and one that some parts
// have is theirs alone, whichever they are.
TEST(Overlap, AGradientThatIsMissingIsLeftOut) {
  using Two = TwoMatrices;
  const std::function<int(std::int64_t, std::int64_t)> cases[] = {
      [](auto step, auto) { return step == 2 ? Two::kA : Two::kBoth; },
      [](auto step, auto) { return step == 2 ? Two::kB : Two::kBoth; },
      [](auto step, auto) { return step == 0 ? Two::kA : Two::kBoth; },
      [](auto step, auto) { return step % 2 == 1 ? Two::kA : Two::kB; },
      [](auto step, auto row) { return step > 0 && row > 0 ? Two::kA : Two::kBoth; },
      [](auto step, auto row) { return step > 0 && row < 7 ? Two::kA : Two::kBoth; },
      [](auto step, auto row) { return step > 0 && row != 2 ? Two::kB : Two::kBoth; },
      [](auto step, auto row) { return step > 0 && row / 2 % 2 == 1 ? Two::kA : Two::kB; },
      [](auto step, auto row) { return static_cast<int>(1 + (step + row) % 3); },
  };
  const std::string with_all = run(nullptr, false, 8);
  for (std::size_t number = 0; number < std::size(cases); ++number) {
    const auto prepare = [&](TwoMatrices& task, std::int64_t) { task.uses = cases[number]; };
    const std::string expected = run(nullptr, false, 8, prepare);
    EXPECT_TRUE(with_all != expected);
    for (const int ranks : {2, 4}) {
      const auto errors = on_ranks(ranks, [&](Communicator& all) {
        EXPECT_TRUE(run(&all, true, 8, prepare) == expected) << number << " of " << all.size();
      });
      EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks))) << number;
    }
  }
}

TEST(Overlap, AnErrorOfItsThreadEndsTheStep) {
  if (default_device().engine()) GTEST_SKIP() << "gradients of the cpu alone travel early";
  const auto errors = on_ranks(2, [&](Communicator& inner) {
    Watched all(inner);
    all.fails = all.rank() == 1;
    run(&all, true, 2, [&](TwoMatrices& task, std::int64_t step) {
      task.until = [&all, step] {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (step == 1 && all.beside == 0 && std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
      };
    });
  });
  EXPECT_EQ(errors[1], "[cable] it is cut");
  EXPECT_NE(errors[0].find("[cable] it is cut"), std::string::npos) << errors[0];
}

/// As most of other libraries: its calls come from one thread.
class OneThread : public Watched {
 public:
  using Watched::Watched;
  bool takes_any_thread() const override { return false; }
};

TEST(Overlap, IsRefusedWhereOneThreadAloneMayCall) {
  const auto errors = on_ranks(2, [](Communicator& inner) {
    OneThread all(inner);
    run(&all, true, 2);
  });
  for (const std::string& each : errors) {
    EXPECT_EQ(
        each,
        "[Fit] overlap with a communicator that takes the calls of one thread alone, expected "
        "one whose takes_any_thread() is true: of threads, or MPI's with "
        "MPI_THREAD_SERIALIZED");
  }
}

// All have to do the same; else they would wait for each other.
TEST(Overlap, OfOneRankAloneIsAnError) {
  const auto errors = on_ranks(2, [](Communicator& all) { run(&all, all.rank() == 1, 2); });
  for (const std::string& each : errors) {
    EXPECT_EQ(each,
              "[Group] rank 1 is at another call than rank 0, expected the same calls in the same "
              "order by all processes");
  }
}

}  // namespace
}  // namespace openrnn::train
