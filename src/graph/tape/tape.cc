#include "base/message.h"
#include "graph/tape/leaf_id.h"
#include "graph/tape/sweep.h"

namespace openrnn {

namespace graph {

DeviceArray ones_like(const Tensor& target) {
  return DeviceArray::full(target.value().device(), target.dtype(), target.shape(), 1.0);
}

std::vector<std::uint64_t> leaf_ids(const std::vector<Tensor>& sources) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].leaf_id() == 0) {
      throw ArgumentError(message("[gradient] sources[", i,
                                  "] is no leaf, expected a tensor from watch() or a variable"));
    }
    ids.push_back(sources[i].leaf_id());
  }
  return ids;
}

std::vector<std::uint64_t> leaf_ids(const std::vector<Variable>& sources) {
  std::vector<std::uint64_t> ids;
  for (const Variable& source : sources) ids.push_back(source.leaf_id());
  return ids;
}

void check_output_gradient(const Tensor& target, DType dtype, const Shape& shape) {
  if (shape == target.shape() && dtype == target.dtype()) return;
  throw ArgumentError(message("[gradient] an output gradient is ", dtype_name(dtype), " of shape ",
                              to_string(shape), ", expected ", dtype_name(target.dtype()),
                              " of shape ", to_string(target.shape()), " as its target"));
}

}  // namespace graph

namespace {

using Gradients = std::vector<DeviceArray>;

DeviceArray seed_gradient(const Tensor& target, const DeviceArray& given) {
  if (given.empty()) return graph::ones_like(target);
  graph::check_output_gradient(target, given.dtype(), given.shape());
  return on_device(given, target.device());
}

}  // namespace

GradientTape::GradientTape()
    : open_(graph::OpenTapes::of_this_thread()), recording_(std::make_shared<graph::Recording>()) {
  open_->open(recording_);
}

GradientTape::~GradientTape() { close(); }

void GradientTape::close() noexcept {
  if (open_) open_->close(*recording_);
  open_.reset();
}

bool GradientTape::holds(const Tensor& target) const {
  const std::shared_ptr<const Node> node = target.node();
  return target.wants_gradient_ || (node && recording_->holds(*node));
}

Tensor GradientTape::watch(const Tensor& tensor) const {
  if (tensor.empty()) {
    throw ArgumentError("[watch] the tensor is empty, expected one with a value");
  }
  // What was computed from it before must go on counting.
  if (tensor.leaf_id_ != 0 && tensor.wants_gradient_) return tensor;
  Tensor leaf = tensor;
  leaf.leaf_id_ = graph::next_id();
  leaf.version_ = 0;
  leaf.wants_gradient_ = true;
  return leaf;
}

void GradientTape::check_targets(const std::vector<Tensor>& targets, std::size_t given) const {
  if (given != 0 && given != targets.size()) {
    throw ArgumentError(message("[gradient] ", given, " output gradients, expected ",
                                targets.size(), ", one a target"));
  }
  if (std::none_of(targets.begin(), targets.end(),
                   [this](const Tensor& target) { return holds(target); })) {
    throw StateError(
        "[gradient] the target has no history on this tape, expected one computed from watched "
        "tensors or trainable variables while it was open");
  }
}

Gradients GradientTape::of_leaves(const std::vector<Tensor>& targets,
                                  const std::vector<std::uint64_t>& leaves,
                                  const Gradients& given) const {
  check_targets(targets, given.size());
  std::vector<std::pair<Tensor, DeviceArray>> seeded;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!holds(targets[i])) continue;
    seeded.emplace_back(targets[i],
                        seed_gradient(targets[i], given.empty() ? DeviceArray() : given[i]));
  }
  return graph::sweep<DeviceArray, graph::ArrayRules>(*recording_, leaves, seeded);
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                 const DeviceArray& output_gradient) const {
  return of_leaves({target}, graph::leaf_ids(sources), {output_gradient});
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const DeviceArray& output_gradient) const {
  return of_leaves({target}, graph::leaf_ids(sources), {output_gradient});
}

Gradients GradientTape::gradient(const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& sources,
                                 const std::vector<DeviceArray>& output_gradients) const {
  return of_leaves(targets, graph::leaf_ids(sources), output_gradients);
}

}  // namespace openrnn
