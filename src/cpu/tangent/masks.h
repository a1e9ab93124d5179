// The masks inside of a step: recurrent dropout and zoneout.
#pragma once

#include <vector>

#include "openrnn/engine_tangent.h"

namespace openrnn::cpu {

template <class T>
struct TangentNet;

/// Those of one direction of one layer. An empty vector: none. A row that has no step is kept as it
/// is, whatever its mask.
template <class T>
struct StepMasks {
  std::vector<T> state;      // [B, O], of the state that enters the products, at every step
  std::vector<T> candidate;  // [B, U], of g, n or the new state
  /// [B, O], [B, U]: how much of its value before a unit of h, or of c, keeps.
  std::vector<T> kept, kept_cell;

  StepMasks() = default;
  StepMasks(const TangentArgs& args, const TangentNet<T>& net, std::int64_t pseudo_layer);
  /// Draws those of step n, in the order of the direction; that of the state is one for all.
  void draw(const TangentNet<T>& net, std::int64_t n);

 private:
  void draw_row(MaskOf masks, std::int64_t t, std::int64_t b, double rate,
                std::vector<T>& to) const;
  void draw_rows(const TangentNet<T>& net, MaskOf masks, std::int64_t n, double rate,
                 std::vector<T>& to) const;
  void keep_rows(const TangentNet<T>& net, MaskOf masks, std::int64_t n, double rate,
                 std::vector<T>& to) const;
  const TangentArgs* args_ = nullptr;
  std::int64_t batch_ = 0, pseudo_layer_ = 0;
};

/// value * mask[k]; the value where there is no mask.
template <class T, class Value>
Value masked(const std::vector<T>& mask, std::int64_t k, const Value& value) {
  return mask.empty() ? value : mask[static_cast<std::size_t>(k)] * value;
}
/// before where kept[k] is 1, now where it is 0, between them by it; now where there is none.
template <class T, class Value>
Value zoned_out(const std::vector<T>& kept, std::int64_t k, const Value& before, const Value& now) {
  if (kept.empty()) return now;
  const T part = kept[static_cast<std::size_t>(k)];
  return part * before + (T(1) - part) * now;
}

}  // namespace openrnn::cpu
