#include <type_traits>

#include "cpu/gemm/gemm.h"
#include "cpu/tangent/trace.h"

namespace openrnn::cpu {
namespace {

template <class T>
void product(GemmArgs args) {
  if (args.m == 0 || args.n == 0 || args.k == 0) return;
  args.dtype = std::is_same_v<T, double> ? DType::kFloat64 : DType::kFloat32;
  gemm(args);
}

}  // namespace

template <class T>
void times_transposed(const TangentNet<T>& net, const DualArray<T>& in, const MatrixPlace& m,
                      DualArray<T>& out, bool moves) {
  const std::int64_t n = in.size() / m.cols;
  GemmArgs args{.trans_b = true,
                .m = moves ? 2 * n : n,
                .n = m.rows,
                .k = m.cols,
                .a = in.v(),
                .lda = m.cols,
                .b = net.params.v() + m.offset,
                .ldb = m.cols,
                .c = out.v(),
                .ldc = m.rows};
  product<T>(args);
  if (!net.moves) return;
  args.m = n;
  args.b = net.params.d() + m.offset;
  args.c = out.at(0).d;
  args.accumulate = true;
  product<T>(args);
}

template <class T>
void add_times(const TangentNet<T>& net, const DualArray<T>& in, const MatrixPlace& m,
               DualArray<T>& out, Part part) {
  const std::int64_t n = in.size() / m.rows;
  const bool both = part == Part::kBoth;
  GemmArgs args{.m = both ? 2 * n : n,
                .n = m.cols,
                .k = m.rows,
                .a = both ? in.v() : in.d(),
                .lda = m.rows,
                .b = net.params.v() + m.offset,
                .ldb = m.cols,
                .c = both ? out.v() : out.at(0).d,
                .ldc = m.cols,
                .accumulate = true};
  product<T>(args);
  if (!net.moves) return;
  args.m = n;
  args.a = in.v();
  args.b = net.params.d() + m.offset;
  args.c = out.at(0).d;
  product<T>(args);
}

template <class T>
void outer_direction(const DualArray<T>& a, std::int64_t a_cols, std::int64_t first,
                     const DualArray<T>& b, const MatrixPlace& m, T* out, bool moves) {
  const std::int64_t n = b.size() / m.cols;
  GemmArgs args{.trans_a = true,
                .m = m.rows,
                .n = m.cols,
                .k = n,
                .a = a.d() + first,
                .lda = a_cols,
                .b = b.v(),
                .ldb = m.cols,
                .c = out + m.offset,
                .ldc = m.cols};
  product<T>(args);
  if (!moves) return;
  args.a = a.v() + first;
  args.b = b.d();
  args.accumulate = true;
  product<T>(args);
}

template void times_transposed<float>(const TangentNet<float>&, const DualArray<float>&,
                                      const MatrixPlace&, DualArray<float>&, bool);
template void times_transposed<double>(const TangentNet<double>&, const DualArray<double>&,
                                       const MatrixPlace&, DualArray<double>&, bool);
template void add_times<float>(const TangentNet<float>&, const DualArray<float>&,
                               const MatrixPlace&, DualArray<float>&, Part);
template void add_times<double>(const TangentNet<double>&, const DualArray<double>&,
                                const MatrixPlace&, DualArray<double>&, Part);
template void outer_direction<float>(const DualArray<float>&, std::int64_t, std::int64_t,
                                     const DualArray<float>&, const MatrixPlace&, float*, bool);
template void outer_direction<double>(const DualArray<double>&, std::int64_t, std::int64_t,
                                      const DualArray<double>&, const MatrixPlace&, double*, bool);

}  // namespace openrnn::cpu
