// Networks with values that differ everywhere, for tests of files.
#pragma once

#include <openrnn/mapping.h>
#include <openrnn/runtime.h>

#include <cstring>

namespace openrnn {

/// Values of [size] in (-0.5, 0.5), all different.
inline Array values_of(DType dtype, Shape shape, std::uint64_t seed) {
  Array wide(DType::kFloat64, std::move(shape));
  RandomStream random(seed);
  for (double& value : wide.as<double>()) value = random.uniform(-0.5, 0.5);
  return cast(wide.view(), dtype);
}

inline MappedNetwork network_of(const RnnSpec& spec, const std::string& name = {},
                                std::uint64_t seed = 1) {
  return {.name = name, .spec = spec, .params = values_of(spec.dtype, {params_size(spec)}, seed)};
}

inline bool same_bytes(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// The output of the network on input of its own, in float64.
inline std::vector<double> output_of(const MappedNetwork& network, std::int64_t max_time = 5,
                                     std::int64_t batch = 3) {
  const RnnSpec& spec = network.spec;
  const Array x = values_of(spec.dtype, {max_time, batch, spec.input_size}, 99);
  Array y(spec.dtype, {max_time, batch, spec.output_size()});
  const auto model = std::make_shared<const PackedModel>(spec, network.params.view());
  ForwardArgs args;
  args.max_time = max_time;
  args.batch = batch;
  args.x = x.data();
  args.y = y.data();
  InferenceSession(model).run(args);
  std::vector<double> out;
  for (std::int64_t i = 0; i < y.size(); ++i) out.push_back(element(y.view(), i));
  return out;
}

}  // namespace openrnn
