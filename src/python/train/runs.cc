// train.Run: a training run with its data, checkpoints and events.
#include "openrnn/formats.h"
#include "python/support/network.h"
#include "python/train/communicator_ref.h"
#include "train/run/fields.h"
#include "train/run/network_options.h"

namespace openrnn::python {
namespace {

/// A run, until it is closed.
class RunRef {
 public:
  RunRef(const train::RunOptions& options, std::shared_ptr<train::Communicator> communicator)
      : communicator_(std::move(communicator)),
        run_(unlocked([&] { return std::make_shared<train::Run>(options); })) {}
  /// Throws: StateError when it is closed.
  train::Run& get() const {
    if (!run_) throw StateError("[Run] the run is closed, expected an open one");
    return *run_;
  }
  std::shared_ptr<train::Run> share() const noexcept { return run_; }
  void close() { run_.reset(); }
  /// Calls that train or save must not overlap.
  std::unique_lock<std::recursive_mutex> lock() const { return calls_.take(); }

 private:
  std::shared_ptr<train::Communicator> communicator_;  // outlives the run
  std::shared_ptr<train::Run> run_;
  CallLock calls_;
};

/// What a callback gets. The values are read from the run, which it does not keep open.
struct ReportRef {
  train::StepReport report;
  std::weak_ptr<train::Run> run;

