// A call frame whose version and sizes were checked, and what a handler reads of it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "openrnn/base.h"
#include "python/jax/call_frame.h"

namespace openrnn::python::jax {

/// Operands, results and attributes by place and name. Every reader checks; it throws ArgumentError
/// naming the call, what there is and what was expected.
class Frame {
 public:
  /// Throws: EngineError for another version of the ABI, or structs too small.
  Frame(std::string_view call, const CallFrame& frame);

  std::string_view call() const { return call_; }
  Stage stage() const { return frame_.stage; }
  void expect_counts(std::int64_t operands, std::int64_t results) const;
  /// The dimensions of an operand of that rank.
  std::span<const std::int64_t> dims(std::int64_t place, std::string_view name,
                                     std::int64_t rank) const;
  std::span<const std::int64_t> result_dims(std::int64_t place, std::string_view name,
                                            std::int64_t rank) const;
  /// The memory of an operand or a result of that type and shape.
  const void* operand(std::int64_t place, std::string_view name, ElementType type,
                      const Shape& shape) const;
  void* result(std::int64_t place, std::string_view name, ElementType type,
               const Shape& shape) const;
  /// Elements of an operand.
  std::int64_t size(std::int64_t place) const;

  std::string_view text(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::int64_t number(std::string_view name) const;

 private:
  const void* attribute(std::string_view name, AttributeType type) const;
  const void* scalar(std::string_view name, ElementType type) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string_view call_;
  const CallFrame& frame_;
};

ElementType element_type(DType dtype);

/// Answers a query for metadata, or runs `execute` in the stage of execution and nothing in others.
/// Exceptions become the runtime's errors.
Error* handle(std::string_view call, CallFrame* frame, void (*execute)(const Frame&)) noexcept;

}  // namespace openrnn::python::jax
