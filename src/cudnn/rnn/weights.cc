#include "cudnn/rnn/weights.h"

#include <array>

#include "base/message.h"
#include "cudnn/device/graph.h"
#include "cudnn/gpu/process_wide.h"
#include "cudnn/rnn/aligned.h"
#include "cudnn/rnn/descriptors.h"

namespace openrnn::cudnn {
namespace {

struct KnownMaps {
  std::mutex mutex;
  std::map<NetworkKey, std::shared_ptr<const WeightMap>> all;
};

constinit std::atomic<KnownMaps*> known_maps{nullptr};

std::vector<const ParamRegion*> regions_of(const ParamsLayout& layout) {
  std::vector<const ParamRegion*> regions;
  for (const ParamRegion& region : layout.weights()) regions.push_back(&region);
  for (const ParamRegion& region : layout.biases()) regions.push_back(&region);
  return regions;
}

// Rows and columns of a descriptor {1, rows, cols}.
std::array<int, 2> shape_of(const TensorOwner& tensor) {
  std::array<int, 3> dims{}, strides{};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int count = 0;
  check(libraries().cudnn.get_tensor(tensor.get(), 3, &type, &count, dims.data(), strides.data()),
        "cudnnGetTensorNdDescriptor");
  return {dims[1], dims[2]};
}

/// Queries the weight layout of one network.
class Question {
 public:
  Question(Context& context, const RnnSpec& spec)
      : spec_(spec), handle_(context), rnn_(context, handle_.get(), spec, Variant{}, {}) {
    check(libraries().cudnn.weight_space_size(handle_.get(), rnn_.get(), &bytes_),
          "cudnnGetRNNWeightSpaceSize");
    // A real block, so that its address is valid in every reading of the documentation.
    space_ = context.allocate(bytes_);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_ / dtype_size(spec_.dtype)); }

  std::int64_t offset(const ParamRegion& region) {
    void *matrix = nullptr, *bias = nullptr;
    const auto pseudo =
        static_cast<std::int32_t>(region.layer * spec_.num_dirs() + region.direction);
    check(libraries().cudnn.weight_params(handle_.get(), rnn_.get(), pseudo, bytes_, space_.get(),
                                          static_cast<std::int32_t>(region.slot), matrix_.get(),
                                          &matrix, bias_.get(), &bias),
          "cudnnGetRNNWeightParams");
    const void* at = region.is_bias() ? bias : matrix;
    const auto shape = shape_of(region.is_bias() ? bias_ : matrix_);
    if (!at || shape[0] != region.rows || shape[1] != region.cols) {
      throw EngineError(message("[pack] cuDNN has ", region.name, " as [", shape[0], ", ", shape[1],
                                "], expected [", region.rows, ", ", region.cols, "]"));
    }
    const auto bytes = static_cast<const char*>(at) - static_cast<const char*>(space_.get());
    return bytes / static_cast<std::int64_t>(dtype_size(spec_.dtype));
  }

 private:
  const RnnSpec& spec_;
  BorrowedHandle handle_;
  RnnDescriptor rnn_;
  TensorOwner matrix_, bias_;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> space_;
};

std::shared_ptr<const WeightMap> ask(Context& context, const RnnSpec& spec) {
  const ParamsLayout layout(spec);
  Question question(context, spec);
  auto map = std::make_shared<WeightMap>();
  map->size = question.size();
  map->is_ours = map->size == layout.size();
  for (const ParamRegion* region : regions_of(layout)) {
    // Matrices that skip_input leaves out have no place.
    map->offsets.push_back(region->size() > 0 ? question.offset(*region) : region->offset);
    map->is_ours = map->is_ours && map->offsets.back() == region->offset;
  }
  return map;
}

std::vector<Stretch> stretches_of(const ParamsLayout& network, const Part& part,
                                  const ParamsLayout& layout, const WeightMap& map) {
  std::vector<Stretch> stretches;
  const std::vector<const ParamRegion*> regions = regions_of(layout);
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const ParamRegion& own = *regions[r];
    if (own.size() == 0) continue;
    const std::int64_t layer = part.layer + own.layer;
    const std::int64_t direction = part.direction >= 0 ? part.direction : own.direction;
    const ParamRegion& region = own.is_bias()
                                    ? network.bias(layer, direction, own.role, own.gate)
                                    : network.weight(layer, direction, own.role, own.gate);
    const Stretch next{region.offset, map.offsets[r], own.size()};
    Stretch* last = stretches.empty() ? nullptr : &stretches.back();
    if (last && last->in_params + last->size == next.in_params &&
        last->in_weights + last->size == next.in_weights) {
      last->size += next.size;
    } else {
      stretches.push_back(next);
    }
  }
  return stretches;
}

