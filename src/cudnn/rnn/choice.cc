// Which algorithm runs a piece.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/message.h"
#include "cudnn/device/event.h"
#include "cudnn/gpu/process_wide.h"
#include "cudnn/rnn/piece.h"

namespace openrnn::cudnn {
namespace {

// The steps count by powers of two, so that batches of many lengths are not timed one by one.
using Key = std::tuple<NetworkKey, std::int64_t, int, bool, bool, std::string>;

struct Choices {
  std::mutex mutex;
  std::map<Key, Variant> all;
};
constinit std::atomic<Choices*> choices{nullptr};

std::optional<Variant> remembered(const Key& key) {
  Choices& known = process_wide(choices);
  const std::lock_guard lock(known.mutex);
  const auto found = known.all.find(key);
  return found == known.all.end() ? std::nullopt : std::optional(found->second);
}

void remember(const Key& key, const Variant& variant) {
  Choices& known = process_wide(choices);
  const std::lock_guard lock(known.mutex);
  known.all[key] = variant;
}

// How far two algorithms of one arithmetic may be apart, relative to the norm of the result: many
// times their rounding, and far below what a wrong result differs by.
double most_difference(const RnnSpec& spec) {
  if (spec.dtype == DType::kFloat64) return 1e-9;
  const bool exact = spec.dtype == DType::kFloat32 && spec.math == Math::kFloat32;
  return exact ? 1e-3 : 5e-2;
}

double norm_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// Memory of a trial: what a variant computes, how long it takes.
class Trial {
 public:
  Trial(const PieceCall& call, const PieceForward& memory) : call_(call), memory_(memory) {
    const RnnSpec& spec = call.weights->spec;
    const std::int64_t planes = spec.num_pseudo_layers() * call.slice.rows;
    memory_.y = result(call.slice.count * spec.output_size());
    if (memory.hy) memory_.hy = block(planes * spec.hidden_size());
    if (memory.cy) memory_.cy = block(planes * spec.num_units);
    if (!call.training) return;
    gradient_.dy = memory_.y;
    gradient_.dx = result(call.slice.count * spec.input_size);
    gradient_.dhx = block(planes * spec.hidden_size());
    if (spec.is_lstm()) gradient_.dcx = block(planes * spec.num_units);
    gradient_.dweights = result(call.weights->map->size);
  }

  /// What the variant gives: y and, in training, the gradients of x and of the weights for dy = y.
  /// Throws: EngineError.
  std::vector<std::vector<double>> results(const Variant& variant) {
    if (gradient_.dweights) call_.context->zero(gradient_.dweights, call_.weights->bytes());
    run(variant);
    std::vector<std::vector<double>> found;
    for (const auto& [memory, elements] : results_) found.push_back(numbers(memory, elements));
    return found;
  }
  /// Whether they are those of `expected` but for rounding.
  bool agrees(const Variant& variant, const std::vector<std::vector<double>>& expected) {
    const auto found = results(variant);
    for (std::size_t n = 0; n < found.size(); ++n) {
      std::vector<double> difference = found[n];
      for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected[n][i];
      const double most = most_difference(call_.weights->spec) * norm_of(expected[n]);
      // In this form NaN is no agreement.
      if (!(norm_of(difference) <= most)) return false;
    }
    return true;
  }

  /// Milliseconds of the fastest of some runs. Throws: EngineError.
  double time(const Variant& variant) {
    constexpr int kRuns = 3;
    constexpr double kLong = 200.0;  // then one run says enough
    // The first is left out unless it is alone: it loads the kernels.
    double best = run(variant);
    if (best > kLong) return best;
    best = run(variant);
    for (int n = 1; n < kRuns; ++n) best = std::min(best, run(variant));
    return best;
  }

 private:
  void* block(std::int64_t elements) {
    const std::size_t bytes =
        static_cast<std::size_t>(elements) * dtype_size(call_.weights->spec.dtype);
    blocks_.push_back(call_.context->allocate(bytes));
    return blocks_.back().get();
  }

