#include "gpu/cpp/text_training.h"

#include <array>
#include <optional>

namespace openrnn::gpu_bench {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr double kLearningRate = 1e-2;

train::ModelConfig config_of(const TrainingSizes& sizes, const train::Text& text) {
  train::ModelConfig config;
  config.network.num_layers = sizes.layers;
  config.network.num_units = sizes.units;
  config.embedding = sizes.embedding;
  config.vocabulary = config.outputs = text.vocabulary.size();
  config.network.training.dropout = sizes.dropout;
  config.network.dtype = sizes.dtype;
  config.network.training.seed = std::int64_t{kSeed};
  return config;
}

train::TextTask::Options task_options(const TrainingSizes& sizes) {
  train::TextTask::Options options;
  options.batch = sizes.batch;
  options.seq_len = sizes.seq_len;
  return options;
}

train::FitOptions fit_options(const TrainingSizes& sizes) {
  train::FitOptions options;
  options.steps = sizes.steps;
  options.schedule.learning_rate = kLearningRate;
  return options;
}

// Layers are made on the default device.
Graph::AsDefault current_on(Graph& graph, const Device& device) {
  set_default_device(device);
  return Graph::AsDefault(graph);
}

}  // namespace

train::Text made_text(std::int64_t bytes) {
  constexpr std::array kWords = {"the ",   "cell ", "keeps ",  "what ",   "gates ",
                                 "let ",   "in, ",  "forgets", " and\n",  "a ",
                                 "state ", "goes ", "around ", "again; ", "so on.\n"};
  RandomStream random(kSeed, 1);
  std::string text;
  std::size_t word = 0;
  while (static_cast<std::int64_t>(text.size()) < bytes) {
    text += kWords[word];
    // Mostly the next word but two, so that a model learns an order and never all of it.
    const auto jump = static_cast<std::size_t>(
        random.uniform(0.0, 1.0) < 0.8 ? 2.0 : random.uniform(0.0, kWords.size() - 0.01));
    word = (word + jump) % kWords.size();
  }
  train::Text found;
  found.vocabulary = train::Vocabulary::of_text(text, train::TextLevel::kByte);
  found.valid = text.substr(0, 200);
  found.train = std::move(text);
  return found;
}

TextTraining::TextTraining(const TrainingSizes& sizes, const train::Text& text,
                           const Device& device)
    : current_(current_on(graph_, device)),
      model_(config_of(sizes, text)),
      task_(model_, text, task_options(sizes)),
      optimizer_(kLearningRate),
      fit_(task_, optimizer_, fit_options(sizes)) {}

void TextTraining::run_to(std::int64_t step, const std::function<void(double loss)>& each) {
  if (fit_.step() >= step) return;
  fit_.run({[&](const train::StepReport& report) {
    each(report.metric());
    return report.step < step;
  }});
}

void TextTraining::run_while(const std::function<bool(double loss)>& go_on) {
  std::optional<train::StepReport> before;
  fit_.run({[&](const train::StepReport& report) {
    const bool goes_on = !before || go_on(before->metric());
    before = report;
    return goes_on;
  }});
}

void TextTraining::save(const std::string& prefix) const {
  Extras extras;
  fit_.save(extras);
  Saver().write(prefix, extras);
}

void TextTraining::restore(const std::string& prefix) { fit_.load(Saver().restore(prefix)); }

}  // namespace openrnn::gpu_bench
