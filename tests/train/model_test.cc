// A language model's scores and samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "openrnn/ops.h"
#include "openrnn/train.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

class Model {
 public:
  explicit Model(std::int64_t embedding = 6, RnnMode mode = RnnMode::kLstm)
      : current_(graph_), vocabulary_(Vocabulary::of_text("abcde \n", TextLevel::kByte)) {
    ModelConfig config;
    config.network.mode = mode;
    config.network.num_units = 11;
    config.embedding = embedding;
    config.vocabulary = config.outputs = vocabulary_.size();
    config.network.training.seed = 4;
    model_ = std::make_unique<SequenceModel>(config);
  }
  SequenceModel& model() { return *model_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// -log2 of the text's probability, one symbol after the other from zeros.
  double plain_bits(const std::string& context, const std::string& text) {
    double bits = 0.0;
    std::vector<Tensor> state;
    const std::vector<std::int32_t> ids = vocabulary_.encode(context + text);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      auto result = (*model_)(
          Array::of<std::int32_t>({1, 1}, std::span<const std::int32_t>(&ids[i], 1)), state);
      state = result.state;
      if (i + 1 < context.size()) continue;
      const Array probabilities = ops::softmax(result.outputs).to_host();
      bits -= std::log2(element(probabilities.view(), ids[i + 1]));
    }
    return bits;
  }

 private:
  Graph graph_;
  Graph::AsDefault current_;
  Vocabulary vocabulary_;
  std::unique_ptr<SequenceModel> model_;
};

std::string random_text(std::size_t size) {
  std::string text;
  RandomStream random(9);
  while (text.size() < size) text += "abcde \n"[random.below(7)];
  return text;
}

TEST(ScoreText, IsTheSumOverSymbols) {
  for (const std::int64_t embedding : {0, 6}) {
    Model model(embedding);
    const std::string text = random_text(77);
    const TextScore score = score_text(model.model(), model.vocabulary(), text);
    EXPECT_NEAR(score.bits, model.plain_bits("\n", text), 1e-3);
    EXPECT_EQ(score.bytes, 77);
    EXPECT_EQ(score.symbols, 77);
    const TextScore after = score_text(model.model(), model.vocabulary(), text, "dab");
    EXPECT_NEAR(after.bits, model.plain_bits("dab", text), 1e-3);
    EXPECT_NE(after.bits, score.bits);
  }
}

TEST(ScoreText, StreamsCountEverySymbolOnce) {
  Model model;
  const std::string text = random_text(5003);  // 9 streams of unequal length
  const TextScore score = score_text(model.model(), model.vocabulary(), text);
  const double plain = model.plain_bits("\n", text);
  EXPECT_NEAR(score.bits, plain, 1e-3 * plain / 100.0);
  EXPECT_EQ(score.symbols, 5003);
}

TEST(ScoreText, OneSymbolAndUnknownOnes) {
  Model model;
  EXPECT_NEAR(score_text(model.model(), model.vocabulary(), "c").bits, model.plain_bits("\n", "c"),
              1e-4);
  const double known = model.plain_bits("\n", "?");  // as the class of all others
  EXPECT_NEAR(score_text(model.model(), model.vocabulary(), "?").bits, known + std::log2(249.0),
              1e-4);
  EXPECT_THROW(score_text(model.model(), model.vocabulary(), ""), ArgumentError);
}

TEST(SampleText, DependsOnTheSeedAlone) {
  Model model;
  SampleOptions options;
  options.symbols = 80;
  options.seed = 1;
  const std::string one = sample_text(model.model(), model.vocabulary(), options);
  EXPECT_EQ(one.size(), 80U);
  EXPECT_EQ(sample_text(model.model(), model.vocabulary(), options), one);
  options.seed = 2;
  EXPECT_NE(sample_text(model.model(), model.vocabulary(), options), one);
}

TEST(SampleText, TopOneIsTheLikeliest) {
  Model model;
  SampleOptions options;
  options.symbols = 40;
  options.temperature = 0.0;
  const std::string most_probable = sample_text(model.model(), model.vocabulary(), options);
  options.temperature = 5.0;
  options.top_k = 1;
  EXPECT_EQ(sample_text(model.model(), model.vocabulary(), options), most_probable);
  // The first of them by hand.
  const std::int32_t id = model.vocabulary().encode("\n")[0];
  const Array logits =
      model.model()(Array::of<std::int32_t>({1, 1}, std::span<const std::int32_t>(&id, 1)))
          .outputs.to_host();
  const auto values = logits.as<float>();
  const auto best = std::max_element(values.begin(), values.end() - 1) - values.begin();
  EXPECT_EQ(most_probable.substr(0, 1), model.vocabulary().decode(static_cast<std::int32_t>(best)));
}

