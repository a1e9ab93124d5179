#include "cpu/recompute/recompute_call.h"

#include "cpu/backward/backward_call.h"
#include "cpu/forward/forward_run.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {
namespace {

// Layers [first_layer, last_layer) of a pass over one chunk, and directions [first, last).
template <class T>
struct Pass {
  std::int64_t first_layer = 0, last_layer = 0;
  std::int64_t first_direction = 0, directions = 0;
  bool steps_only = false;
  std::array<StateGradientRows<T>, 2> states = {};
};

// The chunks of a unidirectional network are computed again last to first, all layers of one
// together, and so do its gradients go. In a bidirectional one the backward direction's gradient
// comes from the chunk before, the forward one's from the chunk after, so a layer is done over all
// of T before the one below it: first the steps of the backward direction, first to last, of which
// all that later products read is kept, and what enters the layer; then those of the forward
// direction last to first, the order of the sums, with the products of both.
template <class T>
class Recomputation {
 public:
  Recomputation(const CpuRecomputed<T>& saved, const BackwardArgs& args)
      : saved_(saved),
        args_(args),
        packed_(*saved.packed),
        spec_(packed_.spec()),
        most_(most_threads(saved.args.max_threads)),
        user_(state_gradients<T>(spec_, saved.args, args)),
        user_dy_(sequence_rows<T>(args.dy, spec_, saved.args, spec_.output_size())),
        user_dx_(sequence_rows<T>(args.dx, spec_, saved.args, spec_.input_size)),
        chunk_(saved.args),
        lengths_(saved.lengths.size()) {
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < saved.args.batch; ++b) {
      longest = std::max(longest, saved.length(b));
    }
    used_ = std::max<std::int64_t>(divide_up(longest, saved.borders.steps), 1);
    begin(0);
    shifts_ = most_ > 1 && can_shift_backward(packed_, chunk_);
    Carver measure;
    carve(measure);
    memory_ = Block(measure.used());
    Carver carver(memory_.data());
    carve(carver);
  }

  void run() {
    if (spec_.num_dirs() == 1) {
      run_stack();
    } else {
      for (std::int64_t layer = spec_.num_layers - 1; layer >= 0; --layer) run_layer(layer);
    }
    finish();
  }

 private:
  void carve(Carver& carver) {
    const std::int64_t batch = saved_.args.batch, planes = spec_.num_pseudo_layers();
    const std::int64_t h = spec_.hidden_size(), c = spec_.has_cell() ? spec_.num_units : 0;
    const bool both = bidirectional(), narrow = is_16_bit_float(spec_.dtype);
    const auto states = [&](std::int64_t width) {
      return width > 0 ? UserRows<T>{carver.take<T>(planes * batch * width), kStorageWide,
                                     batch * width, width}
                       : UserRows<T>{};
    };
    places_.carve_layers(carver, spec_, chunk_);
    forward_ = Scratch<T>::carve(carver, packed_, {batch, chunk_.max_time, most_}, true);
    forward_.layers = places_.layers.data();
    backward_ = BackwardScratch<T>::carve(
        carver, {.packed = packed_,
                 .call = chunk_,
                 .threads = most_,
                 .between = spec_.num_layers > 1 && !both,
                 .wide_rows = narrow && args_.row_dparams ? args_.last_row - args_.first_row : 0,
                 .shifts = shifts_});
    carry_h_ = states(h);
    carry_c_ = states(c);
    if (both) carve_whole(carver);
    dparams_ = narrow && args_.dparams ? carver.take<T>(packed_.layout().size())
                                       : static_cast<T*>(args_.dparams);
  }

  // What is kept over all of T.
  void carve_whole(Carver& carver) {
    const std::int64_t time = saved_.args.max_time, batch = saved_.args.batch;
    const std::int64_t out = spec_.output_size();
    const auto between = [&] {
      return Grid<T>{carver.take<T>(time * batch * out), batch * out, out};
    };
    kept_ = SavedPlaces<T>::carve_layer(carver, spec_, saved_.args, 1);
    kept_gradients_.carve_steps(carver, packed_, time, batch, 1);
    if (spec_.num_layers == 1) return;
    between_ = between();
    kept_input_ = between();
  }

