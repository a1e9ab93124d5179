// What the cells should compute from canonical tensors, in double, with a bound on each number.
#pragma once

#include <map>

#include "conformance/support/tolerance.h"
#include "openrnn/spec.h"

namespace openrnn::testing {

using conformance::Bounded;
using Vector = std::vector<Bounded>;

/// Canonical tensors by the names behind the cell's: 'kernel', 'gates/bias'.
using CellTensors = std::map<std::string, Array>;

/// One step of a cell: every operation's result is rounded to the dtype, as cells of plain
/// operations do; an engine rounds less often, so the bound holds for it too.
class BoundedCell {
 public:
  BoundedCell(RnnMode mode, DType dtype, const CellTensors& tensors)
      : mode_(mode), dtype_(dtype), tensors_(tensors) {}

  /// Updates h (and c); the output is h.
  void step(const Vector& x, Vector& h, Vector& c) const {
    Vector joined = x;
    joined.insert(joined.end(), h.begin(), h.end());
    if (mode_ == RnnMode::kLstm) return lstm(joined, h, c);
    if (mode_ == RnnMode::kGru) return gru(joined, x, h);
    const Vector a = dense(joined, "kernel", "bias");
    for (std::size_t u = 0; u < h.size(); ++u) {
      h[u] = round(mode_ == RnnMode::kRnnTanh ? tanh_of(a[u]) : relu(a[u]));
    }
  }

 private:
  Bounded round(const Bounded& x) const { return kept_as(x, dtype_); }

  // A bias that was stored as a sum has been rounded once more than the engine's two.
  Bounded bias_at(const std::string& name, std::int64_t i) const {
    const double value = element(tensors_.at(name).view(), i);
    return Bounded::closed(value, Bounded::rounding.border_eps * std::abs(value));
  }

  Vector dense(const Vector& x, const std::string& kernel, const std::string& bias) const {
    const Array& matrix = tensors_.at(kernel);
    const std::int64_t cols = matrix.shape()[1];
    Vector y;
    for (std::int64_t col = 0; col < cols; ++col) {
      Bounded sum = bias_at(bias, col);
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double w = element(matrix.view(), static_cast<std::int64_t>(k) * cols + col);
        sum += x[k] * Bounded(w);
      }
      y.push_back(round(sum));
    }
    return y;
  }

  void lstm(const Vector& joined, Vector& h, Vector& c) const {
    const Vector a = dense(joined, "kernel", "bias");
    const std::size_t units = h.size();
    for (std::size_t u = 0; u < units; ++u) {
      const Bounded in = round(sigmoid(a[u])), memory = round(tanh_of(a[units + u]));
      const Bounded forget = round(sigmoid(a[2 * units + u]));
      const Bounded out = round(sigmoid(a[3 * units + u]));
      c[u] = round(round(forget * c[u]) + round(in * memory));
      h[u] = round(out * round(tanh_of(c[u])));
    }
  }

  void gru(const Vector& joined, const Vector& x, Vector& h) const {
    const Vector gates = dense(joined, "gates/kernel", "gates/bias");
    const Vector from_x =
        dense(x, "candidate/input_projection/kernel", "candidate/input_projection/bias");
    const Vector from_h =
        dense(h, "candidate/hidden_projection/kernel", "candidate/hidden_projection/bias");
    for (std::size_t u = 0; u < h.size(); ++u) {
      const Bounded reset = round(sigmoid(gates[u])), update = round(sigmoid(gates[h.size() + u]));
      const Bounded fresh = round(tanh_of(round(from_x[u] + round(reset * from_h[u]))));
      h[u] = round(round(round(Bounded(1.0) - update) * fresh) + round(update * h[u]));
    }
  }

  RnnMode mode_;
  DType dtype_;
  const CellTensors& tensors_;
};

}  // namespace openrnn::testing
