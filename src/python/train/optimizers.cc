#include "base/message.h"
#include "python/graph/tape_ref.h"
#include "python/train/optimizer_ref.h"

namespace openrnn::python {

void prepare_changed(const OptimizerRef& self, const std::vector<DeviceArray>& gradients,
                     const std::vector<Variable>& variables) {
  std::vector<Variable> changed;
  for (std::size_t i = 0; i < variables.size() && i < gradients.size(); ++i) {
    if (!gradients[i].empty()) changed.push_back(variables[i]);
  }
  self.core->prepare(changed);
}

namespace {

std::shared_ptr<train::Optimizer> make(const std::string& kind, const nb::dict& options) {
  const auto number = [&](const char* name) {
    return as_value<double>(name, nb::object(options[name]));
  };
  const auto flag = [&](const char* name) {
    return as_value<bool>(name, nb::object(options[name]));
  };
  const double rate = number("learning_rate");
  if (kind == "sgd") return std::make_shared<train::GradientDescentOptimizer>(rate);
  if (kind == "momentum") {
    return std::make_shared<train::MomentumOptimizer>(rate, number("momentum"),
                                                      flag("use_nesterov"));
  }
  if (kind == "adagrad") {
    return std::make_shared<train::AdagradOptimizer>(rate, number("initial_accumulator_value"));
  }
  if (kind == "rmsprop") {
    return std::make_shared<train::RMSPropOptimizer>(rate, number("decay"), number("momentum"),
                                                     number("epsilon"), flag("centered"));
  }
  if (kind == "adam_w") {
    return std::make_shared<train::AdamWOptimizer>(rate, number("beta1"), number("beta2"),
                                                   number("epsilon"), number("weight_decay"));
  }
  return std::make_shared<train::AdamOptimizer>(rate, number("beta1"), number("beta2"),
                                                number("epsilon"));
}

Variable step_variable(nb::handle global_step) {
  if (global_step.is_none()) return {};
  const Variable* variable = nullptr;
  if (!nb::try_cast<const Variable*>(global_step, variable) || !variable) {
    throw TypeError(
        message("[minimize] global_step is ", quoted_type(global_step), ", expected a Variable"));
  }
  return *variable;
}

DeviceArray as_gradient(nb::handle gradient, const Variable& variable) {
  if (gradient.is_none()) return {};
  const DType dtype = compute_dtype(variable.dtype());
  const Tensor tensor = as_tensor(gradient, {.call = "apply_gradients", .dtype = dtype});
  return tensor.value();
}

void apply(const OptimizerRef& self, nb::handle gradients, nb::handle variables,
           nb::handle global_step) {
  const std::vector<Variable> to = as_variables("apply_gradients", variables);
  std::vector<DeviceArray> arrays;
  for (const nb::handle gradient : gradients) {
    if (arrays.size() == to.size()) break;
    arrays.push_back(as_gradient(gradient, to[arrays.size()]));
  }
  const Variable step = step_variable(global_step);
  const auto alone = self.steps.take();
  prepare_changed(self, arrays, to);
  unlocked([&] { self.core->apply_gradients(arrays, to, step); });
}

std::vector<std::optional<Tensor>> compute(const OptimizerRef& self, Tape& tape, const Tensor& loss,
                                           nb::handle var_list) {
  const std::vector<Variable> variables = as_variables("compute_gradients", var_list);
  std::vector<std::optional<Tensor>> result(variables.size());
  const auto alone = self.steps.take();
  self.core->prepare_scale(variables);
  const GradientTape& recorded = tape.get();
  if (!recorded.holds(loss)) return result;
  const std::vector<DeviceArray> gradients =
      unlocked([&] { return self.core->compute_gradients(recorded, loss, variables); });
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].empty()) result[i] = Tensor(gradients[i]);
  }
  return result;
}

void minimize(const OptimizerRef& self, Tape& tape, const Tensor& loss, nb::handle var_list,
              nb::handle global_step, double clip_norm) {
  const std::vector<Variable> variables = as_variables("minimize", var_list);
  const Variable step = step_variable(global_step);
  const auto alone = self.steps.take();
  self.core->prepare_scale(variables);
  const GradientTape& recorded = tape.get();
  std::vector<DeviceArray> gradients =
      unlocked([&] { return self.core->compute_gradients(recorded, loss, variables); });
  // The tape is minimize()'s own. An update would have to copy what a tape keeps.
  tape.drop();
  prepare_changed(self, gradients, variables);
  unlocked([&] { self.core->clip_and_apply(std::move(gradients), variables, step, clip_norm); });
}

