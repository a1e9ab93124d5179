// oneDNN's RNN primitive: weights prepacked for inference, packed in every training step.
#include <algorithm>
#include <array>

#include "server.h"
#include "stage.h"

namespace {

using dnnl::memory;
using peers::Floats;
using peers::Stage;
using peers::StageSizes;
using peers::StageWeights;
using peers::Task;

using Order = std::vector<std::size_t>;

/// The place of OpenRNN's gate at each place of oneDNN's: lstm i f c o, gru z r n.
Order order_of(const std::string& cell) {
  if (cell == "lstm") return {0, 1, 2, 3};
  if (cell == "gru") return {1, 0, 2};
  return {0};
}

/// Where the matrices and biases of a layer and direction begin in the problem's buffer.
struct Place {
  std::size_t w = 0, r = 0, bw = 0, br = 0, width = 0;
};

std::vector<Place> places_of(const Task& task) {
  const auto units = static_cast<std::size_t>(task.number("units"));
  const auto directions = static_cast<std::size_t>(task.number("directions", 1));
  const auto layers = static_cast<std::size_t>(task.number("layers"));
  const std::size_t rows = order_of(task.text("cell")).size() * units;
  std::vector<Place> places;
  std::size_t at = 0;
  for (std::size_t part = 0; part < layers * directions; ++part) {
    Place place;
    place.width =
        part < directions ? static_cast<std::size_t>(task.number("input")) : directions * units;
    place.w = at;
    place.r = at + rows * place.width;
    at = place.r + rows * units;
    places.push_back(place);
  }
  for (Place& place : places) {
    place.bw = at;
    place.br = at + rows;
    at += 2 * rows;
  }
  return places;
}

float* data_of(const memory& memory) { return static_cast<float*>(memory.get_data_handle()); }

/// Copies between rows of gates [G*U, in] and oneDNN's [in, G, U].
template <bool kOut>
void exchange(float* buffer, float* plain, const Order& order, std::size_t units,
              std::size_t width) {
  for (std::size_t g = 0; g < order.size(); ++g) {
    for (std::size_t u = 0; u < units; ++u) {
      float* const row = buffer + (order[g] * units + u) * width;
      for (std::size_t i = 0; i < width; ++i) {
        float& other = plain[(i * order.size() + g) * units + u];
        if constexpr (kOut) {
          row[i] = other;
        } else {
          other = row[i];
        }
      }
    }
  }
}

/// The network as one primitive, or as a chain of one a layer where layers differ in width.
class Network : public peers::Job {
 public:
  explicit Network(const Task& task)
      : task_(task),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        order_(order_of(task.text("cell"))),
        places_(places_of(task)),
        units_(static_cast<std::size_t>(task.number("units"))),
        bf16_(task.text("math") == "bf16") {
    const Floats params = task.floats("params");
    const bool chain =
        task.number("directions", 1) == 2 || task.number("input") != task.number("units");
    const std::int64_t stages = chain ? task.number("layers") : 1;
    memory x = input(task.floats("x"));
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      const StageSizes sizes = sizes_of(stage, task.number("layers") / stages);
      const auto first = static_cast<std::size_t>(stage * sizes.layers * sizes.directions);
      stages_.push_back(
          std::make_unique<Stage>(sizes, engine_, stream_, weights(params, sizes, first), x));
      x = stages_.back()->y();
    }
    if (task.has("h0")) begin_with_given();
    if (task.training())
      dy_ = plain({task.number("time"), task.number("batch"), stages_.back()->sizes().output()},
                  memory::format_tag::tnc, task.floats("r"));
  }

  std::string kernel() const override { return stages_.front()->kernel(); }

  double call() override {
    for (const auto& stage : stages_) stage->forward();
    if (task_.training()) {
      const memory* dy = &dy_;
      for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
        (*stage)->backward(*dy);
        dy = &(*stage)->dx();
      }
    }
    stream_.wait();
    return 0.0;
  }

  std::map<std::string, Floats> results() const override;

 private:
  StageSizes sizes_of(std::int64_t stage, std::int64_t layers) const {
    StageSizes sizes;
    sizes.cell = task_.text("cell");
    sizes.layers = layers;
    sizes.directions = task_.number("directions", 1);
    sizes.units = task_.number("units");
    sizes.input = stage == 0 ? task_.number("input") : sizes.output();
    sizes.batch = task_.number("batch");
    sizes.time = task_.number("time");
    sizes.training = task_.training();
    sizes.bf16 = bf16_;
    sizes.states = task_.has("h0");
    return sizes;
  }

  memory plain(const memory::dims& dims, memory::format_tag tag, const Floats& values) const {
    memory result({dims, memory::data_type::f32, tag}, engine_);
    std::copy(values.begin(), values.end(), data_of(result));
    return result;
  }

  memory input(const Floats& values) {
    const memory::dims dims{task_.number("time"), task_.number("batch"), task_.number("input")};
    memory x = plain(dims, memory::format_tag::tnc, values);
    if (!bf16_) return x;
    memory small({dims, memory::data_type::bf16, memory::format_tag::tnc}, engine_);
    dnnl::reorder(x, small).execute(stream_, x, small);
    stream_.wait();
    return small;
  }

  void begin_with_given();
  StageWeights weights(Floats params, const StageSizes& s, std::size_t first) const;
  Floats as_floats(const memory& from) const;
  Floats gradient() const;

  Task task_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Order order_;
  std::vector<Place> places_;
  std::size_t units_;
  bool bf16_;
  std::vector<std::unique_ptr<Stage>> stages_;
  memory dy_;
};

