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
  const ConstArrayView const_view{};
  EXPECT_EQ(shown(const_view.data, const_view.dtype), "- float32");
  const ArrayView view{};
  EXPECT_EQ(shown(view.data, view.dtype), "- float32");
  const DropoutKey key{};
  EXPECT_EQ(shown(key.seed, key.call, key.first_row, key.whole_batch), "0 0 0 0");
  const DropoutRow row{};
  EXPECT_EQ(shown(row.layer, row.time, row.row), "0 0 0");
}

TEST(Defaults, OfCells) {
  const CompatibleCellOptions compatible{};
  EXPECT_EQ(
      shown(compatible.num_units, compatible.dtype, compatible.kernel_initializer, compatible.seed,
            compatible.name, compatible.num_proj, compatible.device, compatible.reuse),
      "0 float32 - - '' 0 - no");
  const LSTMCellOptions lstm{};
  EXPECT_EQ(shown(lstm.num_units, lstm.use_peepholes, lstm.cell_clip, lstm.num_proj, lstm.proj_clip,
                  lstm.forget_bias, lstm.activation, lstm.dtype, lstm.kernel_initializer, lstm.seed,
                  lstm.name, lstm.device, lstm.reuse),
            "0 no - 0 - 1 - float32 - - '' - no");
  const BasicLSTMCellOptions basic_lstm{};
  EXPECT_EQ(shown(basic_lstm.num_units, basic_lstm.forget_bias, basic_lstm.activation,
                  basic_lstm.dtype, basic_lstm.kernel_initializer, basic_lstm.seed, basic_lstm.name,
                  basic_lstm.device, basic_lstm.reuse),
            "0 1 - float32 - - '' - no");
  const GRUCellOptions gru{};
  EXPECT_EQ(shown(gru.num_units, gru.activation, gru.dtype, gru.kernel_initializer,
                  gru.bias_initializer, gru.seed, gru.name, gru.device, gru.reuse),
            "0 - float32 - - - '' - no");
  const DropoutWrapperOptions wrapper{};
  EXPECT_EQ(shown(wrapper.input_keep_prob, wrapper.output_keep_prob, wrapper.state_keep_prob,
                  wrapper.seed),
            "1 1 1 -");
  const DynamicRnnOptions rnn{};
  EXPECT_EQ(shown(rnn.sequence_lengths, rnn.lengths, rnn.initial_state, rnn.dtype, rnn.time_major,
                  rnn.scope),
            "- - - - no ''");
  const StackBidirectionalOptions stacked{};
  EXPECT_EQ(shown(stacked.initial_states_fw, stacked.initial_states_bw, stacked.dtype,
                  stacked.sequence_lengths, stacked.lengths, stacked.time_major, stacked.scope),
            "- - - - - no ''");
  const BidirectionalOptions bidirectional{};
  EXPECT_EQ(shown(bidirectional.sequence_lengths, bidirectional.lengths,
                  bidirectional.initial_state_fw, bidirectional.initial_state_bw,
                  bidirectional.dtype, bidirectional.time_major, bidirectional.scope),
            "- - - - - no ''");
  const LayerNormBasicLSTMCellOptions layer_norm_cell{};
  EXPECT_EQ(
      shown(layer_norm_cell.num_units, layer_norm_cell.forget_bias, layer_norm_cell.activation,
            layer_norm_cell.layer_norm, layer_norm_cell.norm_gain, layer_norm_cell.norm_shift,
            layer_norm_cell.dropout_keep_prob, layer_norm_cell.dropout_prob_seed,
            layer_norm_cell.dtype, layer_norm_cell.kernel_initializer, layer_norm_cell.seed,
            layer_norm_cell.name, layer_norm_cell.device, layer_norm_cell.reuse),
      "0 1 - yes 1 0 1 - float32 - - '' - no");
  const CellStatePart part{};
  EXPECT_EQ(shown(part.size, part.memory), "0 no");
  const CellOverrides overrides{};
  EXPECT_EQ(shown(overrides.call), "-");
}

