#include "python/torch/passes.h"

#include <algorithm>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/torch/places.h"

namespace openrnn::python::torch {
namespace {

// A workspace of so many rows of all steps is kept for the next call, for which making one would
// be a good part of the time; a longer call makes its own.
constexpr std::int64_t kKeptRows = 1024;

Workspace* workspace_for(const Network& network, PackedWeights::Packed& packed, const Call& call) {
  if (call.max_time * call.batch > kKeptRows) return nullptr;
  KeptWorkspace& kept = packed.kept;
  const bool fits = kept.workspace && kept.batch >= call.batch && kept.time >= call.max_time &&
                    kept.threads == call.threads;
  if (!fits) {
    kept.batch = call.batch;
    kept.time = call.max_time;
    kept.threads = call.threads;
    kept.workspace = network.engine->make_workspace(
        packed.params, {.batch = kept.batch, .time = kept.time, .max_threads = kept.threads});
  }
  return kept.workspace.get();
}

// A sequence and two states: x, h0, c0 where they enter a network, y, hn, cn where they leave it.
struct Places {
  Sequence sequence;
  State h, c;

  void finish() {
    sequence.finish();
    h.finish();
    c.finish();
  }
};

Places given_places(const Network& network, const Call& call, const Inputs& in,
                    std::int64_t width) {
  return {.sequence = Sequence::input(network, call, in.x, width),
          .h = State::input(network, call, in.h0, network.spec->hidden_size()),
          .c = State::input(network, call, in.c0, network.spec->num_units)};
}

Places made_places(const Network& network, const Call& call, const Outputs& out,
                   std::int64_t width) {
  return {.sequence = Sequence::output(network, call, out.y, width),
          .h = State::output(network, call, out.hn, network.spec->hidden_size()),
          .c = State::output(network, call, out.cn, network.spec->num_units)};
}

std::vector<std::int32_t> lengths_if_packed(const Call& call) {
  return call.batch_sizes ? lengths_of(call) : std::vector<std::int32_t>();
}

}  // namespace

std::shared_ptr<const SavedCall> forward(const std::shared_ptr<const Network>& network,
                                         PackedWeights::Packed& packed, const Call& call,
                                         const Inputs& in, const Outputs& out, bool saving) {
  const Places given = given_places(*network, call, in, network->spec->input_size);
  Places places = made_places(*network, call, out, network->spec->output_size());
  const std::vector<std::int32_t> lengths = lengths_if_packed(call);
  ForwardArgs args;
  args.params = packed.params;
  args.max_time = call.max_time;
  args.batch = call.batch;
  args.time_major = !call.batch_major;
  args.sequence_lengths = call.batch_sizes ? lengths.data() : nullptr;
  args.x = given.sequence.data();
  args.h0 = given.h.data();
  args.c0 = given.c.data();
  args.y = places.sequence.mutable_data();
  args.hn = places.h.mutable_data();
  args.cn = places.c.mutable_data();
  args.training = call.training;
  args.dropout = call.dropout;
  args.max_threads = call.threads;
  if (!saving) {
    std::unique_lock lock(packed.one_call, std::try_to_lock);
    Workspace* const kept = lock.owns_lock() ? workspace_for(*network, packed, call) : nullptr;
    network->engine->forward(args, kept);
    places.finish();
    return nullptr;
  }
  auto saved = std::make_shared<SavedCall>();
  saved->forward = network->engine->forward_saving(args);
  places.finish();
  saved->network = network;
  saved->call = call;
  if (call.batch_sizes) {
    saved->batch_sizes.assign(call.batch_sizes, call.batch_sizes + call.max_time);
  }
  saved->call.batch_sizes = nullptr;
  return saved;
}

void backward(const SavedCall& saved, const Backward& args) {
  const Network& network = *saved.network;
  Call call = saved.call;
  if (!saved.batch_sizes.empty()) call.batch_sizes = saved.batch_sizes.data();
  const Places given = given_places(network, call, args.from, network.spec->output_size());
  Places places = made_places(network, call, args.to, network.spec->input_size);
  BackwardArgs to;
  to.saved = saved.forward.get();
  to.dy = given.sequence.data();
  to.dhn = given.h.data();
  to.dcn = given.c.data();
  to.dx = places.sequence.mutable_data();
  to.dh0 = places.h.mutable_data();
  to.dc0 = places.c.mutable_data();
  to.dparams = args.params;
  to.row_dparams = args.rows;
  to.first_row = args.first;
  to.last_row = args.last;
  network.engine->backward(to);
  places.finish();
}

const Engine* tangent_engine(const Network& network) {
  for (const Engine* each : {network.engine, &engine("cpu"), &engine("reference")}) {
    if (!each->device() && each->has_tangent(network.spec)) return each;
  }
  return nullptr;
}

void tangent(const Network& network, const Call& call, const Tangent& args) {
  const Engine* const known = tangent_engine(network);
  if (!known) {
    throw UnsupportedError(message("[backward] a second derivative of ", describe(network.spec),
                                   ", expected a first one, or options that have second ones"));
  }
  const std::int64_t in = network.spec->input_size, out = network.spec->output_size();
  const Places at = given_places(network, call, args.at, in),
               direction = given_places(network, call, args.direction, in),
               gradients = given_places(network, call, args.gradients, out);
  Places moved = made_places(network, call, args.moved, out),
         curvature = made_places(network, call, args.curvature, in);
  const std::vector<std::int32_t> lengths = lengths_if_packed(call);
  TangentArgs to;
  to.spec = network.spec;
  to.max_time = call.max_time;
  to.batch = call.batch;
  to.time_major = !call.batch_major;
  to.sequence_lengths = call.batch_sizes ? lengths.data() : nullptr;
  to.training = call.training;
  to.dropout = call.dropout;
  to.at = {at.sequence.data(), at.h.data(), at.c.data(), args.params};
  to.direction = {direction.sequence.data(), direction.h.data(), direction.c.data(),
                  args.params_direction};
  to.gradients = {gradients.sequence.data(), gradients.h.data(), gradients.c.data()};
  to.moved = {moved.sequence.mutable_data(), moved.h.mutable_data(), moved.c.mutable_data()};
  to.curvature = {curvature.sequence.mutable_data(), curvature.h.mutable_data(),
                  curvature.c.mutable_data(), args.params_curvature};
  known->tangent(to);
  moved.finish();
  curvature.finish();
}

}  // namespace openrnn::python::torch
