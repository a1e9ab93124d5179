// What a group says when a process fails, what its calls cost, and more variables than a notice
// has places for.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "train/group/group.h"
#include "train/group/ranks.h"

namespace openrnn::train {
namespace {

using Errors = std::vector<std::string>;

TEST(ThreadCommunicator, AddsNumbersOfTwoDtypes) {
  const Errors errors = on_ranks(3, [](Communicator& all) {
    EXPECT_TRUE(all.takes_any_thread());
    float narrow[2] = {1.0F + static_cast<float>(all.rank()), 0.5F};
    all.all_reduce(DType::kFloat32, 2, narrow);
    EXPECT_EQ(narrow[0], 6.0F);
    EXPECT_EQ(narrow[1], 1.5F);
    for (const DType dtype : {DType::kFloat16, DType::kInt64}) {
      std::int64_t number = 1;
      expect_error<ArgumentError>([&] { all.all_reduce(dtype, 1, &number); },
                                  "[Communicator] all_reduce of " + std::string(dtype_name(dtype)) +
                                      ", expected float32 or float64");
    }
    all.all_reduce(DType::kFloat64, 0, nullptr);
    all.broadcast(nullptr, 0, 1);
  });
  EXPECT_EQ(errors, Errors(3));
}

TEST(ThreadCommunicator, TheFirstToGiveUpIsNamed) {
  const auto ranks = thread_communicators(3);
  EXPECT_EQ(ranks[0]->failure(), "");
  ranks[2]->abort("no memory");
  ranks[1]->abort("no disk");
  for (const auto& each : ranks) {
    EXPECT_EQ(each->failure(), "[Communicator] rank 2 gave up: no memory");
    EXPECT_EQ(error_of<EngineError>([&] { each->barrier(); }), each->failure());
  }
}

TEST(Group, WhatIsNoExceptionIsToldOfToo) {
  const Errors errors = on_ranks(2, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    const auto call = [&] {
      group.together([&] {
        if (all.rank() == 1) throw 42;
      });
    };
    if (all.rank() == 1) {
      EXPECT_THROW(call(), int);
    } else {
      call();
    }
  });
  EXPECT_EQ(errors, (Errors{"[Group] rank 1 of 2 has failed: an error of unknown type", ""}));
}

TEST(Group, IsNoneAfterAFailure) {
  const Errors errors = on_ranks(2, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    const bool fails = all.rank() == 0;
    const std::string said = error_of([&] {
      group.together([&] {
        if (fails) throw IoError(std::string(3000, 'x'));
      });
    });
    // As much as a message has room for.
    EXPECT_EQ(said, fails ? std::string(3000, 'x')
                          : "[Group] rank 0 of 2 has failed: " + std::string(1023, 'x'));
    group.decide({});
  });
  const std::string told =
      "[Group] another call after one that has failed, expected a run of its own: the processes "
      "are not at one step any more";
  EXPECT_EQ(errors, (Errors{told, told}));
}

TEST(Group, PeerErrorsHaveTheirRank) {
  on_ranks(3, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    try {
      group.together([&] {
        if (all.rank() == 2) throw IoError("lost");
      });
      ADD_FAILURE() << all.rank();
    } catch (const PeerError& error) {
      EXPECT_EQ(error.rank(), 2);
    } catch (const IoError&) {
      EXPECT_EQ(all.rank(), 2);
    }
  });
}

constexpr std::size_t kVariables = 301;  // a notice has room for 256; the last one has a gradient

/// Rank 0 has a gradient of every third, rank 1 of every fifth, rank 2 none at all.
bool present(int rank, std::size_t i) { return rank == 0 ? i % 3 == 0 : rank == 1 && i % 5 == 0; }

DType dtype_of(std::size_t i) { return i % 4 == 0 ? DType::kFloat64 : DType::kFloat32; }

double value_of(int rank, std::size_t i) { return 1000.0 * (rank + 1) + static_cast<double>(i); }

GradientSum::Step step_of_rank(int rank) {
  GradientSum::Step step;
  for (std::size_t i = 0; i < kVariables; ++i) {
    step.gradients.push_back(
        present(rank, i) ? DeviceArray::full(default_device(), dtype_of(i), {2}, value_of(rank, i))
                         : DeviceArray());
  }
  step.loss = Tensor(Array::of<double>({}, {{0.25 * (rank + 1)}}).view());
  return step;
}

