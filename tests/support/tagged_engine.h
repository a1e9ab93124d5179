// The cpu engine over tagged memory.
#pragma once

#include "cpu/cpu_engine.h"
#include "support/tagged_memory.h"

namespace openrnn::testing {

class TaggedEngine : public Engine {
 public:
  /// `exact`: it refuses a weights_dtype, as an engine of a GPU may.
  TaggedEngine(const Device& device, bool exact) : device_(device), exact_(exact) {}
  std::string_view name() const override { return "test"; }
  const Device* device() const override { return &device_; }
  std::string description() const override { return "the cpu engine over tagged memory"; }
  std::string unsupported(const RnnSpec& spec) const override {
    if (exact_ && spec.compute.weights_dtype != WeightsDType::kNone)
      return "no weights_dtype; device='cpu' has them";
    return cpu_engine().unsupported(spec);
  }
  std::string_view math_kind(const RnnSpec& spec) const override {
    return cpu_engine().math_kind(spec);
  }
  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    return cpu_engine().pack(spec, {untagged(params.data), params.dtype, params.shape}, options);
  }
  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    return cpu_engine().make_workspace(std::move(params), limits);
  }
  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    cpu_engine().forward(Untagged(args).args, workspace);
  }
  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    return cpu_engine().forward_saving(Untagged(args).args);
  }
  void backward(const BackwardArgs& args) const override {
    cpu_engine().backward({.saved = args.saved,
                           .dy = untagged(args.dy),
                           .dhn = untagged(args.dhn),
                           .dcn = untagged(args.dcn),
                           .dx = untagged(args.dx),
                           .dh0 = untagged(args.dh0),
                           .dc0 = untagged(args.dc0),
                           .dparams = untagged(args.dparams)});
  }

 private:
  struct Untagged {
    ForwardArgs args;
    std::vector<void*> outputs, cells;

    explicit Untagged(const ForwardArgs& given) : args(given) {
      args.sequence_lengths = of_host(given.sequence_lengths);
      args.x = untagged(given.x);
      args.h0 = untagged(given.h0);
      args.c0 = untagged(given.c0);
      args.y = untagged(given.y);
      args.hn = untagged(given.hn);
      args.cn = untagged(given.cn);
      args.layer_outputs = list(given.layer_outputs, outputs);
      args.layer_cells = list(given.layer_cells, cells);
    }
    void* const* list(void* const* given, std::vector<void*>& to) const {
      if (!given) return nullptr;
      for (std::int64_t l = 0; l < args.params->spec().num_layers; ++l) {
        to.push_back(untagged(given[l]));
      }
      return to.data();
    }
  };
  const Device& device_;
  bool exact_;
};

}  // namespace openrnn::testing
