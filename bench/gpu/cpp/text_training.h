// A language model in training on a device, over a text that is made here.
#pragma once

#include <functional>

#include "openrnn/train.h"

namespace openrnn::gpu_bench {

/// Sizes of a run.
struct TrainingSizes {
  std::int64_t layers = 2, units = 33, embedding = 7, batch = 5, seq_len = 17;
  double dropout = 0.0;
  DType dtype = DType::kFloat32;
  std::int64_t steps = 0;  // of the whole run
};

/// Words in an order that has something to learn; the same on every machine.
train::Text made_text(std::int64_t bytes);

/// The model, its data and its optimizer, every variable on one device. One at a time on a thread,
/// since the variables are in the thread's current graph.
class TextTraining {
 public:
  /// `text` must outlive it.
  TextTraining(const TrainingSizes& sizes, const train::Text& text, const Device& device);
  /// Runs to `step`, counted from the start of the run, and gives the loss of each step to `each`.
  void run_to(std::int64_t step, const std::function<void(double loss)>& each);
  /// Runs until `go_on` says no, which is asked after each step but the first with the loss of the
  /// step before: so nobody waits for the GPU more than the tool does.
  void run_while(const std::function<bool(double loss)>& go_on);
  void save(const std::string& prefix) const;
  /// Goes on where the run stood that was saved.
  void restore(const std::string& prefix);

 private:
  Graph graph_;
  Graph::AsDefault current_;
  train::SequenceModel model_;
  train::TextTask task_;
  train::AdamOptimizer optimizer_;
  train::Fit fit_;
};

}  // namespace openrnn::gpu_bench
