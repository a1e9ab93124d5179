#include "ops/symbolic/replay.h"

#include <bit>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "openrnn/spec_fields.h"
#include "ops/symbolic/dropout.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::ops {
namespace {

Tensor to(const Tensor& x, const std::string& name) { return x.to(openrnn::device(name)); }

using Whole = Tensor (*)(const Tensor&);

const OperationTable& operations() {
  static const OperationTable table{
      {"absolute", Replayed<absolute>::run},
      {"add", Replayed<add>::run},
      {"add_row", Replayed<add_row>::run},
      {"add_scalar", Replayed<add_scalar>::run},
      {"cast", Replayed<cast>::run},
      {"clip", Replayed<ops::clip>::run},
      {"concat", Replayed<concat>::run},
      {"dense", Replayed<dense>::run},
      {"divide", Replayed<divide>::run},
      {"dropout", Replayed<dropout>::run},
      {"embedding_lookup", Replayed<embedding_lookup>::run},
      {"exp", Replayed<ops::exp>::run},
      {"l1_regularization", Replayed<l1_regularization>::run},
      {"l2_regularization", Replayed<l2_regularization>::run},
      {"matmul", Replayed<matmul>::run},
      {"multiply", Replayed<multiply>::run},
      {"negate", Replayed<ops::negate>::run},
      {"next_dropout", run_recorded_dropout},
      {"one_hot", Replayed<one_hot>::run},
      {"params_to_canonical", Replayed<canonical_tensors>::run},
      {"reduce_mean", Replayed<static_cast<Whole>(reduce_mean)>::run},
      {"reduce_sum", Replayed<static_cast<Whole>(reduce_sum)>::run},
      {"relu", Replayed<relu>::run},
      {"reshape", Replayed<reshape>::run},
      {"reverse_sequence", Replayed<reverse_sequence>::run},
      {"reverse_sequence_by", Replayed<reverse_sequence_by>::run},
      {"rnn", run_recorded_rnn},
      {"scale", Replayed<scale>::run},
      {"select_rows", Replayed<select_rows>::run},
      {"sigmoid", Replayed<sigmoid>::run},
      {"slice", Replayed<slice>::run},
      {"softmax", Replayed<softmax>::run},
      {"softmax_cross_entropy", Replayed<softmax_cross_entropy>::run},
      {"softmax_cross_entropy_rows", Replayed<softmax_cross_entropy_rows>::run},
      {"split", Replayed<split>::run},
      {"sqrt", Replayed<sqrt>::run},
      {"square", Replayed<square>::run},
      {"stack", Replayed<stack>::run},
      {"subtract", Replayed<subtract>::run},
      {"tanh", Replayed<ops::tanh>::run},
      {"to", Replayed<to>::run},
      {"transpose_leading", Replayed<transpose_leading>::run},
  };
  return table;
}

// Two numbers are the bits of both: no attribute is that.
Attribute attribute_of(const FieldValue& value) {
  return std::visit(
      [](const auto& given) -> Attribute {
        using T = std::remove_cvref_t<decltype(given)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return std::vector<std::int64_t>{};
        } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
          return std::vector<std::int64_t>{std::bit_cast<std::int64_t>(given[0]),
                                           std::bit_cast<std::int64_t>(given[1])};
        } else {
          return given;
        }
      },
      value);
}

FieldValue value_of(const Attribute& attribute) {
  return std::visit(
      [](const auto& given) -> FieldValue {
        using T = std::remove_cvref_t<decltype(given)>;
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          if (given.empty()) return {};
          return std::array{std::bit_cast<double>(given.at(0)), std::bit_cast<double>(given.at(1))};
        } else if constexpr (std::is_constructible_v<FieldValue, T>) {
          return given;
        } else {
          return {};
        }
      },
      attribute);
}

}  // namespace

std::vector<Tensor> record_operation(const std::string& op, const std::vector<Tensor>& inputs,
                                     std::vector<TensorSpec> outputs, Attributes attributes) {
  OperationFunction function = nullptr;
  for (const OperationTable* const table : {&operations(), &tensor_operations()}) {
    if (const auto found = table->find(op); found != table->end()) function = found->second;
  }
  if (!function) {
    throw ArgumentError(message("[record] '", op, "', expected the name of an operation"));
  }
  const ReplayFunction run = [function, attributes](const std::vector<Tensor>& values,
                                                    const Replay& replay) {
    return function(values, attributes, replay);
  };
  return defer(op, inputs, std::move(outputs), run, std::move(attributes));
}

// ---- Structs as attributes

void ArgumentWriter::write(const MatmulOptions& options) {
  write(options.transpose_a);
  write(options.transpose_b);
}

void ArgumentReader::read(MatmulOptions& options) {
  read(options.transpose_a);
  read(options.transpose_b);
}

void ArgumentWriter::write(const SliceRange& range) {
  write(std::vector<std::int64_t>{range.axis, range.begin, range.size});
}

void ArgumentReader::read(SliceRange& range) {
  const auto& values = next<std::vector<std::int64_t>>();
  range = {.axis = values.at(0), .begin = values.at(1), .size = values.at(2)};
}

void ArgumentWriter::write(DropoutKey key) {
  write(key.seed);
  write(key.call);
}

void ArgumentReader::read(DropoutKey& key) {
  read(key.seed);
  read(key.call);
}

// By name, so that a network that was recorded before a field was there is read.
void ArgumentWriter::write(const RnnSpec& spec) {
  std::vector<const RnnField*> fields;
  for (const RnnField& field : rnn_fields()) {
    if (field.get(spec) != field.default_value()) fields.push_back(&field);
  }
  write(static_cast<std::int64_t>(fields.size()));
  for (const RnnField* const field : fields) {
    write(field->name);
    attributes.push_back(attribute_of(field->get(spec)));
  }
}

void ArgumentReader::read(RnnSpec& spec) {
  for (auto left = next<std::int64_t>(); left > 0; --left) {
    const RnnField& field = rnn_field(next<std::string>());
    field.put(spec, value_of(attributes.at(next_attribute++)));
  }
}

void ArgumentReader::read(std::vector<Tensor>& tensors) {
  tensors.assign(inputs.begin() + static_cast<std::ptrdiff_t>(next_input), inputs.end());
  next_input = inputs.size();
}

}  // namespace openrnn::ops
