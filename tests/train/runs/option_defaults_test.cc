// What the options of every public struct are where a program sets none.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <type_traits>

#include "openrnn/openrnn.h"

namespace openrnn {
namespace {

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "yes" : "no";
  } else if constexpr (std::is_same_v<T, DType>) {
    return std::string(dtype_name(value));
  } else if constexpr (std::is_enum_v<T>) {
    return "#" + std::to_string(static_cast<int>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    std::ostringstream text;
    text << value;
    return text.str();
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return "'" + std::string(value) + "'";
  } else if constexpr (requires { value.empty(); }) {
    return value.empty() ? "-" : "held";
  } else if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? "held" : "-";
  } else if constexpr (requires { static_cast<bool>(value); }) {
    return value ? "held" : "-";  // pointers and functions
  } else {
    return "*";  // a struct with a line of its own
  }
}

// The values of the fields in their order: '-' is nothing, '#' the number of an enumerator.
template <class... T>
std::string shown(const T&... fields) {
  std::string line;
  ((line += (line.empty() ? "" : " ") + text_of(fields)), ...);
  return line;
}

TEST(Defaults, OfBase) {
  const ConstArrayView o0{};
  EXPECT_EQ(shown(o0.data, o0.dtype), "- float32");
  const ArrayView o1{};
  EXPECT_EQ(shown(o1.data, o1.dtype), "- float32");
  const DropoutKey o2{};
  EXPECT_EQ(shown(o2.seed, o2.call, o2.first_row, o2.whole_batch), "0 0 0 0");
  const DropoutRow o3{};
  EXPECT_EQ(shown(o3.layer, o3.time, o3.row), "0 0 0");
}

TEST(Defaults, OfCells1) {
  const CompatibleCellOptions o0{};
  EXPECT_EQ(shown(o0.num_units, o0.dtype, o0.kernel_initializer, o0.seed, o0.name, o0.num_proj,
                  o0.device, o0.reuse),
            "0 float32 - - '' 0 - no");
  const LSTMCellOptions o1{};
  EXPECT_EQ(
      shown(o1.num_units, o1.use_peepholes, o1.cell_clip, o1.num_proj, o1.proj_clip, o1.forget_bias,
            o1.activation, o1.dtype, o1.kernel_initializer, o1.seed, o1.name, o1.device, o1.reuse),
      "0 no - 0 - 1 - float32 - - '' - no");
  const BasicLSTMCellOptions o2{};
  EXPECT_EQ(shown(o2.num_units, o2.forget_bias, o2.activation, o2.dtype, o2.kernel_initializer,
                  o2.seed, o2.name, o2.device, o2.reuse),
            "0 1 - float32 - - '' - no");
  const GRUCellOptions o3{};
  EXPECT_EQ(shown(o3.num_units, o3.activation, o3.dtype, o3.kernel_initializer, o3.bias_initializer,
                  o3.seed, o3.name, o3.device, o3.reuse),
            "0 - float32 - - - '' - no");
  const DropoutWrapperOptions o4{};
  EXPECT_EQ(shown(o4.input_keep_prob, o4.output_keep_prob, o4.state_keep_prob, o4.seed), "1 1 1 -");
  const DynamicRnnOptions o5{};
  EXPECT_EQ(
      shown(o5.sequence_lengths, o5.lengths, o5.initial_state, o5.dtype, o5.time_major, o5.scope),
      "- - - - no ''");
  const StackBidirectionalOptions o6{};
  EXPECT_EQ(shown(o6.initial_states_fw, o6.initial_states_bw, o6.dtype, o6.sequence_lengths,
                  o6.lengths, o6.time_major, o6.scope),
            "- - - - - no ''");
  const BidirectionalOptions o7{};
  EXPECT_EQ(shown(o7.sequence_lengths, o7.lengths, o7.initial_state_fw, o7.initial_state_bw,
                  o7.dtype, o7.time_major, o7.scope),
            "- - - - - no ''");
  const LayerNormBasicLSTMCellOptions o8{};
  EXPECT_EQ(shown(o8.num_units, o8.forget_bias, o8.activation, o8.layer_norm, o8.norm_gain,
                  o8.norm_shift, o8.dropout_keep_prob, o8.dropout_prob_seed, o8.dtype,
                  o8.kernel_initializer, o8.seed, o8.name, o8.device, o8.reuse),
            "0 1 - yes 1 0 1 - float32 - - '' - no");
}

