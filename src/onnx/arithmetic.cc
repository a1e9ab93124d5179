// Add, Div, Gemm, MatMul, Mul, Pow, Sub.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "mapping/onnx/values/attributes.h"
#include "onnx/kernel.h"
#include "openrnn/ops.h"

namespace openrnn::onnx {

using mapping::find_number;
using mapping::integer_or;
using mapping::MemoryBudget;

const Array& KernelCall::input(std::size_t index) const {
  if (const Array* found = optional(index)) return *found;
  throw ArgumentError(message("input ", index, " is left out, expected it"));
}

namespace {

enum class Binary { kAdd, kSub, kMul, kDiv };

// As in C++, but without undefined results: sums wrap around.
template <class T>
T integer_result(Binary op, T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
  switch (op) {
    case Binary::kAdd:
      return static_cast<T>(x + y);
    case Binary::kSub:
      return static_cast<T>(x - y);
    case Binary::kMul:
      return static_cast<T>(x * y);
    case Binary::kDiv:
      break;
  }
  if (b == 0) throw ArgumentError("an integer is divided by 0");
  return b == -1 ? static_cast<T>(Unsigned{0} - x) : static_cast<T>(a / b);
}

template <class T>
Array integer_results(Binary op, const Array& a, const Array& b) {
  Array out(a.dtype(), a.shape());
  const auto x = a.as<T>(), y = b.as<T>();
  const auto results = out.as<T>();
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = integer_result(op, x[i], y[i]);
  return out;
}

Array of_equal_shapes(Binary op, const Array& a, const Array& b) {
  if (a.dtype() != b.dtype()) {
    throw ArgumentError(message("the operands are ", dtype_name(a.dtype()), " and ",
                                dtype_name(b.dtype()), ", expected equal dtypes"));
  }
  if (a.dtype() == DType::kInt64) return integer_results<std::int64_t>(op, a, b);
  if (a.dtype() == DType::kInt32) return integer_results<std::int32_t>(op, a, b);
  const Tensor x(a.view()), y(b.view());
  switch (op) {
    case Binary::kAdd:
      return ops::add(x, y).to_host();
    case Binary::kSub:
      return ops::subtract(x, y).to_host();
    case Binary::kMul:
      return ops::multiply(x, y).to_host();
    case Binary::kDiv:
      break;
  }
  return ops::divide(x, y).to_host();
}

Array binary(Binary op, const Array& a, const Array& b) {
  if (a.shape() == b.shape()) return of_equal_shapes(op, a, b);
  MemoryBudget free;
  const Shape shape = mapping::broadcast_shape(a.shape(), b.shape());
  return of_equal_shapes(op, mapping::expanded(a, shape, &free),
                         mapping::expanded(b, shape, &free));
}

template <Binary op>
std::vector<Array> binary_kernel(const KernelCall& call) {
  return one_output(binary(op, call.input(0), call.input(1)));
}

// x to the power of an integer; its error grows with y.
double whole_power(double x, double y) {
  double result = 1.0;
  for (auto left = static_cast<int>(std::abs(y)); left > 0; left /= 2, x *= x) {
    if (left % 2) result *= x;
  }
  return y < 0.0 ? 1.0 / result : result;
}

// As C's pow, from no function whose bits depend on the machine.
double power(double x, double y) {
  constexpr double kFewProducts = 64.0;
  if (y == std::trunc(y) && std::abs(y) <= kFewProducts) return whole_power(x, y);
  if (y == 0.5 && x >= 0.0) return std::sqrt(x) + 0.0;  // -0 to 0
  const bool odd = std::fmod(y, 2.0) == 1.0 || std::fmod(y, 2.0) == -1.0;
  if (x < 0.0 && std::isfinite(x) && y != std::trunc(y)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double sign = std::signbit(x) && odd ? -1.0 : 1.0;
  if (std::abs(x) == 1.0) return sign;
  return sign * portable_exp(y * portable_log(std::abs(x)));
}

// In double, rounded once to the dtype of x; the exponent may be of another one.
std::vector<Array> pow_kernel(const KernelCall& call) {
  const Array &x = call.input(0), &y = call.input(1);
  if (!is_floating(x.dtype()) || y.dtype() == DType::kBool) {
    throw ArgumentError(message("the operands are ", dtype_name(x.dtype()), " and ",
                                dtype_name(y.dtype()), ", expected a floating dtype and numbers"));
  }
  MemoryBudget free;
  const Shape shape = mapping::broadcast_shape(x.shape(), y.shape());
  const auto in_double = [&](const Array& given) {
    return mapping::converted(mapping::expanded(given, shape, &free), DType::kFloat64, &free);
  };
  Array values = in_double(x);
  const Array exponents = in_double(y);
  const double* exponent = exponents.as<double>().data();
  for (double& value : values.as<double>()) value = power(value, *exponent++);
  return one_output(mapping::converted(values, x.dtype(), &free));
}

Array matrix_product(const Array& a, const Array& b, const ops::MatmulOptions& options = {}) {
  return ops::matmul(Tensor(a.view()), Tensor(b.view()), options).to_host();
}

// a [.., M, K] by b [.., K, N], both with the same dimensions before the last two.
Array batched_product(const Array& a, const Array& b) {
  const Shape &x = a.shape(), &y = b.shape();
  const std::size_t rank = x.size();
  Shape shape = x;
  shape[rank - 1] = y[rank - 1];
  Array out(a.dtype(), shape);
  const std::int64_t rows = x[rank - 2], inner = x[rank - 1], columns = y[rank - 1];
  if (y[rank - 2] != inner || out.size() == 0) {
    if (y[rank - 2] == inner) return out;
    throw ArgumentError(message("the operands are ", to_string(x), " and ", to_string(y),
                                ", expected equal inner sizes"));
  }
  const std::int64_t count = out.size() / (rows * columns);
  const auto bytes = static_cast<std::int64_t>(dtype_size(a.dtype()));
  for (std::int64_t i = 0; i < count; ++i) {
    const ConstArrayView left{
        static_cast<const char*>(a.data()) + i * rows * inner * bytes, a.dtype(), {rows, inner}};
    const ConstArrayView right{static_cast<const char*>(b.data()) + i * inner * columns * bytes,
                               b.dtype(),
                               {inner, columns}};
    const Array one = ops::matmul(Tensor(left), Tensor(right)).to_host();
    std::copy_n(static_cast<const char*>(one.data()), one.size_bytes(),
                static_cast<char*>(out.data()) + i * rows * columns * bytes);
  }
  return out;
}

// As NumPy's matmul: a vector is a matrix of one row or column, whose axis goes away again.
std::vector<Array> matmul_kernel(const KernelCall& call) {
  MemoryBudget free;
  Array a = call.input(0), b = call.input(1);
  const bool row = a.shape().size() == 1, column = b.shape().size() == 1;
  if (a.shape().empty() || b.shape().empty() || a.dtype() != b.dtype()) {
    throw ArgumentError(message("the operands are ", dtype_name(a.dtype()), " ",
                                to_string(a.shape()), " and ", dtype_name(b.dtype()), " ",
                                to_string(b.shape()), ", expected vectors or matrices"));
  }
  const Shape one_row{1, a.size()}, one_column{b.size(), 1};
  if (row) a = std::move(a).reshaped(one_row);
  if (column) b = std::move(b).reshaped(one_column);
  Shape shape = a.shape();
  Array out;
  if (b.shape().size() == 2) {
    const std::int64_t inner = shape.back();
    shape.back() = b.shape()[1];
    const std::int64_t rows = shape_size(Shape(shape.begin(), shape.end() - 1));
    out = matrix_product(std::move(a).reshaped({rows, inner}), b).reshaped(shape);
  } else {
    Shape lead_a(shape.begin(), shape.end() - 2);
    Shape lead_b(b.shape().begin(), b.shape().end() - 2);
    const Shape lead = mapping::broadcast_shape(lead_a, lead_b);
    const auto with_lead = [&](const Array& x) {
      Shape whole = lead;
      whole.insert(whole.end(), x.shape().end() - 2, x.shape().end());
      return mapping::expanded(x, whole, &free);
    };
    out = batched_product(with_lead(a), with_lead(b));
  }
  shape = out.shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return one_output(std::move(out).reshaped(shape));
}

Array scaled(Array array, const float* factor) {
  if (!factor || *factor == 1.0f) return array;
  return ops::scale(Tensor(array.view()), *factor).to_host();
}

std::vector<Array> gemm_kernel(const KernelCall& call) {
  const ops::MatmulOptions options{.transpose_a = integer_or(call.node, "transA", 0) != 0,
                                   .transpose_b = integer_or(call.node, "transB", 0) != 0};
  Array out = scaled(matrix_product(call.input(0), call.input(1), options),
                     find_number(call.node, "alpha"));
  const Array* c = call.optional(2);
  if (!c) return one_output(std::move(out));
  MemoryBudget free;
  const Array bias =
      scaled(mapping::expanded(*c, out.shape(), &free), find_number(call.node, "beta"));
  return one_output(binary(Binary::kAdd, out, bias));
}

}  // namespace

std::span<const KernelRow> arithmetic_kernels() {
  static const KernelRow kRows[] = {
      {"Add", binary_kernel<Binary::kAdd>, {}},
      {"Div", binary_kernel<Binary::kDiv>, {}},
      {"Gemm", gemm_kernel, {"alpha", "beta", "transA", "transB"}},
      {"MatMul", matmul_kernel, {}},
      {"Mul", binary_kernel<Binary::kMul>, {}},
      {"Pow", pow_kernel, {}},
      {"Sub", binary_kernel<Binary::kSub>, {}},
  };
  return kRows;
}

}  // namespace openrnn::onnx
