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

using Results = std::vector<std::optional<Tensor>>;

// Sources that something may have been computed from, and their places among all. A tensor without
// identity cannot have been recorded.
struct KnownSources {
  std::vector<Tensor> tensors;
  std::vector<std::size_t> places;
  std::size_t count = 0;

  explicit KnownSources(nb::handle sources) {
    for (const nb::handle each : sources) {
      Tensor source = as_source(each);
      if (source.leaf_id() != 0 || source.node()) {
        tensors.push_back(std::move(source));
        places.push_back(count);
      }
      ++count;
    }
  }
  template <class Found>
  Results results(std::vector<Found> found) const {
    Results all(count);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].empty()) all[places[i]] = Tensor(std::move(found[i]));
    }
    return all;
  }
};

// Tensors that this tape did not record contribute nothing; TensorFlow returns None for them.
Results gradient(Tape& tape, const std::vector<Tensor>& targets, nb::handle sources,
                 nb::handle output_gradients) {
  const KnownSources known(sources);
  const GradientTape& recorded = tape.get();
  std::vector<Tensor> tracked, starts;
  const nb::list given = nb::borrow<nb::list>(output_gradients);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!recorded.holds(targets[i])) continue;
    tracked.push_back(targets[i]);
    starts.push_back(
        as_optional_tensor(given[i], {.call = "gradient", .dtype = targets[i].dtype()}));
  }
  if (tracked.empty()) return Results(known.count);
  return known.results(
      unlocked([&] { return recorded.gradients(tracked, known.tensors, starts); }));
}

Tensor per_sample_norms(Tape& tape, const Tensor& target, nb::handle sources, std::int64_t axis) {
  const KnownSources known(sources);
  const GradientTape& recorded = tape.get();
  const std::vector<double> norms =
      unlocked([&] { return recorded.per_sample_norms(target, known.tensors, axis); });
  return Tensor(Array::of<double>({static_cast<std::int64_t>(norms.size())}, norms).view());
}

Results per_sample_gradients(Tape& tape, const Tensor& target, nb::handle sources,
                             std::int64_t axis) {
  const KnownSources known(sources);
  const GradientTape& recorded = tape.get();
  return known.results(
      unlocked([&] { return recorded.per_sample_gradients(target, known.tensors, axis); }));
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
      .def("gradient", &gradient, "targets"_a, "sources"_any, "output_gradients"_any)
      .def("per_sample_norms", &per_sample_norms, "target"_a, "sources"_any, "axis"_a)
      .def("per_sample_gradients", &per_sample_gradients, "target"_a, "sources"_any, "axis"_a);
}

}  // namespace openrnn::python
