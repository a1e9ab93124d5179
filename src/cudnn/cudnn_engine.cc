#include "cudnn/cudnn_engine.h"

#include <array>
#include <utility>

#include "base/message.h"
#include "cudnn/graphs/graph_cache.h"
#include "engine/cudnn_entry.h"

namespace openrnn::cudnn {
namespace {

/// Device memory comes from a caching pool, so a workspace only records sizes.
class CudnnWorkspace final : public Workspace {
 public:
  CudnnWorkspace(std::shared_ptr<const PackedParams> params, std::int64_t max_batch,
                 std::int64_t max_time)
      : params_(std::move(params)), max_batch_(max_batch), max_time_(max_time) {}
  /// Throws: ArgumentError when the call is larger than its limits.
  void check(const ForwardArgs& args) const {
    if (args.params == params_ && args.batch <= max_batch_ && args.max_time <= max_time_) return;
    throw ArgumentError(message("[forward] the workspace is for batch ", max_batch_, " and time ",
                                max_time_, " of its own params, expected at least ", args.batch,
                                " and ", args.max_time, " of these"));
  }

 private:
  std::shared_ptr<const PackedParams> params_;
  std::int64_t max_batch_, max_time_;
};

std::string_view overridden() {
  switch (tf32_override()) {
    case Tf32Override::kOff:
      return ", NVIDIA_TF32_OVERRIDE forbids math 'tf32'";
    case Tf32Override::kOn:
      return ", NVIDIA_TF32_OVERRIDE makes math 'float32' to 'tf32'";
    default:
      return "";
  }
}

/// Calls enqueue and return; errors of the work itself are reported by a later call.
class CudnnEngine final : public Engine {
 public:
  explicit constexpr CudnnEngine(int ordinal) : ordinal_(ordinal) {}
  constexpr ~CudnnEngine() override {}  // a defaulted one comes too late for g++ 12

  std::string_view name() const override { return "cudnn"; }
  const Device* device() const override { return &gpu_device(ordinal_); }
  std::string description() const override {
    return message(gpu_description(ordinal_), ", dropout ",
                   dropout_by() == DropoutBy::kFast ? "fast" : "exact", ", algorithm ",
                   algorithm_choice(), graphs_wanted() ? ", graphs" : "", overridden());
  }
  std::string unsupported(const RnnSpec& spec) const override {
    return unsupported_by_cudnn(spec, Context::of(ordinal_).capability());
  }
  std::string_view math_kind(const RnnSpec& spec) const override {
    return products_on_gpu(spec, Context::of(ordinal_).capability());
  }

  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    check_pack(*this, spec, options.purpose);
    check_params("pack", spec, params, params_size(spec));
    check_limits("pack", spec, {});
    Context& context = Context::of(ordinal_);
    const Context::Current current(context);
    return std::make_shared<CudnnPacked>(context, spec, params.data, options);
  }

  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    own("make_workspace", params);
    return std::make_unique<CudnnWorkspace>(std::move(params), limits.batch, limits.time);
  }

  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    const auto packed = checked("forward", args);
    if (workspace) {
      const auto* mine = dynamic_cast<const CudnnWorkspace*>(workspace);
      if (!mine) throw ArgumentError("[forward] workspace is of another engine, expected cudnn");
      mine->check(args);
    }
    if (graphs_wanted()) return graphs().forward(packed, args);
    run_network(packed, args, nullptr);
  }

  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    const auto packed = checked("forward_saving", args);
    check_recompute(*this, args.recompute);
    check_reserve("forward_saving", *this, args);
    if (packed->purpose() != PackFor::kTraining) {
      throw StateError(
          "[forward_saving] params are packed for inference, expected them packed for training");
    }
    if (graphs_wanted()) return graphs().forward_saving(packed, args);
    auto saved = std::make_unique<CudnnSaved>();
    run_network(packed, args, saved.get());
    return saved;
  }

  void backward(const BackwardArgs& args) const override {
    const auto* recorded = dynamic_cast<const GraphSaved*>(args.saved);
    const auto* saved = recorded ? &recorded->saved() : dynamic_cast<const CudnnSaved*>(args.saved);
    if (!saved || saved->packed->context().ordinal() != ordinal_) {
      throw ArgumentError(message("[backward] saved is ",
                                  args.saved ? "of another engine or GPU" : "null",
                                  ", expected what forward_saving of cudnn returned"));
    }
    check_rows(*this, args, 0);
    if (recorded) return graphs().backward(*recorded, args);
    run_gradient(*saved, args);
  }

 private:
  GraphCache& graphs() const { return GraphCache::of(Context::of(ordinal_)); }
  /// Throws: ArgumentError unless this engine packed them.
  std::shared_ptr<const CudnnPacked> own(std::string_view call,
                                         const std::shared_ptr<const PackedParams>& params) const {
    auto mine = std::dynamic_pointer_cast<const CudnnPacked>(params);
    if (!mine || mine->context().ordinal() != ordinal_) {
      throw ArgumentError(message("[", call, "] params were packed by another engine, expected ",
                                  "cudnn on gpu:", ordinal_));
    }
    return mine;
  }
  std::shared_ptr<const CudnnPacked> checked(std::string_view call, const ForwardArgs& args) const {
    check_forward(call, args);
    check_limits(call, args.params->spec(), extent_of(args));
    return own(call, args.params);
  }

  int ordinal_;
};

template <int... Ordinals>
constexpr std::array<CudnnEngine, sizeof...(Ordinals)> make_engines(
    std::integer_sequence<int, Ordinals...>) {
  return {CudnnEngine(Ordinals)...};
}

// Constants: initialization of a static local by another thread at a fork never ends in the child.
constexpr auto kEngines = make_engines(std::make_integer_sequence<int, kMostGpus>());

}  // namespace

const Engine& cudnn_engine(int ordinal) { return kEngines[static_cast<std::size_t>(ordinal)]; }

}  // namespace openrnn::cudnn
