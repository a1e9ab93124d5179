// A forked child computes as its parent does, with threads of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cpu/device/cpu_device.h"
#include "cpu/memory/block.h"
#include "support/in_child.h"

namespace openrnn {
namespace {

using conformance::Case;
using conformance::Data;
using conformance::ForcedThreads;
using conformance::ForwardBuffers;
using conformance::make_data;
using conformance::parse_case;
using conformance::Result;

/// Bytes of results, which a failure does not print.
struct Bytes {
  std::string text;
  friend bool operator==(const Bytes&, const Bytes&) = default;
  friend void PrintTo(const Bytes& bytes, std::ostream* out) {
    *out << bytes.text.size() << " bytes";
  }
};

std::string bytes_of(const Result& result) {
  std::string bytes;
  for (const auto& [name, values] : result.parts) {
    bytes.append(static_cast<const char*>(values.data()), values.size_bytes());
  }
  return bytes;
}

/// Enough work that two threads share it.
std::vector<Case> cases() {
  return {parse_case("lstm L2 U130 I33 B3 T5 f32", "panels"),
          parse_case("gru L1 U65 I65 B9 T7 bi f64 lengths", "rows_and_directions"),
          parse_case("rnn_relu L2 U130 I33 B2 T9 f16", "half")};
}

/// A session over a model of its own.
struct Running {
  Case c;
  Data d;
  InferenceSession session;

  explicit Running(const Case& given)
      : c(given),
        d(make_data(c)),
        session(std::make_shared<PackedModel>(c.spec, d.params.view()), {.max_threads = 0}) {}
  std::string run() {
    ForwardBuffers out = conformance::forward_buffers(c);
    session.run(forward_args(c, d, out, nullptr, false));
    Result result;
    append_forward(result, "", std::move(out));
    return bytes_of(result);
  }
};

std::string train(const Case& c, const Data& d) {
  return bytes_of(run_training(conformance::cpu(), c, d));
}

/// What `function` returns in a child, or why there is nothing.
template <class Function>
Bytes in_child_or_not(Function function) {
  return {in_child(function).value_or("the child failed")};
}

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_threads_in_children(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
  const ForcedThreads two_{2};
};

TEST_F(Fork, BeforeAnyThreadWasStarted) {
  // Other tests of this program may have started some; alone it is what it says.
  Running running(cases()[0]);
  const Bytes found = in_child_or_not([&] { return running.run(); });
  EXPECT_EQ(found, Bytes{running.run()});
}

TEST_F(Fork, ASessionGoesOnInAChild) {
  for (const Case& c : cases()) {
    Running running(c);
    const std::string expected = running.run();
    EXPECT_EQ(in_child_or_not([&] { return running.run() + Running(c).run(); }),
              Bytes{expected + expected});
    EXPECT_EQ(Bytes{running.run()}, Bytes{expected}) << "the parent was disturbed";
  }
}

TEST_F(Fork, AChildEndsItsOwnThreads) {
  Running running(cases()[0]);
  const std::string expected = running.run();
  const Bytes found = in_child_or_not([&] {
    shutdown();
    const std::string mine = running.run();
    shutdown();
    return mine + running.run();
  });
  EXPECT_EQ(found, Bytes{expected + expected});
  EXPECT_EQ(Bytes{running.run()}, Bytes{expected}) << "the parent was disturbed";
}

TEST_F(Fork, AChildTrains) {
  for (const Case& c : cases()) {
    const Data d = make_data(c);
    const std::string expected = train(c, d);
    EXPECT_EQ(in_child_or_not([&] { return train(c, d); }), Bytes{expected});
  }
}

TEST_F(Fork, AChildHasChildren) {
  Running running(cases()[0]);
  const std::string expected = running.run();
  const Bytes found = in_child_or_not([&] {
    const std::string mine = running.run();
    return mine + in_child_or_not([&] { return running.run(); }).text + running.run();
  });
  EXPECT_EQ(found, Bytes{expected + expected + expected});
}

/// Threads of a parent that run, train, and take and give back memory until it goes.
class BusyParent {
 public:
  BusyParent(const Case& c, const Data& d, const std::string& expected,
             const std::string& trained) {
    threads_.emplace_back([&c, &expected, this] {
      Running other(c);
      while (!stop_) wrong_ += other.run() != expected;
    });
    threads_.emplace_back([&c, &d, &trained, this] {
      while (!stop_) wrong_ += train(c, d) != trained;
    });
    threads_.emplace_back([this] {
      while (!stop_) cpu_device().allocate(1000);
    });
    threads_.emplace_back([this] {
      while (!stop_) const cpu::Block block(1000);
    });
  }
  ~BusyParent() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(wrong_.load(), 0);
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> wrong_{0};
  std::vector<std::thread> threads_;
};

#ifdef __SANITIZE_ADDRESS__
constexpr bool kAllocatorSurvivesFork = false;
#else
constexpr bool kAllocatorSurvivesFork = true;
#endif

/// A child computes on `threads` threads while those of its parent are inside a run.
void expect_children_of_a_busy_parent(int threads) {
  if (!kAllocatorSurvivesFork) {
    GTEST_SKIP() << "a fork may find the address sanitizer's allocator locked by another thread";
  }
  const ForcedThreads two(2);
  const Case c = cases()[0];
  const Data d = make_data(c);
  Running running(c);
  const std::string expected = running.run(), trained = train(c, d);
  const BusyParent busy(c, d, expected, trained);
  for (int n = 0; n < 8; ++n) {
    const Bytes found = in_child_or_not([&] {
      set_num_threads(threads);
      cpu_device().allocate(5000);
      return running.run() + train(c, d);
    });
    ASSERT_EQ(found, Bytes{expected + trained}) << "fork " << n;
  }
}

TEST_F(Fork, WhileOtherThreadsAreInsideARun) { expect_children_of_a_busy_parent(2); }

TEST(ForkToOneThread, WhileOtherThreadsAreInsideARun) { expect_children_of_a_busy_parent(1); }

}  // namespace
}  // namespace openrnn
