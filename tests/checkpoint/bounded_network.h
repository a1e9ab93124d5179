// A whole network from a checkpoint's canonical tensors, in double, with bounds.
#pragma once

#include "checkpoint/cell_bounds.h"
#include "openrnn/formats.h"
#include "openrnn/saveables.h"

namespace openrnn::testing {

/// Results as the layer shapes them: output [T][B][D*U], h and c [L*D][B][U].
struct BoundedResult {
  std::vector<std::vector<Vector>> output, h, c;
};

struct NetworkData {
  RnnSpec spec;
  Array x, h0, c0;  // time-major
  std::vector<std::int32_t> lengths;
};

inline Vector row_of(const Array& a, std::int64_t row) {
  Vector values;
  const std::int64_t width = a.shape().back();
  for (std::int64_t i = 0; i < width; ++i) {
    values.push_back(Bounded(element(a.view(), row * width + i)));
  }
  return values;
}

/// The tensors under one cell's name.
inline CellTensors cell_tensors(const TensorBundleReader& file, const RnnSpec& spec,
                                std::int64_t layer, std::int64_t dir) {
  const std::string at =
      tf_cell_scope(spec.direction, layer, dir) + "/" + std::string(tf_cell_name(spec.mode)) + "/";
  CellTensors tensors;
  for (const TensorInfo& info : file.tensors()) {
    if (info.name.starts_with(at)) tensors[info.name.substr(at.size())] = file.read(info.name);
  }
  return tensors;
}

inline BoundedResult run_bounded(const NetworkData& data, const TensorBundleReader& file) {
  const RnnSpec& spec = data.spec;
  Bounded::rounding = conformance::Rounding::of(spec.dtype);
  const std::int64_t max_time = data.x.shape()[0], batch = data.x.shape()[1];
  BoundedResult result;
  result.output.resize(static_cast<std::size_t>(max_time));
  for (std::int64_t t = 0; t < max_time; ++t) {
    for (std::int64_t b = 0; b < batch; ++b) {
      result.output[static_cast<std::size_t>(t)].push_back(row_of(data.x, t * batch + b));
    }
  }
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    const auto input = result.output;
    for (auto& step : result.output) {
      for (Vector& row : step) row.clear();
    }
    for (std::int64_t dir = 0; dir < spec.num_dirs(); ++dir) {
      const CellTensors tensors = cell_tensors(file, spec, layer, dir);
      const BoundedCell cell(spec.mode, spec.dtype, tensors);
      const std::int64_t place = (layer * spec.num_dirs() + dir) * batch;
      std::vector<Vector> hs, cs;
      for (std::int64_t b = 0; b < batch; ++b) {
        Vector h = row_of(data.h0, place + b), c = row_of(data.c0, place + b);
        const std::int32_t length = data.lengths[static_cast<std::size_t>(b)];
        for (std::int32_t i = 0; i < length; ++i) {
          const auto t = static_cast<std::size_t>(dir == 0 ? i : length - 1 - i);
          cell.step(input[t][static_cast<std::size_t>(b)], h, c);
          Vector& out = result.output[t][static_cast<std::size_t>(b)];
          out.insert(out.end(), h.begin(), h.end());
        }
        for (auto t = static_cast<std::size_t>(length); t < input.size(); ++t) {
          Vector& out = result.output[t][static_cast<std::size_t>(b)];
          out.resize(out.size() + h.size());
        }
        hs.push_back(std::move(h));
        cs.push_back(std::move(c));
      }
      result.h.push_back(std::move(hs));
      result.c.push_back(std::move(cs));
    }
  }
  return result;
}

}  // namespace openrnn::testing
