// What openrnn.keras calls: recurrent layers of Keras over NumPy's arrays.
#include <nanobind/ndarray.h>

#include "base/message.h"
#include "python/keras/passes.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace keras {
namespace {

using CellPointer = std::shared_ptr<Cell>;

using Read = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<nb::c_contig, nb::device::cpu>;
using MaybeRead = std::optional<Read>;
using MaybeWritten = std::optional<Written>;

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
    throw ArgumentError(message("[KerasCell] ", name, " has elements of ",
                                static_cast<int>(array.dtype().bits),
                                " bits of another kind than expected: those of the cell's dtype, "
                                "and bool for a mask"));
  }
}

nb::dlpack::dtype dtype_of(const Cell& cell) {
  return cell.spec().dtype == DType::kFloat64 ? nb::dtype<double>() : nb::dtype<float>();
}

/// Pointers of a call's arrays, each checked.
class Checked {
 public:
  explicit Checked(const Cell& cell) : dtype_(dtype_of(cell)) {}

  const void* read(const char* name, const MaybeRead& array, const Shape& shape) const {
    if (!array) return nullptr;
    check(name, *array, shape, dtype_);
    return array->data();
  }
  void* written(const char* name, const MaybeWritten& array, const Shape& shape) const {
    if (!array) return nullptr;
    check(name, *array, shape, dtype_);
    return array->data();
  }

 private:
  nb::dlpack::dtype dtype_;
};

struct Sizes {
  Sizes(const Cell& cell, std::int64_t batch, std::int64_t time, bool sequences)
      : x{batch, time, cell.spec().input_size},
        y(sequences ? std::vector{batch, time, cell.spec().num_units}
                    : std::vector{batch, cell.spec().num_units}),
        state{batch, cell.spec().num_units},
        kernel{cell.spec().input_size, cell.spec().num_gates() * cell.spec().num_units},
        recurrent{cell.spec().num_units, kernel[1]},
        bias(cell.bias_rows() == 2 ? std::vector{std::int64_t{2}, kernel[1]}
                                   : std::vector{kernel[1]}) {}
  Shape x, y, state, kernel, recurrent, bias;
};

void require(bool given, const char* what) {
  if (!given) throw ArgumentError(message("[KerasCell] ", what));
}

using WeightArrays = std::tuple<Read, Read, MaybeRead>;
using Flags = std::tuple<bool, bool, bool>;

Call call_of(const Read& x, const MaybeRead& mask, const Flags& flags) {
  const auto batch = static_cast<std::int64_t>(x.shape(0));
  const auto time = static_cast<std::int64_t>(x.shape(1));
  const auto& [backwards, sequences, zero] = flags;
  const bool* counts = nullptr;
  if (mask) {
    check("mask", *mask, {batch, time}, nb::dtype<bool>());
    counts = static_cast<const bool*>(mask->data());
  }
  return {.steps = Steps(counts, batch, time, backwards), .sequences = sequences, .zero = zero};
}

std::shared_ptr<SavedCall> run(const CellPointer& self, const Read& x, const MaybeRead& h0,
                               const MaybeRead& c0, const WeightArrays& weights,
                               const MaybeRead& mask, const Flags& flags, bool saving,
                               const std::tuple<Written, Written, MaybeWritten>& results) {
  require(x.ndim() == 3, "x is not three-dimensional, expected [B, T, I]");
  const auto& [kernel, recurrent, bias] = weights;
  const auto& [y, hn, cn] = results;
  require(bias.has_value() == self->spec().use_bias, "a bias if, and only if, the cell has one");
  require(cn.has_value() == self->spec().has_cell(),
          "cn if, and only if, the cell has a second state");
  Call call = call_of(x, mask, flags);
  require(call.steps.time() > 0, "x has 0 steps, expected one or more");
  const Sizes sizes(*self, call.steps.batch(), call.steps.time(), call.sequences);
  const Checked checked(*self);
  const Weights given{checked.read("kernel", kernel, sizes.kernel),
                      checked.read("recurrent_kernel", recurrent, sizes.recurrent),
                      checked.read("bias", bias, sizes.bias)};
  const Inputs in{checked.read("x", x, sizes.x), checked.read("h0", h0, sizes.state),
                  checked.read("c0", c0, sizes.state)};
  const Outputs out{checked.written("y", y, sizes.y), checked.written("hn", hn, sizes.state),
                    checked.written("cn", cn, sizes.state)};
  const auto saved =
      unlocked([&] { return forward(self, given, std::move(call), in, out, saving); });
  return std::const_pointer_cast<SavedCall>(saved);
}

using MaybeThree = std::tuple<MaybeRead, MaybeRead, MaybeRead>;
using MaybeResults = std::tuple<MaybeWritten, MaybeWritten, MaybeWritten>;

void run_backward(const SavedCall& self, const MaybeThree& gradients, const MaybeResults& results,
                  const MaybeResults& weights) {
  const Steps& steps = self.call.steps;
  const Sizes sizes(*self.cell, steps.batch(), steps.time(), self.call.sequences);
  const Checked checked(*self.cell);
  const auto& [dy, dhn, dcn] = gradients;
  const auto& [dx, dh0, dc0] = results;
  const auto& [kernel, recurrent, bias] = weights;
  const Inputs from{checked.read("dy", dy, sizes.y), checked.read("dhn", dhn, sizes.state),
                    checked.read("dcn", dcn, sizes.state)};
  const Outputs to{checked.written("dx", dx, sizes.x), checked.written("dh0", dh0, sizes.state),
                   checked.written("dc0", dc0, sizes.state)};
  const WeightGradients made{checked.written("dkernel", kernel, sizes.kernel),
                             checked.written("drecurrent_kernel", recurrent, sizes.recurrent),
                             checked.written("dbias", bias, sizes.bias)};
  unlocked([&] { backward(self, from, to, made); });
}

CellPointer make_cell(nb::object options) {
  return std::make_shared<Cell>(as_network("KerasCell", nb::cast<nb::dict>(options)));
}

void bind(nb::module_& m) {
  nb::class_<SavedCall>(m, "KerasSaved")
      .def_ro("bytes", &SavedCall::bytes)
      .def("backward", &run_backward, "gradients"_a, "results"_a, "weights"_a,
           nb::sig("def backward(self, gradients: tuple[typing.Any, typing.Any, typing.Any], "
                   "results: tuple[typing.Any, typing.Any, typing.Any], weights: "
                   "tuple[typing.Any, typing.Any, typing.Any]) -> None"));
  nb::class_<Cell>(m, "KerasCell")
      .def(nb::new_(&make_cell), "options"_a)
      .def_prop_ro("bias_rows", &Cell::bias_rows)
      .def_prop_ro("packings", &Cell::packings)
      .def("forward", &run, "x"_a, "h0"_any, "c0"_any, "weights"_a, "mask"_any, "flags"_a,
           "saving"_a, "results"_a,
           nb::sig("def forward(self, x: typing.Any, h0: typing.Any, c0: typing.Any, weights: "
                   "tuple[typing.Any, typing.Any, typing.Any], mask: typing.Any, flags: "
                   "tuple[bool, bool, bool], saving: bool, results: tuple[typing.Any, typing.Any, "
                   "typing.Any]) -> KerasSaved | None"));
}

}  // namespace
}  // namespace keras

void bind_keras(nb::module_& m) { keras::bind(m); }

}  // namespace openrnn::python
