// Communicators of threads, and the sum of arrays over them.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "train/group/group.h"
#include "train/group/ranks.h"
#include "train/group/reduce.h"
#include "train/optimize/tree_sum.h"

namespace openrnn::train {
namespace {

using Errors = std::vector<std::string>;

TEST(ThreadCommunicator, MovesPiecesByRank) {
  for (const int size : {1, 2, 5}) {
    const auto n = static_cast<std::size_t>(size);
    EXPECT_EQ(on_ranks(size,
                       [&](Communicator& all) {
                         ASSERT_EQ(all.size(), size);
                         std::vector<int> send(2 * n), received(2 * n);
                         for (std::size_t i = 0; i < send.size(); ++i) {
                           send[i] = 100 * all.rank() + static_cast<int>(i);
                         }
                         all.all_to_all(send.data(), received.data(), 2 * sizeof(int));
                         for (int from = 0; from < size; ++from) {
                           for (int i = 0; i < 2; ++i) {
                             EXPECT_EQ(received[static_cast<std::size_t>(2 * from + i)],
                                       100 * from + 2 * all.rank() + i);
                           }
                         }
                         all.all_gather(&send[1], received.data(), sizeof(int));
                         for (int from = 0; from < size; ++from) {
                           EXPECT_EQ(received[static_cast<std::size_t>(from)], 100 * from + 1);
                         }
                         int number = 7 + all.rank();
                         all.broadcast(&number, sizeof(number), size - 1);
                         EXPECT_EQ(number, 7 + size - 1);
                         double sum[2] = {1.0, 0.5 * all.rank()};
                         all.all_reduce(DType::kFloat64, 2, sum);
                         EXPECT_EQ(sum[0], size);
                         EXPECT_EQ(sum[1], 0.25 * size * (size - 1));
                         all.barrier();
                       }),
              Errors(n));
  }
  expect_error<ArgumentError>([] { thread_communicators(0); },
                              "[thread_communicators] size 0, expected 1 or more");
}

TEST(ThreadCommunicator, AbortEndsTheCallsOfTheOthers) {
  const Errors errors = on_ranks(3, [](Communicator& all) {
    all.barrier();
    if (all.rank() == 1) return all.abort("no more memory");
    all.barrier();
  });
  const std::string gone = "[Communicator] rank 1 gave up: no more memory";
  EXPECT_EQ(errors, (Errors{gone, "", gone}));
}

/// Values of odd sizes, of both signs and very different magnitudes, so that every order of a sum
/// has its own bits; -0.0 among them.
DeviceArray values(DType dtype, std::int64_t size, std::uint64_t seed) {
  RandomStream random(seed);
  Array wide(DType::kFloat64, {size});
  for (double& each : wide.as<double>()) {
    each = random.uniform(-1.0, 1.0) * (random.uniform(0.0, 1.0) < 0.5 ? 1.0 : 1e6);
    if (random.uniform(0.0, 1.0) < 0.1) each = -0.0;
  }
  return DeviceArray::from_host(default_device(), cast(wide.view(), dtype).view());
}

SharedPart part_of(DeviceArray& array, bool present) {
  return {&array.device(), array.mutable_data(), array.size_bytes(), present};
}

bool present(std::size_t rank, std::size_t array) { return (rank + 2 * array) % 3 != 1; }

TEST(Reduce, ExactHasTheBitsOfTheTree) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      SCOPED_TRACE(ranks);
      // One ends in another piece than it begins.
      const bool long_one = ranks == 3 && dtype == DType::kFloat64;
      const std::vector<std::int64_t> sizes{1, 3, 1027, long_one ? 2097161 : 11, 2};
      const auto of = [&](std::size_t rank, std::size_t i) {
        return values(dtype, sizes[i], 10 * rank + i);
      };
      TreeSum tree;
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
        PartValues leaf(sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          if (present(rank, i)) leaf[i] = of(rank, i);
        }
        tree.add(std::move(leaf));
      }
      const PartValues expected = tree.take();
      const Errors errors = on_ranks(ranks, [&](Communicator& all) {
        const auto rank = static_cast<std::size_t>(all.rank());
        std::vector<DeviceArray> mine(sizes.size());
        std::vector<SharedPart> parts;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          if (expected[i].empty()) continue;
          mine[i] =
              present(rank, i) ? of(rank, i) : DeviceArray(default_device(), dtype, {sizes[i]});
          parts.push_back(part_of(mine[i], present(rank, i)));
        }
        reduce(all, Reduction::kExact, dtype, parts);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          if (expected[i].empty()) continue;
          const Array a = mine[i].to_host(), b = expected[i].to_host();
          EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0) << i;
        }
      });
      EXPECT_EQ(errors, Errors(static_cast<std::size_t>(ranks)));
    }
  }
}

// What runs beside a pass takes none of its threads; of more elements than one thread adds at once.
TEST(Reduce, AloneHasTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const DeviceArray x = values(dtype, 70001, 1);
    DeviceArray pool = values(dtype, 70001, 2), alone = values(dtype, 70001, 2);
    for (const auto& [adding, to] :
         {std::pair{Adding::kByPool, &pool}, std::pair{Adding::kAlone, &alone}}) {
      accumulate(x.device(), adding, dtype, x.size(), x.data(), to->mutable_data());
    }
    const Array a = pool.to_host(), b = alone.to_host();
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
  }
}

