// Zoneout of a row. Included inside the namespace of an instruction set, after the steps.
#pragma once

/// Units keep their value where the mask is 0; without one they become the expectation.
template <class V>
void zone_out(const ZoneRow<typename V::T>& z) {
  const V zero = V::broadcast(0), rate = V::broadcast(z.rate), rest = V::broadcast(z.rest);
  for (int64_t i = 0; i < z.count; i += V::kLanes) {
    const int64_t left = z.count - i;
    const V before = load_some<V>(z.before + i, left), now = load_some<V>(z.now + i, left);
    const V mixed = z.mask ? select_less(zero, load_some<V>(z.mask + i, left), now, before)
                           : fma(rate, before, rest * now);
    store_some<V>(mixed, z.out + i, left);
  }
}

/// Divides a gradient among the value before, `out`, and the step's own, in its place.
template <class V>
void zone_out_gradient(const ZoneGradient<typename V::T>& z) {
  const V zero = V::broadcast(0), rate = V::broadcast(z.rate), rest = V::broadcast(z.rest);
  for (int64_t i = 0; i < z.count; i += V::kLanes) {
    const int64_t left = z.count - i;
    const V d = load_some<V>(z.d + i, left);
    V now = rest * d, before = rate * d;
    if (z.mask) {
      const V mask = load_some<V>(z.mask + i, left);
      now = select_less(zero, mask, d, zero);
      before = select_less(zero, mask, zero, d);
    }
    store_some<V>(now, z.d + i, left);
    store_some<V>(before, z.before + i, left);
  }
}
