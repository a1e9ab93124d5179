// Lists and chooses engines and devices; models and sessions for inference.
#pragma once

#include <span>

#include "openrnn/engine.h"

namespace openrnn {

/// One engine of this build.
struct EngineStatus {
  std::string name;
  bool available = false;
  /// What it runs on, or what is missing and how to get it.
  std::string detail;
};
/// Every engine of this build, best first, also those that cannot run on this machine.
OPENRNN_API std::vector<EngineStatus> list_engines();

/// The engine of that name. Throws: ArgumentError for an unknown name, EngineError when this
/// machine lacks what it needs.
OPENRNN_API const Engine& engine(std::string_view name);

/// For arrays in host memory: the engine that OPENRNN_ENGINE names, else the best CPU engine that
/// supports `spec`; 'cudnn', which copies all arrays to the GPU and back, only if OPENRNN_ENGINE
/// names it. Throws: UnsupportedError with every engine's reason if none supports it (or the forced
/// one does not); EngineError if the reason is the spec's math.
OPENRNN_API const Engine& choose_engine(const ValidSpec& spec);
/// For arrays on a device: its own engine; on the cpu as above. Throws: as above.
OPENRNN_API const Engine& choose_engine(const ValidSpec& spec, const Device& device);

/// Engine::math_kind of the engine that would run `spec`. Throws: as choose_engine.
OPENRNN_API std::string_view math_kind(const ValidSpec& spec);
OPENRNN_API std::string_view math_kind(const ValidSpec& spec, const Device& device);

/// What would run a network, and why.
struct Explanation {
  /// The engine that choose_engine names; empty when none can run the network.
  std::string engine;
  /// What it runs on: instruction set and threads, or GPU and cuDNN.
  std::string description;
  /// "cudnn's lstm step", or 'lstm step with options: use_peepholes true, ..'; empty without an
  /// engine.
  std::string kernels;
  /// As openrnn::math_kind.
  std::string math_kind;
  /// Whether results are the same bits at every run and for every number of threads, and on every
  /// machine where math_kind is the same.
  bool same_bits = false;
  std::int64_t params_bytes = 0;
  /// Beyond inputs and outputs, kept from forward to backward; unset where only a call can tell.
  std::optional<std::int64_t> saved_bytes = {};
  /// Every other engine of this build, and why it is not the one.
  std::vector<std::pair<std::string, std::string>> others = {};
};
/// The call that an Explanation is of.
struct ExplainedCall {
  std::int64_t max_time = 1, batch = 1;
  /// Null: the cpu.
  const Device* device = nullptr;
  /// As ForwardArgs::recompute.
  std::int64_t recompute = 0;
};
/// Decides as choose_engine, but computes nothing and never throws for what no engine can run: then
/// `engine` is empty and `others` says why. Throws: ArgumentError as RnnSpec::validate, or for
/// sizes below 0 or recompute below kRecomputeRoot.
OPENRNN_API Explanation explain(const ValidSpec& spec, const ExplainedCall& call = {});
/// One line for each of its members.
OPENRNN_API std::string to_string(const Explanation& explanation);

/// A device that this machine can use.
struct DeviceInfo {
  std::string name;
  /// What it is, for people.
  std::string description;
};
/// 'cpu', then 'gpu:0', 'gpu:1', ...
OPENRNN_API std::vector<DeviceInfo> list_devices();
/// The device of that name: 'cpu', 'gpu:0', 'gpu:1', ...; 'gpu' is 'gpu:0'. It lives as long as the
/// process. Throws: ArgumentError for another name; EngineError for a GPU that cannot be used,
/// saying what is missing.
OPENRNN_API const Device& device(std::string_view name);

/// 'scalar', 'avx2', 'avx512', 'amx' or 'neon': what the cpu engine runs on. OPENRNN_ISA forces
/// one. 'amx_emulated', only when forced, has the bits of 'amx' on any processor with AVX-512,
/// slowly. Throws: EngineError when a forced one is unknown or this processor lacks it.
/// 'amx' only says that the processor has it: see amx_permission().
OPENRNN_API std::string_view cpu_isa();
/// The instruction sets that this processor has, widest last; never 'amx_emulated'.
OPENRNN_API std::vector<std::string_view> available_cpu_isas();
/// Forces the instruction set of all later packing; parameters packed before keep theirs. Empty:
/// the default again. For tests.
OPENRNN_API void force_cpu_isa(std::string_view isa);

/// Whether this process may use the tile registers of AMX, which Linux grants on demand: 'not asked
/// yet', 'granted', 'refused: ..' or that this processor has none. The library asks when a network
/// whose math needs them is first packed, or its math_kind asked for; the answer holds for the life
/// of the process. A process that has them cannot install an alternate signal stack of 8 KB any
/// more, and is refused while it has one. If refused, 'bf16' is 'dot' and 'bf16x3' is 'float32'; if
/// 'amx' was forced, an EngineError. This function itself does not ask.
OPENRNN_API std::string amx_permission();

/// Stops the thread pool and waits for its threads; running calls finish first. The next call that
/// uses more than one thread starts it again. Any thread may call it, any number of times.
/// Unloading the library, or a plug-in that it is linked into, does the same.
OPENRNN_API void shutdown() noexcept;

/// Whether a worker of the cpu engine that shares a processor with another thread of its call is
/// moved to an idle one (Linux): for a moment its affinity mask leaves out the processors of the
/// others, then the mask is as it was. No mask gets a processor that it did not have, and threads
/// that the library has not started are never moved. On at first, unless OPENRNN_SPREAD_THREADS=0.
OPENRNN_API bool spread_threads() noexcept;
OPENRNN_API void set_spread_threads(bool spread) noexcept;

/// The threads of a program around the library, as those of OpenMP. Calls part(context, member) for
/// members 0 to count - 1, each on a thread of its own, all at once and member 0 on the calling
/// thread; returns when all have returned. It may leave members out: the caller does their parts.
/// Must not throw.
using HostThreads = void (*)(int count, void (*part)(void* context, int member), void* context);

/// While it lives, calls of this thread run on threads of the host in place of the library's own,
/// which would compete for processors with those of the host that spin. Null: the library's own.
/// Results are the same bits. Scopes may be nested; the inner one counts. A forked child has the
/// library's own.
class OPENRNN_API HostThreadsScope {
 public:
  explicit HostThreadsScope(HostThreads host) noexcept;
  ~HostThreadsScope();
  HostThreadsScope(const HostThreadsScope&) = delete;
  HostThreadsScope& operator=(const HostThreadsScope&) = delete;

