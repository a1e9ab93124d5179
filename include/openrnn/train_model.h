// The model of the tool: embedding, recurrent layers, dense; and what is done with a trained one.
#pragma once

#include "openrnn/layers.h"
#include "openrnn/train_data.h"

namespace openrnn::train {

/// What the network is.
struct ModelConfig {
  RnnMode mode = RnnMode::kLstm;
  std::int64_t layers = 1;
  std::int64_t units = 128;
  /// Classes of the input symbols (text); 0: the inputs are numbers.
  std::int64_t vocabulary = 0;
  /// Width of their embedding; 0: one-hot.
  std::int64_t embedding = 0;
  /// Columns of numbers (series); 0 for text.
  std::int64_t columns = 0;
  /// Width of the last layer.
  std::int64_t outputs = 0;
  double dropout = 0.0;
  DType dtype = DType::kFloat32;
  std::uint64_t seed = 0;
  /// Of the recurrent layers.
  Math math = Math::kFloat32;
  /// Of the recurrent layers; a model with one cannot be trained, and no file keeps it.
  WeightsDType weights_dtype = WeightsDType::kNone;
  /// Of all layers; null: the default device. No file keeps it: a run goes on on any device.
  const Device* device = nullptr;
};

/// Symbols or numbers in, logits or forecasts out: [T, B] or [T, B, C] -> [T, B, outputs]. Its
/// variables go into the Graph that is current when it is made: `embedding/embeddings`,
/// `cudnn_lstm/opaque_kernel` (canonical names without a scope) and `dense/kernel`, `dense/bias`.
class OPENRNN_API SequenceModel {
 public:
  /// Throws: ArgumentError as the layers do.
  explicit SequenceModel(const ModelConfig& config);

  /// What a call gives.
  struct Result {
    Tensor outputs;
    /// As layers::RnnResult::state.
    std::vector<Tensor> state;
  };
  /// What a call takes besides data and state.
  struct Call {
    bool training = false;
    /// [B]; empty: all are T.
    std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  };
  /// `state` empty: zeros.
  Result operator()(const Array& x, const std::vector<Tensor>& state, const Call& call);
  Result operator()(const Array& x, const std::vector<Tensor>& state = {}) {
    return (*this)(x, state, Call{});
  }

  const ModelConfig& config() const noexcept { return config_; }
  const layers::CudnnRnn& rnn() const noexcept { return *rnn_; }
  const layers::Embedding* embedding() const noexcept { return embedding_.get(); }
  const layers::Dense& dense() const noexcept { return *dense_; }
  std::vector<Variable> variables() const;
  std::uint64_t dropout_calls() const;
  void set_dropout_calls(std::uint64_t calls);

 private:
  void raise_forget_bias();
  ModelConfig config_;
  std::unique_ptr<layers::Embedding> embedding_;
  std::unique_ptr<layers::CudnnRnn> rnn_;
  std::unique_ptr<layers::Dropout> output_dropout_;
  std::unique_ptr<layers::Dense> dense_;
};

// ---- A language model at work ------------------------------------------------------------------

/// What score_text found.
struct TextScore {
  /// Of the whole text: -log2 of the probability that the model gave it.
  double bits = 0.0;
  std::int64_t symbols = 0;
  std::int64_t bytes = 0;
  double bits_per_byte() const { return bytes > 0 ? bits / static_cast<double>(bytes) : 0.0; }
};

/// Scores every symbol of `text`, each from what stands before it. `context` is what stands before
/// the text; empty: a line end. Long texts run as parallel streams, each warmed up on the symbols
/// before its own. Throws: ArgumentError for an empty text or a score that is not finite, and as
/// Vocabulary::encode.
OPENRNN_API TextScore score_text(SequenceModel& model, const Vocabulary& vocabulary,
                                 std::string_view text, std::string_view context = {});

/// What sample_text writes.
struct SampleOptions {
  std::int64_t symbols = 500;
  /// Logits are divided by it; 0 takes the most probable symbol always.
  double temperature = 1.0;
  /// Only the so many most probable symbols; 0: all.
  std::int64_t top_k = 0;
  /// What the text begins with; it is not given back. Empty: a line end.
  std::string prime = {};
  std::uint64_t seed = 0;
};

/// Writes on: each new symbol's bytes go to `sink`, in order, until it returns false.
/// Throws: ArgumentError for a temperature or top_k below 0 or logits that are not finite, and as
/// Vocabulary::encode.
OPENRNN_API void sample_text(SequenceModel& model, const Vocabulary& vocabulary,
                             const SampleOptions& options,
                             const std::function<bool(std::string_view)>& sink);
/// The same as one string.
OPENRNN_API std::string sample_text(SequenceModel& model, const Vocabulary& vocabulary,
                                    const SampleOptions& options);

// ---- A forecaster at work ----------------------------------------------------------------------

/// Root mean squared errors on the held-out rows, in the units of the file, one a column.
struct SeriesScore {
  std::vector<double> model, last_value, seasonal;
  /// Rows of the seasonal forecast's season; 0: there is none.
  std::int64_t season = 0;
  /// Root of the mean over the columns of (error / standard deviation of the column)^2.
  double model_total = 0.0, last_value_total = 0.0, seasonal_total = 0.0;
  /// The better of the two.
  double naive_total() const {
    return season > 0 && seasonal_total < last_value_total ? seasonal_total : last_value_total;
  }
};

/// Throws: ArgumentError when an error is not finite.
OPENRNN_API SeriesScore score_series(SequenceModel& model, const SeriesWindows& windows);

}  // namespace openrnn::train
