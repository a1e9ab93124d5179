// What would run a network, and why.
#include "openrnn/runtime.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

Explanation explained(std::int64_t max_time, std::int64_t batch, nb::handle save,
                      const nb::kwargs& network) {
  nb::dict fields;
  for (const auto [name, value] : network) {
    if (nb::cast<std::string>(name) != "device") fields[name] = value;
  }
  require_fields("explain", fields, {});
  const RnnSpec spec = as_network("explain", nb::dict(network));
  const Device& device = spec.compute.device ? *spec.compute.device : default_device();
  return explain(ValidSpec(spec), {max_time, batch, &device, as_save("explain", save).second});
}

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<Explanation>(
      m, "Explanation",
      "What would run a network, and why; str() is one line for each.\n\n"
      "Examples\n--------\n"
      ">>> found = openrnn.explain(rnn_mode='lstm', num_units=4, input_size=3, device='cpu')\n"
      ">>> found.engine, found.same_bits, found.params_bytes\n"
      "('cpu', True, 576)")
      .def_ro("engine", &Explanation::engine, "'cpu', 'cudnn', 'reference', or '' for none.")
      .def_ro("description", &Explanation::description, "What it runs on.")
      .def_ro("kernels", &Explanation::kernels, "cuDNN's step, or one with options.")
      .def_ro("math_kind", &Explanation::math_kind, "As openrnn.math_kind.")
      .def_ro("same_bits", &Explanation::same_bits,
              "Whether results are the same bits at every run, for every number of threads, and on "
              "every machine with this math_kind.")
      .def_ro("params_bytes", &Explanation::params_bytes)
      .def_ro("saved_bytes", &Explanation::saved_bytes,
              "What a training call keeps for its gradient; None where only a call can tell.")
      .def_ro("others", &Explanation::others, "Every other engine, and why it is not the one.")
      .def("__str__", [](const Explanation& self) { return to_string(self); })
      .def("__repr__", [](const Explanation& self) {
        return "<openrnn explanation: " + (self.engine.empty() ? "no engine" : self.engine) + ">";
      });
  m.def("explain", &explained, nb::kw_only(), "max_time"_a = 1, "batch"_a = 1, "save"_a = true,
        "network"_a,
        "Decides which engine would run a network, and computes nothing.\n\n"
        "network: the options of network_options() by name, and device. max_time and batch: the "
        "size of the call whose memory saved_bytes counts; save: as of a layer's call. A network "
        "that no engine can run has "
        "engine '', and others says why.\n"
        "Raises: ValueError for options that do not fit together, TypeError for an unknown one.\n\n"
        "Examples\n--------\n"
        ">>> found = openrnn.explain(rnn_mode='gru', num_units=4, input_size=3, dtype='float64')\n"
        ">>> found.math_kind, found.params_bytes\n"
        "('float64', 864)",
        nb::sig("def explain(*, max_time: int = 1, batch: int = 1, save: bool | str | int = True, "
                "**network: typing.Any) -> "
                "Explanation"));
}

}  // namespace openrnn::python
