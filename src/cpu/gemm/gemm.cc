#include "cpu/gemm/gemm.h"

#include <algorithm>
#include <vector>

#include "base/message.h"
#include "cpu/gemm/product.h"
#include "cpu/isa/arithmetic.h"
#include "cpu/isa/isa.h"
#include "cpu/threading/thread_lease.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

void check(const GemmArgs& args) {
  if (!is_floating(args.dtype)) {
    throw ArgumentError(message("[gemm] dtype is ", dtype_name(args.dtype),
                                ", expected float16, bfloat16, float32 or float64"));
  }
  if (args.m < 0 || args.n < 0 || args.k < 0) {
    throw ArgumentError(
        message("[gemm] m, n, k are ", args.m, ", ", args.n, ", ", args.k, ", expected 0 or more"));
  }
  if (args.bias && args.accumulate) {
    throw ArgumentError("[gemm] both bias and accumulate are given, expected one of them");
  }
}

template <class T>
std::vector<T*> row_pointers(T* base, std::int64_t rows, std::int64_t step) {
  std::vector<T*> pointers(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    pointers[i] = base + static_cast<std::int64_t>(i) * step;
  }
  return pointers;
}

template <class T>
void run(const GemmArgs& args) {
  const Kernels<T>& functions = kernels_of<T>(kernels());
  const auto a =
      row_pointers(static_cast<const T*>(args.a), args.trans_a ? args.k : args.m, args.lda);
  const auto b =
      row_pointers(static_cast<const T*>(args.b), args.trans_b ? args.n : args.k, args.ldb);
  const auto c = row_pointers(static_cast<T*>(args.c), args.m, args.ldc);
  ThreadLease lease(threads_for(
      static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k),
      kAloneProduct, num_threads()));
  const int threads = lease.threads();
  Carver measure;
  ProductScratch<T>::carve(measure, args.n, args.k);
  const std::size_t each = measure.used();
  const Block memory(each * static_cast<std::size_t>(threads));
  const bool by_rows = args.m >= args.n;
  lease.run([&](int thread) {
    Carver carver(static_cast<std::byte*>(memory.data()) + each * static_cast<std::size_t>(thread));
    const auto scratch = ProductScratch<T>::carve(carver, args.n, args.k);
    const Share rows(args.m, kShareRows, by_rows ? thread : 0, by_rows ? threads : 1);
    const Share columns(args.n, kColumnWidth * functions.lanes, by_rows ? 0 : thread,
                        by_rows ? 1 : threads);
    const ProductSide<T> side{.m0 = rows.first,
                              .m1 = rows.last,
                              .n0 = columns.first,
                              .n1 = columns.last,
                              .b = b.data(),
                              .b_by_n = args.trans_b,
                              .c = c.data(),
                              .bias = static_cast<const T*>(args.bias)};
    big_product<T>(functions,
                   {.rows = {{{rows.first, rows.last}}},
                    .k = args.k,
                    .a = a.data(),
                    .a_by_k = args.trans_a,
                    .sides = {{side}},
                    .accumulate = args.accumulate},
                   scratch);
  });
}

// Rows of 16 bits, widened to dense rows of float.
std::vector<float> widened(const StorageKernels& storage, const void* data, std::int64_t rows,
                           std::int64_t columns, std::int64_t step) {
  std::vector<float> wide(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    storage.widen(static_cast<const std::uint16_t*>(data) + row * step, wide.data() + row * columns,
                  columns);
  }
  return wide;
}

void run_narrow(const GemmArgs& args) {
  const StorageKernels& storage = kernels().storage[storage_of(args.dtype)];
  GemmArgs wide = args;
  wide.lda = args.trans_a ? args.m : args.k;
  wide.ldb = args.trans_b ? args.k : args.n;
  wide.ldc = args.n;
  const auto a = widened(storage, args.a, args.trans_a ? args.k : args.m, wide.lda, args.lda);
  const auto b = widened(storage, args.b, args.trans_b ? args.n : args.k, wide.ldb, args.ldb);
  const auto bias = widened(storage, args.bias, args.bias ? 1 : 0, args.n, 0);
  auto c = args.accumulate ? widened(storage, args.c, args.m, args.n, args.ldc)
                           : std::vector<float>(static_cast<std::size_t>(args.m * args.n));
  wide.a = a.data();
  wide.b = b.data();
  wide.bias = args.bias ? bias.data() : nullptr;
  wide.c = c.data();
  run<float>(wide);
  for (std::int64_t row = 0; row < args.m; ++row) {
    storage.narrow(c.data() + row * args.n, static_cast<std::uint16_t*>(args.c) + row * args.ldc,
                   args.n);
  }
}

template <class T>
void apply_as(Unary function, const void* x, void* y, std::int64_t size) {
  const auto& math = kernels_of<T>(kernels()).math;
  const auto run_math = math[function == Unary::kExp    ? kMathExp
                             : function == Unary::kTanh ? kMathTanh
                                                        : kMathSigmoid];
  ThreadLease lease(threads_for(static_cast<double>(size), kAloneProduct, num_threads()));
  lease.run([&](int thread) {
    const Share part(size, 64, thread, lease.threads());
    run_math(static_cast<const T*>(x) + part.first, static_cast<T*>(y) + part.first,
             part.last - part.first);
  });
}

}  // namespace

void gemm(const GemmArgs& args) {
  check(args);
  if (args.m == 0 || args.n == 0) return;
  if (is_16_bit_float(args.dtype)) return run_narrow(args);
  if (args.dtype == DType::kFloat64) return run<double>(args);
  run<float>(args);
}

void apply(Unary function, DType dtype, const void* x, void* y, std::int64_t size) {
  if (dtype == DType::kFloat32) return apply_as<float>(function, x, y, size);
  if (dtype == DType::kFloat64) return apply_as<double>(function, x, y, size);
  throw ArgumentError(
      message("[apply] dtype is ", dtype_name(dtype), ", expected float32 or float64"));
}

}  // namespace openrnn::cpu
