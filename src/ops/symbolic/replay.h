// Operations on symbolic tensors as data: a name, inputs, and attributes, which are the other
// arguments. A table of all names gives the function that repeats a call.
#pragma once

#include <tuple>
#include <type_traits>

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops.h"

namespace openrnn::ops {

/// Records the operation of that name. Throws: ArgumentError for a name that the table does not
/// have.
OPENRNN_API std::vector<Tensor> record_operation(const std::string& op,
                                                 const std::vector<Tensor>& inputs,
                                                 std::vector<TensorSpec> outputs,
                                                 Attributes attributes);

/// The arguments of an operation as they are recorded. Structs are several attributes.
struct ArgumentWriter {
  std::vector<Tensor> inputs = {};
  Attributes attributes = {};

  void write(const Tensor& tensor) { inputs.push_back(tensor); }
  void write(const std::vector<Tensor>& tensors) {
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  }
  void write(bool value) { attributes.emplace_back(value); }
  void write(double value) { attributes.emplace_back(value); }
  void write(std::int64_t value) { attributes.emplace_back(value); }
  void write(std::uint64_t value) { write(static_cast<std::int64_t>(value)); }
  void write(std::string_view value) { attributes.emplace_back(std::string(value)); }
  void write(DType dtype) { write(dtype_name(dtype)); }
  template <class T>
  requires std::is_integral_v<T>
  void write(const std::vector<T>& values) {
    attributes.emplace_back(std::vector<std::int64_t>(values.begin(), values.end()));
  }
  void write(const MatmulOptions& options);
  void write(const SliceRange& range);
  void write(const StepRange& range);
  void write(const ReduceOptions& options);
  void write(const CtcOptions& options);
  void write(DropoutKey key);
  void write(const RnnSpec& spec);
};

/// The inverse, in the same order.
struct ArgumentReader {
  const std::vector<Tensor>& inputs;
  const Attributes& attributes;
  std::size_t next_input = 0, next_attribute = 0;

  template <class T>
  const T& next() {
    return std::get<T>(attributes.at(next_attribute++));
  }
  void read(Tensor& tensor) { tensor = inputs.at(next_input++); }
  /// All remaining ones.
  void read(std::vector<Tensor>& tensors);
  void read(bool& value) { value = next<bool>(); }
  void read(double& value) { value = next<double>(); }
  void read(std::int64_t& value) { value = next<std::int64_t>(); }
  void read(std::uint64_t& value) { value = static_cast<std::uint64_t>(next<std::int64_t>()); }
  void read(std::string& value) { value = next<std::string>(); }
  void read(DType& dtype) { dtype = parse_dtype(next<std::string>()); }
  template <class T>
  requires std::is_integral_v<T>
  void read(std::vector<T>& values) {
    const auto& from = next<std::vector<std::int64_t>>();
    values.assign(from.begin(), from.end());
  }
  void read(MatmulOptions& options);
  void read(SliceRange& range);
  void read(StepRange& range);
  void read(ReduceOptions& options);
  void read(CtcOptions& options);
  void read(DropoutKey& key);
  void read(RnnSpec& spec);
};

/// Records a call of the operation `op` with the arguments of its function.
template <class... Arguments>
std::vector<Tensor> defer_call(const std::string& op, std::vector<TensorSpec> outputs,
                               const Arguments&... arguments) {
  ArgumentWriter writer;
  (writer.write(arguments), ...);
  return record_operation(op, writer.inputs, std::move(outputs), std::move(writer.attributes));
}

/// The same of an operation with one output.
template <class... Arguments>
Tensor defer_one(const std::string& op, TensorSpec output, const Arguments&... arguments) {
  return defer_call(op, {std::move(output)}, arguments...)[0];
}

/// What computes a recorded operation.
using OperationFunction = std::vector<Tensor> (*)(const std::vector<Tensor>& inputs,
                                                  const Attributes& attributes,
                                                  const Replay& replay);

using OperationTable = std::map<std::string, OperationFunction, std::less<>>;
/// The rows of operations with NumPy's shapes.
const OperationTable& tensor_operations();

/// A function of tensors and other arguments as an OperationFunction.
template <auto function>
struct Replayed;
template <class Result, class... Parameters, Result (*function)(Parameters...)>
struct Replayed<function> {
  static std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Attributes& attributes,
                                 const Replay&) {
    ArgumentReader reader{inputs, attributes};
    std::tuple<std::remove_cvref_t<Parameters>...> arguments;
    std::apply([&](auto&... argument) { (reader.read(argument), ...); }, arguments);
    if constexpr (std::is_same_v<Result, Tensor>) {
      return {std::apply(function, arguments)};
    } else {
      return std::apply(function, arguments);
    }
  }
};

}  // namespace openrnn::ops