void Network::begin_with_given() {
  const Floats h = task_.floats("h0"), c = task_.has("c0") ? task_.floats("c0") : Floats();
  std::size_t at = 0;
  for (const auto& stage : stages_) {
    const StageSizes& s = stage->sizes();
    stage->begin_with(h.data() + at, c.empty() ? nullptr : c.data() + at);
    at += static_cast<std::size_t>(s.layers * s.directions * s.batch * s.units);
  }
}

StageWeights Network::weights(Floats params, const StageSizes& s, std::size_t first) const {
  const auto f32 = memory::data_type::f32;
  StageWeights found;
  found.layer = memory(
      {{s.layers, s.directions, s.input, s.gates(), s.units}, f32, memory::format_tag::ldigo},
      engine_);
  found.iter = memory(
      {{s.layers, s.directions, s.units, s.gates(), s.units}, f32, memory::format_tag::ldigo},
      engine_);
  found.bias = memory(
      {{s.layers, s.directions, s.bias_gates(), s.units}, f32, memory::format_tag::ldgo}, engine_);
  const std::size_t gates = order_.size(), block = gates * units_;
  for (std::size_t part = 0; part < static_cast<std::size_t>(s.layers * s.directions); ++part) {
    const Place& place = places_[first + part];
    exchange<false>(params.data() + place.w, data_of(found.layer) + part * place.width * block,
                    order_, units_, place.width);
    exchange<false>(params.data() + place.r, data_of(found.iter) + part * units_ * block, order_,
                    units_, units_);
    float* const bias =
        data_of(found.bias) + part * static_cast<std::size_t>(s.bias_gates()) * units_;
    for (std::size_t g = 0; g < gates; ++g) {
      const float* const bw = params.data() + place.bw + order_[g] * units_;
      const float* const br = params.data() + place.br + order_[g] * units_;
      // The new memory of a gru keeps its two biases apart.
      const bool apart = gates == 3 && g == 2;
      for (std::size_t u = 0; u < units_; ++u) {
        bias[g * units_ + u] = apart ? bw[u] : bw[u] + br[u];
        if (apart) bias[3 * units_ + u] = br[u];
      }
    }
  }
  return found;
}

Floats Network::as_floats(const memory& from) const {
  const memory::desc desc = from.get_desc();
  memory plain_copy({desc.get_dims(), memory::data_type::f32,
                     desc.get_ndims() == 3 ? memory::format_tag::tnc : memory::format_tag::ldnc},
                    engine_);
  dnnl::stream stream(engine_);
  dnnl::reorder(from, plain_copy).execute(stream, const_cast<memory&>(from), plain_copy);
  stream.wait();
  const float* const begin = data_of(plain_copy);
  return {begin, begin + plain_copy.get_desc().get_size() / sizeof(float)};
}

Floats Network::gradient() const {
  const std::size_t gates = order_.size(), block = gates * units_;
  Floats found(places_.back().br + block);
  std::size_t first = 0;
  for (const auto& stage : stages_) {
    const StageSizes& s = stage->sizes();
    const auto parts = static_cast<std::size_t>(s.layers * s.directions);
    for (std::size_t part = 0; part < parts; ++part) {
      const Place& place = places_[first + part];
      exchange<true>(found.data() + place.w,
                     data_of(stage->gradients().layer) + part * place.width * block, order_, units_,
                     place.width);
      exchange<true>(found.data() + place.r,
                     data_of(stage->gradients().iter) + part * units_ * block, order_, units_,
                     units_);
      const float* const bias = data_of(stage->gradients().bias) +
                                part * static_cast<std::size_t>(s.bias_gates()) * units_;
      for (std::size_t g = 0; g < gates; ++g) {
        const float* const other = gates == 3 && g == 2 ? bias + 3 * units_ : bias + g * units_;
        std::copy_n(bias + g * units_, units_, found.data() + place.bw + order_[g] * units_);
        std::copy_n(other, units_, found.data() + place.br + order_[g] * units_);
      }
    }
    first += parts;
  }
  return found;
}

std::map<std::string, Floats> Network::results() const {
  std::map<std::string, Floats> found{{"y", as_floats(stages_.back()->y())}};
  if (task_.training()) {
    found["dx"] = as_floats(stages_.front()->dx());
    found["dparams"] = gradient();
  }
  for (const auto& stage : stages_) {
    const Floats h = as_floats(stage->hn());
    found["hn"].insert(found["hn"].end(), h.begin(), h.end());
    if (!stage->cn()) continue;
    const Floats c = as_floats(stage->cn());
    found["cn"].insert(found["cn"].end(), c.begin(), c.end());
  }
  return found;
}

std::unique_ptr<peers::Job> make(const Task& task) {
  const std::string math = task.text("math", "float32"), lengths = task.text("lengths", "none");
  if (math != "float32" && math != "bf16") throw peers::Refused("no " + math + " in its primitive");
  if (task.text("weights", "float32") != "float32")
    throw peers::Refused("not called with such weights");
  if (lengths != "none") throw peers::Refused("its primitive knows no lengths");
  if (math != "float32" && task.has("h0")) throw peers::Refused("states are given in float32");
  return std::make_unique<Network>(task);
}

}  // namespace

int main() {
  peers::pin();
  const dnnl_version_t* const v = dnnl_version();
  return peers::serve(make, "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) +
                                "." + std::to_string(v->patch));
}