TEST(Defaults, OfCheckpoint) {
  const SaverOptions saver{};
  EXPECT_EQ(shown(saver.graph, saver.variables, saver.saveables, saver.by_name,
                  saver.only_saveables, saver.max_to_keep),
            "- - - - no 5");
  const RestoreOptions restore{};
  EXPECT_EQ(shown(restore.refuse_unexpected), "no");
  const CheckpointManagerOptions manager{};
  EXPECT_EQ(shown(manager.keep, manager.base), "5 'model.ckpt'");
  const NetworkDescription description{};
  EXPECT_EQ(shown(description.raw_variable, description.text), "'' ''");
}

TEST(Defaults, OfDevice) {
  const MatmulArgs matmul{};
  EXPECT_EQ(shown(matmul.dtype, matmul.m, matmul.n, matmul.k, matmul.a, matmul.b, matmul.bias,
                  matmul.c, matmul.transpose_a, matmul.transpose_b, matmul.accumulate),
            "float32 0 0 0 - - - - no no no");
  const BlockCopy block_copy{};
  EXPECT_EQ(shown(block_copy.count, block_copy.bytes, block_copy.from, block_copy.from_stride,
                  block_copy.to, block_copy.to_stride),
            "0 0 - 0 - 0");
  const StridedCopy strided_copy{};
  EXPECT_EQ(shown(strided_copy.element, strided_copy.from, strided_copy.to), "0 - -");
  const SelectArgs select{};
  EXPECT_EQ(shown(select.element, select.size, select.mask, select.a, select.b, select.out),
            "0 0 - - - -");
  const SumArgs sum{};
  EXPECT_EQ(shown(sum.dtype, sum.size, sum.x, sum.squares, sum.factor, sum.out_dtype, sum.out),
            "float32 0 - no 1 float32 -");
  const StepDecision step_decision{};
  EXPECT_EQ(
      shown(step_decision.norm, step_decision.factor, step_decision.loss, step_decision.taken),
      "0 1 0 1");
  const ClipArgs clip{};
  EXPECT_EQ(shown(clip.dtype, clip.size, clip.low, clip.high, clip.x, clip.dy, clip.out),
            "float32 0 0 0 - - -");
  const DecisionArgs decision{};
  EXPECT_EQ(shown(decision.clip_norm, decision.loss_dtype, decision.loss, decision.loss_decides,
                  decision.decision),
            "0 float32 - no -");
  const DropoutArgs dropout{};
  EXPECT_EQ(shown(dropout.dtype, dropout.rows, dropout.cols, dropout.before, dropout.after,
                  dropout.rate, dropout.x, dropout.out),
            "float32 0 0 1 1 0 - -");
  const CrossEntropyArgs cross_entropy{};
  EXPECT_EQ(
      shown(cross_entropy.dtype, cross_entropy.rows, cross_entropy.classes, cross_entropy.logits,
            cross_entropy.labels, cross_entropy.losses, cross_entropy.probabilities),
      "float32 0 0 - - - -");
  const CrossEntropyGradientArgs gradient{};
  EXPECT_EQ(shown(gradient.dtype, gradient.rows, gradient.classes, gradient.probabilities,
                  gradient.labels, gradient.row_gradients, gradient.logits_gradient),
            "float32 0 0 - - - -");
  const OptimizerStep step{};
  EXPECT_EQ(
      shown(step.kind, step.dtype, step.size, step.variable, step.gradient, step.learning_rate,
            step.momentum, step.decay, step.beta1, step.beta2, step.epsilon, step.decision),
      "#0 float32 0 - - 0 0 0 0 0 0 -");
}

