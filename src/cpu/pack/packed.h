// Parameters in the form that the kernels read.
//
// Letters: I input size, U units, O size of a state (U, or P with a projection), G gates, L lanes,
// in_l the input size of layer l. Panels are gates side by side, or column panels (kernels.h).
//
// | matrix    | multiplies           | k    | columns       |
// |-----------|----------------------|------|---------------|
// | w         | x                    | in_l | G U, by units |
// | r         | h of the step before | O    | G U, by units |
// | r_n       | r h, reset before    | U    | U             |
// | proj      | h~                   | U    | P             |
// | r_back    | gate gradients       | G U  | O             |
// | r_n_back  | those of n           | U    | U             |
// | w_back    | gate gradients       | G U  | in_l          |
// | proj_back | dh                   | P    | U             |
//
// Where the reset gate applies before the product, r and r_back are those of gates r and z alone.
#pragma once

#include <vector>

#include "cpu/memory/block.h"
#include "cpu/pack/panels.h"
#include "openrnn/engine.h"

namespace openrnn::cpu {

/// One packed matrix: `vectors` vectors in panels of `width`. k are its values a column, `count`
/// the elements that hold them.
template <class T>
struct PackedMatrix {
  T* data = nullptr;
  std::int64_t k = 0, width = 1, vectors = 0, lanes = 1;
  ElementCount count{};

  std::int64_t panel_size() const { return width * lanes * (count.elements + count.extra); }
  std::int64_t size() const { return divide_up(vectors, width) * panel_size(); }
  /// Vectors [first, last); `staging` is the calling thread's.
  Panels<T> panels(std::int64_t first, std::int64_t last, const Staging& staging) const {
    return {.b = data,
            .k = count.elements,
            .b_step = width * lanes,
            .b_panel = panel_size(),
            .width = width,
            .first = first,
            .last = last,
            .inner = k,
            .staging = staging};
  }
};

/// One direction of one layer. The forms for backward have no data of their own when
/// CpuPacked::transposes(): they are made from the others as backward comes to the layer.
template <class T>
struct PackedLayer {
  PackedMatrix<T> w, r;       // gate panels; plain networks: column panels
  PackedMatrix<T> r_n;        // column panels
  T* bias = nullptr;          // in the order of the vectors of w: bW + bR; gru n: bWn alone
  T* hn_bias = nullptr;       // gru: bRn, padded to lanes
  T* peephole = nullptr;      // [i, f, o][units padded to lanes]
  T* gains = nullptr;         // of each side, as bias; then the cell's gain and bias, padded
  CellOptions<T> options{};   // where has_options()
  PackedMatrix<T> proj;       // h~ -> h: k = U, columns P
  PackedMatrix<T> r_n_back;   // gate gradients of n -> r h: k = U, columns U
  PackedMatrix<T> r_back;     // gate gradients (recurrent side) -> h: k = G*U, columns O
  PackedMatrix<T> w_back;     // gate gradients (input side) -> x: k = G*U, columns in_l
  PackedMatrix<T> proj_back;  // h -> h~: k = P, columns U
};

template <class T>
struct Part;

/// Vectors that backward needs of a unit: sums or activations.
inline std::int64_t saved_gates(const RnnSpec& spec) {
  return spec.mode == RnnMode::kGru ? 4 : spec.num_gates();
}

/// Gates whose recurrent product is that of h itself: all, but not n after a reset.
inline std::int64_t recurrent_gates(const RnnSpec& spec) {
  return spec.reset_after ? spec.num_gates() : 2;
}

/// The parts of a row that layer normalization keeps for backward.
inline NormRow norm_row(const RnnSpec& spec) {
  return norm_row(spec.num_gates(), spec.num_units, spec.normalizes_products(),
                  spec.normalizes_cell());
}

/// Whether steps need the finishers of cells with options: zoneout and a masked state surround a
/// step of any cell.
inline bool has_options(const RnnSpec& spec) {
  RnnSpec step = spec;
  step.zoneout = step.zoneout_cell = step.training.recurrent_dropout = 0.0;
  return !step.has_cudnn_step() || spec.training.drops_candidate();
}

/// T is float for float16 and bfloat16, which are widened once here.
template <class T>
class CpuPacked final : public PackedParams {
 public:
  CpuPacked(const RnnSpec& spec, const ConstArrayView& params, const PackOptions& options);

