// Parameters in cuDNN's layout.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "cudnn/gpu/context.h"
#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// A network on a GPU, as far as the layout of its weights and the speed of its algorithms depend
/// on it.
using NetworkKey = std::tuple<int, RnnMode, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                              bool, Direction, DType, Math>;
NetworkKey network_key(const Context& context, const RnnSpec& spec);

/// cuDNN's own layout of a network's weights: for each region of ParamsLayout, weights and then
/// biases, the element where it starts.
struct WeightMap {
  std::int64_t size = 0;  // elements of the whole space
  std::vector<std::int64_t> offsets;
  /// Whether it equals ParamsLayout.
  bool is_ours = false;
};

/// Queried from cuDNN once per network and cached. For a thread where the context is current.
/// Throws: EngineError when cuDNN has a matrix of another shape.
std::shared_ptr<const WeightMap> weight_map(Context& context, const RnnSpec& spec);

/// A part of a network with its own weights: all of it, one layer, or one direction of a layer.
struct Part {
  std::int64_t layer = 0, layers = 0;
  int direction = -1;  // both
  // NOLINTNEXTLINE(modernize-use-nullptr): the zero is in what the compiler makes of the default
  friend auto operator<=>(const Part&, const Part&) = default;
};

/// Elements that lie together both in the network's opaque buffer and in a part's weights.
struct Stretch {
  std::int64_t in_params = 0, in_weights = 0, size = 0;
};

/// The weights of a part on the GPU.
struct PartWeights {
  RnnSpec spec;
  std::shared_ptr<const WeightMap> map;
  std::vector<Stretch> stretches;
  std::shared_ptr<const void> memory;
  std::size_t bytes() const { return static_cast<std::size_t>(map->size) * dtype_size(spec.dtype); }
};

/// The opaque buffer, a lender's or a copy, from which the weights of parts are made at first use.
/// A whole network reads the buffer itself where cuDNN's layout is ours.
class CudnnPacked final : public PackedParams {
 public:
  /// For a thread where the context is current. A lender's buffer that is not aligned for cuDNN is
  /// copied.
  CudnnPacked(Context& context, const RnnSpec& spec, const void* params,
              const PackOptions& options);
  std::shared_ptr<const PackedParams> over(std::shared_ptr<const void> lender) const override;

  Context& context() const noexcept { return context_; }
  const ParamsLayout& layout() const noexcept { return layout_; }
  /// Valid while this object exists. For a thread where the context is current.
  const PartWeights& part(const Part& part) const;
  Part whole() const { return {0, spec().num_layers, -1}; }

 private:
  using Parts = std::map<Part, PartWeights>;
  /// Weights that were copied, for every CudnnPacked of the same elements.
  struct Copies {
    std::mutex mutex;
    Parts parts;
  };
  CudnnPacked(const CudnnPacked& other, std::shared_ptr<const void> lender);
  PartWeights describe(const Part& part) const;
  PartWeights copied(const Part& part) const;

  Context& context_;
  ParamsLayout layout_;
  bool lent_;
  std::shared_ptr<const void> params_;
  std::shared_ptr<Copies> copies_;
  mutable std::mutex mutex_;
  mutable Parts reads_params_;  // the whole network, or nothing
};

/// Copies the gradient of a part's weights to a buffer of the opaque layout.
void unpack_gradient(Context& context, const PartWeights& part, const void* gradient,
                     void* dparams);

}  // namespace openrnn::cudnn
