// The elementwise, row-wise and reducing loops of the cpu device. Arguments as in Device.
#pragma once

#include "openrnn/device.h"

namespace openrnn::cpu::device {

void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y);
void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x, const void* y,
                    const void* dy, void* dx);
void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b, void* c);
void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
             std::uint8_t* mask);
void select(const SelectArgs& args);
void copy_strided(const StridedCopy& copy);
void clip(const ClipArgs& args);
void scale(DType dtype, std::int64_t size, double factor, const void* x, void* y);
void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype, const void* scalar,
          void* y);
void accumulate(DType dtype, std::int64_t size, const void* x, void* y);
void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype, void* to);

void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, const void* row,
             void* y);
void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, void* out);
void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                 const std::int32_t* indices, void* out);
void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* rows,
                      const std::int32_t* indices, void* table);
void dropout(const DropoutArgs& args);

double sum(DType dtype, std::int64_t size, const void* x);
double sum_of_squares(DType dtype, std::int64_t size, const void* x);

void softmax_cross_entropy(const CrossEntropyArgs& args);
void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args);
void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                      const void* dy, void* dx);

void optimizer_step(const OptimizerStep& step);

}  // namespace openrnn::cpu::device
