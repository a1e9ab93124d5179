// A model from a checkpoint alone.
#include <filesystem>

#include "openrnn/train_fit.h"
#include "train/message.h"

namespace openrnn::train {

std::string resolve_run(const std::string& run) {
  std::error_code ignored;
  if (std::filesystem::is_directory(run, ignored)) {
    if (const auto latest = latest_checkpoint(run)) return *latest;
    throw ArgumentError(message("resolve_run", "folder '", run, "' holds no checkpoint",
                                ", expected the output folder of a run"));
  }
  if (tensor_bundle_exists(run)) return run;
  throw ArgumentError(message("resolve_run", "'", run, "' is neither a folder nor a checkpoint",
                              ", expected the output folder of a run or a checkpoint's prefix"));
}

TrainedModel::TrainedModel(const std::string& run, const ArithmeticChoice& choice,
                           const Device* device)
    : prefix_(resolve_run(run)), extras_(read_extras(prefix_)), graph_(std::make_unique<Graph>()) {
  if (!extras_.contains("config")) {
    throw ArgumentError(message("TrainedModel", "checkpoint '", prefix_, "' has no openrnn/config",
                                ", expected one that the tool or Fit has written"));
  }
  config_ = run_config_from_json(extras_.get_string("config"));
  const Graph::AsDefault current(*graph_);
  if (config_.task == "text") {
    const auto codes = extras_.get_array("vocabulary").as<std::int32_t>();
    vocabulary_ = Vocabulary(config_.level, std::vector<std::int32_t>(codes.begin(), codes.end()));
  }
  config_.model.weights_dtype = choice.weights_dtype.value_or(WeightsDType::kNone);
  const bool stored = config_.model.weights_dtype != WeightsDType::kNone;
  config_.model.math = choice.math.value_or(stored ? Math::kFloat32 : config_.model.math);
  config_.model.device = device;
  model_ = std::make_unique<SequenceModel>(config_.model);
  SaverOptions options;
  options.graph = graph_.get();
  Saver(options).restore(prefix_);
}

TrainedModel::~TrainedModel() = default;

}  // namespace openrnn::train