TEST(Defaults, OfEngine) {
  const WorkspaceLimits limits{};
  EXPECT_EQ(shown(limits.batch, limits.time, limits.max_threads), "0 0 0");
  const ForwardArgs forward{};
  EXPECT_EQ(shown(forward.max_time, forward.batch, forward.time_major, forward.sequence_lengths,
                  forward.x, forward.h0, forward.c0, forward.y, forward.hn, forward.cn,
                  forward.layer_outputs, forward.layer_cells, forward.training, forward.max_threads,
                  forward.recompute, forward.reserve),
            "0 0 yes - - - - - - - - - no 0 0 -");
  const BackwardArgs backward{};
  EXPECT_EQ(shown(backward.saved, backward.dy, backward.dhn, backward.dcn, backward.dx,
                  backward.dh0, backward.dc0, backward.dparams, backward.row_norms,
                  backward.row_dparams, backward.first_row, backward.last_row),
            "- - - - - - - - - - 0 0");
  const TangentArgs tangent{};
  EXPECT_EQ(shown(tangent.max_time, tangent.batch, tangent.time_major, tangent.sequence_lengths,
                  tangent.training),
            "0 0 yes - no");
  const TangentArgs::Inputs inputs{};
  EXPECT_EQ(shown(inputs.x, inputs.h0, inputs.c0, inputs.params), "- - - -");
  const TangentArgs::Gradients gradients{};
  EXPECT_EQ(shown(gradients.y, gradients.hn, gradients.cn), "- - -");
  const TangentArgs::Outputs outputs{};
  EXPECT_EQ(shown(outputs.y, outputs.hn, outputs.cn), "- - -");
  const TangentArgs::Curvature curvature{};
  EXPECT_EQ(shown(curvature.x, curvature.h0, curvature.c0, curvature.params), "- - - -");
}

TEST(Defaults, OfFormats) {
  const TensorInfo tensor_info{};
  EXPECT_EQ(shown(tensor_info.bytes, tensor_info.sliced), "0 no");
  const TensorBundleOptions bundle{};
  EXPECT_EQ(shown(bundle.verify_checksums), "yes");
  const ScalarEvent event{};
  EXPECT_EQ(shown(event.step, event.value, event.wall_time), "0 0 0");
  const FoundFile file{};
  EXPECT_EQ(shown(file.kind), "#0");
  const SafetensorsOptions safetensors{};
  EXPECT_EQ(shown(safetensors.max_shard_bytes), "0");
  const OnnxTensor tensor{};
  EXPECT_EQ(shown(tensor.element_type), "0");
  const OnnxDim dim{};
  EXPECT_EQ(shown(dim.size), "-1");
  const OnnxValueInfo value_info{};
  EXPECT_EQ(shown(value_info.element_type), "0");
  const OnnxModel model{};
  EXPECT_EQ(shown(model.ir_version), "0");
}

TEST(Defaults, OfGraph) {
  const VariableOptions variable{};
  EXPECT_EQ(shown(variable.dtype, variable.initializer, variable.seed, variable.trainable,
                  variable.device),
            "float32 - - yes -");
  const InputSpec input_spec{};
  EXPECT_EQ(shown(input_spec.ndim, input_spec.axes), "- -");
  const LayerPart part{};
  EXPECT_EQ(shown(part.layer, part.variable, part.parts, part.owner), "- - - -");
  const LayerState state{};
  EXPECT_EQ(shown(state.name, state.named, state.trainable, state.stateful, state.built,
                  state.scope, state.saveable_scope, state.input_shape, state.weights,
                  state.weight_names, state.regularizers),
            "'' no yes no no '' '' - - - -");
  const Model::SymbolicLoss loss{};
  EXPECT_EQ(shown(loss.by_call), "no");
  const RowsView view{};
  EXPECT_EQ(shown(view.outer, view.rows, view.inner), "1 1 1");
  const TensorSpec tensor_spec{};
  EXPECT_EQ(shown(tensor_spec.dtype, tensor_spec.shape), "float32 -");
  const Replay replay{};
  EXPECT_EQ(shown(replay.training), "-");
}