TEST(Defaults, OfCells2) {
  const CellStatePart o9{};
  EXPECT_EQ(shown(o9.size, o9.memory), "0 no");
  const CellOverrides o10{};
  EXPECT_EQ(shown(o10.call), "-");
}

TEST(Defaults, OfCheckpoint) {
  const SaverOptions o0{};
  EXPECT_EQ(
      shown(o0.graph, o0.variables, o0.saveables, o0.by_name, o0.only_saveables, o0.max_to_keep),
      "- - - - no 5");
  const RestoreOptions o1{};
  EXPECT_EQ(shown(o1.refuse_unexpected), "no");
  const CheckpointManagerOptions o2{};
  EXPECT_EQ(shown(o2.keep, o2.base), "5 'model.ckpt'");
  const NetworkDescription o3{};
  EXPECT_EQ(shown(o3.raw_variable, o3.text), "'' ''");
}

TEST(Defaults, OfDevice1) {
  const MatmulArgs o0{};
  EXPECT_EQ(shown(o0.dtype, o0.m, o0.n, o0.k, o0.a, o0.b, o0.bias, o0.c, o0.transpose_a,
                  o0.transpose_b, o0.accumulate),
            "float32 0 0 0 - - - - no no no");
  const BlockCopy o1{};
  EXPECT_EQ(shown(o1.count, o1.bytes, o1.from, o1.from_stride, o1.to, o1.to_stride), "0 0 - 0 - 0");
  const StridedCopy o2{};
  EXPECT_EQ(shown(o2.element, o2.from, o2.to), "0 - -");
  const SelectArgs o3{};
  EXPECT_EQ(shown(o3.element, o3.size, o3.mask, o3.a, o3.b, o3.out), "0 0 - - - -");
  const SumArgs o4{};
  EXPECT_EQ(shown(o4.dtype, o4.size, o4.x, o4.squares, o4.factor, o4.out_dtype, o4.out),
            "float32 0 - no 1 float32 -");
  const StepDecision o5{};
  EXPECT_EQ(shown(o5.norm, o5.factor, o5.loss, o5.taken), "0 1 0 1");
  const ClipArgs o6{};
  EXPECT_EQ(shown(o6.dtype, o6.size, o6.low, o6.high, o6.x, o6.dy, o6.out), "float32 0 0 0 - - -");
  const DecisionArgs o7{};
  EXPECT_EQ(shown(o7.clip_norm, o7.loss_dtype, o7.loss, o7.loss_decides, o7.decision),
            "0 float32 - no -");
  const DropoutArgs o8{};
  EXPECT_EQ(shown(o8.dtype, o8.rows, o8.cols, o8.before, o8.after, o8.rate, o8.x, o8.out),
            "float32 0 0 1 1 0 - -");
}

TEST(Defaults, OfDevice2) {
  const CrossEntropyArgs o9{};
  EXPECT_EQ(shown(o9.dtype, o9.rows, o9.classes, o9.logits, o9.labels, o9.losses, o9.probabilities),
            "float32 0 0 - - - -");
  const CrossEntropyGradientArgs o10{};
  EXPECT_EQ(shown(o10.dtype, o10.rows, o10.classes, o10.probabilities, o10.labels,
                  o10.row_gradients, o10.logits_gradient),
            "float32 0 0 - - - -");
  const OptimizerStep o11{};
  EXPECT_EQ(shown(o11.kind, o11.dtype, o11.size, o11.variable, o11.gradient, o11.learning_rate,
                  o11.momentum, o11.decay, o11.beta1, o11.beta2, o11.epsilon, o11.decision),
            "#0 float32 0 - - 0 0 0 0 0 0 -");
}