  template <class Read>
  auto read(Read&& value) const {
    const std::shared_ptr<train::Run> open = run.lock();
    if (!open) throw StateError("[StepReport] its run is closed, expected an open one");
    return unlocked([&] { return value(report); });
  }
};

void set(std::string& to, const char* name, nb::handle value) {
  to = as_value<std::string>(name, value);
}
void set(std::int64_t& to, const char* name, nb::handle value) {
  to = as_value<std::int64_t>(name, value);
}
void set(double& to, const char* name, nb::handle value) { to = as_value<double>(name, value); }
void set(train::TextLevel& to, const char* name, nb::handle value) {
  to = train::parse_text_level(as_value<std::string>(name, value));
}
void set(train::ScheduleKind& to, const char* name, nb::handle value) {
  to = train::parse_schedule(as_value<std::string>(name, value));
}
void set(std::vector<std::string>& to, const char* name, nb::handle value) {
  to.clear();
  for (const nb::handle one : value) to.push_back(as_value<std::string>(name, one));
}

/// None stands for an option that is not given. Throws: TypeError as Python's own for an unknown
/// one.
std::map<std::string, FieldValue> network_of(const nb::dict& given) {
  std::map<std::string, FieldValue> network;
  for (const auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const train::NetworkOption* const option = train::find_network_option(name);
    if (!option) {
      throw TypeError("Run.__init__() got an unexpected keyword argument '" + name + "'");
    }
    if (!value.is_none()) network[name] = value_of("Run", name, *option->field, value);
  }
  return network;
}

train::RunOptions options_of(const nb::dict& given) {
  train::RunOptions options;
  train::each_run_field([&](const auto& field) {
    const nb::object value = given.get(field.name, nb::none());
    if (!value.is_none()) set((options.*field.option).emplace(), field.name, value);
  });
  options.network = network_of(nb::cast<nb::dict>(given["network"]));
  options.out = as_value<std::string>("out", nb::object(given["out"]));
  options.resume = as_flag("Run", "resume", nb::object(given["resume"]));
  options.save_steps = as_value<std::int64_t>("save_steps", nb::object(given["save_steps"]));
  options.save_seconds = as_value<double>("save_seconds", nb::object(given["save_seconds"]));
  options.keep = as_value<int>("keep", nb::object(given["keep"]));
  options.recompute = as_value<std::int64_t>("recompute", nb::object(given["recompute"]));
  options.device = as_device(nb::object(given["device"]));
  options.reduction =
      train::parse_reduction(as_value<std::string>("reduction", nb::object(given["reduction"])));
  options.overlap = as_flag("Run", "overlap", nb::object(given["overlap"]));
  return options;
}

std::string_view name_of(train::StopReason reason) {
  if (reason == train::StopReason::kDone) return "done";
  return reason == train::StopReason::kPatience ? "patience" : "callback";
}

/// Whether the callback wants more steps. Signals of Python are looked at here, too.
bool goes_on(nb::handle callback, const ReportRef& report) {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (callback.is_none()) return true;
  const nb::object said = callback(report);
  return said.is_none() || as_flag("train", "the result of callback", said);
}

std::string_view train_run(const RunRef& self, nb::handle callback) {
  const auto lock = self.lock();
  train::Run& run = self.get();
  const std::shared_ptr<train::Run> shared = self.share();
  std::exception_ptr raised;  // passed on after the save
  train::RunCallbacks callbacks;
  callbacks.after_step = [&](const train::StepReport& report) {
    const nb::gil_scoped_acquire held;
    try {
      return goes_on(callback, {report, shared});
    } catch (...) {
      raised = std::current_exception();
      return false;
    }
  };
  const train::StopReason reason = unlocked([&] { return run.train(callbacks); });
  if (raised) std::rethrow_exception(raised);
  return name_of(reason);
}

void bind_report(nb::module_& m) {
  nb::class_<ReportRef>(
      m, "StepReport",
      "One step of training. On a GPU, reading what depends on its loss or "
      "gradients waits for the step.\n\n"
      "Examples\n--------\n"
      ">>> with open(\"text\", \"w\") as file:\n"
      "...     for line in range(50):\n"
      "...         print(\"to be or not to be, that is the question\", file=file)\n"
      ">>> options = dict(input=\"text\", units=8, steps=2, batch=2, seq_len=10)\n"
      ">>> with openrnn.train.Run(\"run\", **options) as run:\n"
      "...     run.train(lambda report: print(report.step, \"of\", report.steps))\n"
      "1 of 2\n"
      "2 of 2\n"
      "'done'")
      .def_prop_ro(
          "step", [](const ReportRef& self) { return self.report.step; }, "Steps taken so far.")
      .def_prop_ro(
          "steps", [](const ReportRef& self) { return self.report.steps; }, "Steps of the run.")
      .def_prop_ro("learning_rate", [](const ReportRef& self) { return self.report.learning_rate; })
      .def_prop_ro(
          "metric",
          [](const ReportRef& self) {
            return self.read([](const train::StepReport& report) { return report.metric(); });
          },
          "Of this step's loss: bits per byte of a text, the mean squared error of a series.")
      .def_prop_ro(
          "gradient_norm",
          [](const ReportRef& self) {
            return self.read(
                [](const train::StepReport& report) { return report.gradient_norm(); });
          },
          "Before clipping.")
      .def_prop_ro(
          "validation", [](const ReportRef& self) { return self.report.validation; },
          "The metric on held-out data; None unless the step was followed by a validation.")
      .def_prop_ro(
          "best", [](const ReportRef& self) { return self.report.best; },
          "Whether that validation is the best so far.");
}

void bind_events(nb::module_& m) {
  nb::class_<EventWriter>(m, "EventWriter", "A new TensorBoard event file in a folder.")
      .def(nb::init<const std::string&>(), "folder"_a)
      .def("add_scalar",
           nb::overload_cast<const std::string&, std::int64_t, double>(&EventWriter::add_scalar),
           "tag"_a, "step"_a, "value"_a)
      .def("flush", &EventWriter::flush);
}

void bind_state(nb::class_<RunRef>& run) {
  run.def_prop_ro("config_json",
                  [](const RunRef& self) { return train::to_json(self.get().config()); })
      .def_prop_ro(
          "step", [](const RunRef& self) { return self.get().step(); }, "Steps taken so far.")
      .def_prop_ro(
          "steps", [](const RunRef& self) { return self.get().config().fit.steps; },
          "Steps of the whole run.")
      .def_prop_ro("steps_per_epoch",
                   [](const RunRef& self) { return self.get().task().windows(); })
      .def_prop_ro(
          "best", [](const RunRef& self) { return self.get().best(); },
          "The best validation so far; None before the first.")
      .def_prop_ro(
          "best_step", [](const RunRef& self) { return self.get().best_step(); },
          "The step of that validation.")
      .def_prop_ro(
          "best_prefix", [](const RunRef& self) { return self.get().best_prefix(); },
          "Where its weights are, if the run has patience.")
      .def_prop_ro(
          "metric_name", [](const RunRef& self) { return self.get().task().metric_name(); },
          "'bits per byte', or 'loss' of a series.")
      .def_prop_ro(
          "resumed_from", [](const RunRef& self) { return self.get().resumed_from(); },
          "The checkpoint that the run was resumed from; None for a new run.")
      .def_prop_ro(
          "notes", [](const RunRef& self) { return self.get().notes(); },
          "Why a resumed run will not have the bits of an uninterrupted one; usually "
          "empty.")
      .def_prop_ro(
          "variables", [](const RunRef& self) { return self.get().model().variables(); },
          "The variables of the model.");
}

}  // namespace

void bind_runs(nb::module_& m) {
  bind_report(m);
  bind_events(m);
  nb::class_<RunRef> run(m, "RunBase", nb::dynamic_attr());
  run.def(
         "__init__",
         [](RunRef* self, const nb::dict& given) {
           train::RunOptions options = options_of(given);
           auto communicator = as_communicator(nb::object(given["communicator"]));
           options.communicator = communicator.get();
           new (self) RunRef(options, std::move(communicator));
         },
         "options"_a, nb::sig("def __init__(self, options: dict[str, typing.Any]) -> None"))
      .def("train_core", &train_run, "callback"_any)
      .def("save_core",
           [](const RunRef& self) {
             const auto lock = self.lock();
             return unlocked([&] { return self.get().save(); });
           })
      .def("validate_core",
           [](const RunRef& self) {
             const auto lock = self.lock();
             return unlocked([&] { return self.get().validate(); });
           })
      .def("close_core",
           [](RunRef& self) {
             const auto lock = self.lock();
             self.close();
           })
      .def("reduction_cost_core", [](const RunRef& self) {
        const train::ReductionCost cost = self.get().reduction_cost();
        return std::tuple(cost.steps, cost.bytes, cost.seconds, cost.seconds_waited,
                          cost.seconds_overlapped);
      });
  bind_state(run);
}

}  // namespace openrnn::python
