// What openrnn.torch calls: networks, packed weights and passes over addresses of PyTorch's
// tensors. The package checks shapes, dtypes and memory of all but the weights; it keeps the
// tensors alive during a call.
#include "python/support/network.h"
#include "python/support/torch_threads.h"
#include "python/torch/passes.h"

namespace openrnn::python {
namespace {

using torch::Call;
using torch::Network;
using NetworkPointer = std::shared_ptr<Network>;

template <class T = const void>
T* memory(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT: data_ptr() is a number
}

// (T, B, batch-major, training, address of batch sizes, threads, seed).
using CallTuple =
    std::tuple<std::int64_t, std::int64_t, bool, bool, std::uintptr_t, int, std::uint64_t>;

Call call_of(const CallTuple& given) {
  const auto& [max_time, batch, batch_major, training, sizes, threads, seed] = given;
  return {.max_time = max_time,
          .batch = batch,
          .batch_major = batch_major,
          .training = training,
          .batch_sizes = memory<const std::int64_t>(sizes),
          .threads = threads,
          .dropout = {.seed = seed, .call = 0}};
}

using Addresses = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t>;

torch::Inputs inputs(const Addresses& at) {
  return {memory(std::get<0>(at)), memory(std::get<1>(at)), memory(std::get<2>(at))};
}
torch::Outputs outputs(const Addresses& at) {
  return {memory<void>(std::get<0>(at)), memory<void>(std::get<1>(at)),
          memory<void>(std::get<2>(at))};
}

struct WeightsRef {
  NetworkPointer network;
  torch::PackedWeights packed;
};

std::string role_name(ParamRole role) {
  switch (role) {
    case ParamRole::kInputWeight:
      return "weight_ih";
    case ParamRole::kRecurrentWeight:
      return "weight_hh";
    case ParamRole::kProjection:
      return "weight_hr";
    case ParamRole::kInputBias:
      return "bias_ih";
    case ParamRole::kRecurrentBias:
      return "bias_hh";
    case ParamRole::kPeephole:
      return "peephole";
    case ParamRole::kInputGain:
      return "gain_ih";
    case ParamRole::kRecurrentGain:
      return "gain_hh";
    case ParamRole::kSumGain:
      return "gain";
    case ParamRole::kCellGain:
      return "cell_gain";
    case ParamRole::kCellBias:
      return "cell_bias";
  }
  return {};
}

nb::list pieces_of(const Network& network) {
  nb::list all;
  for (const torch::Piece& piece : network.pieces) {
    const std::string suffix = piece.direction == 1 ? "_reverse" : "";
    const std::string name = role_name(piece.role) + "_l" + std::to_string(piece.layer) + suffix;
    all.append(nb::make_tuple(name, piece.shape, piece.offset, piece.size()));
  }
  return all;
}

// True: done. False: the tensors cannot be read where they lie. A capsule: what backward needs.
nb::object run(WeightsRef& self, nb::handle weights, bool saving, const CallTuple& sizes,
               const Addresses& in, const Addresses& out) {
  const Call call = call_of(sizes);
  const PackFor purpose = saving ? PackFor::kTraining : PackFor::kInference;
  std::shared_ptr<torch::PackedWeights::Packed> packed;
  torch::Contents contents;
  if (weights.is_none()) {
    packed = self.packed.last(purpose);
    if (!packed) return nb::bool_(false);
  } else if (torch::read_addresses(*self.network, weights, contents.at) != torch::Readable::kYes) {
    return nb::bool_(false);
  }
  const auto saved = unlocked([&] {
    const HostThreadsScope threads(torch_threads());
    if (!packed) {
      contents.hash = torch::hash_of(*self.network, contents.at);
      packed = self.packed.get(*self.network, contents, purpose, call.threads);
    }
    return torch::forward(self.network, *packed, call, inputs(in), outputs(out), saving);
  });
  return saved ? torch::token_of(saved) : nb::bool_(true);
}

// False: the token at that address is nobody's.
bool run_backward(const NetworkPointer& network, std::uintptr_t token, const CallTuple& sizes,
                  const Addresses& from, const Addresses& to, std::uintptr_t params,
                  std::uintptr_t rows, std::int64_t first, std::int64_t last) {
  const auto saved = torch::find_saved(memory(token));
  const Call call = call_of(sizes);
  if (!saved || saved->network->spec.operator*() != *network->spec ||
      saved->call.max_time != call.max_time || saved->call.batch != call.batch ||
      saved->call.batch_major != call.batch_major || saved->call.training != call.training ||
      saved->batch_sizes.empty() != (call.batch_sizes == nullptr) ||
      saved->call.dropout.seed != call.dropout.seed) {
    return false;
  }
  unlocked([&] {
    const HostThreadsScope threads(torch_threads());
    torch::backward(*saved, {.from = inputs(from),
                             .to = outputs(to),
                             .params = memory<void>(params),
                             .rows = memory<void>(rows),
                             .first = first,
                             .last = last});
  });
  return true;
}

// False: the tensors cannot be read where they lie.
bool run_tangent(const NetworkPointer& network, nb::handle weights, const CallTuple& sizes,
                 const Addresses& at, const Addresses& direction, std::uintptr_t params_direction,
                 const Addresses& gradients, const Addresses& moved, const Addresses& curvature,
                 std::uintptr_t params_curvature) {
  std::vector<const void*> addresses;
  if (torch::read_addresses(*network, weights, addresses) != torch::Readable::kYes) return false;
  unlocked([&] {
    const HostThreadsScope threads(torch_threads());
    const DeviceArray params = torch::gathered(*network, addresses);
    torch::tangent(*network, call_of(sizes),
                   {.at = inputs(at),
                    .direction = inputs(direction),
                    .gradients = inputs(gradients),
                    .params = params.data(),
                    .params_direction = memory(params_direction),
                    .moved = outputs(moved),
                    .curvature = outputs(curvature),
                    .params_curvature = memory<void>(params_curvature)});
  });
  return true;
}

NetworkPointer make_network(nb::object options, nb::object torch_dtype) {
  return std::make_shared<Network>(as_network("openrnn.torch", nb::cast<nb::dict>(options)),
                                   std::move(torch_dtype));
}

}  // namespace

void bind_torch(nb::module_& m) {
  nb::class_<Network>(m, "TorchNetwork")
      .def(nb::new_(&make_network), "options"_a, "torch_dtype"_a)
      .def_prop_ro("pieces", &pieces_of,
                   nb::sig("def pieces(self) -> list[tuple[str, tuple[int, ...], int, int]]"))
      .def_prop_ro("size", [](const Network& self) { return self.layout.size(); })
      .def_prop_ro("has_cell", [](const Network& self) { return self.spec->has_cell(); })
      .def_prop_ro("draws_masks", [](const Network& self) { return self.spec->draws_masks(); })
      .def_prop_ro("has_row_gradients",
                   [](const Network& self) { return self.engine->has_row_gradients(); });
  nb::class_<WeightsRef>(m, "TorchWeights")
      .def(
          "__init__",
          [](WeightsRef* self, NetworkPointer network) {
            new (self) WeightsRef{std::move(network), {}};
          },
          "network"_a)
      .def_prop_ro("packings", [](const WeightsRef& self) { return self.packed.packings(); })
      .def("drop", [](WeightsRef& self) { self.packed.drop(); })
      .def("forward", &run, "weights"_any, "saving"_a, "sizes"_a, "inputs"_a, "outputs"_a,
           nb::sig("def forward(self, weights: typing.Any, saving: bool, sizes: tuple[int, int, "
                   "bool, bool, int, int, int], inputs: tuple[int, int, int], outputs: tuple[int, "
                   "int, int]) -> typing.Any"));
  m.def("torch_backward", &run_backward, "network"_a, "token"_a, "sizes"_a, "gradients"_a,
        "results"_a, "params"_a, "rows"_a, "first"_a, "last"_a);
  m.def("torch_tangent", &run_tangent, "network"_a, "weights"_any, "sizes"_a, "at"_a, "direction"_a,
        "params_direction"_a, "gradients"_a, "moved"_a, "curvature"_a, "params_curvature"_a);
  m.def("find_torch_threads", &find_torch_threads, "library"_a);
  m.def("torch_saved_calls", &torch::count_saved);
}

}  // namespace openrnn::python
