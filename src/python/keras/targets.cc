#include "python/keras/targets.h"

#include <bit>

#include "base/hash/content_hash.h"
#include "base/message.h"
#include "python/jax/reserve.h"
#include "python/keras/numbers.h"
#include "python/keras/passes.h"
#include "python/keras/sizes.h"

namespace openrnn::python::keras {
namespace {

using jax::ElementType;
using jax::Frame;
using jax::ReserveHead;

constexpr const char* kCall = "openrnn.keras";

// Operands and results of one call, one after the other.
class Arrays {
 public:
  Arrays(const Frame& frame, std::int64_t x_at)
      : frame_(frame),
        cell_(find_cell(kCall, frame.number("cell"), frame.text("network"))),
        type_(jax::element_type(cell_->spec().dtype)),
        masked_(frame.flag("masked")),
        sequences_(frame.flag("sequences")),
        sizes_(*cell_, frame.dims(x_at, "x", 3)[0], frame.dims(x_at, "x", 3)[1], sequences_) {
    if (time() == 0) {
      throw ArgumentError(message("[", kCall, "] x has 0 steps, expected one or more"));
    }
  }

  const std::shared_ptr<Cell>& cell() const { return cell_; }
  const Sizes& sizes() const { return sizes_; }
  std::int64_t batch() const { return sizes_.x[0]; }
  std::int64_t time() const { return sizes_.x[1]; }
  /// How many arrays a call has, and outputs.
  std::int64_t count() const {
    const RnnSpec& spec = cell_->spec();
    return 1 + spec.num_dirs() * (states() + (spec.use_bias ? 3 : 2)) + (masked_ ? 1 : 0);
  }
  std::int64_t outputs() const { return 1 + cell_->spec().num_dirs() * states(); }

  const void* in(const char* name, const Shape& shape) {
    return frame_.operand(operand_++, name, type_, shape);
  }
  void* out(const char* name, const Shape& shape) {
    return frame_.result(result_++, name, type_, shape);
  }
  /// Those of a sequence and states that the next bits name.
  Given given(const char* name, const Shape& sequence, std::uint64_t bits) {
    Given found;
    found.sequence = take(bits) ? in(name, sequence) : nullptr;
    for (std::size_t d = 0; d < cell_->directions(); ++d) {
      found.h[d] = take(bits) ? in("a state", sizes_.state) : nullptr;
      if (cell_->spec().has_cell()) found.c[d] = take(bits) ? in("a cell", sizes_.state) : nullptr;
    }
    return found;
  }
  Made made(const char* name, const Shape& sequence, std::uint64_t& bits) {
    Made found;
    found.sequence = take(bits) ? out(name, sequence) : nullptr;
    for (std::size_t d = 0; d < cell_->directions(); ++d) {
      found.h[d] = take(bits) ? out("a state", sizes_.state) : nullptr;
      if (cell_->spec().has_cell()) found.c[d] = take(bits) ? out("a cell", sizes_.state) : nullptr;
    }
    return found;
  }
  Both<Weights> weights() {
    Both<Weights> found;
    for (std::size_t d = 0; d < cell_->directions(); ++d) {
      found[d].kernel = in("kernel", sizes_.kernel);
      found[d].recurrent = in("recurrent_kernel", sizes_.recurrent);
      if (cell_->spec().use_bias) found[d].bias = in("bias", sizes_.bias);
    }
    return found;
  }
  Both<WeightGradients> weight_gradients(std::uint64_t& bits) {
    Both<WeightGradients> found;
    for (std::size_t d = 0; d < cell_->directions(); ++d) {
      found[d].kernel = take(bits) ? out("dkernel", sizes_.kernel) : nullptr;
      found[d].recurrent = take(bits) ? out("drecurrent_kernel", sizes_.recurrent) : nullptr;
      if (cell_->spec().use_bias) found[d].bias = take(bits) ? out("dbias", sizes_.bias) : nullptr;
    }
    return found;
  }
  Call call() {
    if (masked_) mask_ = frame_.operand(operand_++, "mask", ElementType::kBool, sizes_.mask);
    return {.steps = Steps(static_cast<const bool*>(mask_), batch(), time(), backwards()),
            .sequences = sequences_,
            .zero = frame_.flag("zero")};
  }
  std::int64_t place() const { return operand_; }
  std::int64_t reserve() const { return reserve_room(*cell_, time(), batch()); }
  /// Of the call's inputs but for the weights, of which gradients of one call have one value; to be
  /// had after call().
  ReserveHead head(const Given& inputs) const {
    const auto bytes = [&](const Shape& shape) {
      return static_cast<std::size_t>(shape_size(shape)) * cell_->element();
    };
    std::uint64_t hash = content_hash(inputs.sequence, bytes(sizes_.x), 0);
    for (const auto& states : {inputs.h, inputs.c}) {
      for (const void* const each : states) {
        if (each) hash = content_hash(each, bytes(sizes_.state), hash);
      }
    }
    if (mask_) hash = content_hash(mask_, static_cast<std::size_t>(shape_size(sizes_.mask)), hash);
    // Any constant that no other bytes begin with by chance.
    return {.mark = 0x6b657261736f726e, .content = hash, .max_time = time(), .batch = batch()};
  }

