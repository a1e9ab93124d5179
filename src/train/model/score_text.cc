// How well a language model predicts a text.
#include <algorithm>
#include <cmath>

#include "openrnn/ops.h"
#include "openrnn/train_model.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kMostStreams = 32;
constexpr std::int64_t kWarmUp = 256;  // symbols that a stream reads before those it predicts
constexpr std::int64_t kSteps = 128;   // of one call, so that memory does not grow with the text

/// One stream: it reads symbols [begin, end) and predicts those from `counted` on.
struct Stream {
  std::int64_t begin = 0, end = 0, counted = 0;
};

std::vector<Stream> make_streams(std::int64_t context, std::int64_t symbols) {
  const std::int64_t count = std::clamp<std::int64_t>(symbols / (2 * kWarmUp), 1, kMostStreams);
  const std::int64_t length = (symbols + count - 1) / count;
  std::vector<Stream> streams;
  for (std::int64_t first = 0; first < symbols; first += length) {
    Stream stream;
    stream.counted = context + first;
    stream.begin = std::max<std::int64_t>(0, stream.counted - 1 - kWarmUp);
    stream.end = context + std::min(symbols, first + length) - 1;
    streams.push_back(stream);
  }
  return streams;
}

/// The symbols of the context and then those that are scored, found as they are asked for.
class Symbols {
 public:
  Symbols(const Vocabulary& vocabulary, std::string_view text, std::string_view context)
      : before_(vocabulary.encode(context.empty() ? "\n" : context)),
        scored_(TextBytes::view(text), vocabulary) {}
  std::int64_t before() const { return static_cast<std::int64_t>(before_.size()); }
  std::int64_t scored() const { return scored_.size(); }
  /// [first, first + count).
  void read(std::int64_t first, std::int64_t count, std::int32_t* ids) const {
    const std::int64_t own = std::clamp<std::int64_t>(before() - first, 0, count);
    if (own > 0) ids = std::copy_n(before_.begin() + first, own, ids);
    if (count > own) scored_.read(first + own - before(), count - own, ids);
  }

 private:
  std::vector<std::int32_t> before_;
  TextSymbols scored_;
};

/// Inputs, labels and lengths of all streams for `steps` steps from `time` on; a label of -1 leaves
/// its place out.
struct Block {
  Array x, y;
  std::vector<std::int32_t> lengths;
};

Block make_block(const Symbols& symbols, const std::vector<Stream>& streams, std::int64_t time,
                 std::int64_t steps) {
  const auto batch = static_cast<std::int64_t>(streams.size());
  Block block{Array(DType::kInt32, {steps, batch}), Array(DType::kInt32, {steps, batch}), {}};
  const auto x = block.x.as<std::int32_t>();
  const auto y = block.y.as<std::int32_t>();
  std::fill(y.begin(), y.end(), -1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(steps + 1));
  for (std::int64_t b = 0; b < batch; ++b) {
    const Stream& stream = streams[static_cast<std::size_t>(b)];
    const std::int64_t left = std::clamp<std::int64_t>(stream.end - stream.begin - time, 0, steps);
    block.lengths.push_back(static_cast<std::int32_t>(left));
    if (left > 0) symbols.read(stream.begin + time, left + 1, ids.data());
    for (std::int64_t t = 0; t < left; ++t) {
      const auto from = static_cast<std::size_t>(t), to = static_cast<std::size_t>(t * batch + b);
      x[to] = ids[from];
      if (stream.begin + time + t + 1 >= stream.counted) y[to] = ids[from + 1];
    }
  }
  return block;
}

/// How many of the labels are the unknown symbol, if there is one.
std::int64_t count_unknown(const Block& block, std::int32_t unknown) {
  const auto y = block.y.as<std::int32_t>();
  return unknown < 0 ? 0 : std::count(y.begin(), y.end(), unknown);
}

}  // namespace

TextScore score_text(SequenceModel& model, const Vocabulary& vocabulary, std::string_view text,
                     std::string_view context) {
  if (text.empty()) throw ArgumentError(message("score_text", "an empty text, expected symbols"));
  const Symbols symbols(vocabulary, text, context);
  TextScore score;
  score.symbols = symbols.scored();
  score.bytes = static_cast<std::int64_t>(text.size());
  const std::vector<Stream> streams = make_streams(symbols.before(), score.symbols);
  std::int64_t longest = 0;
  for (const Stream& stream : streams) longest = std::max(longest, stream.end - stream.begin);

  double nats = 0.0;
  std::int64_t unknown = 0;
  std::vector<Tensor> state;
  for (std::int64_t time = 0; time < longest; time += kSteps) {
    const Block block = make_block(symbols, streams, time, std::min(kSteps, longest - time));
    unknown += count_unknown(block, vocabulary.unknown());
    SequenceModel::Call call;
    call.sequence_lengths = block.lengths;
    SequenceModel::Result result = model(block.x, state, call);
    const Tensor losses = ops::softmax_cross_entropy_rows(result.outputs, Tensor(block.y.view()));
    const DeviceArray& values = losses.value();
    nats += values.device().sum(values.dtype(), values.size(), values.data());
    state = std::move(result.state);
  }
  if (!std::isfinite(nats)) {
    throw ArgumentError(message("score_text", "a loss of ", nats,
                                ", expected a finite one: the model's weights overflow"));
  }
  score.bits = nats / portable_log(2.0);
  if (unknown > 0) score.bits += static_cast<double>(unknown) * vocabulary.bits_of_unknown();
  return score;
}

}  // namespace openrnn::train
