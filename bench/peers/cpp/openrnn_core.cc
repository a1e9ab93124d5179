// OpenRNN from C++: PackedModel and InferenceSession, or the engine's forward and backward with the
// parameters packed in every step; and the meters of the machine.
#include <openrnn/runtime.h>

#include "cli/bench/meters.h"
#include "server.h"

namespace {

using openrnn::ConstArrayView;
using openrnn::DType;
using openrnn::RnnSpec;
using peers::Floats;
using peers::Task;

RnnSpec spec_of(const Task& task) {
  RnnSpec spec;
  spec.mode = openrnn::parse_rnn_mode(task.text("cell"));
  spec.num_layers = task.number("layers");
  spec.num_units = task.number("units");
  spec.input_size = task.number("input");
  if (task.number("directions", 1) == 2) spec.direction = openrnn::Direction::kBidirectional;
  if (task.number("skip_input") != 0) spec.input_mode = openrnn::InputMode::kSkipInput;
  spec.compute.math = openrnn::parse_math(task.text("math", "float32"));
  const std::string weights = task.text("weights", "float32");
  if (weights != "float32") spec.compute.weights_dtype = openrnn::parse_weights_dtype(weights);
  return spec;
}

ConstArrayView view_of(const Floats& values) {
  return {values.data(), DType::kFloat32, {static_cast<std::int64_t>(values.size())}};
}

std::size_t size_of(const openrnn::Shape& shape) {
  return static_cast<std::size_t>(openrnn::shape_size(shape));
}

/// What both passes have: the arrays and the arguments of forward.
class Network : public peers::Job {
 public:
  explicit Network(const Task& task)
      : spec_(spec_of(task)), params_(task.floats("params")), x_(task.floats("x")) {
    const std::int64_t batch = task.number("batch");
    // Of a buffer with input matrices: without them it may be any numbers, but fewer.
    if (task.number("skip_input") != 0) {
      params_.resize(static_cast<std::size_t>(openrnn::params_size(spec_)));
    }
    y_.resize(static_cast<std::size_t>(task.number("time") * batch * spec_.output_size()));
    hn_.resize(size_of(spec_.h_shape(batch)));
    if (spec_.is_lstm()) cn_.resize(size_of(spec_.c_shape(batch)));
    args_.max_time = task.number("time");
    args_.batch = batch;
    args_.x = x_.data();
    args_.y = y_.data();
    args_.hn = hn_.data();
    args_.cn = spec_.is_lstm() ? cn_.data() : nullptr;
    if (task.has("h0")) args_.h0 = (h0_ = task.floats("h0")).data();
    if (task.has("c0")) args_.c0 = (c0_ = task.floats("c0")).data();
    if (task.text("lengths") == "given") {
      lengths_ = task.integers("lengths");
      args_.sequence_lengths = lengths_.data();
    }
  }

  std::map<std::string, Floats> results() const override {
    std::map<std::string, Floats> found{{"y", y_}, {"hn", hn_}};
    if (spec_.is_lstm()) found["cn"] = cn_;
    return found;
  }

  std::string kernel() const override {
    const openrnn::Engine& engine = openrnn::choose_engine(spec_);
    return "engine " + engine.description() + ", " + std::string(engine.math_kind(spec_));
  }

 protected:
  RnnSpec spec_;
  Floats params_, x_, h0_, c0_, y_, hn_, cn_;
  std::vector<std::int32_t> lengths_;
  openrnn::ForwardArgs args_;
};

class Inference : public Network {
 public:
  explicit Inference(const Task& task)
      : Network(task),
        session_(std::make_shared<openrnn::PackedModel>(spec_, view_of(params_)),
                 {.max_threads = 0}) {
    params_ = {};
    session_.prepare(args_.batch, args_.max_time);
  }
  double call() override {
    session_.run(args_);
    return 0.0;
  }

 private:
  openrnn::InferenceSession session_;
};

class Training : public Network {
 public:
  explicit Training(const Task& task)
      : Network(task),
        engine_(openrnn::choose_engine(spec_)),
        r_(task.floats("r")),
        dx_(x_.size()),
        dparams_(params_.size()) {
    args_.training = true;
  }

  double call() override {
    args_.params = engine_.pack(spec_, view_of(params_), openrnn::PackFor::kTraining);
    const auto saved = engine_.forward_saving(args_);
    openrnn::BackwardArgs back;
    back.saved = saved.get();
    back.dy = r_.data();
    back.dx = dx_.data();
    back.dparams = dparams_.data();
    engine_.backward(back);
    args_.params.reset();
    return 0.0;
  }

  std::map<std::string, Floats> results() const override {
    auto found = Network::results();
    found["dx"] = dx_;
    found["dparams"] = dparams_;
    return found;
  }

 private:
  const openrnn::Engine& engine_;
  Floats r_, dx_, dparams_;
};

/// The machine: nanoseconds of 1 GFLOP or of 1 GB.
class Meter : public peers::Job {
 public:
  explicit Meter(const Task& task)
      : reading_(task.text("what") == "read"),
        bytes_(static_cast<std::size_t>(task.number("bytes"))) {}
  std::string kernel() const override { return reading_ ? "reading" : "fused multiply-add"; }
  double call() override {
    constexpr double kSeconds = 0.005;
    const int threads = openrnn::num_threads();
    return 1e9 / (reading_ ? openrnn::cli::read_bandwidth(threads, bytes_, kSeconds)
                           : openrnn::cli::fma_peak(threads, kSeconds));
  }
  std::map<std::string, Floats> results() const override { return {}; }

 private:
  bool reading_;
  std::size_t bytes_;
};

std::unique_ptr<peers::Job> make(const Task& task) {
  if (!task.text("what").empty()) return std::make_unique<Meter>(task);
  if (task.text("lengths") == "packed") throw peers::Refused("lengths are given, not packed");
  if (task.training()) return std::make_unique<Training>(task);
  return std::make_unique<Inference>(task);
}

}  // namespace

int main() {
  openrnn::set_num_threads(peers::pin());
  return peers::serve(make, "OpenRNN");
}
