// The extension module openrnn._core; the package around it is the public API.
#include "openrnn/runtime.h"
#include "openrnn/version.h"
#include "python/support/convert.h"
#include "python/support/network.h"

namespace openrnn::python {

namespace {

void bind_devices(nb::module_& m) {
  m.def(
      "list_devices",
      [] {
        nb::list names;
        for (const DeviceInfo& each : list_devices()) names.append(each.name);
        return names;
      },
      nb::sig("def list_devices() -> list[str]"),
      "The devices that this machine can use: 'cpu', then 'gpu:0', 'gpu:1', ...\n\n"
      "Examples\n--------\n"
      ">>> openrnn.list_devices()[0]\n"
      "'cpu'");
  m.def(
      "set_default_device",
      [](nb::handle name) {
        const Device* const place = as_device(name);
        if (!place) throw TypeError("[set_default_device] None is given, expected a device's name");
        set_default_device(*place);
      },
      "device"_a, nb::sig("def set_default_device(device: str) -> None"),
      "Sets the device of variables and layers that are made from now on without one.\n\n"
      "Examples\n--------\n"
      ">>> before = openrnn.get_default_device()\n"
      ">>> openrnn.set_default_device(\"cpu\")\n"
      ">>> openrnn.Variable(1.0).device\n"
      "'cpu'\n"
      ">>> openrnn.set_default_device(before)");
  m.def(
      "get_default_device", [] { return device_str(default_device()); },
      nb::sig("def get_default_device() -> str"),
      "That device: 'cpu' unless set_default_device or OPENRNN_DEVICE named another one.\n\n"
      "Examples\n--------\n"
      ">>> openrnn.get_default_device() in openrnn.list_devices()\n"
      "True");
}

void bind_threads(nb::module_& m) {
  m.def("set_num_threads", &set_num_threads, "n"_a,
        "Number of threads that a call may use, 1 to 1024. Results do not depend on it.\n\n"
        "Examples\n--------\n"
        ">>> before = openrnn.get_num_threads()\n"
        ">>> openrnn.set_num_threads(2)\n"
        ">>> openrnn.get_num_threads()\n"
        "2\n"
        ">>> openrnn.set_num_threads(before)");
  m.def("get_num_threads", &num_threads,
        "Number of threads that a call may use.\n\n"
        "Examples\n--------\n"
        ">>> openrnn.get_num_threads() >= 1\n"
        "True");
  m.def("set_spread_threads", &set_spread_threads, "spread"_a,
        "Whether a worker thread that shares a CPU with another thread of its call is moved to an "
        "idle one. On unless OPENRNN_SPREAD_THREADS is 0; results do not depend on it.\n\n"
        "Examples\n--------\n"
        ">>> before = openrnn.get_spread_threads()\n"
        ">>> openrnn.set_spread_threads(False)\n"
        ">>> openrnn.get_spread_threads()\n"
        "False\n"
        ">>> openrnn.set_spread_threads(before)");
  m.def("get_spread_threads", &spread_threads,
        "Whether such worker threads are moved.\n\n"
        "Examples\n--------\n"
        ">>> openrnn.get_spread_threads() in (True, False)\n"
        "True");
}

void bind_engines(nb::module_& m) {
  nb::class_<EngineStatus>(
      m, "EngineStatus",
      "One engine of this build.\n\n"
      "Examples\n--------\n"
      ">>> [each.available for each in openrnn.list_engines() if each.name == 'cpu']\n"
      "[True]")
      .def_ro("name", &EngineStatus::name)
      .def_ro("available", &EngineStatus::available)
      .def_ro("detail", &EngineStatus::detail, "What it runs on, or what is missing.")
      .def("__repr__", [](const EngineStatus& self) {
        return "<openrnn engine '" + self.name + "', " +
               (self.available ? "available" : "not available") + ": " + self.detail + ">";
      });
  m.def("list_engines", &list_engines,
        "Every engine of this build, best first; those that this machine lacks say so.\n\n"
        "Examples\n--------\n"
        ">>> 'cpu' in [each.name for each in openrnn.list_engines()]\n"
        "True");
}

}  // namespace

void bind_runtime(nb::module_& m) {
  m.attr("version") = OPENRNN_VERSION;
  bind_threads(m);
  bind_engines(m);
  m.def(
      "numpy_dtype", [](const std::string& name) { return numpy_dtype(parse_dtype(name)); },
      "name"_a, nb::sig("def numpy_dtype(name: str) -> typing.Any"));
  m.def(
      "dtype_name", [](nb::handle dtype) { return dtype_str(as_dtype(dtype)); }, "dtype"_any,
      nb::sig("def dtype_name(dtype: object) -> str"));
  m.def(
      "math_kind",
      [](const std::string& math, const std::optional<std::string>& weights_dtype, nb::handle dtype,
         nb::handle on) {
        RnnSpec spec;
        spec.num_units = spec.input_size = 1;
        spec.dtype = as_dtype(dtype);
        spec.compute.math = parse_math(math);
        spec.compute.weights_dtype = parse_weights_dtype(weights_dtype.value_or("none"));
        const Device* const place = as_device(on);
        return math_kind(spec, place ? *place : default_device());
      },
      "math"_a = "float32", "weights_dtype"_a.none() = nb::none(), "dtype"_any = "float32",
      nb::kw_only(), "device"_any = nb::none(),
      "The arithmetic of a network's products on this machine: 'float32', 'float64', "
      "'dot', 'amx', 'bf16x3' or 'int8'. Equal kinds give equal bits.\n\n"
      "Examples\n--------\n"
      ">>> openrnn.math_kind(dtype='float64', device='cpu')\n"
      "'float64'",
      nb::sig("def math_kind(math: str = 'float32', weights_dtype: str | None = None, "
              "dtype: object = 'float32', *, device: str | None = None) -> str"));
  bind_devices(m);
}

}  // namespace openrnn::python

NB_MODULE(_core, m) {
  using namespace openrnn::python;  // NOLINT: the module's body alone
  // The default graph lives until the process ends, and so do the objects that it holds.
  nanobind::set_leak_warnings(false);
  m.doc() = "The compiled part of openrnn.";
  bind_errors(m);
  bind_runtime(m);
  bind_fields(m);
  bind_explain(m);
  bind_tensor(m);
  bind_variable(m);
  bind_graph(m);
  bind_tape(m);
  bind_operations(m);
  bind_initializers(m);
  bind_layer(m);
  bind_cells(m);
  bind_loops(m);
  bind_models(m);
  bind_saveables(m);
  bind_optimizers(m);
  bind_communicators(m);
  bind_micro_batches(m);
  bind_saver(m);
  bind_runs(m);
  bind_sessions(m);
  bind_networks(m);
  bind_onnx(m);
  bind_copies(m);
  bind_torch(m);
  bind_jax(m);
  bind_keras(m);
  bind_messages(m);
}