TEST(Group, SumsMoreVariablesThanANoticeNames) {
  std::int64_t elements[2] = {0, 0};  // of float32, of float64
  for (std::size_t i = 0; i < kVariables; ++i) {
    if (present(0, i) || present(1, i)) elements[dtype_of(i) == DType::kFloat64 ? 1 : 0] += 2;
  }
  const auto slice = [](std::int64_t count) { return (count + 2) / 3; };
  const std::int64_t sent = 2 * 2 * (4 * slice(elements[0]) + 8 * slice(elements[1]));
  for (const Reduction reduction : {Reduction::kExact, Reduction::kFast}) {
    const Errors errors = on_ranks(3, [&](Communicator& all) {
      Graph graph;
      const Graph::AsDefault current(graph);
      std::vector<Variable> variables;
      for (std::size_t i = 0; i < kVariables; ++i) {
        variables.emplace_back("v" + std::to_string(i), Array(dtype_of(i), {2}));
      }
      Group group(all, reduction);
      std::optional<GradientSum::Step> own;
      if (all.rank() < 2) own = step_of_rank(all.rank());
      const GradientSum::Step whole = group.sum(std::move(own), variables);
      EXPECT_EQ(whole.loss.item(), 0.75);
      ASSERT_EQ(whole.gradients.size(), kVariables);
      for (std::size_t i = 0; i < kVariables; ++i) {
        if (!present(0, i) && !present(1, i)) {
          EXPECT_TRUE(whole.gradients[i].empty()) << i;
          continue;
        }
        const Array found = whole.gradients[i].to_host();
        double expected = 0.0;
        for (const int rank : {0, 1}) expected += present(rank, i) ? value_of(rank, i) : 0.0;
        EXPECT_EQ(found.dtype(), dtype_of(i)) << i;
        EXPECT_EQ(element(found.view(), 1), expected) << i;
      }
      EXPECT_EQ(group.cost().steps, 1);
      EXPECT_EQ(group.cost().bytes, sent);
    });
    EXPECT_EQ(errors, Errors(3));
  }
}

/// Its messages take this long at least.
class Slow : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Forwarding::all_gather(send, receive, bytes);
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    ++sums;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Forwarding::all_reduce(dtype, count, values);
  }

  int sums = 0;
};

// Waiting for others is told from messages, and messages beside a pass from those after it.
TEST(Group, CountsWhatItsSumsCost) {
  const Errors errors = on_ranks(2, [](Communicator& inner) {
    Slow all(inner);
    DeviceArray values = DeviceArray::full(default_device(), DType::kFloat32, {5}, 1.5);
    const auto parts = [&] {
      return std::vector<SharedPart>{
          {&values.device(), values.mutable_data(), values.size_bytes(), true}};
    };
    Group beside(all, Reduction::kFast), after(all, Reduction::kFast);
    EXPECT_FALSE(beside.takes_any_thread());
    beside.reduce_early(DType::kFloat32, parts(), Adding::kAlone);
    EXPECT_GE(beside.cost().seconds, 0.01);
    EXPECT_EQ(beside.cost().seconds_overlapped, beside.cost().seconds);
    EXPECT_EQ(beside.cost().seconds_waited, 0.0);
    EXPECT_EQ(beside.cost().bytes, 2 * 12);
    after.reduce_early(DType::kFloat32, parts(), Adding::kByPool);
    EXPECT_GE(after.cost().seconds, 0.01);
    EXPECT_EQ(after.cost().seconds_overlapped, 0.0);
    EXPECT_GE(after.cost().seconds_waited, 0.02);
    EXPECT_EQ(after.cost().steps, 0);
    EXPECT_EQ(element(values.to_host().view(), 4), 6.0);
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable variable("v", Array(DType::kFloat32, {5}));
    Group whole(all, Reduction::kFast);
    GradientSum::Step step{{values}, Tensor(Array::of<double>({}, {{0.5}}).view())};
    whole.sum(std::move(step), {variable});
    EXPECT_GE(whole.cost().seconds, 0.01);
    EXPECT_GE(whole.cost().seconds_waited, 0.02);
    EXPECT_EQ(whole.cost().seconds_overlapped, 0.0);
    EXPECT_EQ(all.sums, 3);
  });
  EXPECT_EQ(errors, Errors(2));
}

}  // namespace
}  // namespace openrnn::train
