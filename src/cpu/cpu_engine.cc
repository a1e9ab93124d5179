#include "cpu/cpu_engine.h"

#include "base/message.h"
#include "cpu/backward/backward_call.h"
#include "cpu/forward/forward_call.h"
#include "cpu/isa/arithmetic.h"
#include "cpu/isa/isa.h"
#include "cpu/isa/tiles.h"
#include "cpu/recompute/recompute_call.h"
#include "cpu/tangent/tangent.h"
#include "cpu/threading/share.h"
#include "engine/tangent.h"

namespace openrnn {
namespace {

using cpu::CpuPacked;
using cpu::CpuRecomputed;
using cpu::CpuSaved;

bool is_double(const RnnSpec& spec) { return spec.dtype == DType::kFloat64; }

// Parameters of another engine have another type.
void check_packed(std::string_view call, const PackedParams& params) {
  const bool known = is_double(params.spec())
                         ? dynamic_cast<const CpuPacked<double>*>(&params) != nullptr
                         : dynamic_cast<const CpuPacked<float>*>(&params) != nullptr;
  if (!known) {
    throw ArgumentError(
        message("[", call, "] params are packed by another engine, expected cpu's"));
  }
}

template <class T>
std::int64_t saved_bytes_of(const RnnSpec& spec, const ForwardArgs& args) {
  return args.recompute != 0 ? cpu::bytes_of<cpu::RecomputedPlaces<T>>(spec, args)
                             : cpu::bytes_of<cpu::SavedPlaces<T>>(spec, args);
}

class CpuEngine final : public Engine {
 public:
  constexpr CpuEngine() = default;
  constexpr ~CpuEngine() override {}  // a defaulted one comes too late for g++ 12
  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    const std::string tiles =
        cpu::tiles_refused() ? "; tiles of AMX " + cpu::tile_permission() : std::string();
    return message("cpu with ", cpu::isa_name(), " on ", num_threads(), " thread(s)", tiles);
  }
  std::string unsupported(const RnnSpec& spec) const override { return cpu::unsupported(spec); }
  std::string_view math_kind(const RnnSpec& spec) const override { return cpu::math_kind(spec); }
  std::optional<std::int64_t> saved_bytes(const RnnSpec& spec, std::int64_t max_time,
                                          std::int64_t batch,
                                          std::int64_t recompute) const override {
    ForwardArgs args;
    args.max_time = max_time;
    args.batch = batch;
    args.training = true;
    args.recompute = recompute;
    return is_double(spec) ? saved_bytes_of<double>(spec, args) : saved_bytes_of<float>(spec, args);
  }

  bool has_row_gradients() const override { return true; }
  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    check_pack(*this, spec, options.purpose);
    if (is_double(spec)) return std::make_shared<CpuPacked<double>>(spec, params, options);
    return std::make_shared<CpuPacked<float>>(spec, params, options);
  }
  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    if (!params || limits.batch < 0 || limits.time < 0 || limits.max_threads < 0) {
      throw ArgumentError(message("[make_workspace] params are ", params ? "given" : "null",
                                  ", batch ", limits.batch, ", time ", limits.time,
                                  ", max_threads ", limits.max_threads,
                                  ", expected params and limits of 0 or more"));
    }
    check_packed("make_workspace", *params);
    const cpu::Room room{limits.batch, limits.time, cpu::most_threads(limits.max_threads)};
    if (is_double(params->spec())) {
      return cpu::prepared_workspace<double>(std::move(params), room);
    }
    return cpu::prepared_workspace<float>(std::move(params), room);
  }
  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    check_forward("forward", args);
    check_packed("forward", *args.params);
    if (is_double(args.params->spec())) return cpu::forward_call<double>(args, workspace);
    cpu::forward_call<float>(args, workspace);
  }
  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    check_forward("forward_saving", args);
    check_packed("forward_saving", *args.params);
    check_reserve("forward_saving", *this, args);
    const bool wide = is_double(args.params->spec());
    if (args.recompute != 0) {
      return wide ? cpu::forward_recomputed_call<double>(args)
                  : cpu::forward_recomputed_call<float>(args);
    }
    return wide ? cpu::forward_saving_call<double>(args) : cpu::forward_saving_call<float>(args);
  }
  std::optional<std::int64_t> reserve_bytes(const RnnSpec& spec,
                                            const ForwardArgs& args) const override {
    return is_double(spec) ? saved_bytes_of<double>(spec, args) : saved_bytes_of<float>(spec, args);
  }
  std::unique_ptr<SavedForward> saved_in(const ForwardArgs& args) const override {
    if (!args.reserve) throw ArgumentError("[saved_in] reserve is null, expected a call's");
    ForwardArgs call = args;
    call.x = call.y = call.reserve;  // of which only the sizes are checked
    check_forward("saved_in", call);
    check_packed("saved_in", *call.params);
    check_reserve("saved_in", *this, call);
    return is_double(call.params->spec()) ? cpu::saved_in_reserve<double>(call)
                                          : cpu::saved_in_reserve<float>(call);
  }
  void backward(const BackwardArgs& args) const override {
    if (const auto* f32 = dynamic_cast<const CpuSaved<float>*>(args.saved)) {
      check_rows(*this, args, f32->args.batch);
      return cpu::backward_call(*f32, args);
    }
    if (const auto* f64 = dynamic_cast<const CpuSaved<double>*>(args.saved)) {
      check_rows(*this, args, f64->args.batch);
      return cpu::backward_call(*f64, args);
    }
    if (const auto* f32 = dynamic_cast<const CpuRecomputed<float>*>(args.saved)) {
      return run_again(*f32, args);
    }
    if (const auto* f64 = dynamic_cast<const CpuRecomputed<double>*>(args.saved)) {
      return run_again(*f64, args);
    }
    throw ArgumentError(message("[backward] saved is ", args.saved ? "another engine's" : "null",
                                ", expected what cpu's forward_saving returned"));
  }
  bool recomputes() const override { return true; }
  bool has_tangent(const RnnSpec& spec) const override {
    return tangents_know(spec) && cpu::has_tangent(spec);
  }
  void tangent(const TangentArgs& args) const override {
    if (!has_tangent(args.spec)) Engine::tangent(args);
    cpu::tangent(args);
  }

 private:
  // A row's gradient is complete when all chunks are, and norms keep none of them.
  template <class T>
  void run_again(const CpuRecomputed<T>& saved, const BackwardArgs& args) const {
    check_rows(*this, args, saved.args.batch);
    if (args.row_norms) {
      throw UnsupportedError(
          "[backward] row_norms of a call with recompute, expected row_dparams, or recompute 0");
    }
    cpu::backward_recomputed_call(saved, args);
  }
};

// A constant: initialization of a static local by another thread at a fork never ends in the child.
constexpr CpuEngine kEngine;

}  // namespace

const Engine& cpu_engine() { return kEngine; }

}  // namespace openrnn
