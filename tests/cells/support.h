// Tensors and graphs for the tests of cells.
#pragma once

#include "graph/layer/support.h"
#include "openrnn/cells.h"
#include "saveables/support.h"

namespace openrnn::testing {

struct OwnGraph {
  Graph graph;
  Graph::AsDefault current{graph};
};

inline Tensor varied(Shape shape, std::uint64_t seed = 1, DType dtype = DType::kFloat32) {
  Array values(dtype, std::move(shape));
  RandomStream random(seed);
  if (values.size() > 0) random_uniform_initializer(-1.0, 1.0)(values.view(), random);
  return Tensor(values.view());
}

inline bool same(const Tensor& a, const Tensor& b) { return same_bits(a.to_host(), b.to_host()); }

inline CompatibleCellOptions units(std::int64_t num_units, DType dtype = DType::kFloat32) {
  CompatibleCellOptions options;
  options.num_units = num_units;
  options.dtype = dtype;
  return options;
}

inline std::vector<std::string> names_of(const Graph& graph) { return names_of(graph.variables()); }

/// What it writes into one element.
inline double value_of(const Initializer& initializer) {
  Array value(DType::kFloat64, {1});
  RandomStream random(1);
  initializer(value.view(), random);
  return value.as<double>()[0];
}

}  // namespace openrnn::testing