  bool bidirectional() const { return spec_.num_dirs() == 2; }

  // The call of a chunk.
  void begin(std::int64_t chunk) {
    first_time_ = chunk * saved_.borders.steps;
    chunk_.max_time = std::min(saved_.borders.steps, saved_.args.max_time - first_time_);
    chunk_.sequence_lengths = lengths_.empty() ? nullptr : lengths_.data();
    for (std::size_t b = 0; b < lengths_.size(); ++b) {
      const std::int64_t left = saved_.lengths[b] - first_time_;
      lengths_[b] = static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, chunk_.max_time));
    }
    places_.x = saved_.x.after(first_time_);
    places_.h0 = saved_.borders.h_of(chunk);
    places_.c0 = saved_.borders.c_of(chunk);
  }

  StepContext<T> context(const Plan& plan, std::int32_t* order, Barrier* barriers) const {
    return {.packed = packed_,
            .args = chunk_,
            .plan = plan,
            .rows = Rows(chunk_, plan, order),
            .row_barriers = barriers,
            .step_barriers = barriers + plan.threads(),
            .first_time = first_time_};
  }

  // Points the layer's places, and what enters it, at what is kept of a bidirectional network.
  void place_kept(std::int64_t layer) {
    const auto l = static_cast<std::size_t>(layer);
    places_.layers[l].take_steps(kept_, 1, first_time_, chunk_.max_time);
    if (layer == 0) return;
    LayerStore<T>& below = places_.layers[l - 1];
    const bool drops = below.input.base != below.out.base;
    below.input = kept_input_.after(first_time_);
    if (!drops) below.out = below.input;
  }

  // Computes layers and directions of a chunk again.
  void recompute(std::int64_t chunk, const Pass<T>& pass) {
    begin(chunk);
    if (bidirectional()) place_kept(pass.last_layer - 1);
    ThreadLease lease = lease_for(packed_, chunk_, most_);
    const Plan plan = plan_for(packed_, chunk_, lease, 1, can_shift_layers(packed_, chunk_, true));
    const auto barriers = std::make_unique<Barrier[]>(2 * static_cast<std::size_t>(plan.threads()));
    ForwardRun<T> run{.shared = context(plan, forward_.order, barriers.get()),
                      .scratch = forward_,
                      .room = {chunk_.batch, chunk_.max_time, plan.threads()},
                      .first_layer = pass.first_layer,
                      .layers = pass.last_layer,
                      .first_direction = pass.first_direction,
                      .directions = pass.directions,
                      .x = places_.x,
                      .h0 = places_.h0,
                      .c0 = places_.c0};
    run_forward(run, lease);
  }

  void differentiate(std::int64_t chunk, const Pass<T>& pass) {
    ThreadLease lease = lease_for(packed_, chunk_, most_, shifts_ ? 2 : 0);
    const Plan plan = plan_for(packed_, chunk_, lease, 1, shifts_);
    const auto threads = static_cast<std::size_t>(plan.threads());
    const auto barriers = std::make_unique<Barrier[]>(2 * threads + 1);
    BackwardScratch<T> scratch = backward_;
    if (between_.base) scratch.dx = between_.after(first_time_);
    if (bidirectional()) scratch.take_steps(kept_gradients_, 1, first_time_);
    const UserRows<T> dy = user_dy_.after(first_time_), dx = user_dx_.after(first_time_);
    BackwardRun<T> run{.shared = context(plan, scratch.order, barriers.get()),
                       .saved = places_,
                       .states = pass.states,
                       .user_dy = dy,
                       .user_dx = dx,
                       .scratch = scratch,
                       .dy = grid_of(dy, scratch.dy_wide, chunk_.batch, spec_.output_size()),
                       .dx = grid_of(dx, scratch.dx_wide, chunk_.batch, spec_.input_size),
                       .dparams = dparams_,
                       .all_barrier = barriers.get() + 2 * threads,
                       .accumulate = chunk + 1 < used_,
                       .first_layer = pass.first_layer,
                       .last_layer = pass.last_layer,
                       .first_direction = pass.first_direction,
                       .directions = pass.directions,
                       .steps_only = pass.steps_only,
                       .rows = rows_wanted(spec_, args_, scratch.rows_wide)};
    run.rows.narrow_to = nullptr;  // when all chunks are there
    lease.run([&run](int thread) { run.thread_main(thread); });
  }

  // Of a direction: from the chunk that its steps end with to the one that they begin with.
  StateGradientRows<T> carried(std::int64_t chunk, std::int64_t direction) const {
    const std::int64_t begins = direction == 0 ? 0 : used_ - 1, ends = used_ - 1 - begins;
    StateGradientRows<T> states = {carry_h_, carry_c_, carry_h_, carry_c_};
    if (chunk == ends) states.dhn = user_.dhn, states.dcn = user_.dcn;
    if (chunk == begins) states.dh0 = user_.dh0, states.dc0 = user_.dc0;
    return states;
  }

  void run_stack() {
    Pass<T> pass{.last_layer = spec_.num_layers, .directions = 1};
    for (std::int64_t chunk = used_ - 1; chunk >= 0; --chunk) {
      recompute(chunk, pass);
      pass.states[0] = carried(chunk, 0);
      differentiate(chunk, pass);
    }
  }

  void run_layer(std::int64_t layer) {
    const Pass<T> below{.last_layer = layer + 1, .first_direction = 1, .directions = 2};
    Pass<T> pass = below;
    pass.first_layer = layer;
    pass.steps_only = true;
    for (std::int64_t chunk = 0; chunk < used_; ++chunk) {
      recompute(chunk, below);
      pass.states[1] = carried(chunk, 1);
      differentiate(chunk, pass);
    }
    pass = {.first_layer = layer, .last_layer = layer + 1, .directions = 1};
    for (std::int64_t chunk = used_ - 1; chunk >= 0; --chunk) {
      recompute(chunk, pass);
      pass.states[0] = carried(chunk, 0);
      differentiate(chunk, pass);
    }
  }

  // Gradients of parameters that are stored in 16 bits, and the padding of dx after the longest
  // row.
  void finish() {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (is_16_bit_float(spec_.dtype)) {
        const StorageKernels& storage = packed_.table().storage[storage_of(spec_.dtype)];
        const std::int64_t size = packed_.layout().size();
        if (dparams_) storage.narrow(dparams_, static_cast<std::uint16_t*>(args_.dparams), size);
        const RowGradients<T> rows = rows_wanted(spec_, args_, backward_.rows_wide);
        if (rows.narrow_to) {
          storage.narrow(rows.dparams, rows.narrow_to, (rows.last - rows.first) * size);
        }
      }
    }
    if (!user_dx_.base) return;
    for (std::int64_t t = used_ * saved_.borders.steps; t < saved_.args.max_time; ++t) {
      for (std::int64_t b = 0; b < saved_.args.batch; ++b) {
        user_dx_.store(packed_.table(), t, b, spec_.input_size, nullptr);
      }
    }
  }

  const CpuRecomputed<T>& saved_;
  const BackwardArgs& args_;
  const CpuPacked<T>& packed_;
  const RnnSpec& spec_;
  int most_;
  bool shifts_ = false;  // whether layers may be shifted in time
  StateGradientRows<T> user_;
  UserRows<T> user_dy_, user_dx_;
  std::int64_t used_ = 1;        // chunks that a row reaches
  std::int64_t first_time_ = 0;  // of the chunk
  ForwardArgs chunk_;            // its call
  std::vector<std::int32_t> lengths_;
  SavedPlaces<T> places_;
  Scratch<T> forward_ = {};
  BackwardScratch<T> backward_ = {};
  UserRows<T> carry_h_, carry_c_;
  // Of a bidirectional network, over all of T: the layer's outputs and its backward direction, the
  // gradients of that one's steps, what enters the layer [T][B][D*O], and the gradient of that.
  LayerStore<T> kept_;
  BackwardScratch<T> kept_gradients_ = {};
  Grid<T> kept_input_, between_;
  T* dparams_ = nullptr;
  Block memory_;
};

}  // namespace

template <class T>
void backward_recomputed_call(const CpuRecomputed<T>& saved, const BackwardArgs& args) {
  Recomputation<T>(saved, args).run();
}

template void backward_recomputed_call<float>(const CpuRecomputed<float>&, const BackwardArgs&);
template void backward_recomputed_call<double>(const CpuRecomputed<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
