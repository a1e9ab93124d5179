// Where engines meet: list, choose, force, and say why.
#pragma once

#include "openrnn/engine.h"

namespace openrnn {

/// Every engine of this build, best first; those that this machine lacks are there too and say so.
struct EngineStatus {
  std::string name;
  bool available = false;
  /// What it runs on, or what is missing and how to get it.
  std::string detail;
};
OPENRNN_API std::vector<EngineStatus> list_engines();

/// The engine of that name. Throws: ArgumentError for an unknown name, EngineError when this
/// machine lacks what it needs.
OPENRNN_API const Engine& engine(std::string_view name);

/// The engine that OPENRNN_ENGINE names, else the best that supports `spec`.
/// Throws: UnsupportedError with every engine's reason when none does (or the forced one does not).
OPENRNN_API const Engine& choose_engine(const RnnSpec& spec);

/// 'scalar', 'avx2', 'avx512' or 'neon': what the cpu engine runs on. OPENRNN_ISA forces one.
/// Throws: EngineError when a forced one is unknown or this processor lacks it.
OPENRNN_API std::string_view cpu_isa();
/// Those that this processor can run, widest last.
OPENRNN_API std::vector<std::string_view> available_cpu_isas();
/// Chooses for all later packing: parameters packed before keep theirs. For tests.
OPENRNN_API void force_cpu_isa(std::string_view isa);

/// An immutable model for inference, shared by any number of threads.
class OPENRNN_API PackedModel {
 public:
  /// Throws: ArgumentError as RnnSpec::validate and check_params.
  PackedModel(const RnnSpec& spec, const ConstArrayView& params);
  const RnnSpec& spec() const noexcept { return packed_->spec(); }
  const Engine& engine() const noexcept { return *engine_; }
  const std::shared_ptr<const PackedParams>& packed() const noexcept { return packed_; }

 private:
  const Engine* engine_;
  std::shared_ptr<const PackedParams> packed_;
};

/// One caller's workspace over a shared model. After prepare, run allocates nothing, locks nothing
/// and packs nothing. One thread at a time.
class OPENRNN_API InferenceSession {
 public:
  explicit InferenceSession(std::shared_ptr<const PackedModel> model);
  const PackedModel& model() const noexcept { return *model_; }
  /// Makes room for calls up to that size; a larger run makes room itself.
  void prepare(std::int64_t max_batch, std::int64_t max_time);
  /// `args.params` is filled in. `hn` may be the memory of `h0`, and `cn` that of `c0`, so that a
  /// stream keeps its state in one place.
  void run(ForwardArgs args);

 private:
  std::shared_ptr<const PackedModel> model_;
  std::unique_ptr<Workspace> workspace_;
  std::int64_t max_batch_ = 0, max_time_ = 0;
};

}  // namespace openrnn