  void* result(std::int64_t elements) {
    void* const memory = block(elements);
    results_.emplace_back(memory, elements);
    return memory;
  }
  /// All of them, or of very many some from everywhere: reading them all would take seconds.
  std::vector<double> numbers(const void* memory, std::int64_t elements) const {
    constexpr std::int64_t kPieces = 64, kPiece = 1 << 14;
    const DType dtype = call_.weights->spec.dtype;
    const auto element = static_cast<std::int64_t>(dtype_size(dtype));
    const bool all = elements <= kPieces * kPiece;
    const std::int64_t pieces = all ? 1 : kPieces, each = all ? elements : kPiece;
    std::vector<char> bytes(static_cast<std::size_t>(pieces * each * element));
    for (std::int64_t n = 0; n < pieces; ++n) {
      const std::int64_t first = n * (elements - each) / std::max<std::int64_t>(pieces - 1, 1);
      call_.context->copy_out(bytes.data() + n * each * element,
                              static_cast<const char*>(memory) + first * element,
                              static_cast<std::size_t>(each * element));
    }
    std::vector<double> values(static_cast<std::size_t>(pieces * each));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = number_at(bytes.data() + i * dtype_size(dtype), dtype);
    }
    return values;
  }
  static double number_at(const char* at, DType dtype) {
    double wide = 0.0;
    float single = 0.0f;
    Half half{};
    if (dtype == DType::kFloat64) return std::memcpy(&wide, at, sizeof(wide)), wide;
    if (dtype == DType::kFloat32) return std::memcpy(&single, at, sizeof(single)), single;
    std::memcpy(&half, at, sizeof(half));
    return to_float(half);
  }

  double run(const Variant& variant) {
    Piece piece(call_, variant);
    Event start(Event::Time::kMeasured), end(Event::Time::kMeasured);
    start.record(*call_.context);
    piece.forward(memory_);
    if (call_.training) piece.backward(gradient_);
    end.record(*call_.context);
    end.wait();
    return Event::between(start, end);
  }

  const PieceCall& call_;
  PieceForward memory_;
  PieceBackward gradient_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<std::pair<void*, std::int64_t>> results_;
};

Variant fastest(const PieceCall& call, const PieceForward& memory,
                const std::vector<Variant>& list) {
  Trial trial(call, memory);
  Variant best = list.front();
  const auto expected = trial.results(best);
  double least = trial.time(best);
  for (std::size_t n = 1; n < list.size(); ++n) {
    try {
      // One that is wrong is not to be chosen for being fast.
      if (!trial.agrees(list[n], expected)) continue;
      const double time = trial.time(list[n]);
      if (time < least) {
        least = time;
        best = list[n];
      }
    } catch (const EngineError&) {
      continue;  // whatever keeps it from running, the standard one does run
    }
  }
  return best;
}

Variant choose(const PieceCall& call, const PieceForward& memory, const Key& key,
               const std::string& choice, const std::vector<Variant>& list) {
  if (const auto known = remembered(key)) {
    if (std::find(list.begin(), list.end(), *known) != list.end()) return *known;
  }
  Variant best = list.front();
  if (choice == "auto" && list.size() > 1) {
    try {
      best = fastest(call, memory, list);
    } catch (const EngineError&) {
      // No room for trials, for one: the standard algorithm needs none.
    }
    remember(key, best);
  }
  return best;
}

}  // namespace

std::vector<std::string> choices_so_far() {
  Choices& known = process_wide(choices);
  const std::lock_guard lock(known.mutex);
  std::vector<std::string> lines;
  for (const auto& [key, variant] : known.all) {
    const auto& [network, rows, width, even, training, choice] = key;
    lines.push_back(message(to_string(std::get<1>(network)), " of ", std::get<3>(network),
                            " units, ", rows, " rows, below ", std::int64_t{1} << width, " steps, ",
                            training ? "training" : "inference", ": ", to_string(variant)));
  }
  return lines;
}

std::unique_ptr<Piece> run_piece(const PieceCall& call, const PieceForward& memory) {
  const Slice& slice = call.slice;
  const std::string choice = call.timed ? algorithm_choice() : "standard";
  const CallShape shape{slice.steps(), slice.rows, slice.even(), call.training,
                        call.context->capability()};
  const Key key{network_key(*call.context, call.weights->spec),
                slice.rows,
                std::bit_width(static_cast<std::uint64_t>(slice.steps())),
                slice.even(),
                call.training,
                choice};
  const auto list = candidates(call.weights->spec, shape, choice);
  const Variant variant = choose(call, memory, key, choice, list);
  const auto run = [&](const Variant& with) {
    auto piece = std::make_unique<Piece>(call, with);
    piece->forward(memory);
    return piece;
  };
  if (variant == Variant{}) return run(variant);
  try {
    return run(variant);
  } catch (const EngineError&) {
    // An error that is not of the variant comes again.
    remember(key, Variant{});
    return run(Variant{});
  }
}

}  // namespace openrnn::cudnn
