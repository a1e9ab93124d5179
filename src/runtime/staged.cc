#include "runtime/staged.h"

#include <deque>

#include "base/message.h"
#include "engine/cudnn_entry.h"
#include "openrnn/device.h"

namespace openrnn {
namespace {

using Memory = std::shared_ptr<void>;

/// Arrays of one call: their copies on the device, and the addresses of results.
class Stage {
 public:
  Stage(const Device& device, DType dtype) : device_(device), element_(dtype_size(dtype)) {}

  /// A copy of the host's array; null stays null.
  const void* in(const void* host, std::int64_t elements) {
    if (!host) return nullptr;
    memory_.push_back(device_.bring(host, bytes(elements)));
    return memory_.back().get();
  }
  /// Memory for a result; null stays null.
  void* out(void* host, std::int64_t elements) {
    if (!host) return nullptr;
    memory_.push_back(device_.allocate(bytes(elements)));
    results_.push_back({host, memory_.back().get(), bytes(elements)});
    return memory_.back().get();
  }
  /// A list of results, of which null ones are not wanted; null stays null.
  void* const* out_list(void* const* host, std::int64_t count, std::int64_t elements) {
    if (!host) return nullptr;
    auto& list = lists_.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) list.push_back(out(host[i], elements));
    return list.data();
  }
  /// Copies the results to the host.
  void finish() {
    for (const Result& result : results_) {
      if (result.bytes > 0) device_.download(result.host, result.memory, result.bytes);
    }
  }

 private:
  struct Result {
    void* host;
    const void* memory;
    std::size_t bytes;
  };
  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * element_;
  }

  const Device& device_;
  std::size_t element_;
  std::vector<Memory> memory_;
  std::vector<Result> results_;
  std::deque<std::vector<void*>> lists_;
};

class StagedPacked final : public PackedParams {
 public:
  StagedPacked(const RnnSpec& spec, PackFor purpose, std::shared_ptr<const PackedParams> params)
      : PackedParams(spec, purpose), inner(std::move(params)) {}
  const std::shared_ptr<const PackedParams> inner;
};

class StagedWorkspace final : public Workspace {
 public:
  StagedWorkspace(std::shared_ptr<const PackedParams> owner, std::unique_ptr<Workspace> workspace)
      : params(std::move(owner)), inner(std::move(workspace)) {}
  const std::shared_ptr<const PackedParams> params;
  const std::unique_ptr<Workspace> inner;
};

class StagedSaved final : public SavedForward {
 public:
  explicit StagedSaved(const ForwardArgs& args)
      : spec(args.params->spec()), steps(args.max_time * args.batch), batch(args.batch) {}
  RnnSpec spec;
  std::int64_t steps, batch;
  std::unique_ptr<SavedForward> inner;
};

class StagedEngine final : public Engine {
 public:
  constexpr StagedEngine() = default;
  constexpr ~StagedEngine() override {}  // a defaulted one comes too late for g++ 12

  std::string_view name() const override { return "cudnn"; }
  std::string description() const override { return gpu_engine(0).description(); }
  std::string unsupported(const RnnSpec& spec) const override { return gpu().unsupported(spec); }
  std::string_view math_kind(const RnnSpec& spec) const override { return gpu().math_kind(spec); }

  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    check_pack(*this, spec, options.purpose);
    check_params("pack", spec, params, params_size(spec));
    PackOptions there = options;
    there.lender = memory().bring(
        params.data, static_cast<std::size_t>(params.size()) * dtype_size(params.dtype));
    const ConstArrayView copy{there.lender.get(), params.dtype, params.shape};
    return std::make_shared<StagedPacked>(spec, options.purpose, gpu().pack(spec, copy, there));
  }

  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    const auto inner = own("make_workspace", params);
    return std::make_unique<StagedWorkspace>(std::move(params),
                                             gpu().make_workspace(inner, limits));
  }

  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    check_forward("forward", args);
    const auto* mine = dynamic_cast<const StagedWorkspace*>(workspace);
    if (workspace && (!mine || mine->params != args.params)) {
      throw ArgumentError("[forward] workspace is of other params, expected one of these");
    }
    Stage stage(memory(), args.params->spec().dtype);
    gpu().forward(staged("forward", args, stage), mine ? mine->inner.get() : nullptr);
    stage.finish();
  }

  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    check_forward("forward_saving", args);
    auto saved = std::make_unique<StagedSaved>(args);
    Stage stage(memory(), saved->spec.dtype);
    saved->inner = gpu().forward_saving(staged("forward_saving", args, stage));
    stage.finish();
    return saved;
  }

  void backward(const BackwardArgs& args) const override {
    const auto* saved = dynamic_cast<const StagedSaved*>(args.saved);
    if (!saved) {
      throw ArgumentError(message("[backward] saved is ", args.saved ? "of another engine" : "null",
                                  ", expected what forward_saving of cudnn returned"));
    }
    check_rows(*this, args, saved->batch);
    const RnnSpec& spec = saved->spec;
    const std::int64_t planes = spec.num_pseudo_layers() * saved->batch;
    const std::int64_t h = planes * spec.hidden_size();
    const std::int64_t c = spec.has_cell() ? planes * spec.num_units : 0;
    Stage stage(memory(), spec.dtype);
    BackwardArgs inner;
    inner.saved = saved->inner.get();
    inner.dy = stage.in(args.dy, saved->steps * spec.output_size());
    inner.dhn = stage.in(args.dhn, h);
    inner.dcn = stage.in(args.dcn, c);
    inner.dx = stage.out(args.dx, saved->steps * spec.input_size);
    inner.dh0 = stage.out(args.dh0, h);
    inner.dc0 = stage.out(args.dc0, c);
    inner.dparams = stage.out(args.dparams, params_size(spec));
    gpu().backward(inner);
    stage.finish();
  }

 private:
  static const Device& memory() { return gpu_device(0); }
  static const Engine& gpu() { return *memory().engine(); }

  static std::shared_ptr<const PackedParams> own(
      std::string_view call, const std::shared_ptr<const PackedParams>& params) {
    const auto mine = std::dynamic_pointer_cast<const StagedPacked>(params);
    if (!mine) {
      throw ArgumentError(
          message("[", call, "] params were packed by another engine, expected cudnn"));
    }
    return mine->inner;
  }

  /// The call with every array on the device.
  static ForwardArgs staged(std::string_view call, const ForwardArgs& args, Stage& stage) {
    const RnnSpec& spec = args.params->spec();
    const std::int64_t steps = args.max_time * args.batch;
    const std::int64_t planes = spec.num_pseudo_layers() * args.batch;
    const std::int64_t h = planes * spec.hidden_size();
    const std::int64_t c = spec.has_cell() ? planes * spec.num_units : 0;
    ForwardArgs inner = args;
    inner.params = own(call, args.params);
    inner.x = stage.in(args.x, steps * spec.input_size);
    inner.h0 = stage.in(args.h0, h);
    inner.c0 = stage.in(args.c0, c);
    inner.y = stage.out(args.y, steps * spec.output_size());
    inner.hn = stage.out(args.hn, h);
    inner.cn = stage.out(args.cn, c);
    inner.layer_outputs =
        stage.out_list(args.layer_outputs, spec.num_layers, steps * spec.output_size());
    inner.layer_cells =
        stage.out_list(args.layer_cells, spec.num_layers, steps * spec.num_dirs() * spec.num_units);
    return inner;
  }
};

// A constant: initialization of a static local by another thread at a fork never ends in the child.
constexpr StagedEngine kEngine;

}  // namespace

const Engine& staged_gpu_engine() { return kEngine; }

}  // namespace openrnn
