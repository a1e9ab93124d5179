// What openrnn.keras calls: recurrent layers of Keras over NumPy's arrays, and what XLA calls.
#include <nanobind/ndarray.h>

#include "base/message.h"
#include "python/jax/capsule.h"
#include "python/keras/numbers.h"
#include "python/keras/passes.h"
#include "python/keras/sizes.h"
#include "python/keras/targets.h"
#include "python/support/network.h"
#include "python/support/torch_threads.h"

namespace openrnn::python {
namespace keras {
namespace {

using Read = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<nb::c_contig, nb::device::cpu>;
using MaybeRead = std::optional<Read>;

// As NumPy names it.
std::string name_of(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  constexpr std::pair<Code, const char*> kKinds[] = {{Code::Int, "int"},
                                                     {Code::UInt, "uint"},
                                                     {Code::Float, "float"},
                                                     {Code::Bfloat, "bfloat"},
                                                     {Code::Complex, "complex"}};
  if (dtype == nb::dtype<bool>()) return "bool";
  for (const auto& [code, name] : kKinds) {
    if (dtype.code == static_cast<std::uint8_t>(code)) return message(name, int{dtype.bits});
  }
  return message("of DLPack's kind ", int{dtype.code});
}

// Throws: ArgumentError unless the array has the shape and the dtype.
template <class Array>
void check(const char* name, const Array& array, const Shape& shape, nb::dlpack::dtype dtype) {
  Shape given;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    given.push_back(static_cast<std::int64_t>(array.shape(i)));
  }
  if (given != shape) {
    throw ArgumentError(message("[KerasCell] ", name, " has shape ", to_string(given),
                                ", expected ", to_string(shape)));
  }
  if (array.dtype() != dtype) {
    throw ArgumentError(message("[KerasCell] ", name, " is ", name_of(array.dtype()), ", expected ",
                                name_of(dtype)));
  }
}

void require(bool given, const char* what) {
  if (!given) throw ArgumentError(message("[KerasCell] ", what));
}

/// A call's arrays, each checked: a sequence, of each direction h and c, then of each direction the
/// kernel, the recurrent kernel and the bias, where the list goes on. None is null.
template <class Array>
class Checked {
 public:
  using List = std::vector<std::optional<Array>>;
  using Pointer = decltype(std::declval<Array>().data());

  Checked(const Cell& cell, const List& arrays, bool with_weights)
      : arrays_(arrays), directions_(cell.directions()) {
    dtype_ = cell.spec().dtype == DType::kFloat64 ? nb::dtype<double>() : nb::dtype<float>();
    const std::size_t count = 1 + directions_ * (with_weights ? 5 : 2);
    if (arrays.size() != count) {
      throw ArgumentError(message("[KerasCell] ", arrays.size(), " arrays, expected ", count,
                                  " or None in a place"));
    }
  }

  template <class States>
  States states(const std::array<const char*, 3>& names, const Shape& sequence,
                const Shape& state) const {
    States found;
    found.sequence = at(0, names[0], sequence);
    for (std::size_t d = 0; d < directions_; ++d) {
      found.h[d] = at(1 + 2 * d, names[1], state);
      found.c[d] = at(2 + 2 * d, names[2], state);
    }
    return found;
  }
  template <class Each>
  Both<Each> weights(const Sizes& sizes) const {
    Both<Each> found;
    for (std::size_t d = 0; d < directions_; ++d) {
      const std::size_t first = 1 + 2 * directions_ + 3 * d;
      found[d] = {at(first, "kernel", sizes.kernel),
                  at(first + 1, "recurrent_kernel", sizes.recurrent),
                  at(first + 2, "bias", sizes.bias)};
    }
    return found;
  }

 private:
  Pointer at(std::size_t place, const char* name, const Shape& shape) const {
    const auto& array = arrays_[place];
    if (!array) return nullptr;
    check(name, *array, shape, dtype_);
    return array->data();
  }