 private:
  HostThreads outer_;
};

struct ModelOptions {
  /// Threads that packing and every session and pool of the model may use, the caller's included;
  /// 0: num_threads(). With 1 the model starts none, and no use of it does.
  int max_threads = 0;
};

/// An immutable model for inference, shared by any number of threads.
class OPENRNN_API PackedModel {
 public:
  /// Throws: ArgumentError as RnnSpec::validate and check_exact_params, or for max_threads below 0.
  PackedModel(const RnnSpec& spec, const ConstArrayView& params, const ModelOptions& options = {});
  /// `params`, and all arrays of the runs of a session, are memory of that device. Throws: as
  /// above.
  PackedModel(const RnnSpec& spec, const ConstArrayView& params, const Device& device,
              const ModelOptions& options = {});
  const RnnSpec& spec() const noexcept { return packed_->spec(); }
  const Engine& engine() const noexcept { return *engine_; }
  const ModelOptions& options() const noexcept { return options_; }
  const std::shared_ptr<const PackedParams>& packed() const noexcept { return packed_; }

 private:
  PackedModel(const Engine& engine, const RnnSpec& spec, const ConstArrayView& params,
              const ModelOptions& options);
  const Engine* engine_;
  ModelOptions options_;
  std::shared_ptr<const PackedParams> packed_;
};

struct SessionOptions {
  /// Threads that a run may use, the caller's included, and no more than the model's; 0: as many as
  /// the model's.
  int max_threads = 1;
};

/// One caller's workspace over a shared model. After prepare, run allocates nothing and packs
/// nothing; on one thread, the default, it also takes no lock and makes no system call, while on
/// more it wakes the thread pool and may yield and sleep until that is done (futex). One thread at
/// a time.
class OPENRNN_API InferenceSession {
 public:
  /// Throws: ArgumentError for a null model, or max_threads below 0.
  explicit InferenceSession(std::shared_ptr<const PackedModel> model,
                            const SessionOptions& options = {});
  const PackedModel& model() const noexcept { return *model_; }
  const SessionOptions& options() const noexcept { return options_; }
  /// Allocates for calls up to that size; a larger run allocates itself.
  void prepare(std::int64_t max_batch, std::int64_t max_time);
  /// Fills in `args.params` and limits `args.max_threads` to the options'. `hn` may be the memory
  /// of `h0`, and `cn` that of `c0`, so that a stream keeps its state in one place.
  void run(ForwardArgs args);

