#include "python/jax/passes.h"

#include <cstring>

#include "base/hash/content_hash.h"
#include "base/message.h"
#include "openrnn/engine_tangent.h"
#include "openrnn/runtime.h"
#include "python/jax/held.h"
#include "python/jax/reserve.h"

namespace openrnn::python::jax {
namespace {

// Shapes of one call, by what `x` and the attributes say.
class Call {
 public:
  Call(const Frame& frame, std::int64_t x_at)
      : frame_(frame),
        network_(network_of(frame.call(), frame.text("network"))),
        batch_major_(frame.flag("batch_major")),
        training_(frame.flag("training")),
        type_(element_type(network_->spec->dtype)) {
    const auto dims = frame.dims(x_at, "x", 3);
    time_ = dims[batch_major_ ? 1 : 0];
    batch_ = dims[batch_major_ ? 0 : 1];
  }

  const Network& network() const { return *network_; }
  const RnnSpec& spec() const { return network_->spec; }
  std::int64_t time() const { return time_; }
  std::int64_t batch() const { return batch_; }
  bool training() const { return training_; }

  Shape sequence(std::int64_t width) const {
    return batch_major_ ? Shape{batch_, time_, width} : Shape{time_, batch_, width};
  }
  Shape state(std::int64_t width) const {
    const std::int64_t count = spec().num_pseudo_layers();
    return batch_major_ ? Shape{batch_, count, width} : Shape{count, batch_, width};
  }
  Shape hidden() const { return state(spec().hidden_size()); }
  Shape cell() const { return spec().has_cell() ? state(spec().num_units) : Shape{0}; }

  const void* in(std::int64_t at, std::string_view name, const Shape& shape) const {
    return frame_.operand(at, name, type_, shape);
  }
  // Null where there is no cell.
  const void* in_cell(std::int64_t at, std::string_view name) const {
    const void* const found = in(at, name, cell());
    return spec().has_cell() ? found : nullptr;
  }
  void* out(std::int64_t at, std::string_view name, const Shape& shape) const {
    return frame_.result(at, name, type_, shape);
  }
  void* out_cell(std::int64_t at, std::string_view name) const {
    void* const found = out(at, name, cell());
    return spec().has_cell() ? found : nullptr;
  }
  const std::int32_t* lengths(std::int64_t at) const {
    const bool given = frame_.size(at) != 0;
    const void* const found =
        frame_.operand(at, "sequence_lengths", ElementType::kInt32, {given ? batch_ : 0});
    return given ? static_cast<const std::int32_t*>(found) : nullptr;
  }
  DropoutKey key(std::int64_t at) const {
    std::array<std::uint32_t, 2> words{};
    std::memcpy(words.data(), frame_.operand(at, "seed", ElementType::kUInt32, {2}), sizeof words);
    return {.seed = words[0] | std::uint64_t{words[1]} << 32, .call = 0};
  }

  /// Sizes and inputs of the call, operands `at` and after.
  ForwardArgs arguments(std::int64_t at, std::int64_t lengths_at) const {
    ForwardArgs args;
    args.max_time = time_;
    args.batch = batch_;
    args.time_major = !batch_major_;
    args.training = training_;
    args.x = in(at, "x", sequence(spec().input_size));
    args.h0 = in(at + 1, "h0", hidden());
    args.c0 = in_cell(at + 2, "c0");
    args.sequence_lengths = lengths(lengths_at);
    args.dropout = key(lengths_at + 1);
    return args;
  }
  const void* params(std::int64_t at) const { return in(at, "params", {network_->params}); }
  std::int64_t reserve() const { return reserve_bytes(network(), time_, batch_, training_); }
  std::shared_ptr<const PackedParams> packed(const void* params, PackFor purpose) const {
    // The runtime keeps operands as long as the call, and nothing packed outlives it.
    const std::shared_ptr<const void> lender(std::shared_ptr<const void>(), params);
    return network_->engine->pack(spec(), {params, spec().dtype, {network_->params}},
                                  {purpose, 0, lender});
  }

