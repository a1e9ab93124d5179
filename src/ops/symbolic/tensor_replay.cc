// The operations with NumPy's shapes: their rows of the table, their options as attributes.
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

using Along = Tensor (*)(const Tensor&, const ReduceOptions&);

void write_optional(ArgumentWriter& writer, const std::optional<std::int64_t>& value) {
  writer.write(value.has_value());
  writer.write(value.value_or(0));
}

void read_optional(ArgumentReader& reader, std::optional<std::int64_t>& value) {
  bool given = false;
  std::int64_t number = 0;
  reader.read(given);
  reader.read(number);
  value = given ? std::optional(number) : std::nullopt;
}

}  // namespace

const OperationTable& tensor_operations() {
  static const OperationTable table{
      {"argmax", Replayed<argmax>::run},
      {"argmin", Replayed<argmin>::run},
      {"binary_cross_entropy", Replayed<binary_cross_entropy_rows>::run},
      {"broadcast_to", Replayed<broadcast_to>::run},
      {"ctc_loss", Replayed<ctc_loss>::run},
      {"einsum", Replayed<einsum>::run},
      {"equal", Replayed<ops::equal>::run},
      {"expand_dims", Replayed<expand_dims>::run},
      {"full_like", Replayed<full_like>::run},
      {"gather", Replayed<gather>::run},
      {"less", Replayed<ops::less>::run},
      {"less_equal", Replayed<ops::less_equal>::run},
      {"log", Replayed<ops::log>::run},
      {"log_softmax", Replayed<log_softmax>::run},
      {"logical_and", Replayed<ops::logical_and>::run},
      {"logical_not", Replayed<ops::logical_not>::run},
      {"logical_or", Replayed<ops::logical_or>::run},
      {"maximum", Replayed<maximum>::run},
      {"minimum", Replayed<minimum>::run},
      {"power", Replayed<power>::run},
      {"reduce_logsumexp", Replayed<reduce_logsumexp>::run},
      {"reduce_max", Replayed<reduce_max>::run},
      {"reduce_mean_along", Replayed<static_cast<Along>(reduce_mean)>::run},
      {"reduce_min", Replayed<reduce_min>::run},
      {"reduce_sum_along", Replayed<static_cast<Along>(reduce_sum)>::run},
      {"reduce_variance", Replayed<reduce_variance>::run},
      {"sigmoid_cross_entropy", Replayed<sigmoid_cross_entropy>::run},
      {"softmax_along", Replayed<softmax_along>::run},
      {"softplus", Replayed<softplus>::run},
      {"squeeze", Replayed<squeeze>::run},
      {"strided_slice", Replayed<strided_slice>::run},
      {"sum_to", Replayed<sum_to>::run},
      {"tile", Replayed<tile>::run},
      {"transpose", Replayed<transpose>::run},
      {"where", Replayed<where>::run},
  };
  return table;
}

void ArgumentWriter::write(const StepRange& range) {
  write(range.axis);
  write_optional(*this, range.begin);
  write_optional(*this, range.end);
  write(range.step);
}

void ArgumentReader::read(StepRange& range) {
  read(range.axis);
  read_optional(*this, range.begin);
  read_optional(*this, range.end);
  read(range.step);
}

void ArgumentWriter::write(const ReduceOptions& options) {
  write(options.axes.has_value());
  write(options.axes.value_or(std::vector<std::int64_t>{}));
  write(options.keepdims);
}

void ArgumentReader::read(ReduceOptions& options) {
  bool given = false;
  std::vector<std::int64_t> axes;
  read(given);
  read(axes);
  read(options.keepdims);
  options.axes = given ? std::optional(axes) : std::nullopt;
}

void ArgumentWriter::write(const CtcOptions& options) {
  write(options.logit_lengths);
  write(options.label_lengths);
  write(options.blank);
  write(options.time_major);
}

void ArgumentReader::read(CtcOptions& options) {
  read(options.logit_lengths);
  read(options.label_lengths);
  read(options.blank);
  read(options.time_major);
}

}  // namespace openrnn::ops
