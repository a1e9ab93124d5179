// One RNN primitive of oneDNN with its memories: a stack of equal layers, or one layer.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace peers {

using Arguments = std::unordered_map<int, dnnl::memory>;

/// Sizes of a primitive.
struct StageSizes {
  std::string cell;
  dnnl::memory::dim layers = 1, directions = 1, units = 0, input = 0, batch = 0, time = 0;
  bool training = false;
  bool bf16 = false;
  bool states = false;  // whether calls begin with given ones; training has zeros

  dnnl::memory::dim gates() const { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }
  /// A lbr_gru has a bias of its own inside the reset product.
  dnnl::memory::dim bias_gates() const { return cell == "gru" ? 4 : gates(); }
  dnnl::memory::dim output() const { return directions * units; }
};

/// Parameters in oneDNN's plain form: [L, D, I, G, U], [L, D, U, G, U] and [L, D, Gb, U], float32.
struct StageWeights {
  dnnl::memory layer, iter, bias;
};

class Stage {
 public:
  /// Packs at once for inference. `x` [T, B, I] is read where it lies.
  Stage(const StageSizes& sizes, const dnnl::engine& engine, dnnl::stream stream,
        StageWeights weights, dnnl::memory x);

  const StageSizes& sizes() const { return sizes_; }
  const std::string& kernel() const { return kernel_; }
  /// [T, B, D*U].
  const dnnl::memory& y() const { return y_; }
  /// [L, D, B, U].
  const dnnl::memory& hn() const { return hn_; }
  const dnnl::memory& cn() const { return cn_; }
  const dnnl::memory& dx() const { return dx_; }
  const StageWeights& gradients() const { return gradients_; }

  /// Runs; in training packs the weights before.
  void forward();
  /// What every call begins with, each [L, D, B, U]; `c` is an LSTM's. Where sizes have states.
  void begin_with(const float* h, const float* c);
  /// From dy [T, B, D*U], float32. Gradients end in the plain form.
  void backward(const dnnl::memory& dy);

 private:
  struct Layouts;
  void make_forward(const Layouts& layouts);
  void make_states(const Layouts& layouts);
  template <class Forward, class Backward, class... Cell>
  void make_primitives(const Layouts& layouts, const Cell&... cell);
  template <class Backward, class Hint, class... Cell>
  void make_backward(const Layouts& layouts, const Hint& forward, const Cell&... cell);
  void add_states(Arguments& args) const;
  void pack(dnnl::memory& to, const dnnl::memory& from);
  void zero(dnnl::memory& memory);

  StageSizes sizes_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  StageWeights plain_, packed_, packed_back_, gradients_, raw_gradients_;
  dnnl::memory x_, y_, h0_, c0_, hn_, cn_, dx_, dh0_, dc0_, dhn_, workspace_;
  dnnl::primitive forward_, backward_;
  std::string kernel_;
};

}  // namespace peers
