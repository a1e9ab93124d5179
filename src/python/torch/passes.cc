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

struct Places {
  Sequence y;
  State hn, cn;

  Places(const Network& network, const Call& call, const Outputs& out)
      : y(Sequence::output(network, call, out.y, network.spec->output_size())),
        hn(State::output(network, call, out.hn, network.spec->hidden_size())),
        cn(State::output(network, call, out.cn, network.spec->num_units)) {}
  void finish() {
    y.finish();
    hn.finish();
    cn.finish();
  }
};

// Gradients of x, h0 and c0, or of their kind.
struct InputPlaces {
  Sequence x;
  State h0, c0;

  InputPlaces(const Network& network, const Call& call, const Outputs& out)
      : x(Sequence::output(network, call, out.y, network.spec->input_size)),
        h0(State::output(network, call, out.hn, network.spec->hidden_size())),
        c0(State::output(network, call, out.cn, network.spec->num_units)) {}
  void finish() {
    x.finish();
    h0.finish();
    c0.finish();
  }
};

struct GivenInputs {
  Sequence x;
  State h0, c0;

  GivenInputs(const Network& network, const Call& call, const Inputs& in)
      : x(Sequence::input(network, call, in.x, network.spec->input_size)),
        h0(State::input(network, call, in.h0, network.spec->hidden_size())),
        c0(State::input(network, call, in.c0, network.spec->num_units)) {}
};

struct GivenOutputs {
  Sequence y;
  State hn, cn;

  GivenOutputs(const Network& network, const Call& call, const Inputs& in)
      : y(Sequence::input(network, call, in.x, network.spec->output_size())),
        hn(State::input(network, call, in.h0, network.spec->hidden_size())),
        cn(State::input(network, call, in.c0, network.spec->num_units)) {}
};

std::vector<std::int32_t> lengths_if_packed(const Call& call) {
  return call.batch_sizes ? lengths_of(call) : std::vector<std::int32_t>();
}

}  // namespace

std::shared_ptr<const SavedCall> forward(const std::shared_ptr<const Network>& network,
                                         PackedWeights::Packed& packed, const Call& call,
                                         const Inputs& in, const Outputs& out, bool saving) {
  const GivenInputs given(*network, call, in);
  Places places(*network, call, out);
  const std::vector<std::int32_t> lengths = lengths_if_packed(call);
  ForwardArgs args;
  args.params = packed.params;
  args.max_time = call.max_time;
  args.batch = call.batch;
  args.time_major = !call.batch_major;
  args.sequence_lengths = call.batch_sizes ? lengths.data() : nullptr;
  args.x = given.x.data();
  args.h0 = given.h0.data();
  args.c0 = given.c0.data();
  args.y = places.y.mutable_data();
  args.hn = places.hn.mutable_data();
  args.cn = places.cn.mutable_data();
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
  const GivenOutputs given(network, call, args.from);
  InputPlaces places(network, call, args.to);
  BackwardArgs to;
  to.saved = saved.forward.get();
  to.dy = given.y.data();
  to.dhn = given.hn.data();
  to.dcn = given.cn.data();
  to.dx = places.x.mutable_data();
  to.dh0 = places.h0.mutable_data();
  to.dc0 = places.c0.mutable_data();
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
  const GivenInputs at(network, call, args.at), direction(network, call, args.direction);
  const GivenOutputs gradients(network, call, args.gradients);
  Places moved(network, call, args.moved);
  InputPlaces curvature(network, call, args.curvature);
  const std::vector<std::int32_t> lengths = lengths_if_packed(call);
  TangentArgs to;
  to.spec = network.spec;
  to.max_time = call.max_time;
  to.batch = call.batch;
  to.time_major = !call.batch_major;
  to.sequence_lengths = call.batch_sizes ? lengths.data() : nullptr;
  to.training = call.training;
  to.dropout = call.dropout;
  to.at = {at.x.data(), at.h0.data(), at.c0.data(), args.params};
  to.direction = {direction.x.data(), direction.h0.data(), direction.c0.data(),
                  args.params_direction};
  to.gradients = {gradients.y.data(), gradients.hn.data(), gradients.cn.data()};
  to.moved = {moved.y.mutable_data(), moved.hn.mutable_data(), moved.cn.mutable_data()};
  to.curvature = {curvature.x.mutable_data(), curvature.h0.mutable_data(),
                  curvature.c0.mutable_data(), args.params_curvature};
  known->tangent(to);
  moved.finish();
  curvature.finish();
}

}  // namespace openrnn::python::torch
