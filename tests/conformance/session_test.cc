// Sessions on one packed model, from one thread and from several.
#include <gtest/gtest.h>

#include <thread>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

std::vector<Case> cases() {
  return {parse_case("lstm L2 U17 I3 B5 T6 f32 lengths", "layers"),
          parse_case("gru L1 U33 I7 B3 T9 bi f32", "directions"),
          parse_case("rnn_tanh L2 U16 I16 B8 T4 f64 skip", "skips"),
          parse_case("lstm L1 U33 I7 B4 T5 P6 f16", "projection"),
          parse_case("lstm L1 U33 I7 B4 T5 P6 b16 lengths", "projection"),
          parse_case("lstm L2 U130 I33 B7 T5 f32 lengths", "enough_for_threads"),
          parse_case("gru L1 U130 I65 B1 T9 bi f32", "enough_for_threads"),
          parse_case("lstm L2 U33 I7 B3 T6 f32 lengths bf16", "bf16"),
          parse_case("gru L2 U33 I7 B3 T6 f32 bi bf16x3", "bf16x3"),
          parse_case("gru L1 U33 I17 B5 T4 f32 bi stored_int8", "int8"),
          parse_case("lstm L1 U17 I7 B3 T5 P6 f16 stored_int8", "int8"),
          parse_case("rnn_tanh L2 U33 I7 B1 T5 f32 stored_bfloat16", "bfloat16"),
          parse_case("gru L2 U17 I7 B3 T5 f32 stored_float16", "float16")};
}

Result run_session(InferenceSession& session, const Case& c, const Data& d) {
  ForwardBuffers out = forward_buffers(c);
  session.run(forward_args(c, d, out, nullptr, false));
  Result result;
  append_forward(result, "inference ", std::move(out));
  return result;
}

TEST(Session, GivesWhatTheEngineGives) {
  for (const Case& c : cases()) {
    const Data d = make_data(c);
    const auto model = std::make_shared<PackedModel>(c.spec, d.params.view());
    InferenceSession session(model, {.max_threads = 0});
    const Result expected = run_inference(model->engine(), c, d);
    EXPECT_EQ(first_difference(expected, run_session(session, c, d)), "") << c.text;
    // Smaller, larger and again: the workspace keeps no trace of another call.
    for (const std::int64_t batch : {1, 9, 5}) {
      Case other = c;
      other.lengths.clear();
      other.batch = batch;
      other.time = 11 - batch;
      const Data od = make_data(other, 3);
      const Data with_params{d.params, od.x, od.h0, od.c0, od.dy, od.dhn, od.dcn};
      EXPECT_EQ(first_difference(run_inference(model->engine(), other, with_params),
                                 run_session(session, other, with_params)),
                "")
          << c.text << " with a batch of " << batch;
    }
    EXPECT_EQ(first_difference(expected, run_session(session, c, d)), "") << c.text;
  }
}

// What it has no room for would be written behind it.
TEST(Session, AWorkspaceOfAnotherCallIsRefused) {
  const Case c = parse_case("lstm L2 U17 I3 B3 T4 f32", "workspace");
  const Data d = make_data(c);
  const auto params = cpu().pack(c.spec, d.params.view(), PackFor::kInference);
  const auto other = cpu().pack(c.spec, d.params.view(), PackFor::kInference);
  const auto error_of = [&](const auto& owner, const WorkspaceLimits& limits) -> std::string {
    ForwardBuffers out = forward_buffers(c);
    const auto workspace = cpu().make_workspace(owner, limits);
    try {
      cpu().forward(forward_args(c, d, out, params, false), workspace.get());
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(params, {.batch = 3, .time = 4}), "");
  EXPECT_EQ(error_of(other, {.batch = 3, .time = 4}),
            "[forward] workspace was made for other params, expected the call's own");
  EXPECT_EQ(error_of(params, {.batch = 2, .time = 9}),
            "[forward] batch is 3 and max_time 4, expected at most the workspace's 2 and 9");
  EXPECT_EQ(error_of(params, {.batch = 9, .time = 3}),
            "[forward] batch is 3 and max_time 4, expected at most the workspace's 9 and 3");
}

TEST(Session, AWorkspaceOfNoSizeIsRefused) {
  const Case c = parse_case("lstm L1 U5 I3 B3 T4 f32", "workspace");
  const Data d = make_data(c);
  const auto params = cpu().pack(c.spec, d.params.view(), PackFor::kInference);
  const auto other = engine("reference").pack(c.spec, d.params.view(), PackFor::kInference);
  const std::string rest = ", expected params and limits of 0 or more";
  for (const auto& [limits, given] :
       {std::pair(WorkspaceLimits{-1, 4, 2}, "batch -1, time 4, max_threads 2"),
        std::pair(WorkspaceLimits{3, -4, 2}, "batch 3, time -4, max_threads 2"),
        std::pair(WorkspaceLimits{3, 4, -2}, "batch 3, time 4, max_threads -2")}) {
    expect_error<ArgumentError>([&, &wanted = limits] { cpu().make_workspace(params, wanted); },
                                "[make_workspace] params are given, " + std::string(given) + rest);
  }
  expect_error<ArgumentError>(
      [] {
        cpu().make_workspace(nullptr, {3, 4, 2});
      },
      "[make_workspace] params are null, batch 3, time 4, max_threads 2" + rest);
  expect_error<ArgumentError>(
      [&] {
        cpu().make_workspace(other, {3, 4, 2});
      },
      "[make_workspace] params are packed by another engine, expected cpu's");
  EXPECT_NE(cpu().make_workspace(params, {0, 0, 0}), nullptr);
}

TEST(Session, ManyThreadsShareOneModel) {
  constexpr int kThreads = 4, kRuns = 20;
  for (const Case& c : cases()) {
    const Data d = make_data(c);
    const auto model = std::make_shared<PackedModel>(c.spec, d.params.view());
    const Result expected = run_inference(model->engine(), c, d);
    std::vector<std::string> differences(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < kThreads; ++n) {
      threads.emplace_back([&, n] {
        InferenceSession session(model, {.max_threads = 0});
        for (int run = 0; run < kRuns; ++run) {
          const std::string found = first_difference(expected, run_session(session, c, d));
          if (!found.empty()) differences[n] = found;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& found : differences) EXPECT_EQ(found, "") << c.text;
  }
}

TEST(Session, ManyThreadsTrainAtOnce) {
  constexpr int kThreads = 3, kRuns = 5;
  for (const Case& c : cases()) {
    if (!c.trains()) continue;
    const Data d = make_data(c);
    const Result expected = run_training(cpu(), c, d);
    std::vector<std::string> differences(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < kThreads; ++n) {
      threads.emplace_back([&, n] {
        for (int run = 0; run < kRuns; ++run) {
          const std::string found = first_difference(expected, run_training(cpu(), c, d));
          if (!found.empty()) differences[n] = found;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& found : differences) EXPECT_EQ(found, "") << c.text;
  }
}

}  // namespace
}  // namespace openrnn::conformance