TEST(Defaults, OfEngine) {
  const WorkspaceLimits o0{};
  EXPECT_EQ(shown(o0.batch, o0.time, o0.max_threads), "0 0 0");
  const ForwardArgs o1{};
  EXPECT_EQ(shown(o1.max_time, o1.batch, o1.time_major, o1.sequence_lengths, o1.x, o1.h0, o1.c0,
                  o1.y, o1.hn, o1.cn, o1.layer_outputs, o1.layer_cells, o1.training, o1.max_threads,
                  o1.recompute, o1.reserve),
            "0 0 yes - - - - - - - - - no 0 0 -");
  const BackwardArgs o2{};
  EXPECT_EQ(shown(o2.saved, o2.dy, o2.dhn, o2.dcn, o2.dx, o2.dh0, o2.dc0, o2.dparams, o2.row_norms,
                  o2.row_dparams, o2.first_row, o2.last_row),
            "- - - - - - - - - - 0 0");
  const TangentArgs o3{};
  EXPECT_EQ(shown(o3.max_time, o3.batch, o3.time_major, o3.sequence_lengths, o3.training),
            "0 0 yes - no");
  const TangentArgs::Inputs o4{};
  EXPECT_EQ(shown(o4.x, o4.h0, o4.c0, o4.params), "- - - -");
  const TangentArgs::Gradients o5{};
  EXPECT_EQ(shown(o5.y, o5.hn, o5.cn), "- - -");
  const TangentArgs::Outputs o6{};
  EXPECT_EQ(shown(o6.y, o6.hn, o6.cn), "- - -");
  const TangentArgs::Curvature o7{};
  EXPECT_EQ(shown(o7.x, o7.h0, o7.c0, o7.params), "- - - -");
}

TEST(Defaults, OfFormats) {
  const TensorInfo o0{};
  EXPECT_EQ(shown(o0.bytes, o0.sliced), "0 no");
  const TensorBundleOptions o1{};
  EXPECT_EQ(shown(o1.verify_checksums), "yes");
  const ScalarEvent o2{};
  EXPECT_EQ(shown(o2.step, o2.value, o2.wall_time), "0 0 0");
  const FoundFile o3{};
  EXPECT_EQ(shown(o3.kind), "#0");
  const SafetensorsOptions o4{};
  EXPECT_EQ(shown(o4.max_shard_bytes), "0");
  const OnnxTensor o5{};
  EXPECT_EQ(shown(o5.element_type), "0");
  const OnnxDim o6{};
  EXPECT_EQ(shown(o6.size), "-1");
  const OnnxValueInfo o7{};
  EXPECT_EQ(shown(o7.element_type), "0");
  const OnnxModel o8{};
  EXPECT_EQ(shown(o8.ir_version), "0");
}

TEST(Defaults, OfGraph) {
  const VariableOptions o0{};
  EXPECT_EQ(shown(o0.dtype, o0.initializer, o0.seed, o0.trainable, o0.device), "float32 - - yes -");
  const InputSpec o1{};
  EXPECT_EQ(shown(o1.ndim, o1.axes), "- -");
  const LayerPart o2{};
  EXPECT_EQ(shown(o2.layer, o2.variable, o2.parts, o2.owner), "- - - -");
  const LayerState o3{};
  EXPECT_EQ(shown(o3.name, o3.named, o3.trainable, o3.stateful, o3.built, o3.scope,
                  o3.saveable_scope, o3.input_shape, o3.weights, o3.weight_names, o3.regularizers),
            "'' no yes no no '' '' - - - -");
  const Model::SymbolicLoss o4{};
  EXPECT_EQ(shown(o4.by_call), "no");
  const RowsView o5{};
  EXPECT_EQ(shown(o5.outer, o5.rows, o5.inner), "1 1 1");
  const TensorSpec o6{};
  EXPECT_EQ(shown(o6.dtype, o6.shape), "float32 -");
  const Replay o7{};
  EXPECT_EQ(shown(o7.training), "-");
}

