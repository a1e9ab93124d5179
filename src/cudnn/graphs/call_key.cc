#include "cudnn/graphs/call_key.h"

#include <cstdlib>

#include "base/message.h"

namespace openrnn::cudnn {

bool graphs_wanted() {
  const char* text = std::getenv("OPENRNN_CUDA_GRAPHS");
  const std::string value = text ? text : "";
  if (value == "1") return true;
  if (value.empty() || value == "0") return false;
  throw ArgumentError(message("[OPENRNN_CUDA_GRAPHS] is '", value, "', expected '0' or '1'"));
}

std::vector<const void*> places_of_weights(const CudnnPacked& packed) {
  const RnnSpec& spec = packed.spec();
  const std::int64_t stage = has_too_many_weights(spec) ? 1 : spec.num_layers;
  std::vector<const void*> places;
  for (std::int64_t layer = 0; layer < spec.num_layers; layer += stage) {
    places.push_back(packed.part({layer, stage, -1}).memory.get());
  }
  return places;
}

CallKey key_of(const CudnnPacked& packed, const ForwardArgs& args, bool saving) {
  CallKey key;
  key.spec = packed.spec();
  key.saving = saving;
  key.batch = args.batch;
  key.time = args.max_time;
  key.time_major = args.time_major;
  key.given = {args.h0 != nullptr, args.c0 != nullptr, args.hn != nullptr, args.cn != nullptr};
  if (args.sequence_lengths) {
    key.lengths.assign(args.sequence_lengths, args.sequence_lengths + args.batch);
  }
  key.weights = places_of_weights(packed);
  key.algorithm = algorithm_choice();
  return key;
}

std::string unrecordable(const ForwardArgs& args) {
  const RnnSpec& spec = args.params->spec();
  // The masks depend on a counter of the host, or on cuDNN's generator.
  if (args.training && spec.training.dropout > 0.0 && spec.num_layers > 1) return "it drops out";
  if (args.layer_outputs || args.layer_cells) return "it gives what every layer leaves";
  if (args.max_time > most_steps()) return "its sequences are cut";
  const bool empty = args.batch == 0 || args.max_time == 0;
  bool any = !args.sequence_lengths && !empty;
  for (std::int64_t b = 0; args.sequence_lengths && b < args.batch; ++b) {
    any = any || args.sequence_lengths[b] > 0;
  }
  return any ? "" : "all its rows are empty";
}

std::string call_text(const ForwardArgs& args, bool saving) {
  return message(describe(args.params->spec()), ", batch ", args.batch, ", ", args.max_time,
                 " steps, ", saving ? "training" : "inference");
}

}  // namespace openrnn::cudnn
