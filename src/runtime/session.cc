#include <algorithm>
#include <utility>

#include "base/message.h"
#include "openrnn/runtime.h"

namespace openrnn {

PackedModel::PackedModel(const RnnSpec& spec, const ConstArrayView& params)
    : engine_(&choose_engine(spec)), packed_(engine_->pack(spec, params, PackFor::kInference)) {}

PackedModel::PackedModel(const RnnSpec& spec, const ConstArrayView& params, const Device& device)
    : engine_(&choose_engine(spec, device)),
      packed_(engine_->pack(spec, params, PackFor::kInference)) {}

InferenceSession::InferenceSession(std::shared_ptr<const PackedModel> model)
    : model_(std::move(model)) {
  if (!model_) throw ArgumentError("[InferenceSession] model is null, expected a PackedModel");
}

void InferenceSession::prepare(std::int64_t max_batch, std::int64_t max_time) {
  if (max_batch < 0 || max_time < 0) {
    throw ArgumentError(message("[prepare] max_batch is ", max_batch, " and max_time ", max_time,
                                ", expected 0 or more"));
  }
  if (workspace_ && max_batch <= max_batch_ && max_time <= max_time_) return;
  max_batch = std::max(max_batch, max_batch_);
  max_time = std::max(max_time, max_time_);
  workspace_ = model_->engine().make_workspace(model_->packed(), max_batch, max_time);
  max_batch_ = max_batch;
  max_time_ = max_time;
}

void InferenceSession::run(ForwardArgs args) {
  args.params = model_->packed();
  if (args.training) {
    throw ArgumentError("[run] training is true, expected inference");
  }
  check_forward("run", args);
  prepare(args.batch, args.max_time);
  model_->engine().forward(args, workspace_.get());
}

}  // namespace openrnn