TEST(Defaults, OfLayers) {
  const layers::CudnnRnnOptions o0{};
  EXPECT_EQ(shown(o0.network, o0.kernel_initializer, o0.bias_initializer, o0.name, o0.trainable,
                  o0.activity_regularizer),
            "* - - '' yes -");
  const layers::RnnCallOptions o1{};
  EXPECT_EQ(shown(o1.sequence_lengths, o1.lengths, o1.flags, o1.time_major, o1.training, o1.save,
                  o1.recompute, o1.every, o1.scope),
            "- - * yes yes no 0 no ''");
  const layers::RnnResult o2{};
  EXPECT_EQ(shown(o2.layer_outputs, o2.layer_cells), "- -");
  const layers::DenseOptions o3{};
  EXPECT_EQ(shown(o3.units, o3.activation, o3.use_bias, o3.kernel_initializer, o3.bias_initializer,
                  o3.seed, o3.dtype, o3.name, o3.device),
            "0 #0 yes - - - float32 '' -");
  const layers::EmbeddingOptions o4{};
  EXPECT_EQ(shown(o4.vocabulary, o4.dim, o4.initializer, o4.seed, o4.dtype, o4.name, o4.device),
            "0 0 - - float32 '' -");
  const layers::DropoutOptions o5{};
  EXPECT_EQ(shown(o5.rate, o5.seed, o5.name), "0.5 - ''");
  const LoadedLayer o6{};
  EXPECT_EQ(shown(o6.initial_state), "-");
}

TEST(Defaults, OfMapping1) {
  const MappedNetwork o0{};
  EXPECT_EQ(shown(o0.initial_h, o0.initial_c, o0.slots, o0.tensors), "- - - -");
  const MappedModel o1{};
  EXPECT_EQ(shown(o1.kind, o1.layers, o1.outputs, o1.verified), "#0 - - no");
  const MappingHints o2{};
  EXPECT_EQ(shown(o2.mode, o2.reset_after, o2.recurrent_activation, o2.forget_bias, o2.network),
            "- - - - -");
  const TorchParameter o3{};
  EXPECT_EQ(shown(o3.offset), "0");
  const LayerOutput o4{};
  EXPECT_EQ(shown(o4.index), "0");
  const LayerWeight o5{};
  EXPECT_EQ(shown(o5.slots), "-");
  const MappedLayer o6{};
  EXPECT_EQ(shown(o6.inputs, o6.options, o6.weights, o6.tensors), "- - - -");
  const LayerValue o7{};
  EXPECT_EQ(shown(o7.dtype, o7.shape, o7.masked), "float32 - no");
  const LayerFunction o8{};
  EXPECT_EQ(shown(o8.alpha, o8.beta), "0 0");
}

TEST(Defaults, OfMapping2) {
  const OnnxExportOptions o9{};
  EXPECT_EQ(shown(o9.lengths, o9.states), "no no");
}

TEST(Defaults, OfOps1) {
  const ops::MatmulOptions o0{};
  EXPECT_EQ(shown(o0.transpose_a, o0.transpose_b), "no no");
  const ops::SliceRange o1{};
  EXPECT_EQ(shown(o1.axis, o1.begin, o1.size), "0 0 0");
  const ops::CudnnCallOptions o2{};
  EXPECT_EQ(shown(o2.sequence_lengths, o2.lengths, o2.time_major, o2.save, o2.recompute),
            "- - yes no 0");
  const ops::CudnnFunctionOptions o3{};
  EXPECT_EQ(shown(o3.is_training, o3.network, o3.sequence_lengths, o3.lengths, o3.time_major),
            "yes * - - yes");
  const ops::BatchPart o4{};
  EXPECT_EQ(shown(o4.first_row, o4.rows, o4.whole_batch), "0 0 0");
  const ops::StepFlags o5{};
  EXPECT_EQ(shown(o5.mask, o5.zero_output_for_mask, o5.reset, o5.reset_to_initial), "- yes - no");
  const ops::RnnInputs o6{};
  EXPECT_EQ(shown(o6.x, o6.h0, o6.c0, o6.params, o6.sequence_lengths, o6.lengths, o6.flags,
                  o6.time_major, o6.training, o6.save, o6.recompute, o6.dropout, o6.every, o6.call),
            "- - - - - - * yes yes no 0 * no 'rnn'");
  const ops::RnnOutputs o7{};
  EXPECT_EQ(shown(o7.output, o7.h, o7.c, o7.layer_outputs, o7.layer_cells), "- - - - -");
  const ops::ReduceOptions o8{};
  EXPECT_EQ(shown(o8.axes, o8.keepdims), "- no");
}

TEST(Defaults, OfOps2) {
  const ops::StepRange o9{};
  EXPECT_EQ(shown(o9.axis, o9.begin, o9.end, o9.step), "0 - - 1");
  const ops::CtcOptions o10{};
  EXPECT_EQ(shown(o10.logit_lengths, o10.label_lengths, o10.blank, o10.time_major), "- - 0 yes");
}