TEST(Defaults, OfLayers) {
  const layers::CudnnRnnOptions rnn{};
  EXPECT_EQ(shown(rnn.network, rnn.kernel_initializer, rnn.bias_initializer, rnn.name,
                  rnn.trainable, rnn.activity_regularizer),
            "* - - '' yes -");
  const layers::RnnCallOptions call{};
  EXPECT_EQ(shown(call.sequence_lengths, call.lengths, call.flags, call.time_major, call.training,
                  call.save, call.recompute, call.every, call.scope),
            "- - * yes yes no 0 no ''");
  const layers::RnnResult result{};
  EXPECT_EQ(shown(result.layer_outputs, result.layer_cells), "- -");
  const layers::DenseOptions dense{};
  EXPECT_EQ(shown(dense.units, dense.activation, dense.use_bias, dense.kernel_initializer,
                  dense.bias_initializer, dense.seed, dense.dtype, dense.name, dense.device),
            "0 #0 yes - - - float32 '' -");
  const layers::EmbeddingOptions embedding{};
  EXPECT_EQ(shown(embedding.vocabulary, embedding.dim, embedding.initializer, embedding.seed,
                  embedding.dtype, embedding.name, embedding.device),
            "0 0 - - float32 '' -");
  const layers::DropoutOptions dropout{};
  EXPECT_EQ(shown(dropout.rate, dropout.seed, dropout.name), "0.5 - ''");
  const LoadedLayer layer{};
  EXPECT_EQ(shown(layer.initial_state), "-");
}

TEST(Defaults, OfMapping) {
  const MappedNetwork network{};
  EXPECT_EQ(shown(network.initial_h, network.initial_c, network.slots, network.tensors), "- - - -");
  const MappedModel model{};
  EXPECT_EQ(shown(model.kind, model.layers, model.outputs, model.verified), "#0 - - no");
  const MappingHints hints{};
  EXPECT_EQ(shown(hints.mode, hints.reset_after, hints.recurrent_activation, hints.forget_bias,
                  hints.network),
            "- - - - -");
  const TorchParameter parameter{};
  EXPECT_EQ(shown(parameter.offset), "0");
  const LayerOutput output{};
  EXPECT_EQ(shown(output.index), "0");
  const LayerWeight weight{};
  EXPECT_EQ(shown(weight.slots), "-");
  const MappedLayer layer{};
  EXPECT_EQ(shown(layer.inputs, layer.options, layer.weights, layer.tensors), "- - - -");
  const LayerValue value{};
  EXPECT_EQ(shown(value.dtype, value.shape, value.masked), "float32 - no");
  const LayerFunction function{};
  EXPECT_EQ(shown(function.alpha, function.beta), "0 0");
  const OnnxExportOptions exported{};
  EXPECT_EQ(shown(exported.lengths, exported.states), "no no");
}

TEST(Defaults, OfOps) {
  const ops::MatmulOptions matmul{};
  EXPECT_EQ(shown(matmul.transpose_a, matmul.transpose_b), "no no");
  const ops::SliceRange slice_range{};
  EXPECT_EQ(shown(slice_range.axis, slice_range.begin, slice_range.size), "0 0 0");
  const ops::CudnnCallOptions call{};
  EXPECT_EQ(shown(call.sequence_lengths, call.lengths, call.time_major, call.save, call.recompute),
            "- - yes no 0");
  const ops::CudnnFunctionOptions function{};
  EXPECT_EQ(shown(function.is_training, function.network, function.sequence_lengths,
                  function.lengths, function.time_major),
            "yes * - - yes");
  const ops::BatchPart part{};
  EXPECT_EQ(shown(part.first_row, part.rows, part.whole_batch), "0 0 0");
  const ops::StepFlags flags{};
  EXPECT_EQ(shown(flags.mask, flags.zero_output_for_mask, flags.reset, flags.reset_to_initial),
            "- yes - no");
  const ops::RnnInputs inputs{};
  EXPECT_EQ(shown(inputs.x, inputs.h0, inputs.c0, inputs.params, inputs.sequence_lengths,
                  inputs.lengths, inputs.flags, inputs.time_major, inputs.training, inputs.save,
                  inputs.recompute, inputs.dropout, inputs.every, inputs.call),
            "- - - - - - * yes yes no 0 * no 'rnn'");
  const ops::RnnOutputs outputs{};
  EXPECT_EQ(shown(outputs.output, outputs.h, outputs.c, outputs.layer_outputs, outputs.layer_cells),
            "- - - - -");
  const ops::ReduceOptions reduce{};
  EXPECT_EQ(shown(reduce.axes, reduce.keepdims), "- no");
  const ops::StepRange step_range{};
  EXPECT_EQ(shown(step_range.axis, step_range.begin, step_range.end, step_range.step), "0 - - 1");
  const ops::CtcOptions ctc{};
  EXPECT_EQ(shown(ctc.logit_lengths, ctc.label_lengths, ctc.blank, ctc.time_major), "- - 0 yes");
}

