// Which algorithm runs a piece.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "base/message.h"
#include "cudnn/gpu/log.h"
#include "cudnn/gpu/process_wide.h"
#include "cudnn/rnn/trial.h"

namespace openrnn::cudnn {
namespace {

// Steps are rounded to powers of two, so that batches of many lengths are not timed separately.
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

std::string announcement(const PieceCall& call, const Variant& variant) {
  return message("algorithm ", to_string(variant), " for ", describe(call.weights->spec), ", ",
                 call.slice.rows, " rows, ", call.slice.steps(), " steps, ",
                 call.training ? "training" : "inference");
}

/// The error of the enqueued work; empty when there is none.
std::string broken(Context& context) {
  try {
    context.wait();
  } catch (const EngineError& error) {
    return error.what();
  }
  return {};
}

/// Runs `body`, which uses a variant. False: cuDNN has no such variant, or no memory for it, and
/// the GPU still works. Throws: EngineError naming variant, shape and remedy for anything else,
/// such as an error of the GPU itself, after which no other algorithm runs either.
template <class Body>
bool attempt(const PieceCall& call, const Variant& variant, const Body& body) {
  const std::string what = announcement(call, variant);
  log_debug("tries " + what);
  try {
    body();
    return true;
  } catch (const GpuError& error) {
    const std::string cause = broken(*call.context);
    if (cause.empty() && error.fault() != GpuFault::kOther) return false;
    throw EngineError(message(error.what(), "; it was ", what,
                              "; start the process again with OPENRNN_CUDNN_ALGORITHM=standard",
                              variant == Variant{} ? ", or with device='cpu'" : ""));
  }
}

Variant fastest(const PieceCall& call, const PieceForward& memory,
                const std::vector<Variant>& list) {
  Variant best = list.front();
  std::optional<Trial> trial;
  std::vector<std::vector<double>> expected;
  double least = 0.0;
  const bool room = attempt(call, best, [&] {
    trial.emplace(call, memory);
    expected = trial->results(best);
    least = trial->time(best);
  });
  if (!room) return best;
  for (std::size_t n = 1; n < list.size(); ++n) {
    attempt(call, list[n], [&] {
      // A wrong one must not be chosen, however fast.
      if (!trial->agrees(list[n], expected)) return;
      const double time = trial->time(list[n]);
      if (time >= least) return;
      least = time;
      best = list[n];
    });
  }
  return best;
}

Variant choose(const PieceCall& call, const PieceForward& memory, const Key& key,
               const std::string& choice, const std::vector<Variant>& list) {
  if (const auto known = remembered(key)) {
    if (std::find(list.begin(), list.end(), *known) != list.end()) return *known;
  }
  if (choice != "auto" || list.size() == 1) return list.front();
  const Variant best = fastest(call, memory, list);
  remember(key, best);
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
  std::unique_ptr<Piece> piece;
  const auto run = [&](const Variant& with) {
    piece = std::make_unique<Piece>(call, with);
    piece->forward(memory);
  };
  if (variant == Variant{}) {
    run(variant);
    return piece;
  }
  const bool ran = attempt(call, variant, [&] {
    run(variant);
    // A named one is tried here, so that its errors are found before anything else runs.
    if (!remembered(key)) call.context->wait();
  });
  remember(key, ran ? variant : Variant{});
  if (!ran) run(Variant{});
  return piece;
}

}  // namespace openrnn::cudnn
