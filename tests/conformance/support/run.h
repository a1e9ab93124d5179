// Data of a case and what an engine makes of it.
#pragma once

#include <cmath>
#include <cstring>
#include <utility>

#include "conformance/support/case.h"

namespace openrnn::conformance {

/// Everything a call reads, in the spec's dtype. Nothing is uniform, nothing is symmetric.
struct Data {
  Array params, x, h0, c0, dy, dhn, dcn;
};

inline Array random_array(DType dtype, std::int64_t size, double low, double high,
                          std::uint64_t stream) {
  RandomStream random(20240229, stream);
  Array values(DType::kFloat64, {size});
  for (double& v : values.as<double>()) v = random.uniform(low, high);
  return cast(values.view(), dtype);
}

inline Data make_data(const Case& c, std::uint64_t seed = 1) {
  const RnnSpec& s = c.spec;
  const std::uint64_t base = seed * 16;
  // Large enough that gates leave their linear part, small enough that relu does not explode.
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.num_units));
  Data d;
  d.params = random_array(s.dtype, params_size(s), -scale, 1.1 * scale, base + 1);
  d.x = random_array(s.dtype, c.seq_size(s.input_size), -1.0, 1.2, base + 2);
  d.h0 = random_array(s.dtype, c.h_size(), -0.8, 1.0, base + 3);
  d.c0 = random_array(s.dtype, c.c_size(), -1.0, 0.7, base + 4);
  d.dy = random_array(s.dtype, c.seq_size(s.output_size()), -1.0, 0.9, base + 5);
  d.dhn = random_array(s.dtype, c.h_size(), -0.7, 1.0, base + 6);
  d.dcn = random_array(s.dtype, c.c_size(), -1.0, 0.8, base + 7);
  return d;
}

/// Named results of a call, in the order in which they are compared.
struct Result {
  std::vector<std::pair<std::string, Array>> parts;
  const Array& operator[](const std::string& name) const {
    for (const auto& [part, array] : parts) {
      if (part == name) return array;
    }
    throw ArgumentError("[Result] no part '" + name + "'");
  }
};

inline constexpr DropoutKey kKey{42, 3};

/// Arrays that a forward call writes, filled with a wrong value first.
struct ForwardBuffers {
  Array y, hn, cn;
};

inline ForwardBuffers forward_buffers(const Case& c) {
  return {random_array(c.spec.dtype, c.seq_size(c.spec.output_size()), 5, 6, 1),
          random_array(c.spec.dtype, c.h_size(), 5, 6, 2),
          random_array(c.spec.dtype, c.c_size(), 5, 6, 3)};
}

inline ForwardArgs args_without_arrays(const Case& c, std::shared_ptr<const PackedParams> params,
                                       bool training) {
  ForwardArgs args;
  args.params = std::move(params);
  args.max_time = c.time;
  args.batch = c.batch;
  args.time_major = c.time_major;
  args.sequence_lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  args.training = training;
  args.dropout = kKey;
  return args;
}

inline ForwardArgs forward_args(const Case& c, const Data& d, ForwardBuffers& out,
                                std::shared_ptr<const PackedParams> params, bool training) {
  ForwardArgs args = args_without_arrays(c, std::move(params), training);
  args.x = d.x.data();
  args.y = out.y.data();
  args.hn = out.hn.data();
  if (!c.null_states) args.h0 = d.h0.data();
  if (c.spec.has_cell()) {
    args.cn = out.cn.data();
    if (!c.null_states) args.c0 = d.c0.data();
  }
  return args;
}

inline void append_forward(Result& result, const std::string& prefix, ForwardBuffers&& out) {
  result.parts.emplace_back(prefix + "y", std::move(out.y));
  result.parts.emplace_back(prefix + "hn", std::move(out.hn));
  result.parts.emplace_back(prefix + "cn", std::move(out.cn));
}

inline Result run_inference(const Engine& engine, const Case& c, const Data& d) {
  Result result;
  ForwardBuffers out = forward_buffers(c);
  engine.forward(
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kInference), false));
  append_forward(result, "inference ", std::move(out));
  return result;
}

/// The gradients of what `saved` recorded.
inline Result run_backward(const Engine& engine, const Case& c, const Data& d,
                           const SavedForward& saved) {
  const DType dtype = c.spec.dtype;
  Array dx = random_array(dtype, c.seq_size(c.spec.input_size), 5, 6, 1);
  Array dh0 = random_array(dtype, c.h_size(), 5, 6, 2);
  Array dc0 = random_array(dtype, c.c_size(), 5, 6, 3);
  Array dparams = random_array(dtype, params_size(c.spec), 5, 6, 4);
  BackwardArgs args;
  args.saved = &saved;
  args.dy = d.dy.data();
  args.dhn = d.dhn.data();
  args.dx = dx.data();
  args.dh0 = dh0.data();
  if (c.spec.has_cell()) {
    args.dcn = d.dcn.data();
    args.dc0 = dc0.data();
  }
  args.dparams = dparams.data();
  engine.backward(args);
  Result result;
  result.parts.emplace_back("dx", std::move(dx));
  result.parts.emplace_back("dh0", std::move(dh0));
  result.parts.emplace_back("dc0", std::move(dc0));
  result.parts.emplace_back("dparams", std::move(dparams));
  return result;
}

/// One training step: forward with dropout, then backward.
inline Result run_training(const Engine& engine, const Case& c, const Data& d) {
  ForwardBuffers out = forward_buffers(c);
  const auto saved = engine.forward_saving(
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true));
  Result result;
  append_forward(result, "", std::move(out));
  for (auto& part : run_backward(engine, c, d, *saved).parts) {
    result.parts.push_back(std::move(part));
  }
  return result;
}

/// Inference, training and gradients, unless the case is for inference alone.
inline Result run_all(const Engine& engine, const Case& c, const Data& d) {
  Result result = run_inference(engine, c, d);
  if (!c.trains()) return result;
  for (auto& part : run_training(engine, c, d).parts) result.parts.push_back(std::move(part));
  return result;
}

/// The first place where two results differ in any bit; empty if there is none.
inline std::string first_difference(const Result& a, const Result& b) {
  for (std::size_t n = 0; n < a.parts.size(); ++n) {
    const auto& [name, left] = a.parts[n];
    const Array& right = b.parts.at(n).second;
    const std::size_t width = dtype_size(left.dtype());
    for (std::int64_t i = 0; i < left.size(); ++i) {
      const auto place = static_cast<std::size_t>(i) * width;
      if (std::memcmp(static_cast<const char*>(left.data()) + place,
                      static_cast<const char*>(right.data()) + place, width) != 0) {
        std::ostringstream out;
        out << name << "[" << i << "] of " << left.size() << ": " << element(left.view(), i)
            << " and " << element(right.view(), i);
        return out.str();
      }
    }
  }
  return {};
}

}  // namespace openrnn::conformance
