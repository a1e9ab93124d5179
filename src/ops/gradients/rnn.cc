#include "ops/gradients/rnn.h"

#include "base/message.h"
#include "graph/tape/listen.h"
#include "openrnn/engine_tangent.h"
#include "openrnn/params.h"
#include "openrnn/runtime.h"

namespace openrnn::ops::gradients {
namespace {

using Arrays = std::vector<DeviceArray>;
using Saved = std::shared_ptr<const SavedCall>;

// Of x, h0, c0, params.
constexpr std::size_t kInputs = 4;

// Elements in host memory.
class OnHost {
 public:
  explicit OnHost(const DeviceArray& array) {
    if (array.empty()) return;
    if (array.device().engine()) {
      copy_ = array.to_host();
      data_ = copy_.data();
    } else {
      data_ = array.data();
    }
  }
  const void* data() const { return data_; }

 private:
  Array copy_;
  const void* data_ = nullptr;
};

// Tells of the elements of the parameters of one layer after another.
class LayersDone {
 public:
  LayersDone(const RnnSpec& spec, DeviceArray& gradient)
      : early_(graph::early_part(kInputs - 1)), gradient_(gradient) {
    if (early_.listener && !gradient.empty()) layout_.emplace(spec);
  }
  /// Null where nobody listens.
  const std::function<void(std::int64_t)>* listener() const { return layout_ ? &tell_ : nullptr; }

 private:
  void tell(std::int64_t layer) const noexcept {
    std::int64_t begin = 0, end = 0;
    for (const auto& regions : {layout_->weights(), layout_->biases()}) {
      for (const ParamRegion& region : regions) {
        if (region.layer != layer) continue;
        if (region.offset != end) {
          if (begin < end) early_.ready(gradient_, begin, end);
          begin = region.offset;
        }
        end = region.offset + region.size();
      }
    }
    if (begin < end) early_.ready(gradient_, begin, end);
  }

  graph::EarlyPart early_;
  DeviceArray& gradient_;
  std::optional<ParamsLayout> layout_;
  const std::function<void(std::int64_t)> tell_ = [this](std::int64_t layer) { tell(layer); };
};

// A result that is computed in host memory.
class ToDevice {
 public:
  ToDevice(bool wanted, DType dtype, const Shape& shape) {
    if (wanted) array_ = Array(dtype, shape);
  }
  void* data() { return array_ ? array_->data() : nullptr; }
  DeviceArray on(const Device& device) const {
    return array_ ? DeviceArray::from_host(device, array_->view()) : DeviceArray();
  }