TEST(Defaults, OfParams) {
  const ParamRegion region{};
  EXPECT_EQ(shown(region.role, region.layer, region.direction, region.slot, region.gate,
                  region.rows, region.cols, region.offset),
            "#0 0 0 0 0 0 0 0");
}

TEST(Defaults, OfRuntime) {
  const EngineStatus status{};
  EXPECT_EQ(shown(status.available), "no");
  const Explanation explanation{};
  EXPECT_EQ(shown(explanation.same_bits, explanation.params_bytes, explanation.saved_bytes,
                  explanation.others),
            "no 0 - -");
  const ExplainedCall call{};
  EXPECT_EQ(shown(call.max_time, call.batch, call.device, call.recompute), "1 1 - 0");
  const ModelOptions model{};
  EXPECT_EQ(shown(model.max_threads), "0");
  const SessionOptions session{};
  EXPECT_EQ(shown(session.max_threads), "1");
  const StreamLimits limits{};
  EXPECT_EQ(shown(limits.streams, limits.batch, limits.time, limits.threads), "1 0 1 1");
  const StreamStep step{};
  EXPECT_EQ(shown(step.max_time, step.time_major, step.sequence_lengths, step.x, step.y),
            "1 yes - - -");
}

TEST(Defaults, OfSaveables) {
  const TfPart part{};
  EXPECT_EQ(shown(part.rows, part.cols, part.offset, part.second_offset, part.row, part.col),
            "0 0 0 -1 0 0");
  const TfTensor tensor{};
  EXPECT_EQ(shown(tensor.layer, tensor.direction, tensor.kind), "0 0 #0");
  const CudnnSaveableOptions saveable{};
  EXPECT_EQ(shown(saveable.network, saveable.scope, saveable.name), "* '' 'cudnn_rnn_saveable'");
  const TfCanonicalParams params{};
  EXPECT_EQ(shown(params.recurrent_biases), "-");
}

TEST(Defaults, OfSpec) {
  const CellActivation activation{};
  EXPECT_EQ(shown(activation.kind, activation.alpha, activation.beta), "#1 0 0");
  const TrainingOptions training{};
  EXPECT_EQ(
      shown(training.dropout, training.seed, training.input_dropout, training.output_dropout,
            training.drop_connect, training.recurrent_dropout, training.recurrent_dropout_form),
      "0 - 0 0 0 0 #0");
  const ComputeOptions compute{};
  EXPECT_EQ(shown(compute.math, compute.weights_dtype, compute.device), "#0 #0 -");
  const RnnSpec spec{};
  EXPECT_EQ(
      shown(spec.mode, spec.num_layers, spec.num_units, spec.input_size, spec.input_mode,
            spec.direction, spec.dtype, spec.num_proj, spec.cell_clip, spec.forget_bias,
            spec.reset_after, spec.activation, spec.recurrent_activation, spec.output_activation,
            spec.use_peepholes, spec.coupled_gates, spec.proj_clip, spec.gate_clip, spec.use_bias,
            spec.single_bias, spec.layer_norm, spec.layer_norm_cell, spec.layer_norm_epsilon,
            spec.zoneout, spec.zoneout_cell, spec.training, spec.compute),
      "#2 1 0 0 #0 #0 float32 0 - 0 yes - - - no no - - yes no #0 #0 1e-05 0 0 * *");
}

TEST(Defaults, OfTrainingData) {
  const train::NcclOptions nccl{};
  EXPECT_EQ(shown(nccl.device, nccl.timeout_seconds), "-1 1800");
  const train::ReductionCost cost{};
  EXPECT_EQ(
      shown(cost.steps, cost.bytes, cost.seconds, cost.seconds_overlapped, cost.seconds_waited),
      "0 0 0 0 0");
  const train::DataPosition position{};
  EXPECT_EQ(shown(position.epoch, position.window), "0 0");
  const train::Window window{};
  EXPECT_EQ(shown(window.fresh), "no");
  const train::TextOptions text{};
  EXPECT_EQ(shown(text.path, text.valid_path, text.level, text.valid_fraction, text.map_above),
            "'' '' #0 0.05 67108864");
  const train::TextStreams::Options streams{};
  EXPECT_EQ(shown(streams.batch, streams.seq_len, streams.segment_windows, streams.seed),
            "32 100 16 0");
  const train::SeriesOptions series{};
  EXPECT_EQ(shown(series.window, series.horizon, series.to_sequence, series.batch,
                  series.valid_fraction, series.seed),
            "32 1 no 32 0.2 0");
  const train::TextTask::Options task{};
  EXPECT_EQ(shown(task.batch, task.seq_len, task.quick_bytes), "32 100 32768");
}

