// Gradients as tensors, which other tapes record.
#include "base/message.h"
#include "graph/tape/sweep.h"
#include "openrnn/graph_jvp.h"

namespace openrnn {
namespace {

using Tensors = std::vector<Tensor>;

Tensor sum_of(const Tensor& a, const Tensor& b) {
  DeviceArray sum = a.value();
  sum.make_unique_owner();
  sum.device().accumulate(sum.dtype(), sum.size(), b.value().data(), sum.mutable_data());
  return record(
      "add", {a, b}, {std::move(sum)},
      [](const auto& dy) {
        return std::vector{dy[0], dy[0]};
      },
      [](const GradientCall& call) {
        return Tensors{call.output_gradients[0], call.output_gradients[0]};
      })[0];
}

// Through a node that cannot say how its gradient is computed: its value, and who asks for more is
// told why there is none.
Tensors run_as_arrays(const Node& node, const Tensors& outputs, const std::vector<bool>& wanted) {
  std::vector<DeviceArray> arrays;
  Tensors others;
  for (const Tensor& output : outputs) {
    arrays.push_back(output.empty() ? DeviceArray() : output.value());
    if (!output.empty()) others.push_back(output);
  }
  std::vector<DeviceArray> found =
      node.selective ? node.selective(arrays, wanted) : node.backward(arrays);
  return graph::Recorder::refuse(
      node, others, std::move(found),
      node.history ? message("[gradient] '", node.op,
                             "' has no second derivative, expected operations that have one")
                   : message("[gradient] '", node.op,
                             "' was recorded before the outer tape was opened, expected an outer "
                             "tape that is open around what it differentiates twice"));
}

struct TensorRules {
  static constexpr bool kListens = false;
  template <class Wants>
  static Tensors run(const Node& node, const Tensors& outputs, const Wants& wants) {
    const std::vector<bool> wanted = wants();
    if (!node.history || !node.history->gradient) return run_as_arrays(node, outputs, wanted);
    return node.history->gradient({.inputs = node.history->inputs,
                                   .outputs = node.history->outputs,
                                   .output_gradients = outputs,
                                   .wanted = wanted});
  }

  static void add(Tensor& sum, const Tensor& gradient) {
    sum = sum.empty() ? gradient : sum_of(sum, gradient);
  }
};

Tensor seed_gradient(const Tensor& target, const Tensor& given) {
  if (given.empty()) return Tensor(graph::ones_like(target));
  graph::check_output_gradient(target, given.dtype(), given.shape());
  return given.to(target.device());
}

Tensor zeros_like(const Tensor& tensor) {
  return Tensor(DeviceArray::zeros(tensor.device(), tensor.dtype(), tensor.shape()));
}

void check_directions(const char* call, const char* name, const Tensors& primals,
                      const Tensors& given) {
  if (given.size() != primals.size()) {
    throw ArgumentError(message("[", call, "] ", given.size(), " ", name, ", expected ",
                                primals.size(), ", one a primal"));
  }
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (primals[i].empty() || !is_floating(primals[i].dtype())) {
      throw ArgumentError(message("[", call, "] primals[", i, "] is ",
                                  primals[i].empty() ? "empty" : dtype_name(primals[i].dtype()),
                                  ", expected a floating tensor"));
    }
    const bool fits = !given[i].empty() && given[i].dtype() == primals[i].dtype() &&
                      given[i].shape() == primals[i].shape();
    if (fits) continue;
    throw ArgumentError(message(
        "[", call, "] ", name, "[", i, "] is ",
        given[i].empty()
            ? std::string("empty")
            : message(dtype_name(given[i].dtype()), " of shape ", to_string(given[i].shape())),
        ", expected ", dtype_name(primals[i].dtype()), " of shape ", to_string(primals[i].shape()),
        " as its primal"));
  }
}

// Leaves of their own, also where one tensor is given twice; the caller's tapes see through them.
Tensors fresh_leaves(const GradientTape& tape, const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& tensor : tensors) {
    const Tensor same = record(
        "identity", {tensor}, {tensor.value()}, [](const auto& dy) { return std::vector{dy[0]}; },
        [](const GradientCall& call) { return Tensors{call.output_gradients[0]}; })[0];
    leaves.push_back(tape.watch(same));
  }
  return leaves;
}

}  // namespace

