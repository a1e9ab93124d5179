// Calls whose workers are late, as when another program has taken their processors: the caller goes
// on alone, and nothing else changes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"

namespace openrnn {
namespace {

using conformance::Case;
using conformance::Data;
using conformance::ForcedThreads;
using conformance::ForwardBuffers;
using conformance::Result;

// Who is delayed inside its piece, and in which of its pieces of a call.
std::atomic<int> late_member{1}, pieces_until_late{0};
void be_late(int member) {
  if (member != late_member) return;
  if (pieces_until_late.fetch_sub(1) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

class Company : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { cpu::hook_pieces(be_late); }
  void TearDown() override {
    cpu::hook_pieces(nullptr);
    cpu::heed_contention(false);
    cpu::forget_contention();
  }
  /// Forward, and what training keeps, of a call whose member is late in that piece; again, until
  /// the caller has gone on alone: on a busy machine it may be away itself meanwhile.
  bool goes_on_alone(int member, int piece, const Result& expected) const {
    for (int attempt = 0; attempt < 20; ++attempt) {
      cpu::forget_contention();
      late_member = member;
      pieces_until_late = piece;
      const int before = cpu::jobs_finished_alone();
      cpu::heed_contention(true);
      const Result found = call();
      cpu::heed_contention(false);
      EXPECT_EQ(first_difference(expected, found), "") << member << " late in " << piece;
      if (cpu::jobs_finished_alone() > before) return true;
      if (pieces_until_late >= 0) return false;  // there are not so many
    }
    return false;
  }
  Result call() const {
    Result result;
    ForwardBuffers plain = conformance::forward_buffers(case_);
    auto args = conformance::forward_args(case_, data_, plain, packed_, false);
    conformance::cpu().forward(args);
    ForwardBuffers kept = plain;
    // Nobody writes once a call is over.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    append_forward(result, "inference ", std::move(plain));
    Result copy;
    append_forward(copy, "inference ", std::move(kept));
    EXPECT_EQ(first_difference(copy, result), "");
    return result;
  }

  const Case case_ = conformance::parse_case(GetParam(), "company");
  const Data data_ = conformance::make_data(case_);
  const ForcedThreads two_{2};
  const std::shared_ptr<const PackedParams> packed_ =
      conformance::cpu().pack(case_.spec, data_.params.view(), PackFor::kTraining);
};

TEST_P(Company, TheCallerFinishesAloneWithTheSameBits) {
  const Result expected = call();
  int alone = 0;
  for (int piece = 0; piece < 24; ++piece) {
    for (const int member : {0, 1}) alone += goes_on_alone(member, piece, expected);
  }
  // How often is a matter of who else is at work.
  EXPECT_GT(alone, 0);
}

TEST_P(Company, TrainingHasTheSameBits) {
  const auto train = [&] { return run_training(conformance::cpu(), case_, data_); };
  const Result expected = train();
  for (int piece = 0; piece < 60; piece += 7) {
    cpu::forget_contention();
    pieces_until_late = piece;
    cpu::heed_contention(true);
    const Result found = train();
    cpu::heed_contention(false);
    EXPECT_EQ(first_difference(expected, found), "") << piece;
  }
}

// Calls on one thread do not come to a piece of a job, late or not.
TEST_P(Company, LaterCallsRunOnOneThread) {
  cpu::forget_contention();
  late_member = 1;
  cpu::heed_contention(true);
  int threads = 2;  // asked once a turn: a pause may end at any time
  for (int i = 0; i < 1000 && threads == 2; ++i) {
    pieces_until_late = 0;
    call();
    threads = cpu::ThreadLease(2).threads();
  }
  EXPECT_EQ(threads, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Company,
    ::testing::Values("lstm L2 U130 I40 B1 T12 f32", "gru L1 U130 I130 B2 T9 f32",
                      "lstm L2 U130 I40 B1 T6 bi f32", "lstm L1 U130 I40 B3 T8 P70 lengths f16",
                      "rnn_tanh L2 U300 I70 B1 T10 f64", "lstm L2 U130 I40 B2 T8 D0.3 f32",
                      "lstm L4 U33 I17 B1 T61 f32", "gru L4 U65 I40 B2 T60 lengths f16"));

}  // namespace
}  // namespace openrnn
