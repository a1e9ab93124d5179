#include "cudnn/graphs/recorded_call.h"

#include "cudnn/gpu/detour.h"

namespace openrnn::cudnn {
namespace {

/// Bytes of the arrays of a call.
struct Bytes {
  std::size_t x, y, h, c, params;
  Bytes(const RnnSpec& spec, std::int64_t batch, std::int64_t time) {
    const auto bytes = [&spec](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * dtype_size(spec.dtype);
    };
    const std::int64_t states = spec.num_pseudo_layers() * batch;
    x = bytes(time * batch * spec.input_size);
    y = bytes(time * batch * spec.output_size());
    h = bytes(states * spec.hidden_size());
    c = bytes(states * spec.num_units);
    params = bytes(params_size(spec));
  }
};

// Only an lstm uses arrays of cells.
std::array<const void*, 3> read_by(const ForwardArgs& a, const RnnSpec& spec) {
  return {a.x, a.h0, spec.is_lstm() ? a.c0 : nullptr};
}
std::array<void*, 3> written_by(const ForwardArgs& a, const RnnSpec& spec) {
  return {a.y, a.hn, spec.is_lstm() ? a.cn : nullptr};
}
std::array<const void*, 3> read_by(const BackwardArgs& a, const RnnSpec& spec) {
  return {a.dy, a.dhn, spec.is_lstm() ? a.dcn : nullptr};
}
std::array<void*, 4> written_by(const BackwardArgs& a, const RnnSpec& spec) {
  return {a.dx, a.dh0, spec.is_lstm() ? a.dc0 : nullptr, a.dparams};
}

}  // namespace

GivenArrays given_of(const BackwardArgs& args, const RnnSpec& spec) {
  GivenArrays given{};
  std::size_t n = 0;
  for (const void* each : read_by(args, spec)) given[n++] = each != nullptr;
  for (const void* each : written_by(args, spec)) given[n++] = each != nullptr;
  return given;
}

RecordedCall::RecordedCall(const std::shared_ptr<const CudnnPacked>& packed,
                           const ForwardArgs& args, const CallKey& key, const BlockSizes& blocks)
    : context_(packed->context()),
      key_(key),
      text_(call_text(args, key.saving)),
      arena_(context_.pool()),
      arrays_(context_) {
  arena_.reserve(blocks);
  const ForwardArgs own = own_forward(args);
  {
    // What is uploaded before the recording is read by the graph each time.
    const Detour detour(context_, arena_);
    run_network(packed, own, key_.saving ? &saved_ : nullptr, [&](const auto& work) {
      graph_ = std::make_unique<Graph>(context_, arena_, work);
    });
  }
  arena_.trim();
  for (const SavedStage& stage : saved_.stages) reserves_.push_back(stage.piece->reserve());
  saved_.packed.reset();
}

ForwardArgs RecordedCall::own_forward(const ForwardArgs& args) {
  const Bytes bytes(key_.spec, key_.batch, key_.time);
  ForwardArgs own = args;
  own.params.reset();
  const auto in = read_by(args, key_.spec);
  const auto out = written_by(args, key_.spec);
  own.x = arrays_.add(in[0], bytes.x);
  own.h0 = arrays_.add(in[1], bytes.h);
  own.c0 = arrays_.add(in[2], bytes.c);
  own.y = arrays_.add(out[0], bytes.y);
  own.hn = arrays_.add(out[1], bytes.h);
  own.cn = arrays_.add(out[2], bytes.c);
  return own;
}

void RecordedCall::forward(const std::shared_ptr<const CudnnPacked>& packed,
                           const ForwardArgs& args) {
  arrays_.take(read_by(args, key_.spec));
  graph_->launch();
  arrays_.give(3, written_by(args, key_.spec));
  if (!key_.saving) return;
  saved_.packed = packed;
  renew(true);
  fresh_ = true;
  in_use_.store(true, std::memory_order_release);
}

void RecordedCall::renew(bool with_reserves) const {
  for (std::size_t n = 0; n < saved_.stages.size(); ++n) {
    const SavedStage& stage = saved_.stages[n];
    stage.piece->renew(saved_.packed->part(stage.part), with_reserves ? reserves_[n] : nullptr);
  }
}

void RecordedCall::release() noexcept {
  saved_.packed.reset();
  in_use_.store(false, std::memory_order_release);
}

bool RecordedCall::may_run_gradient() const {
  return fresh_ && places_of_weights(*saved_.packed) == key_.weights;
}

BackwardArgs RecordedCall::own_backward(const BackwardArgs& args, CallArrays& arrays) const {
  const Bytes bytes(key_.spec, key_.batch, key_.time);
  const auto in = read_by(args, key_.spec);
  const auto out = written_by(args, key_.spec);
  BackwardArgs own;
  own.dy = arrays.add(in[0], bytes.y);
  own.dhn = arrays.add(in[1], bytes.h);
  own.dcn = arrays.add(in[2], bytes.c);
  own.dx = arrays.add(out[0], bytes.x);
  own.dh0 = arrays.add(out[1], bytes.h);
  own.dc0 = arrays.add(out[2], bytes.c);
  own.dparams = arrays.add(out[3], bytes.params);
  return own;
}

void RecordedCall::record_gradient(const BackwardArgs& args, const BlockSizes& blocks) {
  try {
    Gradient& made = gradient_.emplace(context_, given_of(args, key_.spec));
    made.arena.reserve(blocks);
    const BackwardArgs own = own_backward(args, made.arrays);
    made.graph =
        std::make_unique<Graph>(context_, made.arena, [&] { cudnn::run_gradient(saved_, own); });
    made.arena.trim();
  } catch (...) {
    gradient_.reset();
    renew(true);
    throw;
  }
}

bool RecordedCall::run_gradient(const BackwardArgs& args) {
  if (!gradient_ || gradient_->given != given_of(args, key_.spec)) return false;
  gradient_->arrays.take(read_by(args, key_.spec));
  gradient_->graph->launch();
  gradient_->arrays.give(3, written_by(args, key_.spec));
  renew(false);
  spend_gradient();
  return true;
}

}  // namespace openrnn::cudnn