Tensors GradientTape::tensors_of_leaves(const Tensors& targets,
                                        const std::vector<std::uint64_t>& leaves,
                                        const Tensors& given) const {
  check_targets(targets, given.size());
  const graph::Pause pause(*recording_);
  const bool records = graph::OpenTapes::of_this_thread()->any();
  Tensors result;
  if (!records) {
    std::vector<DeviceArray> arrays;
    for (const Tensor& each : given) arrays.push_back(each.empty() ? DeviceArray() : each.value());
    for (DeviceArray& found : of_leaves(targets, leaves, arrays)) {
      result.push_back(found.empty() ? Tensor() : Tensor(std::move(found)));
    }
    return result;
  }
  std::vector<std::pair<Tensor, Tensor>> seeded;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!holds(targets[i])) continue;
    seeded.emplace_back(targets[i], seed_gradient(targets[i], given.empty() ? Tensor() : given[i]));
  }
  result = graph::sweep<Tensor, TensorRules>(*recording_, leaves, seeded);
  for (Tensor& found : result) found.placed_ = true;
  return result;
}

Tensors GradientTape::gradients(const Tensors& targets, const Tensors& sources,
                                const Tensors& output_gradients) const {
  return tensors_of_leaves(targets, graph::leaf_ids(sources), output_gradients);
}

Tensors GradientTape::gradients(const Tensors& targets, const std::vector<Variable>& sources,
                                const Tensors& output_gradients) const {
  return tensors_of_leaves(targets, graph::leaf_ids(sources), output_gradients);
}

Jvp jvp(const TensorFunction& function, const Tensors& primals, const Tensors& tangents) {
  check_directions("jvp", "tangents", primals, tangents);
  GradientTape outer, inner;
  const Tensors x = fresh_leaves(outer, primals);
  Jvp result{.outputs = function(x), .tangents = {}};
  // J^T u is linear in u, so any u does.
  Tensors held, u;
  for (const Tensor& output : result.outputs) {
    if (!inner.holds(output)) continue;
    held.push_back(output);
    u.push_back(outer.watch(zeros_like(output)));
  }
  Tensors products, directions;
  if (!held.empty()) {
    const Tensors gradients = inner.gradients(held, x, u);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (gradients[i].empty() || !outer.holds(gradients[i])) continue;
      products.push_back(gradients[i]);
      directions.push_back(tangents[i]);
    }
  }
  inner.close();
  Tensors found(u.size());
  if (!products.empty()) found = outer.gradients(products, u, directions);
  std::size_t next = 0;
  for (const Tensor& output : result.outputs) {
    const Tensor tangent = inner.holds(output) ? found[next++] : Tensor();
    result.tangents.push_back(tangent.empty() ? zeros_like(output) : tangent);
  }
  return result;
}

Tensors hvp(const std::function<Tensor(const Tensors&)>& function, const Tensors& primals,
            const Tensors& vectors) {
  check_directions("hvp", "vectors", primals, vectors);
  GradientTape outer;
  const Tensors x = fresh_leaves(outer, primals);
  Tensors gradients(x.size());
  {
    const GradientTape inner;
    const Tensor value = function(x);
    if (value.empty() || value.value().size() != 1) {
      throw ArgumentError(message("[hvp] the function returned ",
                                  value.empty() ? "nothing" : to_string(value.shape()),
                                  ", expected one element"));
    }
    if (inner.holds(value)) gradients = inner.gradients({value}, x);
  }
  Tensors targets, directions, result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (gradients[i].empty() || !outer.holds(gradients[i])) continue;
    targets.push_back(gradients[i]);
    directions.push_back(vectors[i]);
  }
  if (!targets.empty()) result = outer.gradients(targets, x, directions);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (result[i].empty()) result[i] = zeros_like(x[i]);
  }
  return result;
}

}  // namespace openrnn
