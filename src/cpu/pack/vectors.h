// Where a layer's parameters lie in the opaque buffer, and its vectors as the kernels read them.
#pragma once

#include <array>

#include "cpu/pack/packed.h"

namespace openrnn::cpu {

/// Matrices one below the other; the first null ends them.
template <class T>
using Stack = std::array<const T*, 4>;

/// Reads the regions of one direction of one layer out of the opaque buffer.
template <class T>
struct Source {
  const ParamsLayout& layout;
  const T* params;
  std::int64_t layer, direction;

  const T* weight(ParamRole role, std::int64_t gate) const {
    return params + layout.weight(layer, direction, role, gate).offset;
  }
  const T* bias(ParamRole role, std::int64_t gate) const {
    return params + layout.bias(layer, direction, role, gate).offset;
  }
  Stack<T> gates(ParamRole role, std::initializer_list<std::int64_t> order) const {
    Stack<T> blocks{};
    std::size_t count = 0;
    for (const std::int64_t gate : order) blocks[count++] = weight(role, gate);
    return blocks;
  }
};

/// The biases of a layer in one sum a vector of w; those of the two sides of gru's n apart.
template <class T>
void pack_bias(const PackedLayer<T>& packed, const Source<T>& source, const RnnSpec& spec);

/// The options of a layer; peepholes are copied.
template <class T>
void pack_options(PackedLayer<T>& packed, const Source<T>& source, const RnnSpec& spec);

extern template void pack_bias<float>(const PackedLayer<float>&, const Source<float>&,
                                      const RnnSpec&);
extern template void pack_bias<double>(const PackedLayer<double>&, const Source<double>&,
                                       const RnnSpec&);
extern template void pack_options<float>(PackedLayer<float>&, const Source<float>&, const RnnSpec&);
extern template void pack_options<double>(PackedLayer<double>&, const Source<double>&,
                                          const RnnSpec&);

}  // namespace openrnn::cpu
