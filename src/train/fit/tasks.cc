// The two tasks: text and series.
#include <algorithm>
#include <cmath>

#include "openrnn/ops.h"
#include "train/fit/carried_state.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

std::uint64_t saved_calls(const Extras& extras) {
  const std::int64_t calls = extras.get_int("dropout_calls");
  if (calls >= 0) return static_cast<std::uint64_t>(calls);
  throw ArgumentError(
      message("Task", "dropout_calls ", calls, " of the saved run, expected 0 or more"));
}

/// The part's rows. The parts of a step share the window that was made for the first of them.
template <class Data>
Window window_of(const Data& data, const DataPosition& position, const ops::BatchPart& part,
                 LatestWindow& latest) {
  if (part.rows == part.whole_batch) return data.window(position);
  if (latest.position != position) latest = {position, data.window(position)};
  Window rows = latest.window.part(part.first_row, part.rows);
  if (part.first_row + part.rows == part.whole_batch) latest = {};
  return rows;
}

}  // namespace

Tensor Task::loss_of_part(const DataPosition& position, const ops::BatchPart& part) {
  static_cast<void>(position);
  throw StateError(message("Task", "rows ", part.first_row, " to ", part.first_row + part.rows,
                           " of a batch of ", part.whole_batch,
                           " of a task that computes whole batches alone, expected one that ",
                           "overrides batch and loss_of_part"));
}

void Task::gather(Communicator&, const ops::BatchPart&) {}

TextTask::TextTask(SequenceModel& model, const Text& text, const Options& options)
    : model_(model),
      text_(text),
      options_(options),
      streams_(TextSymbols(text.train, text.vocabulary),
               {.batch = options.batch, .seq_len = options.seq_len, .seed = model.config().seed()}),
      state_(std::make_unique<CarriedState>()) {
  const auto symbols = static_cast<double>(streams_.text().size());
  symbols_per_byte_ = symbols / static_cast<double>(text.train.size());
}

TextTask::~TextTask() = default;

Tensor TextTask::loss(const DataPosition& position) {
  return loss_of_part(position, {0, options_.batch, options_.batch});
}

Tensor TextTask::loss_of_part(const DataPosition& position, const ops::BatchPart& part) {
  const Window window = window_of(streams_, position, part, latest_);
  state_->begin(part.first_row);
  std::vector<Tensor> state;
  if (!window.fresh) state = state_->before(part.first_row, part.rows);
  SequenceModel::Call call;
  call.training = true;
  SequenceModel::Result result = model_(window.x, state, call);
  state.clear();
  for (const Tensor& each : result.state) state.push_back(each.detached());
  state_->leave(part.first_row, part.rows, std::move(state));
  return ops::softmax_cross_entropy(result.outputs, Tensor(window.y.view()));
}

std::int64_t TextTask::items(const DataPosition&) const { return streams_.symbols(); }

double TextTask::metric(double loss) const { return loss * symbols_per_byte_ / portable_log(2.0); }

double TextTask::validate(bool quick) {
  std::string_view text = text_.valid;
  const auto most = static_cast<std::size_t>(options_.quick_bytes);
  if (quick && text.size() > most) {
    // Not in the middle of a character.
    std::size_t end = most;
    while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end);
  }
  return score_text(model_, text_.vocabulary, text).bits_per_byte();
}

void TextTask::save(Extras& extras) const {
  extras.set_int("dropout_calls", static_cast<std::int64_t>(model_.dropout_calls()));
  const std::vector<Tensor> state = state_->latest(options_.batch);
  extras.set_int("state_count", static_cast<std::int64_t>(state.size()));
  for (std::size_t i = 0; i < state.size(); ++i) {
    extras.set("state_" + std::to_string(i), state[i].to_host());
  }
}

void TextTask::load(const Extras& extras) {
  const std::uint64_t calls = saved_calls(extras);
  const RnnSpec& spec = model_.rnn().spec();
  const std::int64_t states = spec.has_cell() ? 2 : 1;
  const std::int64_t count = extras.get_int("state_count");
  if (count != 0 && count != states) {
    throw ArgumentError(
        message("TextTask", "state_count ", count, " of the saved run, expected 0 or ", states));
  }
  std::vector<Tensor> state;
  for (std::int64_t i = 0; i < count; ++i) {
    const Shape shape = i == 0 ? spec.h_shape(options_.batch) : spec.c_shape(options_.batch);
    state.emplace_back(extras.get_array("state_" + std::to_string(i), spec.dtype, shape).view());
  }
  model_.set_dropout_calls(calls);
  state_->load(options_.batch, std::move(state));
}

void TextTask::gather(Communicator& communicator, const ops::BatchPart& own) {
  state_->gather(communicator, own);
}

SeriesTask::SeriesTask(SequenceModel& model, const SeriesWindows& data, bool to_sequence)
    : model_(model), data_(data), to_sequence_(to_sequence) {}

Tensor SeriesTask::loss(const DataPosition& position) {
  const std::int64_t rows = data_.rows(position);
  return loss_of_part(position, {0, rows, rows});
}

Tensor SeriesTask::loss_of_part(const DataPosition& position, const ops::BatchPart& part) {
  const Window window = window_of(data_, position, part, latest_);
  SequenceModel::Call call;
  call.training = true;
  Tensor outputs = model_(window.x, {}, call).outputs;
  if (!to_sequence_) {
    const std::int64_t steps = outputs.shape()[0];
    outputs = ops::reshape(ops::slice(outputs, {0, steps - 1, 1}), window.y.shape());
  }
  // Squares of float16 overflow early.
  const DType dtype = outputs.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  if (outputs.dtype() != dtype) outputs = ops::cast(outputs, dtype);
  return ops::mean_squared_error(outputs, Tensor(cast(window.y.view(), dtype).view()));
}

double SeriesTask::validate(bool) { return score_series(model_, data_).model_total; }

void SeriesTask::save(Extras& extras) const {
  const auto keep = [&](const std::string& name, const std::vector<double>& values) {
    extras.set(name, Array::of<double>({static_cast<std::int64_t>(values.size())},
                                       std::span<const double>(values)));
  };
  keep("series_mean", data_.scaling().values.mean);
  keep("series_deviation", data_.scaling().values.deviation);
  keep("series_change_mean", data_.scaling().changes.mean);
  keep("series_change_deviation", data_.scaling().changes.deviation);
  extras.set_int("dropout_calls", static_cast<std::int64_t>(model_.dropout_calls()));
}

void SeriesTask::load(const Extras& extras) { model_.set_dropout_calls(saved_calls(extras)); }

SeriesScaling load_scaling(const Extras& extras) {
  const std::int64_t columns = extras.get_array("series_mean", DType::kFloat64, {-1}).size();
  const auto values = [&](const std::string& name, bool divides) {
    const auto kept = extras.get_array(name, DType::kFloat64, {columns}).as<double>();
    for (const double value : kept) {
      if (std::isfinite(value) && (value > 0.0 || !divides)) continue;
      throw ArgumentError(message("load_scaling", name, " holds ", value,
                                  ", expected finite numbers", divides ? " above 0" : ""));
    }
    return std::vector<double>(kept.begin(), kept.end());
  };
  return {{values("series_mean", false), values("series_deviation", true)},
          {values("series_change_mean", false), values("series_change_deviation", true)}};
}

}  // namespace openrnn::train