 private:
  std::optional<Array> array_;  // cleared
};

struct Point {
  Arrays inputs;     // x, h0, c0, params
  Arrays direction;  // of the inputs; empty: zeros
  Arrays outputs;    // gradients of y, hn, cn; empty: zeros
};

struct Wanted {
  std::array<bool, kInputs> curvature{};
  std::array<bool, 3> moved{};
  bool any() const {
    const auto set = [](const auto& flags) { return std::count(flags.begin(), flags.end(), true); };
    return set(curvature) + set(moved) > 0;
  }
};

// The call's own engine where it has them, else another one in host memory; null: none has.
const Engine* tangent_engine(const Engine& own, const RnnSpec& spec) {
  for (const Engine* each : {&own, &openrnn::engine("cpu"), &openrnn::engine("reference")}) {
    if (!each->device() && each->has_tangent(spec)) return each;
  }
  return nullptr;
}

// J v, three arrays, then H v, four: on the processor, whatever the device.
Arrays tangent(const SavedCall& saved, const Point& point, const Wanted& wanted) {
  const RnnSpec& spec = saved.spec;
  const std::vector<OnHost> at(point.inputs.begin(), point.inputs.end());
  const std::vector<OnHost> direction(point.direction.begin(), point.direction.end());
  const std::vector<OnHost> upstream(point.outputs.begin(), point.outputs.end());
  Shape y_shape = saved.x_shape;
  y_shape[2] = spec.output_size();
  const std::array<Shape, 7> shapes{y_shape,       saved.h_shape, saved.c_shape,     saved.x_shape,
                                    saved.h_shape, saved.c_shape, saved.params_shape};
  std::vector<ToDevice> results;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool asked = i < 3 ? wanted.moved[i] : wanted.curvature[i - 3];
    results.emplace_back(asked && (spec.has_cell() || (i != 2 && i != 5)), spec.dtype, shapes[i]);
  }
  const std::size_t time = saved.time_major ? 0 : 1;
  const TangentArgs args{
      .spec = spec,
      .max_time = saved.x_shape[time],
      .batch = saved.x_shape[1 - time],
      .time_major = saved.time_major,
      .sequence_lengths = saved.lengths ? saved.lengths->data() : nullptr,
      .training = saved.training,
      .dropout = saved.dropout,
      .at = {at[0].data(), at[1].data(), at[2].data(), at[3].data()},
      .direction = {direction[0].data(), direction[1].data(), direction[2].data(),
                    direction[3].data()},
      .gradients = {upstream[0].data(), upstream[1].data(), upstream[2].data()},
      .moved = {results[0].data(), results[1].data(), results[2].data()},
      .curvature = {results[3].data(), results[4].data(), results[5].data(), results[6].data()}};
  tangent_engine(*saved.engine, spec)->tangent(args);
  Arrays found;
  for (const ToDevice& result : results) found.push_back(result.on(*saved.device));
  return found;
}

Arrays values_of(const std::vector<Tensor>& tensors, std::size_t first, std::size_t count) {
  Arrays arrays(count);
  for (std::size_t i = 0; i < count && first + i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[first + i];
    if (!tensor.empty()) arrays[i] = tensor.value();
  }
  return arrays;
}

Wanted wanted_of(const std::vector<bool>& inputs, std::size_t outputs) {
  Wanted wanted;
  for (std::size_t i = 0; i < kInputs; ++i) wanted.curvature[i] = inputs[i];
  for (std::size_t i = 0; i < outputs; ++i) wanted.moved[i] = inputs[kInputs + i];
  return wanted;
}

// J v on {x, h0, c0, params, v of each}. Its gradient for w: H of w times v, and J^T w.
std::vector<Tensor> record_moved(const Saved& saved, const GradientCall& call, Arrays moved) {
  std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.begin() + kInputs);
  for (std::size_t i = 0; i < kInputs; ++i) inputs.push_back(call.output_gradients[i]);
  const Point at{values_of(inputs, 0, kInputs), values_of(inputs, kInputs, kInputs), {}};
  const auto backward = [saved, at](const Arrays& w, const std::vector<bool>& wanted) {
    Point point = at;
    point.outputs = w;
    point.outputs.resize(3);
    const Wanted curvature = wanted_of(wanted, 0);
    Arrays result(kInputs);
    if (curvature.any()) {
      const Arrays found = tangent(*saved, point, curvature);
      std::copy(found.begin() + 3, found.end(), result.begin());
    }
    const std::vector<bool> directions(wanted.begin() + kInputs, wanted.end());
    for (DeviceArray& each : saved->gradient(w, directions)) result.push_back(std::move(each));
    return result;
  };
  return record_selective(saved->call + "_jvp", inputs, std::move(moved), backward);
}

// H v, on everything that it depends on.
std::vector<Tensor> record_curvature(const Saved& saved, const GradientCall& call, Arrays values) {
  std::vector<Tensor> inputs = call.inputs;
  for (const Tensor& each : call.output_gradients) inputs.push_back(each);
  return record(saved->call + "_hvp", inputs, std::move(values),
                [name = saved->call](const Arrays&) -> Arrays {
                  throw UnsupportedError(message("[gradient] a third derivative of '", name,
                                                 "', expected first and second ones"));
                });
}

