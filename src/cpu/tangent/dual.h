// Numbers with a derivative, and arrays of them.
#pragma once

#include <cstdint>
#include <vector>

namespace openrnn::cpu {

/// v + eps d, eps^2 = 0.
template <class T>
struct Dual {
  T v{}, d{};
};
template <class T>
Dual<T> operator+(Dual<T> a, Dual<T> b) {
  return {a.v + b.v, a.d + b.d};
}
template <class T>
Dual<T> operator-(Dual<T> a, Dual<T> b) {
  return {a.v - b.v, a.d - b.d};
}
template <class T>
Dual<T> operator*(Dual<T> a, Dual<T> b) {
  return {a.v * b.v, a.v * b.d + a.d * b.v};
}
/// A constant times it.
template <class T>
Dual<T> operator*(T a, Dual<T> b) {
  return {a * b.v, a * b.d};
}

/// Somewhere in an array.
template <class T>
struct DualPtr {
  T* v = nullptr;
  T* d = nullptr;
  Dual<T> operator[](std::int64_t k) const { return {v[k], d[k]}; }
  void set(std::int64_t k, Dual<T> to) const { v[k] = to.v, d[k] = to.d; }
  void add(std::int64_t k, Dual<T> term) const { v[k] += term.v, d[k] += term.d; }
};

/// All values, then all derivatives: as a matrix, twice the rows, so that one product does both.
template <class T>
class DualArray {
 public:
  DualArray() = default;
  explicit DualArray(std::int64_t size)
      : size_(size), data_(2 * static_cast<std::size_t>(size), T(0)) {}
  std::int64_t size() const { return size_; }
  T* v() { return data_.data(); }
  const T* v() const { return data_.data(); }
  const T* d() const { return data_.data() + size_; }
  DualPtr<T> at(std::int64_t k) { return {data_.data() + k, data_.data() + size_ + k}; }
  Dual<T> operator[](std::int64_t k) const { return {v()[k], d()[k]}; }
  void clear() { data_.assign(data_.size(), T(0)); }

 private:
  std::int64_t size_ = 0;
  std::vector<T> data_;
};

}  // namespace openrnn::cpu
