#include "ops/symbolic/replay.h"

#include "base/message.h"
#include "openrnn/runtime.h"
#include "ops/symbolic/rnn.h"

namespace openrnn::ops {
namespace {

Tensor to(const Tensor& x, const std::string& name) { return x.to(openrnn::device(name)); }

const std::map<std::string, OperationFunction, std::less<>>& operations() {
  static const std::map<std::string, OperationFunction, std::less<>> table{
      {"absolute", Replayed<absolute>::run},
      {"add", Replayed<add>::run},
      {"add_row", Replayed<add_row>::run},
      {"add_scalar", Replayed<add_scalar>::run},
      {"cast", Replayed<cast>::run},
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
      {"one_hot", Replayed<one_hot>::run},
      {"params_to_canonical", Replayed<canonical_tensors>::run},
      {"reduce_mean", Replayed<reduce_mean>::run},
      {"reduce_sum", Replayed<reduce_sum>::run},
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
      {"square", Replayed<square>::run},
      {"stack", Replayed<stack>::run},
      {"subtract", Replayed<subtract>::run},
      {"tanh", Replayed<ops::tanh>::run},
      {"to", Replayed<to>::run},
      {"transpose_leading", Replayed<transpose_leading>::run},
  };
  return table;
}

}  // namespace

std::vector<Tensor> record_operation(const std::string& op, const std::vector<Tensor>& inputs,
                                     std::vector<TensorSpec> outputs, Attributes attributes) {
  const auto found = operations().find(op);
  if (found == operations().end()) {
    throw ArgumentError(message("[record] '", op, "', expected the name of an operation"));
  }
  const ReplayFunction run = [function = found->second, attributes](
                                 const std::vector<Tensor>& values, const Replay& replay) {
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

void ArgumentWriter::write(const RnnSpec& spec) {
  for (const std::string_view name :
       {to_string(spec.mode), to_string(spec.input_mode), to_string(spec.direction),
        dtype_name(spec.dtype), to_string(spec.math), to_string(spec.weights_dtype)}) {
    write(name);
  }
  write(std::vector<std::int64_t>{spec.num_layers, spec.num_units, spec.input_size, spec.num_proj});
  write(spec.dropout);
  write(spec.seed);
  write(spec.cell_clip.has_value());
  for (const double bound : spec.cell_clip.value_or(std::array<double, 2>{})) write(bound);
}

void ArgumentReader::read(RnnSpec& spec) {
  spec.mode = parse_rnn_mode(next<std::string>());
  spec.input_mode = parse_input_mode(next<std::string>());
  spec.direction = parse_direction(next<std::string>());
  spec.dtype = parse_dtype(next<std::string>());
  spec.math = parse_math(next<std::string>());
  spec.weights_dtype = parse_weights_dtype(next<std::string>());
  const auto& sizes = next<std::vector<std::int64_t>>();
  spec.num_layers = sizes.at(0);
  spec.num_units = sizes.at(1);
  spec.input_size = sizes.at(2);
  spec.num_proj = sizes.at(3);
  read(spec.dropout);
  read(spec.seed);
  const bool clips = next<bool>();
  std::array<double, 2> bounds{};
  for (double& bound : bounds) read(bound);
  if (clips) spec.cell_clip = bounds;
}

void ArgumentReader::read(std::vector<Tensor>& tensors) {
  tensors.assign(inputs.begin() + static_cast<std::ptrdiff_t>(next_input), inputs.end());
  next_input = inputs.size();
}

}  // namespace openrnn::ops
