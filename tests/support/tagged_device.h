// A device that computes what the cpu device does, on memory that the host cannot read.
#pragma once

#include "support/tagged_engine.h"

namespace openrnn::testing {

class TaggedDevice : public Device {
 public:
  TaggedDevice(std::string name, bool exact) : name_(std::move(name)), engine_(*this, exact) {}
  std::string_view name() const override { return name_; }
  const Engine* engine() const override { return &engine_; }
  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    return allocate_tagged(bytes);
  }
  void zero(void* to, std::size_t bytes) const override { cpu().zero(untagged(to), bytes); }
  void copy(const BlockCopy& copy) const override {
    BlockCopy plain = copy;
    plain.from = untagged(copy.from);
    plain.to = untagged(copy.to);
    cpu().copy(plain);
  }
  void upload(void* to, const void* host, std::size_t bytes) const override {
    cpu().upload(untagged(to), of_host(host), bytes);
  }
  void download(void* host, const void* from, std::size_t bytes) const override {
    cpu().download(of_host(host), untagged(from), bytes);
  }

  void matmul(const MatmulArgs& args) const override {
    MatmulArgs plain = args;
    plain.a = untagged(args.a);
    plain.b = untagged(args.b);
    plain.bias = untagged(args.bias);
    plain.c = untagged(args.c);
    cpu().matmul(plain);
  }
  void unary(UnaryOp op, DType dtype, std::int64_t size, const void* x, void* y) const override {
    cpu().unary(op, dtype, size, untagged(x), untagged(y));
  }
  void unary_gradient(UnaryOp op, DType dtype, std::int64_t size, const void* x, const void* y,
                      const void* dy, void* dx) const override {
    cpu().unary_gradient(op, dtype, size, untagged(x), untagged(y), untagged(dy), untagged(dx));
  }
  void binary(BinaryOp op, DType dtype, std::int64_t size, const void* a, const void* b,
              void* c) const override {
    cpu().binary(op, dtype, size, untagged(a), untagged(b), untagged(c));
  }
  void compare(CompareOp op, DType dtype, std::int64_t size, const void* a, const void* b,
               std::uint8_t* mask) const override {
    cpu().compare(op, dtype, size, untagged(a), untagged(b), untagged(mask));
  }
  void select(const SelectArgs& args) const override {
    SelectArgs plain = args;
    plain.mask = untagged(args.mask);
    plain.a = untagged(args.a);
    plain.b = untagged(args.b);
    plain.out = untagged(args.out);
    cpu().select(plain);
  }
  void copy_strided(const StridedCopy& copy) const override {
    StridedCopy plain = copy;
    plain.from = untagged(copy.from);
    plain.to = untagged(copy.to);
    cpu().copy_strided(plain);
  }
  void add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x, const void* row,
               void* y) const override {
    cpu().add_row(dtype, rows, cols, untagged(x), untagged(row), untagged(y));
  }
  void column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                  void* out) const override {
    cpu().column_sum(dtype, rows, cols, untagged(x), untagged(out));
  }
  void clip(const ClipArgs& args) const override {
    ClipArgs plain = args;
    plain.x = untagged(args.x);
    plain.dy = untagged(args.dy);
    plain.out = untagged(args.out);
    cpu().clip(plain);
  }
  void scale(DType dtype, std::int64_t size, double factor, const void* x, void* y) const override {
    cpu().scale(dtype, size, factor, untagged(x), untagged(y));
  }
  void fill(DType dtype, std::int64_t size, double factor, DType scalar_dtype, const void* scalar,
            void* y) const override {
    cpu().fill(dtype, size, factor, scalar_dtype, untagged(scalar), untagged(y));
  }
  void accumulate(DType dtype, std::int64_t size, const void* x, void* y) const override {
    cpu().accumulate(dtype, size, untagged(x), untagged(y));
  }
  void convert(std::int64_t size, DType from_dtype, const void* from, DType to_dtype,
               void* to) const override {
    cpu().convert(size, from_dtype, untagged(from), to_dtype, untagged(to));
  }
  double sum(DType dtype, std::int64_t size, const void* x) const override {
    return cpu().sum(dtype, size, untagged(x));
  }
  double sum_of_squares(DType dtype, std::int64_t size, const void* x) const override {
    return cpu().sum_of_squares(dtype, size, untagged(x));
  }
  void gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                   const std::int32_t* indices, void* out) const override {
    cpu().gather_rows(dtype, count, cols, untagged(table), untagged(indices), untagged(out));
  }
  void scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* rows,
                        const std::int32_t* indices, void* table) const override {
    cpu().scatter_add_rows(dtype, count, cols, untagged(rows), untagged(indices), untagged(table));
  }
  void softmax_cross_entropy(const CrossEntropyArgs& args) const override {
    CrossEntropyArgs plain = args;
    plain.logits = untagged(args.logits);
    plain.labels = untagged(args.labels);
    plain.losses = untagged(args.losses);
    plain.probabilities = untagged(args.probabilities);
    cpu().softmax_cross_entropy(plain);
  }
  void softmax_cross_entropy_gradient(const CrossEntropyGradientArgs& args) const override {
    CrossEntropyGradientArgs plain = args;
    plain.probabilities = untagged(args.probabilities);
    plain.labels = untagged(args.labels);
    plain.row_gradients = untagged(args.row_gradients);
    plain.logits_gradient = untagged(args.logits_gradient);
    cpu().softmax_cross_entropy_gradient(plain);
  }
  void softmax_gradient(DType dtype, std::int64_t rows, std::int64_t cols, const void* y,
                        const void* dy, void* dx) const override {
    cpu().softmax_gradient(dtype, rows, cols, untagged(y), untagged(dy), untagged(dx));
  }
  void dropout(const DropoutArgs& args) const override {
    DropoutArgs plain = args;
    plain.x = untagged(args.x);
    plain.out = untagged(args.out);
    cpu().dropout(plain);
  }
  void optimizer_step(const OptimizerStep& step) const override {
    OptimizerStep plain = step;
    plain.variable = untagged(step.variable);
    plain.gradient = untagged(step.gradient);
    for (std::size_t i = 0; i < step.slots.size(); ++i) plain.slots[i] = untagged(step.slots[i]);
    plain.decision = untagged(step.decision);
    cpu().optimizer_step(plain);
  }

 private:
  static const Device& cpu() { return cpu_device(); }
  std::string name_;
  TaggedEngine engine_;
};

/// 'test:0' and 'test:1', two devices with memories of their own; the second one has no
/// weights_dtype.
inline const Device& test_device(int ordinal = 0) {
  static const TaggedDevice devices[] = {TaggedDevice("test:0", false),
                                         TaggedDevice("test:1", true)};
  return devices[ordinal];
}

}  // namespace openrnn::testing
