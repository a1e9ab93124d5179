// A language model's scores and samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

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
  EXPECT_EQ(error_of<ArgumentError>([&] { score_text(model.model(), model.vocabulary(), ""); }),
            "[score_text] an empty text, expected symbols");
}

TEST(ScoreText, EachUnknownSymbolHasItsBits) {
  Model model;
  // One that is read in several calls, with unknown symbols in each, and some in front of it.
  std::string long_text = random_text(700);
  for (std::size_t i = 30; i < long_text.size(); i += 60) long_text[i] = '?';
  for (const auto& [context, text, unknown] :
       {std::tuple<std::string, std::string, double>{"\n", "a?b!c?", 3.0},
        {"\n", long_text, 12.0},
        {"?a!", long_text, 12.0}}) {
    const TextScore score = score_text(model.model(), model.vocabulary(), text, context);
    EXPECT_NEAR(score.bits, model.plain_bits(context, text) + unknown * std::log2(249.0), 1e-2);
  }
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

TEST(SampleText, TheTemperatureIsFinite) {
  Model model;
  SampleOptions options;
  for (const double temperature : {HUGE_VAL, std::nan("")}) {
    options.temperature = temperature;
    EXPECT_THROW(sample_text(model.model(), model.vocabulary(), options), ArgumentError);
  }
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

// The model with logits that are the bias of its dense layer alone.
void set_logits(SequenceModel& model, const std::vector<float>& logits) {
  const Variable kernel = model.dense().kernel();
  kernel.assign(Array(kernel.dtype(), kernel.shape()).view());
  model.dense().bias().assign(
      Array::of<float>({static_cast<std::int64_t>(logits.size())}, logits).view());
}

std::map<std::string, int> drawn(Model& model, SampleOptions options, int draws) {
  std::map<std::string, int> counts;
  options.symbols = 1;
  for (int seed = 0; seed < draws; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    ++counts[sample_text(model.model(), model.vocabulary(), options)];
  }
  return counts;
}

TEST(SampleText, ATemperatureDividesTheLogits) {
  Model model;
  const std::vector<float> logits{0.5F, -1.0F, 0.0F, 1.5F, -0.25F, 0.75F, 1.0F, 9.0F};
  ASSERT_EQ(model.vocabulary().size(), 8);
  set_logits(model.model(), logits);
  constexpr int kDraws = 1500;
  for (const double temperature : {0.5, 1.0, 4.0}) {
    SampleOptions options;
    options.temperature = temperature;
    const std::map<std::string, int> counts = drawn(model, options, kDraws);
    double sum = 0.0;  // the unknown symbol is never written
    for (std::size_t c = 0; c < 7; ++c) sum += std::exp(logits[c] / temperature);
    for (std::size_t c = 0; c < 7; ++c) {
      const double p = std::exp(logits[c] / temperature) / sum;
      const std::string symbol = model.vocabulary().decode(static_cast<std::int32_t>(c));
      const double found = counts.count(symbol) ? counts.at(symbol) : 0.0;
      EXPECT_NEAR(found, kDraws * p, 5.0 * std::sqrt(kDraws * p * (1.0 - p)))
          << temperature << " " << c;
    }
  }
}

TEST(SampleText, DrawsFromTheLikeliestAlone) {
  Model model;
  set_logits(model.model(), {0.1F, 0.7F, 0.3F, 0.6F, 0.2F, 0.5F, 0.4F, 9.0F});
  const std::vector<std::int32_t> by_logit{1, 3, 5, 6, 2, 4, 0};
  for (int k = 0; k <= 8; ++k) {
    SampleOptions options;
    options.temperature = 20.0;
    options.top_k = k;
    std::set<std::string> expected, found;
    for (int i = 0; i < (k == 0 ? 7 : std::min(k, 7)); ++i) {
      expected.insert(model.vocabulary().decode(by_logit[static_cast<std::size_t>(i)]));
    }
    for (const auto& [symbol, count] : drawn(model, options, 120)) found.insert(symbol);
    EXPECT_EQ(found, expected) << k;
  }
}

TEST(SampleText, EndsWhenItsSinkSaysSo) {
  Model model;
  SampleOptions options;
  options.symbols = 20;
  std::string text;
  sample_text(model.model(), model.vocabulary(), options, [&](std::string_view bytes) {
    text += bytes;
    return text.size() < 3;
  });
  EXPECT_EQ(text, sample_text(model.model(), model.vocabulary(), options).substr(0, 3));
}

TEST(SampleText, OfTheUnknownSymbolAloneIsEmpty) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Vocabulary vocabulary = Vocabulary::of_text("", TextLevel::kByte);
  SequenceModel model({.network = {.num_units = 2}, .vocabulary = 1, .outputs = 1});
  SampleOptions options;
  options.symbols = 4;
  EXPECT_EQ(sample_text(model, vocabulary, options), "");
}

TEST(SampleText, RefusesBadOptions) {
  Model model;
  SampleOptions options;
  const auto said = [&] {
    return error_of<ArgumentError>(
        [&] { sample_text(model.model(), model.vocabulary(), options); });
  };
  options.temperature = -1.0;
  EXPECT_EQ(said(), "[sample_text] temperature -1, expected a finite number of at least 0");
  options.temperature = 1.0;
  options.top_k = -2;
  EXPECT_EQ(said(), "[sample_text] top_k -2, expected 0 or more");
  options.top_k = 0;
  options.symbols = -3;
  EXPECT_EQ(said(), "[sample_text] symbols -3, expected 0 or more");
  options.symbols = 0;
  EXPECT_EQ(said(), "");
}

// Weights that a run which diverged would leave.
TEST(Model, WhatIsNotFiniteIsAnError) {
  Model model;
  const Variable bias = model.model().dense().bias();
  const Array before = bias.to_host();
  const std::string loss = "[score_text] a loss of nan, expected a finite one",
                    logit = "[sample_text] a logit of ", end = ": the model's weights overflow";
  for (const auto& [bad, name] :
       {std::pair{std::nanf(""), "nan"}, {HUGE_VALF, "inf"}, {-HUGE_VALF, "-inf"}}) {
    Array broken = before;
    broken.as<float>()[0] = bad;
    bias.assign(broken.view());
    for (const std::size_t size : {std::size_t{3}, std::size_t{2000}}) {
      // -inf is the logit of what never comes.
      if (bad < 0.0F) continue;
      const std::string text = random_text(size);
      EXPECT_EQ(
          error_of<ArgumentError>([&] { score_text(model.model(), model.vocabulary(), text); }),
          loss + end);
    }
    for (const double temperature : {0.0, 1.0}) {
      SampleOptions options;
      options.temperature = temperature;
      EXPECT_EQ(
          error_of<ArgumentError>([&] { sample_text(model.model(), model.vocabulary(), options); }),
          logit + name + ", expected finite ones" + end);
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

// It is the LSTM's: of a GRU that place is the update gate's.
TEST(SequenceModel, StartsOtherCellsWithoutBiases) {
  for (const RnnMode mode : {RnnMode::kGru, RnnMode::kRnnTanh}) {
    Model model(6, mode);
    const ParamsLayout layout(model.model().rnn().spec());
    const Array params = model.model().rnn().kernel().to_host();
    for (const ParamRegion& region : layout.biases()) {
      for (std::int64_t i = 0; i < region.size(); ++i) {
        EXPECT_EQ(element(params.view(), region.offset + i), 0.0) << region.name;
      }
    }
  }
}

TEST(SequenceModel, StartsWithAnOpenForgetGateInEachDtype) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;
    Graph graph;
    const Graph::AsDefault current(graph);
    const SequenceModel model(
        {.network = {.num_units = 3, .dtype = dtype}, .columns = 2, .outputs = 2});
    const Array params = model.rnn().kernel().to_host();
    ASSERT_EQ(params.dtype(), dtype);
    const ParamsLayout layout(model.rnn().spec());
    for (const ParamRegion& region : layout.biases()) {
      const bool forget = region.role == ParamRole::kInputBias && region.gate == 1;
      for (std::int64_t i = 0; i < region.rows; ++i) {
        EXPECT_EQ(element(params.view(), region.offset + i), forget ? 1.0 : 0.0)
            << dtype_name(dtype) << region.name;
      }
    }
  }
}

// From the run's seed each layer has one of its own; a file of another version trains to the same
// bits only as long as they stay.
TEST(SequenceModel, EachLayerHasItsOwnSeed) {
  Graph graph;
  const Graph::AsDefault current(graph);
  ModelConfig config{.network = {.num_units = 4, .training = {.dropout = 0.5, .seed = 6}},
                     .vocabulary = 9,
                     .embedding = 5,
                     .outputs = 9};
  SequenceModel model(config);
  const auto values = [](const Variable& variable) {
    const Array host = variable.to_host();
    const auto all = host.as<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  layers::EmbeddingOptions embedding;
  embedding.vocabulary = 9;
  embedding.dim = 5;
  embedding.seed = 24;
  embedding.initializer = random_normal_initializer(0.0, 0.5);
  Graph other;
  std::optional<Graph::AsDefault> like(std::in_place, other);  // where names are the same
  layers::Embedding like_first(embedding);
  like_first.build({-1, -1});
  EXPECT_EQ(values(model.variables()[0]), values(like_first.weights()[0]));
  EXPECT_EQ(model.rnn().spec().training.seed, 25);
  layers::DenseOptions dense;
  dense.units = 9;
  dense.seed = 27;
  layers::Dense like_last(dense);
  like_last.build({-1, -1, 4});
  like.reset();
  EXPECT_EQ(values(model.dense().kernel()), values(like_last.weights()[0]));
  // The masks before the dense layer, whose weights copy.
  config.outputs = 4;
  SequenceModel copying(config);
  Array identity(DType::kFloat32, {4, 4});
  for (std::size_t i = 0; i < 4; ++i) identity.as<float>()[5 * i] = 1.0F;
  copying.dense().kernel().assign(identity.view());
  const Array x = Array::of<std::int32_t>({3, 1}, std::vector<std::int32_t>{1, 7, 4});
  layers::Dropout like_dropout(layers::DropoutOptions{0.5, 26, ""});
  const Array expected = like_dropout(copying(x).outputs, true).to_host();
  SequenceModel::Call call;
  call.training = true;
  const Array found = copying(x, {}, call).outputs.to_host();
  for (std::int64_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(element(found.view(), i), element(expected.view(), i)) << i;
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
  EXPECT_EQ(error_of<ArgumentError>([&] { SequenceModel{config}; }),
            "[SequenceModel] vocabulary 0 and columns 0, expected one of the two above 0");
  config.vocabulary = 3;
  config.columns = 4;
  EXPECT_EQ(error_of<ArgumentError>([&] { SequenceModel{config}; }),
            "[SequenceModel] vocabulary 3 and columns 4, expected one of the two above 0");
}

// Training calls alone keep something for a backward pass.
TEST(SequenceModel, RecomputesInTraining) {
  if (default_device().engine()) GTEST_SKIP() << "the engines of processors alone recompute";
  Model model;
  const Array x = Array::of<std::int32_t>({3, 1}, std::vector<std::int32_t>{1, 4, 2});
  SequenceModel::Call call;
  call.training = true;
  const GradientTape tape;
  model.model().set_recompute(-7);
  const std::string said = error_of<ArgumentError>([&] { model.model()(x, {}, call); });
  EXPECT_NE(said.find("-7"), std::string::npos) << said;
  EXPECT_NO_THROW(model.model()(x));
  model.model().set_recompute(2);
  EXPECT_NO_THROW(model.model()(x, {}, call));
}

}  // namespace
}  // namespace openrnn::train
