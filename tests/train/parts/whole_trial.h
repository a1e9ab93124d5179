// A run of a small model on a text or a series, in a graph of its own.
#pragma once

#include <array>
#include <cmath>
#include <memory>

#include "openrnn/ops.h"
#include "support/text_runs.h"

namespace openrnn::train {

/// Two columns of this many rows.
inline SeriesTable waves(std::int64_t rows) {
  SeriesTable table;
  table.names = {"a", "b"};
  table.values = Array(DType::kFloat64, {rows, 2});
  RandomStream random(4);
  auto values = table.values.as<double>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    values[2 * i] = std::sin(0.7 * static_cast<double>(i));
    values[2 * i + 1] = random.uniform(-1.0, 1.0);
  }
  return table;
}

struct TrialSetup {
  bool series = false, to_sequence = true;
  std::int64_t batch = 0;
  std::int64_t words = 0;  // of the text
  std::int64_t rows = 0;   // of the series
  RnnSpec network;         // but for its sizes
  std::string optimizer;
  FitOptions fit;  // but for the rate
};

struct WholeTrial {
  explicit WholeTrial(const TrialSetup& setup)
      : current(graph),
        text(text_of_words(std::array{"the ", "cat ", "sat ", "on ", "a ", "mat\n"}, setup.words,
                           60)),
        windows(waves(setup.rows), {.window = 5,
                                    .to_sequence = setup.to_sequence,
                                    .batch = setup.batch,
                                    .valid_fraction = 0.2,
                                    .seed = 3}) {
    ModelConfig config;
    config.network = setup.network;
    config.network.num_layers = 2;
    config.network.num_units = 5;
    if (setup.series) {
      config.columns = config.outputs = windows.columns();
    } else {
      config.embedding = 4;
      config.vocabulary = config.outputs = text.vocabulary.size();
    }
    model = std::make_unique<SequenceModel>(config);
    if (setup.series) {
      task = std::make_unique<SeriesTask>(*model, windows, setup.to_sequence);
    } else {
      task = std::make_unique<TextTask>(*model, text,
                                        TextTask::Options{.batch = setup.batch, .seq_len = 7});
    }
    optimizer = make_optimizer(setup.optimizer, 0.01);
    FitOptions options = setup.fit;
    options.schedule = {ScheduleKind::kConstant, 0.05};
    fit = std::make_unique<Fit>(*task, *optimizer, options);
  }

  Graph graph;
  Graph::AsDefault current;
  Text text;
  SeriesWindows windows;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<Task> task;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Fit> fit;
};

}  // namespace openrnn::train