TEST(SampleText, DrawsByTheModelsProbabilities) {
  Model model;
  const std::int32_t id = model.vocabulary().encode("\n")[0];
  const Array probabilities =
      ops::softmax(
          model.model()(Array::of<std::int32_t>({1, 1}, std::span<const std::int32_t>(&id, 1)))
              .outputs)
          .to_host();
  constexpr int kDraws = 2000;
  std::map<std::string, int> counts;
  SampleOptions options;
  options.symbols = 1;
  for (int seed = 0; seed < kDraws; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    ++counts[sample_text(model.model(), model.vocabulary(), options)];
  }
  const double written = 1.0 - element(probabilities.view(), model.vocabulary().unknown());
  for (std::int32_t c = 0; c < model.vocabulary().unknown(); ++c) {
    const double p = element(probabilities.view(), c) / written;
    const double deviation = std::sqrt(kDraws * p * (1.0 - p));
    EXPECT_NEAR(counts[model.vocabulary().decode(c)], kDraws * p, 5.0 * deviation) << c;
  }
}

TEST(SampleText, RefusesBadOptions) {
  Model model;
  SampleOptions options;
  options.temperature = -1.0;
  EXPECT_THROW(sample_text(model.model(), model.vocabulary(), options), ArgumentError);
  options.temperature = 1.0;
  options.top_k = -1;
  EXPECT_THROW(sample_text(model.model(), model.vocabulary(), options), ArgumentError);
}

// Weights that a run which diverged would leave.
TEST(Model, WhatIsNotFiniteIsAnError) {
  Model model;
  const Variable bias = model.model().dense().bias();
  const Array before = bias.to_host();
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    Array broken = before;
    broken.as<float>()[0] = bad;
    bias.assign(broken.view());
    for (const std::size_t size : {std::size_t{3}, std::size_t{2000}}) {
      // -inf is the logit of what never comes.
      if (bad < 0.0F) continue;
      const std::string text = random_text(size);
      EXPECT_TRUE(error_of<ArgumentError>([&] {
                    score_text(model.model(), model.vocabulary(), text);
                  }).starts_with("[score_text] a loss of "));
    }
    for (const double temperature : {0.0, 1.0}) {
      SampleOptions options;
      options.temperature = temperature;
      EXPECT_TRUE(error_of<ArgumentError>([&] {
                    sample_text(model.model(), model.vocabulary(), options);
                  }).starts_with("[sample_text] a logit of "));
    }
  }
}

// Bits per byte: a character of several bytes is one symbol, so that they are fewer per byte.
TEST(TextTask, ItsMetricIsOfBytes) {
  Graph graph;
  const Graph::AsDefault current(graph);
  Text text;
  text.train = "ab\u00e4\u20acba\u20ac\u00e4";  // 8 characters of 14 bytes
  for (const TextLevel level : {TextLevel::kByte, TextLevel::kChar}) {
    text.vocabulary = Vocabulary::of_text(text.train, level);
    ModelConfig config;
    config.network.num_units = 3;
    config.vocabulary = config.outputs = text.vocabulary.size();
    SequenceModel model(config);
    const TextTask task(model, text, TextTask::Options{.batch = 1, .seq_len = 2});
    const double per_byte = level == TextLevel::kByte ? 1.0 : 8.0 / 14.0;
    EXPECT_NEAR(task.metric(3.0), 3.0 / std::log(2.0) * per_byte, 1e-14);
  }
}

TEST(SequenceModel, StartsWithAnOpenForgetGate) {
  Model model;
  const ParamsLayout layout(model.model().rnn().spec());
  const Array params = model.model().rnn().kernel().to_host();
  for (const ParamRegion& region : layout.biases()) {
    const bool forget = region.role == ParamRole::kInputBias && region.gate == 1;
    for (std::int64_t i = 0; i < region.rows; ++i) {
      EXPECT_EQ(element(params.view(), region.offset + i), forget ? 1.0 : 0.0) << region.name;
    }
  }
}

TEST(SequenceModel, AForgetBiasOfTheNetworkIsTheOnlyOne) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const SequenceModel model(
      {.network = {.num_units = 3, .forget_bias = 1.0}, .vocabulary = 5, .outputs = 5});
  const ParamsLayout layout(model.rnn().spec());
  const Array params = model.rnn().kernel().to_host();
  EXPECT_EQ(model.rnn().spec().forget_bias, 1.0);
  for (const ParamRegion& region : layout.biases()) {
    for (std::int64_t i = 0; i < region.size(); ++i) {
      EXPECT_EQ(element(params.view(), region.offset + i), 0.0) << region.name;
    }
  }
}

TEST(SequenceModel, ADenseLayerReadsProjectedOutputs) {
  Graph graph;
  const Graph::AsDefault current(graph);
  SequenceModel model({.network = {.num_units = 5, .num_proj = 2}, .columns = 3, .outputs = 4});
  EXPECT_EQ(model.dense().kernel().shape(), (Shape{2, 4}));
  EXPECT_EQ(model(Array(DType::kFloat32, {6, 2, 3})).outputs.shape(), (Shape{6, 2, 4}));
}

TEST(SequenceModel, NeedsOneKindOfInput) {
  Graph graph;
  const Graph::AsDefault current(graph);
  ModelConfig config;
  config.network.num_units = 2;
  config.outputs = 3;
  EXPECT_THROW(SequenceModel{config}, ArgumentError);
  config.vocabulary = config.columns = 3;
  EXPECT_THROW(SequenceModel{config}, ArgumentError);
}

}  // namespace
}  // namespace openrnn::train
