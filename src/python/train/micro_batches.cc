// Steps in parts: what fit() needs of them.
#include <optional>

#include "openrnn/ops_part.h"
#include "python/graph/tape_ref.h"
#include "python/train/communicator_ref.h"
#include "python/train/optimizer_ref.h"

namespace openrnn::python {
namespace {

/// ops::PartScope as a context manager.
struct PartContext {
  ops::BatchPart part;
  std::uint64_t step;
  std::unique_ptr<ops::PartScope> scope = {};
};

/// train::GradientSum, and its step between take() and apply().
struct PartsOfStep {
  train::GradientSum sum = {};
  train::GradientSum::Step step = {};

  void add(const OptimizerRef& optimizer, Tape& tape, const Tensor& loss, nb::handle var_list,
           double share) {
    const std::vector<Variable> variables = as_variables("fit", var_list);
    const auto alone = optimizer.steps.take();
    optimizer.core->prepare_scale(variables);
    const GradientTape& recorded = tape.get();
    unlocked([&] { sum.add(*optimizer.core, recorded, loss, variables, share); });
    tape.drop();
  }
  /// Of several processes the sum of all; this one may have had no rows.
  Tensor take(nb::handle group, bool any, nb::handle var_list) {
    const std::shared_ptr<train::Group> processes = as_group(group);
    const std::vector<Variable> variables = as_variables("fit", var_list);
    step = unlocked([&] {
      std::optional<train::GradientSum::Step> own;
      if (any) own = sum.take();
      return processes ? processes->sum(std::move(own), variables) : std::move(own).value();
    });
    return step.loss;
  }
  void apply(const OptimizerRef& optimizer, nb::handle var_list, double clip_norm) {
    const std::vector<Variable> variables = as_variables("fit", var_list);
    const auto alone = optimizer.steps.take();
    prepare_changed(optimizer, step.gradients, variables);
    unlocked([&] {
      optimizer.core->clip_and_apply(std::move(step.gradients), variables, {}, clip_norm,
                                     step.loss);
    });
    step = {};
  }
};

}  // namespace

void bind_micro_batches(nb::module_& m) {
  m.def("new_step_of_parts", &ops::new_step_of_parts);
  m.def("rows_of_part", &train::rows_of_part, "rows"_a, "parts"_a, "part"_a);
  nb::class_<PartContext>(m, "PartScope", "Rows of a batch that the calls inside it compute.")
      .def(
          "__init__",
          [](PartContext* self, std::int64_t first_row, std::int64_t rows, std::int64_t whole_batch,
             std::uint64_t step) {
            new (self) PartContext{{first_row, rows, whole_batch}, step};
          },
          "first_row"_a, "rows"_a, "whole_batch"_a, "step"_a)
      .def("__enter__",
           [](PartContext& self) {
             if (self.scope) throw StateError("[PartScope] entered twice, expected one block");
             self.scope = std::make_unique<ops::PartScope>(self.part, self.step);
           })
      .def(
          "__exit__",
          [](PartContext& self, nb::handle, nb::handle, nb::handle) { self.scope.reset(); },
          "kind"_a.none(), "error"_a.none(), "trace"_a.none(),
          nb::sig("def __exit__(self, kind: object, error: object, trace: object) -> None"));
  nb::class_<PartsOfStep>(m, "PartsOfStep", "The gradients of a step in parts, and its loss.")
      .def(nb::init<>())
      .def("add", &PartsOfStep::add, "optimizer"_a, "tape"_a, "loss"_a, "variables"_any, "share"_a)
      .def("take", &PartsOfStep::take, "group"_any, "any"_a, "variables"_any)
      .def("apply", &PartsOfStep::apply, "optimizer"_a, "variables"_any, "clip_norm"_a);
}

}  // namespace openrnn::python