 private:
  static bool take(std::uint64_t& bits) {
    const bool found = (bits & 1) != 0;
    bits >>= 1;
    return found;
  }
  std::int64_t states() const { return cell_->spec().has_cell() ? 2 : 1; }
  bool backwards() const { return frame_.flag("backwards"); }

  const Frame& frame_;
  std::shared_ptr<Cell> cell_;
  ElementType type_;
  bool masked_, sequences_;
  Sizes sizes_;
  const void* mask_ = nullptr;
  std::int64_t operand_ = 0, result_ = 0;
};

constexpr std::uint64_t kAll = ~std::uint64_t{0};

void run_forward(const Frame& frame) {
  Arrays arrays(frame, 0);
  frame.expect_counts(arrays.count(), arrays.outputs() + 1);
  const Given in = arrays.given("x", arrays.sizes().x, kAll);
  const Both<Weights> weights = arrays.weights();
  Call call = arrays.call();
  std::uint64_t all = kAll;
  const Made out = arrays.made("y", arrays.sizes().y, all);
  const std::int64_t place = arrays.outputs();
  if (jax::reserve_room(frame, place) == 0) {
    forward(arrays.cell(), weights, std::move(call), in, out, {});
    return;
  }
  jax::AlignedReserve kept = jax::new_reserve(frame, place, arrays.reserve(), arrays.head(in));
  forward(arrays.cell(), weights, std::move(call), in, out, {true, kept.body()});
  kept.write();
}

// The saved call computed again, where no reserve is of it.
std::shared_ptr<const SavedCall> again(const Arrays& arrays, const Both<Weights>& weights,
                                       Call call, const Given& in) {
  const DType dtype = arrays.cell()->spec().dtype;
  Array y(dtype, arrays.sizes().y);
  Both<Array> h, c;
  Made out{.sequence = y.data()};
  for (std::size_t d = 0; d < arrays.cell()->directions(); ++d) {
    h[d] = Array(dtype, arrays.sizes().state);
    out.h[d] = h[d].data();
  }
  return forward(arrays.cell(), weights, std::move(call), in, out, {true, nullptr});
}

void run_backward(const Frame& frame) {
  const auto bits_of = [&](const char* name) {
    return static_cast<std::uint64_t>(frame.number(name));
  };
  std::uint64_t wanted = bits_of("wanted");
  const std::int64_t given = std::popcount(bits_of("given")), results = std::popcount(wanted);
  Arrays arrays(frame, given);
  frame.expect_counts(given + arrays.count() + 1, results);
  const Given from = arrays.given("dy", arrays.sizes().y, bits_of("given"));
  const Given in = arrays.given("x", arrays.sizes().x, kAll);
  const Both<Weights> weights = arrays.weights();
  Call call = arrays.call();
  const Made to = arrays.made("dx", arrays.sizes().x, wanted);
  const Both<WeightGradients> made = arrays.weight_gradients(wanted);
  auto kept = jax::kept_reserve(frame, arrays.place(), arrays.reserve(), arrays.head(in));
  if (kept) {
    return backward(saved_in(arrays.cell(), weights, std::move(call), kept->body()), from, to,
                    made);
  }
  backward(*again(arrays, weights, std::move(call), in), from, to, made);
}

}  // namespace

jax::Error* forward_target(jax::CallFrame* frame) {
  return jax::handle(kCall, frame, &run_forward);
}
jax::Error* backward_target(jax::CallFrame* frame) {
  return jax::handle(kCall, frame, &run_backward);
}

std::int64_t reserve_room(const Cell& cell, std::int64_t time, std::int64_t batch) {
  return jax::whole_reserve(reserve_bytes(cell, time, batch));
}

}  // namespace openrnn::python::keras