TEST(Reduce, FastIsTheSumInAnotherOrder) {
  on_ranks(4, [](Communicator& all) {
    DeviceArray mine = values(DType::kFloat64, 37, static_cast<std::uint64_t>(all.rank()));
    EXPECT_GT(reduce(all, Reduction::kFast, DType::kFloat64, {part_of(mine, true)}), 0);
    const Array found = mine.to_host();
    for (std::int64_t i = 0; i < found.size(); ++i) {
      double sum = 0.0;
      for (std::uint64_t rank = 0; rank < 4; ++rank) {
        sum += element(values(DType::kFloat64, 37, rank).to_host().view(), i);
      }
      EXPECT_NEAR(element(found.view(), i), sum, 1e-9);
    }
  });
}

TEST(Reduce, TreeOfNumbersSkipsWhatIsLeftOut) {
  EXPECT_EQ(tree_sum({1.0, 1e-17, 1e-17, std::nullopt, 3.0}), 4.0);
  EXPECT_EQ(tree_sum({std::nullopt, std::nullopt}), 0.0);
  EXPECT_EQ(tree_sum({0.1, 0.2, 0.3, 0.4}), (0.1 + 0.2) + (0.3 + 0.4));
  EXPECT_EQ(tree_sum({0.1, 0.2, 0.3}), (0.1 + 0.2) + 0.3);
}

TEST(Group, AFailureReachesAllWhereverTheyAre) {
  const Errors errors = on_ranks(4, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    group.together([&] {
      if (all.rank() == 2) throw IoError("the disk is full");
    });
    ADD_FAILURE() << "goes on";
  });
  const std::string told = "[Group] rank 2 of 4 has failed: the disk is full";
  EXPECT_EQ(errors, (Errors{told, told, "the disk is full", told}));
}

TEST(Group, TwoFailuresAtOnceAreEachItsOwn) {
  const Errors errors = on_ranks(3, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    group.together([&] {
      if (all.rank() > 0) throw IoError("of " + std::to_string(all.rank()));
      group.decide({});
    });
  });
  EXPECT_EQ(errors, (Errors{"[Group] rank 1 of 3 has failed: of 1", "of 1", "of 2"}));
}

TEST(Group, AFailureAmongMessagesEndsThemForAll) {
  const Errors errors = on_ranks(2, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    group.guarded([&] {
      group.with_messages([](Communicator& messages) {
        if (messages.rank() == 1) throw IoError("lost");
        messages.barrier();
      });
    });
  });
  EXPECT_EQ(errors, (Errors{"[Communicator] rank 1 gave up: lost", "lost"}));
}

TEST(Group, TellsOfCallsThatDiffer) {
  const Errors errors = on_ranks(2, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    all.rank() == 0 ? static_cast<void>(group.decide({})) : group.together([] {});
  });
  const std::string told =
      "[Group] rank 1 is at another call than rank 0, expected the same calls in the same order by "
      "all processes";
  EXPECT_EQ(errors, (Errors{told, told}));
}

TEST(Group, DecidesAlike) {
  const Errors errors = on_ranks(3, [](Communicator& all) {
    Group group(all, Reduction::kExact);
    const bool first = all.rank() == 0;
    EXPECT_TRUE(group.decide({true, first}).saves);
    EXPECT_FALSE(group.decide({true, !first}).saves);
    EXPECT_TRUE(group.decide({true, false}).goes_on);
    EXPECT_FALSE(group.decide({all.rank() != 1, false}).goes_on);
    EXPECT_EQ(group.number_of_first(0.5 + all.rank()), 0.5);
    EXPECT_EQ(group.text_of_first(first ? "abc" : "of another length"), "abc");
    group.require_same("Run", "the data", first ? "x" : all.rank() == 2 ? "y" : "x");
  });
  EXPECT_EQ(errors[2], "[Run] rank 2 of 3 has the data y, expected that of rank 0, x");
  EXPECT_EQ(errors[0], "[Group] rank 2 of 3 has failed: " + errors[2]);
}

TEST(Group, PartsAreShared) {
  EXPECT_EQ(expected_parts(8, 4), "");
  EXPECT_EQ(expected_parts(12, 3), "");
  for (const auto& [parts, ranks] : {std::pair{6, 4}, {6, 2}, {2, 4}, {12, 4}, {1, 2}}) {
    EXPECT_NE(expected_parts(parts, ranks), "") << parts << " of " << ranks;
  }
  EXPECT_EQ(expected_parts(1, 3),
            "that many times a power of two, so that each computes a subtree of the sum: 3, 6, 12, "
            "..");
}

TEST(Reduction, Names) {
  EXPECT_EQ(parse_reduction("fast"), Reduction::kFast);
  EXPECT_EQ(to_string(Reduction::kExact), "exact");
  expect_error<ArgumentError>([] { parse_reduction("ring"); },
                              "[reduction] 'ring', expected one of exact, fast");
}

}  // namespace
}  // namespace openrnn::train