  const PackedLayer<T>& layer(std::int64_t layer, std::int64_t direction) const {
    return layers_[static_cast<std::size_t>(layer * spec().num_dirs() + direction)];
  }
  const KernelTable& table() const noexcept { return *table_; }
  Arithmetic arithmetic() const noexcept { return arithmetic_; }
  /// Whether backward transposes the weights as it comes to a layer; not where packing has rounded
  /// them, as they would have to be rounded again.
  bool transposes() const noexcept { return arithmetic_ == kExact; }
  const Kernels<T>& kernels() const noexcept { return *kernels_; }
  /// Memory of one thread for products of `rows` rows; measured by a carver without memory.
  Staging stage(Carver& carver, std::int64_t rows) const {
    return {carver.take<char>(staging_bytes(arithmetic_, rows, most_inner_)), rows};
  }
  /// The memory of a thread, when those of all were carved one after another.
  Staging staging_of(const Staging& first, int thread) const {
    const std::int64_t bytes = (staging_bytes(arithmetic_, first.rows, most_inner_) + 63) / 64 * 64;
    return {static_cast<char*>(first.memory) + thread * bytes, first.rows};
  }
  const ParamsLayout& layout() const noexcept { return layout_; }
  /// Rows are read as zeros from here: max(U, O, I) elements.
  const T* zeros() const noexcept { return zeros_; }
  /// Rows of gate gradients: gru keeps the recurrent side of n beside the input side, and
  /// normalized products have each side apart.
  std::int64_t gradient_gates() const {
    if (normalizes()) return (spec().normalizes_products() ? 2 : 1) * gates();
    return is_gru() && spec().reset_after ? 4 : gates();
  }
  std::int64_t saved_gates() const { return cpu::saved_gates(spec()); }
  std::int64_t gates() const { return spec().num_gates(); }
  std::int64_t recurrent_gates() const { return cpu::recurrent_gates(spec()); }
  bool is_gru() const { return spec().mode == RnnMode::kGru; }
  /// Whether a step takes h over beside the recurrent product.
  bool keeps_h() const { return is_gru() && !spec().projecting(); }
  bool resets_before() const { return !spec().reset_after; }
  bool normalizes() const { return spec().normalizes(); }
  /// Whether a step is in parts that hand on gates, so that it needs memory for them.
  bool hands_on_gates() const { return resets_before() || spec().normalizes_cell(); }
  /// Elements of a row of products of all gates and units: vectors of w or r.
  std::int64_t product_row() const {
    return divide_up(spec().num_units, kernels().lanes) * gates() * kernels().lanes;
  }
  /// Vectors of gradients of normalized sums, and of the normalized cell.
  std::int64_t sum_gradients() const {
    return !normalizes() ? 0 : 4 + (spec().normalizes_cell() ? 1 : 0);
  }
  /// Whether steps are those of cells with options.
  bool has_options() const noexcept { return has_options_; }

 private:
  void carve(Carver& carver);
  void fill_layer(const T* params, std::int64_t layer, std::int64_t direction, const Part<T>& part);

  const KernelTable* table_;
  Arithmetic arithmetic_;
  const Kernels<T>* kernels_;
  ParamsLayout layout_;
  std::vector<PackedLayer<T>> layers_;
  Block memory_;
  T* zeros_ = nullptr;
  std::int64_t most_inner_ = 0;
  bool has_options_ = false;
};

extern template class CpuPacked<float>;
extern template class CpuPacked<double>;

}  // namespace openrnn::cpu
