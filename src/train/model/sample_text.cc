// Text generation.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "openrnn/train_model.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

void check(const SampleOptions& options) {
  const auto refuse = [](auto... parts) { throw ArgumentError(message("sample_text", parts...)); };
  if (!(options.temperature >= 0.0) || !std::isfinite(options.temperature)) {
    refuse("temperature ", options.temperature, ", expected a finite number of at least 0");
  }
  if (options.top_k < 0) refuse("top_k ", options.top_k, ", expected 0 or more");
  if (options.symbols < 0) refuse("symbols ", options.symbols, ", expected 0 or more");
}

/// Draws a class from its logits. Ties go to the smaller class, so that results do not depend on
/// the implementation of sort.
std::int32_t draw(const std::vector<double>& logits, std::int32_t unknown,
                  const SampleOptions& options, RandomStream& random) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  // The unknown symbol has no bytes: it is never generated.
  if (unknown >= 0 && order.size() > 1) order.erase(order.begin() + unknown);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < order.size()) {
    order.resize(static_cast<std::size_t>(options.top_k));
  }
  if (options.temperature == 0.0) return order.front();
  const double top = logits[static_cast<std::size_t>(order.front())];
  std::vector<double> sums;
  double sum = 0.0;
  for (const std::int32_t id : order) {
    sum += portable_exp((logits[static_cast<std::size_t>(id)] - top) / options.temperature);
    sums.push_back(sum);
  }
  const auto at = std::upper_bound(sums.begin(), sums.end(), random.uniform() * sum);
  const auto place =
      std::min<std::ptrdiff_t>(at - sums.begin(), static_cast<std::ptrdiff_t>(order.size()) - 1);
  return order[static_cast<std::size_t>(place)];
}

/// The logits after the last step of outputs [T, 1, V].
std::vector<double> last_logits(const Tensor& outputs) {
  const Array host = outputs.to_host();
  const std::int64_t classes = host.shape().back();
  std::vector<double> logits(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < classes; ++i) {
    const double logit = element(host.view(), host.size() - classes + i);
    if (!std::isfinite(logit)) {
      throw ArgumentError(message("sample_text", "a logit of ", logit,
                                  ", expected finite ones: the model's weights overflow"));
    }
    logits[static_cast<std::size_t>(i)] = logit;
  }
  return logits;
}

}  // namespace

void sample_text(SequenceModel& model, const Vocabulary& vocabulary, const SampleOptions& options,
                 const std::function<bool(std::string_view)>& sink) {
  check(options);
  RandomStream random(options.seed);
  const std::vector<std::int32_t> prime =
      vocabulary.encode(options.prime.empty() ? "\n" : options.prime);
  const auto length = static_cast<std::int64_t>(prime.size());
  SequenceModel::Result result =
      model(Array::of<std::int32_t>({length, 1}, std::span<const std::int32_t>(prime)));
  for (std::int64_t i = 0; i < options.symbols; ++i) {
    const std::int32_t id =
        draw(last_logits(result.outputs), vocabulary.unknown(), options, random);
    if (!sink(vocabulary.decode(id)) || i + 1 == options.symbols) return;
    result =
        model(Array::of<std::int32_t>({1, 1}, std::span<const std::int32_t>(&id, 1)), result.state);
  }
}

std::string sample_text(SequenceModel& model, const Vocabulary& vocabulary,
                        const SampleOptions& options) {
  std::string text;
  sample_text(model, vocabulary, options, [&](std::string_view bytes) {
    text += bytes;
    return true;
  });
  return text;
}

}  // namespace openrnn::train