TEST(Defaults, OfFitsAndModels) {
  const train::FitOptions fit{};
  EXPECT_EQ(shown(fit.steps, fit.schedule, fit.clip_norm, fit.validate_every, fit.patience,
                  fit.micro_batches, fit.communicator, fit.reduction, fit.overlap),
            "1000 * 1 0 0 1 - #0 no");
  const train::StepReport report{};
  EXPECT_EQ(shown(report.step, report.steps, report.items, report.learning_rate, report.task,
                  report.best),
            "0 0 0 0 - no");
  const train::ModelConfig model{};
  EXPECT_EQ(shown(model.network, model.vocabulary, model.embedding, model.columns, model.outputs),
            "* 0 0 0 0");
  const train::SequenceModel::Call call{};
  EXPECT_EQ(shown(call.training, call.sequence_lengths), "no -");
  const train::TextScore text_score{};
  EXPECT_EQ(shown(text_score.bits, text_score.symbols, text_score.bytes), "0 0 0");
  const train::SampleOptions sample{};
  EXPECT_EQ(shown(sample.symbols, sample.temperature, sample.top_k, sample.prime, sample.seed),
            "500 1 0 '' 0");
  const train::SeriesScore series_score{};
  EXPECT_EQ(shown(series_score.season, series_score.model_total, series_score.last_value_total,
                  series_score.seasonal_total),
            "0 0 0 0");
  const train::Schedule schedule{};
  EXPECT_EQ(shown(schedule.kind, schedule.learning_rate, schedule.warmup_steps,
                  schedule.decay_steps, schedule.decay_rate, schedule.final_fraction),
            "#0 0.001 0 0 0.5 0");
  const train::SlotRule rule{};
  EXPECT_EQ(shown(rule.initial_value, rule.name), "0 ''");
  const train::StepValues values{};
  EXPECT_EQ(shown(values.applied, values.gradient_norm, values.loss), "yes 0 0");
}

TEST(Defaults, OfRuns) {
  const train::RunConfig config{};
  EXPECT_EQ(shown(config.task, config.optimizer, config.batch, config.seq_len, config.epochs,
                  config.level, config.horizon, config.to_sequence, config.valid_fraction),
            "'text' 'adam' 32 100 0 #0 1 no 0.05");
  const train::TrainedArithmetic arithmetic{};
  EXPECT_EQ(shown(arithmetic.math, arithmetic.kind, arithmetic.version), "'float32' 'float32' '1'");
  const train::RunOptions options{};
  EXPECT_EQ(
      shown(options.out, options.resume, options.task, options.input, options.valid,
            options.valid_fraction, options.level, options.columns, options.horizon,
            options.network, options.embedding, options.batch, options.seq_len, options.epochs,
            options.steps, options.optimizer, options.lr, options.lr_schedule, options.warmup,
            options.clip_norm, options.micro_batches, options.valid_every, options.patience,
            options.save_steps, options.save_seconds, options.keep, options.recompute,
            options.device, options.communicator, options.reduction, options.overlap),
      "'out' no - - - - - - - - - - - - - - - - - - - - - 0 20 5 0 - - #0 no");
  const train::OptionError::Piece piece{};
  EXPECT_EQ(shown(piece.is_option), "no");
  const train::RunCallbacks callbacks{};
  EXPECT_EQ(shown(callbacks.after_step), "-");
  const train::ArithmeticChoice choice{};
  EXPECT_EQ(shown(choice.math, choice.weights_dtype), "- -");
}

}  // namespace
}  // namespace openrnn