TEST(Defaults, OfParams) {
  const ParamRegion o0{};
  EXPECT_EQ(shown(o0.role, o0.layer, o0.direction, o0.slot, o0.gate, o0.rows, o0.cols, o0.offset),
            "#0 0 0 0 0 0 0 0");
}

TEST(Defaults, OfRuntime) {
  const EngineStatus o0{};
  EXPECT_EQ(shown(o0.available), "no");
  const Explanation o1{};
  EXPECT_EQ(shown(o1.same_bits, o1.params_bytes, o1.saved_bytes, o1.others), "no 0 - -");
  const ExplainedCall o2{};
  EXPECT_EQ(shown(o2.max_time, o2.batch, o2.device, o2.recompute), "1 1 - 0");
  const ModelOptions o3{};
  EXPECT_EQ(shown(o3.max_threads), "0");
  const SessionOptions o4{};
  EXPECT_EQ(shown(o4.max_threads), "1");
  const StreamLimits o5{};
  EXPECT_EQ(shown(o5.streams, o5.batch, o5.time, o5.threads), "1 0 1 1");
  const StreamStep o6{};
  EXPECT_EQ(shown(o6.max_time, o6.time_major, o6.sequence_lengths, o6.x, o6.y), "1 yes - - -");
}

TEST(Defaults, OfSaveables) {
  const TfPart o0{};
  EXPECT_EQ(shown(o0.rows, o0.cols, o0.offset, o0.second_offset, o0.row, o0.col), "0 0 0 -1 0 0");
  const TfTensor o1{};
  EXPECT_EQ(shown(o1.layer, o1.direction, o1.kind), "0 0 #0");
  const CudnnSaveableOptions o2{};
  EXPECT_EQ(shown(o2.network, o2.scope, o2.name), "* '' 'cudnn_rnn_saveable'");
  const TfCanonicalParams o3{};
  EXPECT_EQ(shown(o3.recurrent_biases), "-");
}

TEST(Defaults, OfSpec) {
  const CellActivation o0{};
  EXPECT_EQ(shown(o0.kind, o0.alpha, o0.beta), "#1 0 0");
  const TrainingOptions o1{};
  EXPECT_EQ(shown(o1.dropout, o1.seed, o1.input_dropout, o1.output_dropout, o1.drop_connect,
                  o1.recurrent_dropout, o1.recurrent_dropout_form),
            "0 - 0 0 0 0 #0");
  const ComputeOptions o2{};
  EXPECT_EQ(shown(o2.math, o2.weights_dtype, o2.device), "#0 #0 -");
  const RnnSpec o3{};
  EXPECT_EQ(shown(o3.mode, o3.num_layers, o3.num_units, o3.input_size, o3.input_mode, o3.direction,
                  o3.dtype, o3.num_proj, o3.cell_clip, o3.forget_bias, o3.reset_after,
                  o3.activation, o3.recurrent_activation, o3.output_activation, o3.use_peepholes,
                  o3.coupled_gates, o3.proj_clip, o3.gate_clip, o3.use_bias, o3.single_bias,
                  o3.layer_norm, o3.layer_norm_cell, o3.layer_norm_epsilon, o3.zoneout,
                  o3.zoneout_cell, o3.training, o3.compute),
            "#2 1 0 0 #0 #0 float32 0 - 0 yes - - - no no - - yes no #0 #0 1e-05 0 0 * *");
}

