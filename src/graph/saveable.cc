#include "openrnn/graph.h"

namespace openrnn {

std::vector<SaveableObject::Spec> SaveableObject::specs() const {
  std::vector<std::string> names = spec_names();
  const Array value = variable().to_host();
  std::vector<Array> tensors = to_tensors(value.view());
  std::vector<Spec> specs;
  specs.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    specs.push_back({std::move(names[i]), std::move(tensors[i])});
  }
  return specs;
}

void SaveableObject::restore(const std::vector<Array>& tensors) const {
  const Array value = from_tensors(tensors);
  variable().assign(value.view());
}

}  // namespace openrnn
