// Optimizers, clipping and losses as plain C, for the tests that compare them from outside.

#include <cstring>

#include "call.h"
#include "openrnn/ops.h"
#include "openrnn/train_optimizer.h"

using namespace openrnn;
using openrnn::testapi::call;

extern "C" {

/// Everything that any optimizer takes; `kind` as Optimizer::name.
struct ApiOptimizer {
  const char *kind, *dtype;
  double learning_rate, momentum, decay, beta1, beta2, epsilon, initial_accumulator;
  std::int32_t nesterov, centered;
};

}  // extern "C"

namespace {

std::unique_ptr<train::Optimizer> make(const ApiOptimizer& api) {
  const std::string kind = api.kind;
  const double rate = api.learning_rate;
  if (kind == "Momentum") {
    return std::make_unique<train::MomentumOptimizer>(rate, api.momentum, api.nesterov != 0);
  }
  if (kind == "Adagrad") {
    return std::make_unique<train::AdagradOptimizer>(rate, api.initial_accumulator);
  }
  if (kind == "RMSProp") {
    return std::make_unique<train::RMSPropOptimizer>(rate, api.decay, api.momentum, api.epsilon,
                                                     api.centered != 0);
  }
  if (kind == "Adam") {
    return std::make_unique<train::AdamOptimizer>(rate, api.beta1, api.beta2, api.epsilon);
  }
  return std::make_unique<train::GradientDescentOptimizer>(rate);
}

DeviceArray on_device(const void* data, DType dtype, Shape shape) {
  return DeviceArray::from_host(default_device(), {data, dtype, std::move(shape)});
}

void copy_out(const Array& array, void* out) { std::memcpy(out, array.data(), array.size_bytes()); }

// Every variable of the graph as "name dtype size", one a line.
std::string list_variables(const Graph& graph) {
  std::string text;
  for (const Variable& variable : graph.variables()) {
    const Array value = variable.to_host();
    text += variable.name() + " " + std::string(dtype_name(value.dtype())) + " " +
            std::to_string(value.size()) + "\n";
  }
  return text;
}

// Returns where the next array's elements go.
double* copy_doubles(const Array& array, double* out) {
  const bool integer = array.dtype() == DType::kInt64;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    *out++ = integer ? static_cast<double>(array.as<std::int64_t>()[at]) : element(array.view(), i);
  }
  return out;
}

Tensor loss_of(std::string_view kind, const Tensor& x, const Tensor& target) {
  if (kind == "softmax_cross_entropy") return ops::softmax_cross_entropy(x, target);
  return ops::mean_squared_error(x, target);
}

}  // namespace

extern "C" {

/// `steps` updates of the variable 'X' by gradients[step], float32 for float16. Afterwards `values`
/// holds all variables of the graph end to end as doubles, `names` their list, and `variable` the
/// value of X.
OPENRNN_API const char* openrnn_test_optimize(const ApiOptimizer* api, std::int64_t size,
                                              std::int64_t steps, void* variable,
                                              const void* gradients, double* values, char* names) {
  return call([&] {
    Graph graph;
    const Graph::AsDefault current(graph);
    const DType dtype = parse_dtype(api->dtype);
    const Variable x("X", Array(ConstArrayView{variable, dtype, {size}}));
    const auto optimizer = make(*api);
    const DType wide = compute_dtype(dtype);
    const auto bytes = static_cast<std::size_t>(size) * dtype_size(wide);
    for (std::int64_t step = 0; step < steps; ++step) {
      const char* gradient =
          static_cast<const char*>(gradients) + static_cast<std::size_t>(step) * bytes;
      optimizer->apply_gradients({on_device(gradient, wide, {size})}, {x},
                                 train::get_or_create_global_step());
    }
    copy_out(x.to_host(), variable);
    const std::string text = list_variables(graph);
    std::memcpy(names, text.c_str(), text.size() + 1);
    for (const Variable& each : graph.variables()) values = copy_doubles(each.to_host(), values);
  });
}

/// Clips `count` tensors in place by their global norm, which goes to `norm`.
OPENRNN_API const char* openrnn_test_clip(const char* dtype, std::int64_t count,
                                          const std::int64_t* sizes, void* const* tensors,
                                          double clip_norm, double* norm) {
  return call([&] {
    std::vector<DeviceArray> gradients;
    for (std::int64_t i = 0; i < count; ++i) {
      gradients.push_back(on_device(tensors[i], parse_dtype(dtype), {sizes[i]}));
    }
    *norm = train::clip_by_global_norm(gradients, clip_norm);
    for (std::int64_t i = 0; i < count; ++i) {
      copy_out(gradients[static_cast<std::size_t>(i)].to_host(), tensors[i]);
    }
  });
}

/// Loss of x [rows, cols] and its gradient; `target` is int32 [rows] for softmax_cross_entropy,
/// else an array as x for mean_squared_error.
OPENRNN_API const char* openrnn_test_loss(const char* kind, const char* dtype, std::int64_t rows,
                                          std::int64_t cols, const void* x, const void* target,
                                          double* loss, void* gradient) {
  return call([&] {
    const DType type = parse_dtype(dtype);
    const bool labels = std::string_view(kind) == "softmax_cross_entropy";
    const Tensor wanted(labels ? ConstArrayView{target, DType::kInt32, {rows}}
                               : ConstArrayView{target, type, {rows, cols}});
    const GradientTape tape;
    const Tensor given = tape.watch(Tensor(ConstArrayView{x, type, {rows, cols}}));
    const Tensor result = loss_of(kind, given, wanted);
    *loss = result.item();
    copy_out(tape.gradient(result, std::vector<Tensor>{given})[0].to_host(), gradient);
  });
}

/// The rate of one step.
OPENRNN_API const char* openrnn_test_schedule(const char* kind, const double* rate_decay_final,
                                              const std::int64_t* warmup_decay, std::int64_t step,
                                              double* rate) {
  return call([&] {
    train::Schedule schedule;
    schedule.kind = train::parse_schedule(kind);
    schedule.learning_rate = rate_decay_final[0];
    schedule.decay_rate = rate_decay_final[1];
    schedule.final_fraction = rate_decay_final[2];
    schedule.warmup_steps = warmup_decay[0];
    schedule.decay_steps = warmup_decay[1];
    schedule.validate();
    *rate = schedule.at(step);
  });
}

}  // extern "C"
