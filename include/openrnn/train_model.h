// The model of the tool: embedding, recurrent layers, dense; scoring, sampling and forecasting.
#pragma once

#include "openrnn/layers.h"
#include "openrnn/train_data.h"

namespace openrnn::train {

/// What a model is.
struct ModelConfig {
  /// The recurrent layers. The data say its input_size. The dtype and the device are those of all
  /// layers, the dropout is also that before the last one; weights_dtype is for inference. Files of
  /// runs have neither input_size, direction, weights_dtype nor device.
  RnnSpec network = {};
  /// Classes of the input symbols (text); 0: the inputs are numbers.
  std::int64_t vocabulary = 0;
  /// Width of their embedding; 0: one-hot.
  std::int64_t embedding = 0;
  /// Columns of numbers (series); 0 for text.
  std::int64_t columns = 0;
  /// Width of the last layer.
  std::int64_t outputs = 0;

  /// The seed of all layers and of the order of the data: the network's, or 0.
  std::uint64_t seed() const {
    return static_cast<std::uint64_t>(network.training.seed.value_or(0));
  }
};

/// Symbols or numbers in, logits or forecasts out: [T, B] or [T, B, C] -> [T, B, outputs]. Its
/// variables go into the Graph that is current when it is made: `embedding/embeddings`,
/// `cudnn_lstm/opaque_kernel` (canonical names without a scope) and `dense/kernel`, `dense/bias`.
class OPENRNN_API SequenceModel {
 public:
  /// The forget gates of an LSTM start with a bias of 1, unless the network has a forget_bias.
  /// Throws: ArgumentError as the layers do.
  explicit SequenceModel(const ModelConfig& config);

  /// Result of a call.
  struct Result {
    Tensor outputs;
    /// As layers::RnnResult::state.
    std::vector<Tensor> state;
  };
  /// Options of a call.
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
  /// As RnnCallOptions::recompute, of training calls.
  void set_recompute(std::int64_t recompute) noexcept { recompute_ = recompute; }

 private:
  void raise_forget_bias();
  ModelConfig config_;
  std::int64_t recompute_ = 0;
  std::unique_ptr<layers::Embedding> embedding_;
  std::unique_ptr<layers::CudnnRnn> rnn_;
  std::unique_ptr<layers::Dropout> output_dropout_;
  std::unique_ptr<layers::Dense> dense_;
};

// ---- Language models ---------------------------------------------------------------------------

/// Result of score_text.
struct TextScore {
  /// -log2 of the probability of the whole text under the model.
  double bits = 0.0;
  std::int64_t symbols = 0;
  std::int64_t bytes = 0;
  double bits_per_byte() const { return bytes > 0 ? bits / static_cast<double>(bytes) : 0.0; }
};

/// Scores every symbol of `text` given the symbols before it. `context` precedes the text; empty: a
/// newline. Long texts run as parallel streams, each warmed up on the symbols before its own.
/// Throws: ArgumentError for an empty text or a score that is not finite, and as
/// Vocabulary::encode.
OPENRNN_API TextScore score_text(SequenceModel& model, const Vocabulary& vocabulary,
                                 std::string_view text, std::string_view context = {});

/// Options of sample_text.
struct SampleOptions {
  std::int64_t symbols = 500;
  /// Logits are divided by it; 0: always the most probable symbol.
  double temperature = 1.0;
  /// Sample from the top k symbols only; 0: from all.
  std::int64_t top_k = 0;
  /// Text that primes the model; not part of the output. Empty: a newline.
  std::string prime = {};
  std::uint64_t seed = 0;
};

/// Generates text: passes the bytes of each new symbol to `sink`, in order, until it returns false.
/// Throws: ArgumentError for a temperature or top_k below 0 or logits that are not finite, and as
/// Vocabulary::encode.
OPENRNN_API void sample_text(SequenceModel& model, const Vocabulary& vocabulary,
                             const SampleOptions& options,
                             const std::function<bool(std::string_view)>& sink);
/// The same as one string.
OPENRNN_API std::string sample_text(SequenceModel& model, const Vocabulary& vocabulary,
                                    const SampleOptions& options);

// ---- Forecasting -------------------------------------------------------------------------------

/// Root mean squared errors on the held-out rows, in the units of the file, one a column.
struct SeriesScore {
  std::vector<double> model, last_value, seasonal;
  /// Length of the season in rows; 0: no seasonal forecast.
  std::int64_t season = 0;
  /// Root of the mean over the columns of (error / standard deviation of the column)^2.
  double model_total = 0.0, last_value_total = 0.0, seasonal_total = 0.0;
  /// The better of the two naive forecasts.
  double naive_total() const {
    return season > 0 && seasonal_total < last_value_total ? seasonal_total : last_value_total;
  }
};

/// Throws: ArgumentError when an error is not finite.
OPENRNN_API SeriesScore score_series(SequenceModel& model, const SeriesWindows& windows);

/// The `steps` rows after the last one of the table, [steps, C] float64 in the units of the file. A
/// row is forecast from the window that ends `options.horizon` rows before it; where that holds
/// rows after the last, their forecasts stand for them. Throws: ArgumentError for steps below 1,
/// fewer rows than a window and the horizon need, other columns than the scaling has, or a forecast
/// that is not finite.
OPENRNN_API Array forecast_series(SequenceModel& model, const SeriesTable& table,
                                  const SeriesOptions& options, const SeriesScaling& scaling,
                                  std::int64_t steps);

}  // namespace openrnn::train
