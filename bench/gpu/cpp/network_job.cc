#include "gpu/cpp/network_job.h"

#include <cstdio>
#include <set>

#include "gpu/cpp/clock.h"
#include "openrnn/runtime.h"

namespace openrnn::gpu_bench {
namespace {

using peers::Floats;

RnnSpec spec_of(const peers::Task& task) {
  RnnSpec spec;
  spec.mode = parse_rnn_mode(task.text("cell"));
  spec.num_layers = task.number("layers");
  spec.num_units = task.number("units");
  spec.input_size = task.number("input");
  const std::string arithmetic = task.text("arithmetic");
  if (arithmetic == "float16") {
    spec.dtype = DType::kFloat16;
  } else if (arithmetic == "tf32") {
    spec.compute.math = Math::kTf32;
  } else if (arithmetic != "float32") {
    throw peers::Refused("arithmetic is '" + arithmetic + "', expected float32, float16 or tf32");
  }
  return spec;
}

Floats floats_of(const DeviceArray& array) {
  const Array host = cast(array.to_host().view(), DType::kFloat32);
  const auto values = host.as<float>();
  return {values.begin(), values.end()};
}

/// Each choice once, into the log.
void tell_choices() {
  static std::set<std::string> told;
  for (const std::string& line : chosen_algorithms()) {
    if (told.insert(line).second) std::fprintf(stderr, "chose %s\n", line.c_str());
  }
}

}  // namespace

DeviceArray NetworkJob::on_device(const Floats& values) const {
  const ConstArrayView view{
      values.data(), DType::kFloat32, {static_cast<std::int64_t>(values.size())}};
  return DeviceArray::from_host(device_, cast(view, spec_.dtype).view());
}

NetworkJob::NetworkJob(const peers::Task& task, const Device& device)
    : device_(device),
      spec_(spec_of(task)),
      engine_(choose_engine(spec_, device)),
      params_(on_device(task.floats("params"))),
      x_(on_device(task.floats("x"))),
      r_(on_device(task.floats("r"))),
      y_(device, spec_.dtype, r_.shape()),
      hn_(device, spec_.dtype, spec_.h_shape(task.number("batch"))),
      dx_(device, spec_.dtype, x_.shape()),
      dparams_(device, spec_.dtype, params_.shape()) {
  args_.max_time = task.number("time");
  args_.batch = task.number("batch");
  args_.x = x_.data();
  args_.y = y_.mutable_data();
  args_.hn = hn_.mutable_data();
  if (spec_.is_lstm()) {
    cn_ = DeviceArray(device, spec_.dtype, spec_.c_shape(args_.batch));
    args_.cn = cn_.mutable_data();
  }
  choose("inference");
}

std::string NetworkJob::kernel() const {
  return std::string(device_.name()) + ", " + engine_.description() + ", " +
         std::string(engine_.math_kind(spec_));
}

void NetworkJob::choose(const std::string& pass) {
  workspace_.reset();
  args_.params.reset();
  args_.training = pass != "inference";
  if (pass == "inference") {
    pass_ = Pass::kInference;
    args_.params =
        engine_.pack(spec_, {params_.data(), spec_.dtype, params_.shape()}, PackFor::kInference);
    workspace_ = engine_.make_workspace(args_.params, {args_.batch, args_.max_time});
  } else if (pass == "forward" || pass == "training") {
    pass_ = pass == "forward" ? Pass::kForward : Pass::kTraining;
  } else {
    throw std::runtime_error("[choose] pass is '" + pass +
                             "', expected inference, forward or training");
  }
}

double NetworkJob::call() {
  if (pass_ == Pass::kInference) {
    engine_.forward(args_, workspace_.get());
  } else {
    train();
  }
  return 0.0;
}

void NetworkJob::train() {
  args_.params = engine_.pack(spec_, {params_.data(), spec_.dtype, params_.shape()},
                              {PackFor::kTraining, 0, params_.share()});
  const auto saved = engine_.forward_saving(args_);
  if (pass_ == Pass::kTraining) {
    BackwardArgs back;
    back.saved = saved.get();
    back.dy = r_.data();
    back.dx = dx_.mutable_data();
    back.dparams = dparams_.mutable_data();
    engine_.backward(back);
  }
  args_.params.reset();
}

std::vector<double> NetworkJob::times(long count, long warm) {
  for (long i = 0; i < warm; ++i) call();
  std::vector<double> found = times_of(device_, count, [this] { call(); });
  tell_choices();
  return found;
}

std::map<std::string, Floats> NetworkJob::results() const {
  std::map<std::string, Floats> found{{"y", floats_of(y_)}, {"hn", floats_of(hn_)}};
  if (spec_.is_lstm()) found["cn"] = floats_of(cn_);
  if (pass_ == Pass::kTraining) {
    found["dx"] = floats_of(dx_);
    found["dparams"] = floats_of(dparams_);
  }
  return found;
}

}  // namespace openrnn::gpu_bench
