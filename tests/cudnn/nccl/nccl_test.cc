// NCCL as a communicator, over the stand-ins or on the GPUs of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "cudnn/nccl/ranks.h"
#include "train/parts/whole_trial.h"

namespace openrnn::train {
namespace {

using Errors = std::vector<std::string>;

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = nccl_missing();
    if (missing.empty()) return;
    ASSERT_FALSE(std::getenv("STAND_IN_GPUS")) << missing;
    GTEST_SKIP() << "no GPU: " << missing;
  }
  /// Of 1, 2 and 4 those for which there are GPUs.
  static std::vector<int> sizes() {
    std::vector<int> all;
    for (const int size : {1, 2, 4}) {
      if (size <= nccl_gpus()) all.push_back(size);
    }
    return all;
  }
};

/// Bytes that differ from place to place and from rank to rank.
std::vector<char> bytes_of_rank(int rank, std::size_t count) {
  std::vector<char> all(count);
  auto state = static_cast<std::uint32_t>(rank + 1);
  for (char& each : all) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<char>(state >> 24U);
  }
  return all;
}

/// Some bytes for each of `ranks` ranks, also more than one piece holds; with two of them alone, as
/// the stand-in takes its time.
std::vector<std::size_t> counts(int size, int ranks) {
  std::vector<std::size_t> all{0, 1, 1027};
  if (size == 2) all.push_back((std::size_t{16} << 20) / static_cast<std::size_t>(ranks) + 5);
  return all;
}

TEST_F(Nccl, AllToAllMovesPiecesByRank) {
  for (const int size : sizes()) {
    const auto n = static_cast<std::size_t>(size);
    for (const std::size_t count : counts(size, size)) {
      const auto errors = on_nccl_ranks(size, [&](Communicator& all) {
        ASSERT_EQ(all.size(), size);
        const auto own = static_cast<std::size_t>(all.rank());
        std::vector<char> received(n * count);
        all.all_to_all(bytes_of_rank(all.rank(), n * count).data(), received.data(), count);
        for (std::size_t from = 0; from < n; ++from) {
          const auto theirs = bytes_of_rank(static_cast<int>(from), n * count);
          EXPECT_TRUE(std::equal(theirs.begin() + static_cast<std::ptrdiff_t>(own * count),
                                 theirs.begin() + static_cast<std::ptrdiff_t>((own + 1) * count),
                                 received.begin() + static_cast<std::ptrdiff_t>(from * count)))
              << count << " bytes from " << from << " to " << own << " of " << size;
        }
      });
      EXPECT_EQ(errors, Errors(n));
    }
  }
}

TEST_F(Nccl, AllGatherAndBroadcast) {
  for (const int size : sizes()) {
    const auto errors = on_nccl_ranks(size, [&](Communicator& all) {
      for (const std::size_t count : counts(size, size)) {
        std::vector<char> expected, received(static_cast<std::size_t>(size) * count);
        for (int from = 0; from < size; ++from) {
          const auto theirs = bytes_of_rank(from, count);
          expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
        all.all_gather(bytes_of_rank(all.rank(), count).data(), received.data(), count);
        EXPECT_TRUE(received == expected) << count;
      }
      for (const std::size_t count : counts(size, 1)) {
        for (int root = 0; root < size; ++root) {
          std::vector<char> own = bytes_of_rank(all.rank(), count);
          all.broadcast(own.data(), count, root);
          EXPECT_TRUE(own == bytes_of_rank(root, count)) << count << " from " << root;
        }
      }
    });
    EXPECT_EQ(errors, Errors(static_cast<std::size_t>(size)));
  }
}

template <class T>
void expect_sums(Communicator& all, std::size_t count) {
  // Whole numbers, whose sum no order changes.
  const auto value = [](int rank, std::size_t i) {
    return static_cast<T>((7 * rank + 3) * static_cast<int>(i % 1013) - 400);
  };
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(all.rank(), i);
  all.all_reduce(sizeof(T) == sizeof(double) ? DType::kFloat64 : DType::kFloat32,
                 static_cast<std::int64_t>(count), values.data());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (int rank = 0; rank < all.size(); ++rank) sum += value(rank, i);
    wrong += values[i] != sum;
  }
  EXPECT_EQ(wrong, 0U) << "of " << count;
}

TEST_F(Nccl, AllReduceAddsFloatsAndDoubles) {
  for (const int size : sizes()) {
    const auto errors = on_nccl_ranks(size, [](Communicator& all) {
      for (const std::size_t bytes : counts(all.size(), 1)) {
        expect_sums<float>(all, bytes / sizeof(float));
        expect_sums<double>(all, bytes / sizeof(double));
        all.barrier();
      }
      Half none{};
      EXPECT_THROW(all.all_reduce(DType::kFloat16, 1, &none), ArgumentError);
    });
    EXPECT_EQ(errors, Errors(static_cast<std::size_t>(size)));
  }
}

/// The values after some steps with masks, and the losses on the way.
Bytes trained(Communicator* communicator, bool series, bool overlap = false) {
  WholeTrial trial({.series = series,
                    .batch = 8,
                    .words = 500,
                    .rows = 50,
                    .network = {.training = {.dropout = 0.3, .seed = 11, .output_dropout = 0.2}},
                    .optimizer = "adam",
                    .fit = {.steps = 9,
                            .clip_norm = 0.05,
                            .validate_every = 5,
                            .micro_batches = 4,
                            .communicator = communicator,
                            .overlap = overlap}});
  std::string losses;
  trial.fit->run({[&](const StepReport& report) {
    const double loss = report.result.loss();
    losses.append(reinterpret_cast<const char*>(&loss), sizeof(loss));
    return true;
  }});
  Bytes all = bytes_of(trial.graph);
  all["losses"] = losses;
  return all;
}

TEST_F(Nccl, TrainingHasTheBitsOfOneProcess) {
  for (const bool series : {false, true}) {
    const Bytes alone = trained(nullptr, series);
    for (const int size : sizes()) {
      const auto errors = on_nccl_ranks(size, [&](Communicator& all) {
        EXPECT_EQ(trained(&all, series), alone) << "rank " << all.rank() << " of " << size;
        // By a second thread.
        if (default_device().engine()) return;
        EXPECT_EQ(trained(&all, series, true), alone) << "rank " << all.rank() << " of " << size;
      });
      EXPECT_EQ(errors, Errors(static_cast<std::size_t>(size)));
    }
    for (const std::string& error :
         on_ranks(2, [&](Communicator& all) { EXPECT_EQ(trained(&all, series), alone); })) {
      EXPECT_EQ(error, "");
    }
  }
}

}  // namespace
}  // namespace openrnn::train
