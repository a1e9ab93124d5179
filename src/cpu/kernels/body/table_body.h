// The table of one instruction set. Included inside its namespace, after the other bodies.
#pragma once

template <class V>
void add(const typename V::T* x, typename V::T* y, int64_t size) {
  for (int64_t i = 0; i < size; i += V::kLanes) {
    store_some<V>(load_some<V>(y + i, size - i) + load_some<V>(x + i, size - i), y + i, size - i);
  }
}

template <class V>
void multiply(const typename V::T* x, typename V::T* y, int64_t size) {
  for (int64_t i = 0; i < size; i += V::kLanes) {
    store_some<V>(load_some<V>(y + i, size - i) * load_some<V>(x + i, size - i), y + i, size - i);
  }
}

inline int64_t fewer(int64_t a, int64_t b) { return a < b ? a : b; }

inline void widen(const uint16_t* half, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    const int64_t n = fewer(size - i, F32::kLanes);
    store_some<F32>(load_half(half + i, n), out + i, n);
  }
}

inline void narrow(const float* x, uint16_t* half, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    const int64_t n = fewer(size - i, F32::kLanes);
    store_half(load_some<F32>(x + i, n), half + i, n);
  }
}

inline void round_all(float* x, int64_t size) {
  for (int64_t i = 0; i < size; i += F32::kLanes) {
    store_some<F32>(round_half(load_some<F32>(x + i, size - i)), x + i, size - i);
  }
}

template <class V>
constexpr Kernels<typename V::T> table_of() {
  return {V::kLanes,
          product<V>,
          skip<V>,
          {forward_step<V, PlainCell<V, relu<V>>>, forward_step<V, PlainCell<V, tanh<V>>>,
           forward_step<V, LstmCell<V>>, forward_step<V, GruCell<V>>},
          {backward_step<V, ReluGrad<V>>, backward_step<V, TanhGrad<V>>,
           backward_step<V, LstmGrad<V>>, backward_step<V, GruGrad<V>>},
          {map<V, exp<V>>, map<V, tanh<V>>, map<V, sigmoid<V>>},
          add<V>,
          multiply<V>};
}
