// Every kind of network, whole, in parts and cut in time, against the reference.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;

/// A cell with what it alone has, and its sizes.
constexpr const char* kCells[] = {"lstm U7 I3",      "lstm U7 I3 P4",     "gru U7 I5",
                                  "rnn_tanh U6 I5",  "rnn_relu U6 I3",    "gru U7 I7 skip",
                                  "lstm U5 I5 auto", "lstm U5 I5 P3 skip"};
constexpr const char* kForms[] = {"B4 T5", "B5 T6 lengths batch_major", "B5 T6 lengths",
                                  "B3 T5 batch_major", "B5 T5 lengths null_states"};

/// Every cell in every dtype and direction; the other words go round.
std::vector<std::string> networks(const std::string& sizes) {
  std::vector<std::string> list;
  for (const char* const cell : kCells) {
    for (const char* const dtype : {" f16 ", " f32 ", " f64 "}) {
      for (const char* const direction : {"", " bi"}) {
        // One further with each cell, so that a dtype does not always meet the same form.
        const std::size_t at = list.size() + list.size() / 6;
        list.push_back(std::string(cell) + dtype + sizes + " " + kForms[at % 5] + direction);
      }
    }
  }
  return list;
}

/// Training where backward runs twice, of which the second repeats the forward calls.
std::string second_gradient_of(const Case& c, const Data& d) {
  const Engine& subject = engine("cudnn");
  ForwardBuffers out = forward_buffers(c);
  const auto saved = subject.forward_saving(
      forward_args(c, d, out, subject.pack(c.spec, d.params.view(), PackFor::kTraining), true));
  const Result first = run_backward(subject, c, d, *saved);
  return first_difference(first, run_backward(subject, c, d, *saved));
}

void expect_agreement(const std::vector<std::string>& list, bool cut = false) {
  for (const std::string& text : list) {
    const Case c = parse_case(text, "covering");
    const Data d = make_data(c);
    Bounds bounds = bounds_of(c, d);
    // Gradients between the pieces, and between the directions, are stored once more.
    if (cut && c.spec.dtype == DType::kFloat16) bounds.rounding.border_tiny = 2e-3;
    EXPECT_EQ(compare(bounds, run_all(engine("cudnn"), c, d)).failure, "") << text;
    EXPECT_EQ(second_gradient_of(c, d), "") << text;
  }
}

TEST(CudnnCovering, Whole) { expect_agreement(networks("L2")); }

TEST(CudnnCovering, LayerByLayer) {
  const Setting limit("OPENRNN_CUDNN_MAX_WEIGHTS", "1200"), strict("STAND_IN_MAX_WEIGHTS", "1200");
  expect_agreement(networks("L3"));
}

TEST(CudnnCovering, WithMasksBetweenTheLayers) { expect_agreement(networks("L3 D0.5")); }

TEST(CudnnCovering, CutInTime) {
  const Setting limit("OPENRNN_CUDNN_MAX_TIME", "2"), strict("STAND_IN_MAX_TIME", "2");
  expect_agreement(networks("L2"), true);
}

TEST(CudnnCovering, CutInTimeWithMasks) {
  const Setting limit("OPENRNN_CUDNN_MAX_TIME", "4"), strict("STAND_IN_MAX_TIME", "4");
  expect_agreement(networks("L3 D0.5"), true);
}

// cuDNN is asked once a process where the weights of a network lie: these have sizes of their own,
// so that no answer from before the setting is used.
TEST(CudnnCovering, WithWeightsInAnotherOrder) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in has another order";
  const Setting permute("STAND_IN_PERMUTE", "1");
  std::vector<std::string> list = networks("L2"), parts = networks("L2 D0.5");
  list.insert(list.end(), parts.begin(), parts.end());
  for (std::string& text : list) {
    const std::size_t units = text.find('U') + 1;
    const bool skips =
        text.find("skip") != std::string::npos || text.find("auto") != std::string::npos;
    const auto grow = [&](std::size_t at) { text[at] = text[at] == '7' ? '9' : '8'; };
    grow(units);
    if (skips) grow(text.find('I') + 1);
  }
  expect_agreement(list);
}

}  // namespace
}  // namespace openrnn::conformance