TEST(Defaults, OfTrain1) {
  const train::NcclOptions o0{};
  EXPECT_EQ(shown(o0.device, o0.timeout_seconds), "-1 1800");
  const train::ReductionCost o1{};
  EXPECT_EQ(shown(o1.steps, o1.bytes, o1.seconds, o1.seconds_overlapped, o1.seconds_waited),
            "0 0 0 0 0");
  const train::DataPosition o2{};
  EXPECT_EQ(shown(o2.epoch, o2.window), "0 0");
  const train::Window o3{};
  EXPECT_EQ(shown(o3.fresh), "no");
  const train::TextOptions o4{};
  EXPECT_EQ(shown(o4.path, o4.valid_path, o4.level, o4.valid_fraction, o4.map_above),
            "'' '' #0 0.05 67108864");
  const train::TextStreams::Options o5{};
  EXPECT_EQ(shown(o5.batch, o5.seq_len, o5.segment_windows, o5.seed), "32 100 16 0");
  const train::SeriesOptions o6{};
  EXPECT_EQ(shown(o6.window, o6.horizon, o6.to_sequence, o6.batch, o6.valid_fraction, o6.seed),
            "32 1 no 32 0.2 0");
  const train::TextTask::Options o7{};
  EXPECT_EQ(shown(o7.batch, o7.seq_len, o7.quick_bytes), "32 100 32768");
  const train::FitOptions o8{};
  EXPECT_EQ(shown(o8.steps, o8.schedule, o8.clip_norm, o8.validate_every, o8.patience,
                  o8.micro_batches, o8.communicator, o8.reduction, o8.overlap),
            "1000 * 1 0 0 1 - #0 no");
}

TEST(Defaults, OfTrain2) {
  const train::StepReport o9{};
  EXPECT_EQ(shown(o9.step, o9.steps, o9.items, o9.learning_rate, o9.task, o9.best), "0 0 0 0 - no");
  const train::ModelConfig o10{};
  EXPECT_EQ(shown(o10.network, o10.vocabulary, o10.embedding, o10.columns, o10.outputs),
            "* 0 0 0 0");
  const train::SequenceModel::Call o11{};
  EXPECT_EQ(shown(o11.training, o11.sequence_lengths), "no -");
  const train::TextScore o12{};
  EXPECT_EQ(shown(o12.bits, o12.symbols, o12.bytes), "0 0 0");
  const train::SampleOptions o13{};
  EXPECT_EQ(shown(o13.symbols, o13.temperature, o13.top_k, o13.prime, o13.seed), "500 1 0 '' 0");
  const train::SeriesScore o14{};
  EXPECT_EQ(shown(o14.season, o14.model_total, o14.last_value_total, o14.seasonal_total),
            "0 0 0 0");
  const train::Schedule o15{};
  EXPECT_EQ(shown(o15.kind, o15.learning_rate, o15.warmup_steps, o15.decay_steps, o15.decay_rate,
                  o15.final_fraction),
            "#0 0.001 0 0 0.5 0");
  const train::SlotRule o16{};
  EXPECT_EQ(shown(o16.initial_value, o16.name), "0 ''");
  const train::StepValues o17{};
  EXPECT_EQ(shown(o17.applied, o17.gradient_norm, o17.loss), "yes 0 0");
}

TEST(Defaults, OfTrain3) {
  const train::RunConfig o18{};
  EXPECT_EQ(shown(o18.task, o18.optimizer, o18.batch, o18.seq_len, o18.epochs, o18.level,
                  o18.horizon, o18.to_sequence, o18.valid_fraction),
            "'text' 'adam' 32 100 0 #0 1 no 0.05");
  const train::TrainedArithmetic o19{};
  EXPECT_EQ(shown(o19.math, o19.kind, o19.version), "'float32' 'float32' '1'");
  const train::RunOptions o20{};
  EXPECT_EQ(shown(o20.out, o20.resume, o20.task, o20.input, o20.valid, o20.valid_fraction,
                  o20.level, o20.columns, o20.horizon, o20.network, o20.embedding, o20.batch,
                  o20.seq_len, o20.epochs, o20.steps, o20.optimizer, o20.lr, o20.lr_schedule,
                  o20.warmup, o20.clip_norm, o20.micro_batches, o20.valid_every, o20.patience,
                  o20.save_steps, o20.save_seconds, o20.keep, o20.recompute, o20.device,
                  o20.communicator, o20.reduction, o20.overlap),
            "'out' no - - - - - - - - - - - - - - - - - - - - - 0 20 5 0 - - #0 no");
  const train::OptionError::Piece o21{};
  EXPECT_EQ(shown(o21.is_option), "no");
  const train::RunCallbacks o22{};
  EXPECT_EQ(shown(o22.after_step), "-");
  const train::ArithmeticChoice o23{};
  EXPECT_EQ(shown(o23.math, o23.weights_dtype), "- -");
}

}  // namespace
}  // namespace openrnn