 private:
  std::shared_ptr<const PackedModel> model_;
  SessionOptions options_;
  std::unique_ptr<Workspace> workspace_;
  std::int64_t max_batch_ = 0, max_time_ = 0;
};

/// A stream of one StreamPool; an id is never reused.
enum class StreamId : std::uint64_t {};

/// Limits of a StreamPool.
struct StreamLimits {
  std::int64_t streams = 1;  // open at once
  std::int64_t batch = 0;    // streams of one step; 0: all
  std::int64_t time = 1;     // of one step
  int threads = 1;           // as SessionOptions::max_threads
};

/// One step of some streams: T max_time, B their number, in any order.
struct StreamStep {
  std::span<const StreamId> ids;
  std::int64_t max_time = 1;
  /// True: x [T, B, I], y [T, B, D*O]. False: x [B, T, I], y [B, T, D*O].
  bool time_major = true;
  const std::int32_t* sequence_lengths = nullptr;  // [B], each in 0..T; null: all are T
  const void* x = nullptr;
  void* y = nullptr;
};

/// The states of many streams over a shared model. Streams join and leave between steps; a step
/// gathers the states of those that it names into one batch, runs, and scatters them back. On the
/// cpu engine a stream gets the bits that it would get alone. Everything is allocated when the pool
/// is made: no call allocates or packs after that; on one thread, the default, none takes a lock or
/// makes a system call either, while on more a step wakes the thread pool and may yield and sleep
/// until that is done (futex). A call that throws has changed nothing. One thread at a time.
class OPENRNN_API StreamPool {
 public:
  /// Throws: ArgumentError for a null model, one on a GPU (the states are the host's), or a limit
  /// below 1 (batch and threads: below 0).
  StreamPool(std::shared_ptr<const PackedModel> model, const StreamLimits& limits);
  const PackedModel& model() const noexcept { return *model_; }
  const StreamLimits& limits() const noexcept { return limits_; }
  /// Streams that are open.
  std::int64_t size() const noexcept { return limits_.streams - free_count_; }
  bool contains(StreamId id) const noexcept;

  /// Opens a stream with a copy of h [L*D, O] and c [L*D, U] (where has_cell()), in the spec's
  /// dtype; null: zeros. Throws: StateError when as many are open as there may be, ArgumentError
  /// for a c that the mode does not have.
  StreamId join(const void* h = nullptr, const void* c = nullptr);
  /// Throws: ArgumentError for a stream that is not open, as all below.
  void leave(StreamId id);
  /// Sets the state as join does.
  void reset(StreamId id, const void* h = nullptr, const void* c = nullptr);
  /// Copies the state to h and c; null: not wanted.
  void read(StreamId id, void* h, void* c = nullptr) const;
  /// Throws: ArgumentError for a stream named twice, more streams or time than the limits, and as
  /// check_forward.
  void step(const StreamStep& step);

 private:
  std::size_t slot_of(std::string_view call, StreamId id) const;
  void check_cell(std::string_view call, const void* c) const;
  void find_slots(const StreamStep& step);
  void fill(std::size_t slot, const void* h, const void* c);

  std::shared_ptr<const PackedModel> model_;
  StreamLimits limits_;
  std::unique_ptr<Workspace> workspace_;
  Array h_, c_;              // [streams, L*D, .]
  Array batch_h_, batch_c_;  // of one step
  std::vector<std::uint32_t> free_;
  std::int64_t free_count_ = 0;
  std::vector<std::uint32_t> generations_;  // of each slot: odd while it is open
  std::vector<std::uint32_t> slots_;        // of the ids of the last step
  std::vector<std::uint32_t> named_;  // of each slot: where a step named it, if slots_ says so too
};

}  // namespace openrnn