 private:
  const Frame& frame_;
  std::shared_ptr<const Network> network_;
  bool batch_major_, training_;
  ElementType type_;
  std::int64_t time_ = 0, batch_ = 0;
};

// Of a call's inputs but for the parameters, of which gradients of one call have one value.
ReserveHead head_of(const Call& call, const ForwardArgs& args) {
  const RnnSpec& spec = call.spec();
  const std::size_t element = dtype_size(spec.dtype);
  const auto bytes = [&](const Shape& shape) {
    return static_cast<std::size_t>(shape_size(shape)) * element;
  };
  std::uint64_t hash =
      content_hash(args.x, bytes(call.sequence(spec.input_size)), args.dropout.seed);
  hash = content_hash(args.h0, bytes(call.hidden()), hash);
  if (args.c0) hash = content_hash(args.c0, bytes(call.cell()), hash);
  if (args.sequence_lengths) {
    hash = content_hash(args.sequence_lengths,
                        static_cast<std::size_t>(args.batch) * sizeof(std::int32_t), hash + 1);
  }
  // Any constant that no other bytes begin with by chance.
  return {
      .mark = 0x6f70656e726e6e31, .content = hash, .max_time = args.max_time, .batch = args.batch};
}

void run_forward(const Frame& frame) {
  frame.expect_counts(7, 4);
  const Call call(frame, 0);
  ForwardArgs args = call.arguments(0, 4);
  const void* const params = call.params(3);
  args.y = call.out(0, "y", call.sequence(call.spec().output_size()));
  args.hn = call.out(1, "hn", call.hidden());
  args.cn = call.out_cell(2, "cn");
  Token token{};
  std::memcpy(token.data(), frame.operand(6, "token", ElementType::kUInt32, {2}), sizeof token);
  if (reserve_room(frame, 3) != 0) {
    AlignedReserve kept = new_reserve(frame, 3, call.reserve(), head_of(call, args));
    args.params = call.packed(params, PackFor::kTraining);
    args.reserve = kept.body();
    call.network().engine->forward_saving(args);
    kept.write();
    return;
  }
  args.params = find_held(token, frame.text("network"), call.network(), params);
  if (!args.params) args.params = call.packed(params, PackFor::kInference);
  call.network().engine->forward(args);
}

// The saved call of operands from `at` on: out of its reserve, or computed again if that is of
// other inputs.
class Again {
 public:
  Again(const Frame& frame, const Call& call, std::int64_t at) {
    ForwardArgs args = call.arguments(at, at + 4);
    args.params = call.packed(call.params(at + 3), PackFor::kTraining);
    const Engine& engine = *call.network().engine;
    kept_ = kept_reserve(frame, at + 6, call.reserve(), head_of(call, args));
    if (kept_) {
      args.reserve = kept_->body();  // backward only reads it
      saved_ = engine.saved_in(args);
      return;
    }
    y_ = Array(call.spec().dtype, call.sequence(call.spec().output_size()));
    args.y = y_.data();
    saved_ = engine.forward_saving(args);
  }
  const SavedForward* saved() const { return saved_.get(); }

 private:
  Array y_;
  std::optional<AlignedReserve> kept_;
  std::unique_ptr<SavedForward> saved_;
};

void run_backward(const Frame& frame) {
  frame.expect_counts(10, 4);
  const Call call(frame, 3);
  const Again again(frame, call, 3);
  const std::int64_t size = call.network().params;
  BackwardArgs args;
  args.saved = again.saved();
  args.dy = call.in(0, "dy", call.sequence(call.spec().output_size()));
  args.dhn = call.in(1, "dhn", call.hidden());
  args.dcn = call.in_cell(2, "dcn");
  args.dx = call.out(0, "dx", call.sequence(call.spec().input_size));
  args.dh0 = call.out(1, "dh0", call.hidden());
  args.dc0 = call.out_cell(2, "dc0");
  if (frame.flag("rows")) {
    args.row_dparams = call.out(3, "dparams", {call.batch(), size});
    args.last_row = call.batch();
  } else {
    args.dparams = call.out(3, "dparams", {size});
  }
  call.network().engine->backward(args);
}

const Engine& tangent_engine(const Network& network) {
  for (const Engine* each : {network.engine, &engine("cpu"), &engine("reference")}) {
    if (!each->device() && each->has_tangent(network.spec)) return *each;
  }
  throw UnsupportedError(message("[openrnn.jax] a second derivative of ", describe(network.spec),
                                 ", expected a first one, or options that have second ones"));
}

void run_tangent(const Frame& frame) {
  frame.expect_counts(13, 7);
  const Call call(frame, 7);
  const RnnSpec& spec = call.spec();
  const ForwardArgs at = call.arguments(7, 11);
  const Shape x = call.sequence(spec.input_size), y = call.sequence(spec.output_size());
  const Shape params{call.network().params};
  TangentArgs args;
  args.spec = spec;
  args.max_time = at.max_time;
  args.batch = at.batch;
  args.time_major = at.time_major;
  args.sequence_lengths = at.sequence_lengths;
  args.training = at.training;
  args.dropout = at.dropout;
  args.at = {at.x, at.h0, at.c0, call.params(10)};
  args.direction = {call.in(0, "vx", x), call.in(1, "vh0", call.hidden()), call.in_cell(2, "vc0"),
                    call.in(3, "vparams", params)};
  args.gradients = {call.in(4, "dy", y), call.in(5, "dhn", call.hidden()), call.in_cell(6, "dcn")};
  args.moved = {call.out(0, "y", y), call.out(1, "hn", call.hidden()), call.out_cell(2, "cn")};
  args.curvature = {call.out(3, "x", x), call.out(4, "h0", call.hidden()), call.out_cell(5, "c0"),
                    call.out(6, "params", params)};
  tangent_engine(call.network()).tangent(args);
}

}  // namespace

Error* forward(CallFrame* frame) { return handle("openrnn.jax", frame, &run_forward); }
Error* backward(CallFrame* frame) { return handle("openrnn.jax", frame, &run_backward); }
Error* tangent(CallFrame* frame) { return handle("openrnn.jax", frame, &run_tangent); }

}  // namespace openrnn::python::jax