// The gradient of the call on {x, h0, c0, params, gradients of the outputs}.
std::vector<Tensor> record_gradient(const Saved& saved, const GradientCall& call) {
  std::vector<Tensor> inputs = call.inputs;
  for (const Tensor& each : call.output_gradients) inputs.push_back(each);
  const std::size_t outputs = call.output_gradients.size();
  const Point at{values_of(inputs, 0, kInputs), {}, values_of(inputs, kInputs, 3)};
  const auto run = [saved, at, outputs](const Arrays& v, const std::vector<bool>& wanted) {
    Point point = at;
    point.direction = v;
    return tangent(*saved, point, wanted_of(wanted, outputs));
  };
  Arrays upstream(at.outputs.begin(), at.outputs.begin() + static_cast<std::ptrdiff_t>(outputs));
  return record_selective(
      saved->call + "_gradient", inputs, saved->gradient(upstream, call.wanted),
      [run, outputs](const Arrays& v, const std::vector<bool>& wanted) {
        const Arrays found = run(v, wanted);
        Arrays result(found.begin() + 3, found.end());
        result.insert(result.end(), found.begin(),
                      found.begin() + static_cast<std::ptrdiff_t>(outputs));
        return result;
      },
      [run, saved, outputs](const GradientCall& second) {
        const Arrays found = run(values_of(second.output_gradients, 0, kInputs), second.wanted);
        std::vector<Tensor> result =
            record_curvature(saved, second, Arrays(found.begin() + 3, found.end()));
        const std::vector<Tensor> moved = record_moved(
            saved, second,
            Arrays(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(outputs)));
        result.insert(result.end(), moved.begin(), moved.end());
        return result;
      });
}

}  // namespace

std::vector<DeviceArray> SavedCall::gradient(const std::vector<DeviceArray>& outputs,
                                             const std::vector<bool>& wanted) const {
  std::vector<DeviceArray> result(kInputs);
  if (wanted[0]) result[0] = DeviceArray(*device, spec->dtype, x_shape);
  if (wanted[1]) result[1] = DeviceArray(*device, spec->dtype, h_shape);
  if (wanted[2] && spec->has_cell()) result[2] = DeviceArray(*device, spec->dtype, c_shape);
  if (wanted[3]) {
    // The tail of a longer buffer does not affect the output.
    result[3] = params_shape[0] == params_size(spec)
                    ? DeviceArray(*device, spec->dtype, params_shape)
                    : DeviceArray::zeros(*device, spec->dtype, params_shape);
  }
  const LayersDone layers(spec, result[3]);
  engine->backward({.saved = forward.get(),
                    .dy = outputs[0].data(),
                    .dhn = outputs[1].data(),
                    .dcn = outputs.size() > 2 ? outputs[2].data() : nullptr,
                    .dx = result[0].mutable_data(),
                    .dh0 = result[1].mutable_data(),
                    .dc0 = result[2].mutable_data(),
                    .dparams = result[3].mutable_data(),
                    .layer_done = layers.listener()});
  return result;
}

std::vector<Tensor> record_call(const std::vector<Tensor>& inputs, std::vector<DeviceArray> outputs,
                                SavedCall saved) {
  std::string name = saved.call;
  const auto kept = std::make_shared<const SavedCall>(std::move(saved));
  const auto require_saved = [kept] {
    if (kept->forward) return;
    throw ArgumentError(message(
        "[", kept->call,
        "] is_training is false, but is_training must be True for the call to be used in "
        "gradients; a layer's call also takes save=True, which keeps what they need without "
        "dropout"));
  };
  GradientFunction second;
  if (tangent_engine(*kept->engine, kept->spec)) {
    second = [kept, require_saved](const GradientCall& call) {
      require_saved();
      return record_gradient(kept, call);
    };
  }
  return record_selective(
      std::move(name), inputs, std::move(outputs),
      [kept, require_saved](const Arrays& dy, const std::vector<bool>& wanted) {
        require_saved();
        return kept->gradient(dy, wanted);
      },
      std::move(second),
      [kept, require_saved](const Node&, const RowCall& rows) {
        require_saved();
        return row_gradients(kept, rows);
      });
}

}  // namespace openrnn::ops::gradients
