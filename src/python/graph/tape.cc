#include "base/message.h"
#include "python/graph/tape_ref.h"

namespace openrnn::python {
namespace {

Tensor as_source(nb::handle source) {
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(source, variable) && variable) return variable->read();
  const Tensor* tensor = nullptr;
  if (nb::try_cast<const Tensor*>(source, tensor) && tensor) return *tensor;
  throw TypeError(
      message("[gradient] a source is ", quoted_type(source), ", expected a Variable or a Tensor"));
}

// Tensors that this tape did not record contribute nothing; TensorFlow returns None for them.
std::vector<std::optional<Tensor>> gradient(Tape& tape, const std::vector<Tensor>& targets,
                                            nb::handle sources, nb::handle output_gradients) {
  std::vector<Tensor> wanted;
  for (const nb::handle source : sources) wanted.push_back(as_source(source));
  const GradientTape& recorded = tape.get();
  std::vector<Tensor> tracked, starts;
  const nb::list given = nb::borrow<nb::list>(output_gradients);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!recorded.holds(targets[i])) continue;
    tracked.push_back(targets[i]);
    starts.push_back(
        as_optional_tensor(given[i], {.call = "gradient", .dtype = targets[i].dtype()}));
  }
  std::vector<std::optional<Tensor>> result(wanted.size());
  if (tracked.empty()) return result;
  // A source without identity cannot have been recorded.
  std::vector<Tensor> known;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].leaf_id() == 0 && !wanted[i].node()) continue;
    known.push_back(wanted[i]);
    places.push_back(i);
  }
  std::vector<Tensor> gradients =
      unlocked([&] { return recorded.gradients(tracked, known, starts); });
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].empty()) result[places[i]] = std::move(gradients[i]);
  }
  return result;
}

}  // namespace

void bind_tape(nb::module_& m) {
  nb::class_<Tape>(m, "Tape", "Records what gradients need while it is open.")
      .def(nb::init<>())
      .def("open", &Tape::open)
      .def("close", &Tape::close)
      .def(
          "watch",
          [](Tape& self, nb::handle tensor) {
            if (nb::isinstance<Variable>(tensor)) return;
            Tensor* watched = nullptr;
            if (!nb::try_cast<Tensor*>(tensor, watched) || !watched) {
              throw TypeError(message("[watch] ", quoted_type(tensor), ", expected a Tensor"));
            }
            *watched = self.get().watch(*watched);
          },
          "tensor"_any)
      .def("gradient", &gradient, "targets"_a, "sources"_any, "output_gradients"_any);
}

}  // namespace openrnn::python