void* at(void* memory, std::int64_t element, DType dtype) {
  return static_cast<char*>(memory) + static_cast<std::size_t>(element) * dtype_size(dtype);
}
const void* at(const void* memory, std::int64_t element, DType dtype) {
  return static_cast<const char*>(memory) + static_cast<std::size_t>(element) * dtype_size(dtype);
}

}  // namespace

NetworkKey network_key(const Context& context, const RnnSpec& spec) {
  return {context.ordinal(), spec.mode,          spec.num_layers,    spec.num_units,
          spec.input_size,   spec.hidden_size(), spec.skips_input(), spec.direction,
          spec.dtype,        spec.compute.math};
}

std::shared_ptr<const WeightMap> weight_map(Context& context, const RnnSpec& spec) {
  KnownMaps& known = process_wide(known_maps);
  const NetworkKey key = network_key(context, spec);
  {
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.all.find(key); found != known.all.end()) return found->second;
  }
  auto map = ask(context, spec);
  const std::lock_guard lock(known.mutex);
  return known.all.try_emplace(key, std::move(map)).first->second;
}

CudnnPacked::CudnnPacked(Context& context, const RnnSpec& spec, const void* params,
                         const PackOptions& options)
    : PackedParams(spec, options.purpose),
      context_(context),
      layout_(spec),
      lent_(options.lender && is_aligned(options.lender.get())),
      params_(options.lender),
      copies_(std::make_shared<Copies>()) {
  if (lent_) return;
  const std::size_t bytes = static_cast<std::size_t>(layout_.size()) * dtype_size(spec.dtype);
  const std::shared_ptr<void> copy = context.allocate(bytes);
  context.copy(copy.get(), params, bytes);
  params_ = copy;
}

CudnnPacked::CudnnPacked(const CudnnPacked& other, std::shared_ptr<const void> lender)
    : PackedParams(other.spec(), other.purpose()),
      context_(other.context_),
      layout_(other.layout_),
      lent_(true),
      params_(std::move(lender)),
      copies_(other.copies_) {}

std::shared_ptr<const PackedParams> CudnnPacked::over(std::shared_ptr<const void> lender) const {
  if (!lent_) return nullptr;
  return std::shared_ptr<const PackedParams>(new CudnnPacked(*this, std::move(lender)));
}

PartWeights CudnnPacked::describe(const Part& which) const {
  PartWeights part;
  part.spec = part_of(spec(), which.layer, which.layers, which.direction);
  const ParamsLayout layout(part.spec);
  part.map = weight_map(context_, part.spec);
  part.stretches = stretches_of(layout_, which, layout, *part.map);
  return part;
}

PartWeights CudnnPacked::copied(const Part& which) const {
  if (is_recording(context_)) {
    throw EngineError("[record] weights are copied for a part, expected them made before");
  }
  PartWeights part = describe(which);
  const std::shared_ptr<void> memory = context_.allocate(part.bytes());
  // Gaps between the regions, if any, must hold valid numbers.
  if (!part.map->is_ours) context_.zero(memory.get(), part.bytes());
  for (const Stretch& s : part.stretches) {
    context_.copy(at(memory.get(), s.in_weights, spec().dtype),
                  at(params_.get(), s.in_params, spec().dtype),
                  static_cast<std::size_t>(s.size) * dtype_size(spec().dtype));
  }
  part.memory = memory;
  return part;
}

const PartWeights& CudnnPacked::part(const Part& which) const {
  if (!params_) {
    throw StateError(
        "[forward] params are without the memory that was lent to them, expected some");
  }
  if (which == whole()) {
    const std::lock_guard lock(mutex_);
    if (const auto found = reads_params_.find(which); found != reads_params_.end()) {
      return found->second;
    }
    PartWeights part = describe(which);
    if (part.map->is_ours) {
      part.memory = params_;
      return reads_params_.emplace(which, std::move(part)).first->second;
    }
  }
  const std::lock_guard lock(copies_->mutex);
  if (const auto found = copies_->parts.find(which); found != copies_->parts.end()) {
    return found->second;
  }
  return copies_->parts.emplace(which, copied(which)).first->second;
}

void unpack_gradient(Context& context, const PartWeights& part, const void* gradient,
                     void* dparams) {
  const DType dtype = part.spec.dtype;
  for (const Stretch& s : part.stretches) {
    context.copy(at(dparams, s.in_params, dtype), at(gradient, s.in_weights, dtype),
                 static_cast<std::size_t>(s.size) * dtype_size(dtype));
  }
}

}  // namespace openrnn::cudnn