  const List& arrays_;
  std::size_t directions_;
  nb::dlpack::dtype dtype_{};
};

using Inputs = Checked<Read>;
using Results = Checked<Written>;
using Flags = std::tuple<bool, bool, bool>;

/// A number of threads is what PyTorch says, on whose threads the call runs; 0: on ours.
HostThreads host_threads(const Call& call) { return call.threads ? torch_threads() : nullptr; }

Call call_of(const Read& x, const MaybeRead& mask, const Flags& flags, int threads) {
  const auto batch = static_cast<std::int64_t>(x.shape(0));
  const auto time = static_cast<std::int64_t>(x.shape(1));
  const auto& [backwards, sequences, zero] = flags;
  const bool* counts = nullptr;
  if (mask) {
    check("mask", *mask, {batch, time}, nb::dtype<bool>());
    counts = static_cast<const bool*>(mask->data());
  }
  return {.steps = Steps(counts, batch, time, backwards),
          .sequences = sequences,
          .zero = zero,
          .threads = threads};
}

void check_presence(const Cell& cell, const Both<Weights>& weights, const Made& out) {
  for (std::size_t d = 0; d < cell.directions(); ++d) {
    require(weights[d].kernel && weights[d].recurrent,
            "kernel or recurrent_kernel is None, expected a kernel and a recurrent_kernel");
    require((weights[d].bias != nullptr) == cell.spec().use_bias,
            weights[d].bias ? "bias is an array, expected a bias if, and only if, the cell has one"
                            : "bias is None, expected a bias if, and only if, the cell has one");
    require(out.sequence && out.h[d], "y or hn is None, expected y and hn to be written");
    require((out.c[d] != nullptr) == cell.spec().has_cell(),
            out.c[d] ? "cn is an array, expected cn if, and only if, the cell has a second state"
                     : "cn is None, expected cn if, and only if, the cell has a second state");
  }
}

std::shared_ptr<SavedCall> run(const std::shared_ptr<Cell>& self, const Inputs::List& arrays,
                               const MaybeRead& mask, const Flags& flags, bool saving,
                               const Results::List& results, int threads) {
  const Inputs inputs(*self, arrays, true);
  const Results outputs(*self, results, false);
  require(arrays[0] && arrays[0]->ndim() == 3, "x is not three-dimensional, expected [B, T, I]");
  Call call = call_of(*arrays[0], mask, flags, threads);
  require(call.steps.time() > 0, "x has 0 steps, expected one or more");
  const Sizes sizes(*self, call.steps.batch(), call.steps.time(), call.sequences);
  const auto weights = inputs.weights<Weights>(sizes);
  const auto in = inputs.states<Given>({"x", "h0", "c0"}, sizes.x, sizes.state);
  const auto out = outputs.states<Made>({"y", "hn", "cn"}, sizes.y, sizes.state);
  check_presence(*self, weights, out);
  const auto saved = unlocked([&] {
    const HostThreadsScope host(host_threads(call));
    return forward(self, weights, std::move(call), in, out, {saving});
  });
  return std::const_pointer_cast<SavedCall>(saved);
}

void run_backward(const SavedCall& self, const Inputs::List& gradients,
                  const Results::List& results) {
  const Steps& steps = self.call.steps;
  const Sizes sizes(*self.cell, steps.batch(), steps.time(), self.call.sequences);
  const Inputs inputs(*self.cell, gradients, false);
  const Results outputs(*self.cell, results, true);
  const auto from = inputs.states<Given>({"dy", "dhn", "dcn"}, sizes.y, sizes.state);
  const auto to = outputs.states<Made>({"dx", "dh0", "dc0"}, sizes.x, sizes.state);
  const auto weights = outputs.weights<WeightGradients>(sizes);
  unlocked([&] {
    const HostThreadsScope host(host_threads(self.call));
    backward(self, from, to, weights);
  });
}

std::shared_ptr<Cell> make_cell(nb::object options) {
  return std::make_shared<Cell>(as_network("KerasCell", nb::cast<nb::dict>(options)));
}

nb::dict targets() {
  nb::dict all;
  all["openrnn_keras_forward"] = jax::capsule_of(&forward_target);
  all["openrnn_keras_backward"] = jax::capsule_of(&backward_target);
  return all;
}

void bind(nb::module_& m) {
  nb::class_<SavedCall>(m, "KerasSaved")
      .def_ro("bytes", &SavedCall::bytes)
      .def("backward", &run_backward, "gradients"_a, "results"_a,
           nb::sig("def backward(self, gradients: typing.Sequence[typing.Any], results: "
                   "typing.Sequence[typing.Any]) -> None"));
  nb::class_<Cell>(m, "KerasCell")
      .def(nb::new_(&make_cell), "options"_a)
      .def_prop_ro("bias_rows", &Cell::bias_rows)
      .def_prop_ro("packings", &Cell::packings)
      .def_prop_ro("text", [](const Cell& self) { return spec_to_json(self.spec()); })
      .def("number", &number_of)
      .def("reserve_room", &reserve_room, "time"_a, "batch"_a)
      .def("forward", &run, "arrays"_a, "mask"_any, "flags"_a, "saving"_a, "results"_a,
           "threads"_a = 0,
           nb::sig("def forward(self, arrays: typing.Sequence[typing.Any], mask: typing.Any, "
                   "flags: tuple[bool, bool, bool], saving: bool, results: "
                   "typing.Sequence[typing.Any], threads: int = 0) -> KerasSaved | None"));
  m.def("keras_targets", &targets, nb::sig("def keras_targets() -> dict[str, typing.Any]"));
}

}  // namespace
}  // namespace keras

void bind_keras(nb::module_& m) { keras::bind(m); }

}  // namespace openrnn::python
