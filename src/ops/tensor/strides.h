// Where elements lie: the one plan by which tensors are broadcast, transposed and sliced.
#pragma once

#include "ops/support/support.h"
#include "ops/symbolic/shapes.h"

namespace openrnn::ops {

/// Element (i, j, ..) of `shape` is element offset + i * strides[0] + j * strides[1] + .. of a
/// dense array.
struct ElementView {
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;

  /// All elements of a dense array.
  static ElementView of(const Shape& shape);
  /// The dimensions in another order.
  ElementView permuted(const std::vector<std::size_t>& perm) const;
  /// The same in a shape that it broadcasts to: strides of 0.
  ElementView broadcast(const Shape& to) const;
};

/// Those elements of x as a dense array; of any dtype.
DeviceArray elements_of(const DeviceArray& x, const ElementView& view);
/// x in a shape that it broadcasts to; itself if that is its own.
DeviceArray run_broadcast(const DeviceArray& x, const Shape& shape);
/// x summed to a shape that broadcasts to its own, in the order of Device::column_sum; a whole sum
/// in that of Device::sum.
DeviceArray run_sum_to(const DeviceArray& x, const Shape& shape);
/// The reduced dimensions in front of the others: [R, K] of all of them, and whether x lies so.
DeviceArray reduced_first(const DeviceArray& x, const std::vector<bool>& reduced);

/// Those elements of x, none of them twice.
Tensor viewed(const char* call, const Tensor& x, const ElementView& view);
/// Of two tensors of one dtype and device, both in the shape that they broadcast to. Throws:
/// ArgumentError.
std::array<Tensor, 2> broadcast_both(const char* call, const Tensor& a, const Tensor& b);

}  // namespace openrnn::ops
