#include <algorithm>
#include <utility>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "runtime/limits.h"

namespace openrnn {

namespace {

// Before anything is packed.
const ModelOptions& checked(const ModelOptions& options, const RnnSpec& spec,
                            const ConstArrayView& params) {
  check_threads("PackedModel", options.max_threads);
  check_exact_params("PackedModel", spec, params, params_size(spec));
  return options;
}

}  // namespace

PackedModel::PackedModel(const Engine& engine, const RnnSpec& spec, const ConstArrayView& params,
                         const ModelOptions& options)
    : engine_(&engine),
      options_(checked(options, spec, params)),
      packed_(engine.pack(spec, params, {PackFor::kInference, options.max_threads})) {}

PackedModel::PackedModel(const RnnSpec& spec, const ConstArrayView& params,
                         const ModelOptions& options)
    : PackedModel(choose_engine(spec), spec, params, options) {}

PackedModel::PackedModel(const RnnSpec& spec, const ConstArrayView& params, const Device& device,
                         const ModelOptions& options)
    : PackedModel(choose_engine(spec, device), spec, params, options) {}

InferenceSession::InferenceSession(std::shared_ptr<const PackedModel> model,
                                   const SessionOptions& options)
    : model_(std::move(model)), options_(options) {
  if (!model_) throw ArgumentError("[InferenceSession] model is null, expected a PackedModel");
  check_threads("InferenceSession", options_.max_threads);
  options_.max_threads = fewer_threads(options_.max_threads, model_->options().max_threads);
}

void InferenceSession::prepare(std::int64_t max_batch, std::int64_t max_time) {
  if (max_batch < 0 || max_time < 0) {
    throw ArgumentError(message("[prepare] max_batch is ", max_batch, " and max_time ", max_time,
                                ", expected 0 or more"));
  }
  if (workspace_ && max_batch <= max_batch_ && max_time <= max_time_) return;
  max_batch = std::max(max_batch, max_batch_);
  max_time = std::max(max_time, max_time_);
  workspace_ = model_->engine().make_workspace(model_->packed(),
                                               {max_batch, max_time, options_.max_threads});
  max_batch_ = max_batch;
  max_time_ = max_time;
}

void InferenceSession::run(ForwardArgs args) {
  args.params = model_->packed();
  if (args.training) {
    throw ArgumentError("[run] training is true, expected inference");
  }
  check_forward("run", args);
  args.max_threads = fewer_threads(args.max_threads, options_.max_threads);
  prepare(args.batch, args.max_time);
  model_->engine().forward(args, workspace_.get());
}

}  // namespace openrnn
