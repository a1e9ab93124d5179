// Arguments of Python as cells and their options.
#include "base/message.h"
#include "openrnn/cells_layer_norm.h"
#include "python/cells/cells.h"

namespace openrnn::python {
namespace {

template <class T>
void read(T& member, const nb::dict& options, const char* name) {
  const nb::object value = option_or_none(options, name);
  if (!value.is_none()) member = as_value<T>(name, value);
}

void read(std::optional<double>& member, const nb::dict& options, const char* name) {
  const nb::object value = option_or_none(options, name);
  if (!value.is_none()) member = as_value<double>(name, value);
}

// What every cell with variables has.
template <class Options>
Options common_options(const nb::dict& options) {
  Options result;
  result.num_units = as_value<std::int64_t>("num_units", option_or_none(options, "num_units"));
  const nb::object dtype = option_or_none(options, "dtype");
  if (!dtype.is_none()) result.dtype = as_dtype(dtype);
  result.kernel_initializer = as_initializer(option_or_none(options, "kernel_initializer"));
  result.seed = as_optional_int(option_or_none(options, "seed"));
  read(result.name, options, "name");
  result.device = as_device(option_or_none(options, "device"));
  read(result.reuse, options, "reuse");
  return result;
}

auto activation_of(const nb::dict& options, const char* call) {
  return as_tensor_function(option_or_none(options, "activation"), call);
}

std::shared_ptr<RnnCell> make_lstm_cell(const nb::dict& options) {
  auto cell = common_options<LSTMCellOptions>(options);
  read(cell.use_peepholes, options, "use_peepholes");
  read(cell.cell_clip, options, "cell_clip");
  read(cell.num_proj, options, "num_proj");
  read(cell.proj_clip, options, "proj_clip");
  read(cell.forget_bias, options, "forget_bias");
  cell.activation = activation_of(options, "LSTMCell");
  return std::make_shared<LSTMCell>(std::move(cell));
}

std::shared_ptr<RnnCell> make_basic_lstm_cell(const nb::dict& options) {
  auto cell = common_options<BasicLSTMCellOptions>(options);
  read(cell.forget_bias, options, "forget_bias");
  cell.activation = activation_of(options, "BasicLSTMCell");
  return std::make_shared<BasicLSTMCell>(std::move(cell));
}

std::shared_ptr<RnnCell> make_gru_cell(const nb::dict& options) {
  auto cell = common_options<GRUCellOptions>(options);
  cell.bias_initializer = as_initializer(option_or_none(options, "bias_initializer"));
  cell.activation = activation_of(options, "GRUCell");
  return std::make_shared<GRUCell>(std::move(cell));
}

std::shared_ptr<RnnCell> make_layer_norm_cell(const nb::dict& options) {
  auto cell = common_options<LayerNormBasicLSTMCellOptions>(options);
  read(cell.forget_bias, options, "forget_bias");
  read(cell.layer_norm, options, "layer_norm");
  read(cell.norm_gain, options, "norm_gain");
  read(cell.norm_shift, options, "norm_shift");
  read(cell.dropout_keep_prob, options, "dropout_keep_prob");
  cell.dropout_prob_seed = as_optional_int(option_or_none(options, "dropout_prob_seed"));
  cell.activation = activation_of(options, "LayerNormBasicLSTMCell");
  return std::make_shared<LayerNormBasicLSTMCell>(std::move(cell));
}

}  // namespace

nb::object option_or_none(const nb::dict& options, const char* name) {
  return options.contains(name) ? nb::object(options[name]) : nb::none();
}

std::shared_ptr<RnnCell> make_variable_cell(const std::string& kind, const nb::dict& options) {
  if (kind == "tf_lstm_cell") return make_lstm_cell(options);
  if (kind == "basic_lstm_cell") return make_basic_lstm_cell(options);
  if (kind == "tf_gru_cell") return make_gru_cell(options);
  if (kind == "layer_norm_lstm_cell") return make_layer_norm_cell(options);
  auto cell = common_options<CompatibleCellOptions>(options);
  read(cell.num_proj, options, "num_proj");
  if (kind == "lstm_cell") return std::make_shared<CudnnCompatibleLSTMCell>(std::move(cell));
  if (kind == "gru_cell") return std::make_shared<CudnnCompatibleGRUCell>(std::move(cell));
  return std::make_shared<BasicRNNCell>(std::move(cell), activation_of(options, "BasicRNNCell"));
}

}  // namespace openrnn::python
