// Recording calls on symbolic tensors.
#include <algorithm>
#include <unordered_set>

#include "base/message.h"
#include "graph/symbolic/share.h"

namespace openrnn {
namespace {

using Call = std::shared_ptr<const SymbolicCall>;

}  // namespace

DType Tensor::symbol_dtype() const noexcept { return symbol_->call->outputs[symbol_->index].dtype; }

const Shape& Tensor::symbol_shape() const noexcept {
  return symbol_->call->outputs[symbol_->index].shape;
}

void Tensor::throw_symbolic() {
  throw StateError(
      "[value] the tensor is symbolic and has no value, expected a computed one: make a Model of "
      "its inputs and outputs and call that");
}

Tensor Input(Shape shape, DType dtype, const std::string& name) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < -1; })) {
    throw ArgumentError(message("[Input] shape is ", to_string(shape),
                                ", expected dimensions of 0 or more, or -1 for an unknown one"));
  }
  SymbolicCall call{.op = name.empty() ? "Input" : name, .outputs = {{dtype, std::move(shape)}}};
  return graph::record_call(std::move(call))[0];
}

bool any_symbolic(const std::vector<Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return tensor.is_symbolic(); });
}

bool shapes_fit(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), dims_fit);
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.is_symbolic() != b.is_symbolic() || a.empty() || b.empty()) return false;
  if (!a.is_symbolic()) {
    return a.value().data() == b.value().data() && a.shape() == b.shape();
  }
  return a.symbol()->call == b.symbol()->call && a.symbol()->index == b.symbol()->index;
}

std::vector<Tensor> defer(std::string op, const std::vector<Tensor>& inputs,
                          std::vector<TensorSpec> outputs, ReplayFunction run,
                          std::optional<Attributes> attributes) {
  return graph::record_call({.op = std::move(op),
                             .inputs = inputs,
                             .outputs = std::move(outputs),
                             .run = std::move(run),
                             .attributes = std::move(attributes)});
}

Tensor defer_read(const Variable& variable) {
  SymbolicCall call{.op = "ReadVariable", .outputs = {{variable.dtype(), variable.shape()}}};
  call.run = [variable](const std::vector<Tensor>&, const Replay&) {
    return std::vector<Tensor>{variable.read()};
  };
  call.variable = variable;
  return graph::record_call(std::move(call))[0];
}

std::vector<Call> calls_between(const std::vector<Tensor>& sources,
                                const std::vector<Tensor>& targets,
                                const std::function<bool(const SymbolicCall&)>& known) {
  const auto is_source = [&](const Tensor& tensor) {
    return std::any_of(sources.begin(), sources.end(),
                       [&](const Tensor& source) { return same_tensor(source, tensor); });
  };
  std::vector<Call> order;
  std::unordered_set<const SymbolicCall*> done;
  // Depth first without recursion; `next` counts the inputs that were looked at.
  struct Visit {
    Call call;
    std::size_t next = 0;
  };
  std::vector<Visit> path;
  const auto enter = [&](const Tensor& tensor) {
    if (!tensor.is_symbolic() || is_source(tensor)) return;
    if (known && known(*tensor.symbol()->call)) return;
    if (done.insert(tensor.symbol()->call.get()).second) path.push_back({tensor.symbol()->call});
  };
  for (const Tensor& target : targets) {
    enter(target);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next < visit.call->inputs.size()) {
        const Tensor input = visit.call->inputs[visit.next++];
        enter(input);
      } else {
        order.push_back(std::move(visit.call));
        path.pop_back();
      }
    }
  }
  return order;
}

bool depends_on(const Tensor& tensor, const std::vector<Tensor>& sources) {
  const auto is_source = [&](const Tensor& candidate) {
    return std::any_of(sources.begin(), sources.end(),
                       [&](const Tensor& source) { return same_tensor(source, candidate); });
  };
  if (is_source(tensor)) return true;
  const std::vector<Call> calls = calls_between({}, {tensor});
  return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
    return std::any_of(call->inputs.begin(), call->inputs.end(), is_source);
  });
}

}  // namespace openrnn