// Scalars first, as TensorFlow lists them.
std::vector<Variable> made_variables(const OptimizerRef& self) {
  const TrackedObject tracked = self.core->trackable().now();
  std::vector<Variable> result;
  for (const auto& [name, child] : tracked.children) {
    const Variable scalar = child.now().variable;
    if (!scalar.empty()) result.push_back(scalar);
  }
  for (const TrackedSlot& slot : tracked.slots) result.push_back(slot.slot);
  return result;
}

std::optional<Variable> get_slot(const OptimizerRef& self, const Variable& variable,
                                 const std::string& name) {
  const std::vector<std::string> names = self.core->slot_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != name) continue;
    try {
      return self.core->slots(variable).at(i);
    } catch (const ArgumentError&) {
      return std::nullopt;  // as TensorFlow: not made yet
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

double schedule_at(const std::string& kind, double learning_rate, std::int64_t decay_steps,
                   double decay_rate, double final_fraction, std::int64_t step) {
  train::Schedule schedule;
  schedule.kind = train::parse_schedule(kind);
  schedule.learning_rate = learning_rate;
  schedule.decay_steps = decay_steps;
  schedule.decay_rate = decay_rate;
  schedule.final_fraction = final_fraction;
  schedule.validate();
  return schedule.at(step);
}

}  // namespace

void bind_optimizers(nb::module_& m) {
  m.def("schedule_at", &schedule_at, "kind"_a, "learning_rate"_a, "decay_steps"_a, "decay_rate"_a,
        "final_fraction"_a, "step"_a);
  nb::class_<OptimizerRef>(m, "OptimizerBase", nb::dynamic_attr(), nb::is_weak_referenceable(),
                           "What every optimizer derives from.")
      .def(
          "__init__",
          [](OptimizerRef* self, const std::string& kind, const nb::dict& options) {
            new (self) OptimizerRef{make(kind, options)};
          },
          "kind"_a, "options"_a,
          nb::sig("def __init__(self, kind: str, options: dict[str, typing.Any]) -> None"))
      .def_prop_ro("name", [](const OptimizerRef& self) { return self.core->name(); })
      .def_prop_rw(
          "learning_rate", [](const OptimizerRef& self) { return self.core->learning_rate(); },
          [](OptimizerRef& self, double rate) { self.core->set_learning_rate(rate); })
      .def_prop_ro(
          "loss_scale", [](const OptimizerRef& self) { return self.core->loss_scale(); },
          "1 unless a variable is float16.")
      .def(
          "prepare",
          [](const OptimizerRef& self, nb::handle variables) {
            self.core->prepare(as_variables("prepare", variables));
          },
          "variables"_any,
          nb::sig("def prepare(self, variables: typing.Sequence[Variable]) -> None"),
          "Makes the slots of these variables, so that a checkpoint can be restored into them.")
      .def(
          "slots_of",
          [](const OptimizerRef& self, const Variable& variable) {
            return self.core->slots(variable);
          },
          "variable"_a)
      .def(
          "get_slot_names", [](const OptimizerRef& self) { return self.core->slot_names(); },
          "What the slots are called, such as 'm' and 'v'.")
      .def("get_slot", &get_slot, "var"_a, "name"_a,
           "The variable kept beside `var` under that name; None before there is one.")
      .def("made_variables", &made_variables)
      .def("compute_core", &compute, "tape"_a, "loss"_a, "variables"_any)
      .def("minimize_core", &minimize, "tape"_a, "loss"_a, "variables"_any, "global_step"_any,
           "clip_norm"_a)
      .def(
          "finish",
          [](const OptimizerRef& self) {
            const auto alone = self.steps.take();
            unlocked([&] { self.core->finish(); });
          },
          "Waits until the last step is known, and raises ArgumentError if it was refused.\n\n"
          "Needed on a GPU alone, which finds in a step's own time that its gradients are not\n"
          "finite; else the next step, or a Saver, says so.")
      .def("apply_core", &apply, "gradients"_any, "variables"_any, "global_step"_any);
  m.def(
      "get_or_create_global_step", &train::get_or_create_global_step,
      "The int64 variable `global_step` of the current graph, made with 0 when it is not there.\n\n"
      "Examples\n--------\n"
      ">>> step = openrnn.train.get_or_create_global_step()\n"
      ">>> step.name, int(step), openrnn.train.get_or_create_global_step() is step\n"
      "('global_step', 0, True)");
}

}  // namespace openrnn::python
