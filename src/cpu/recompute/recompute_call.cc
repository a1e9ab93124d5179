#include "cpu/recompute/recompute_call.h"

#include "cpu/backward/backward_call.h"
#include "cpu/forward/forward_run.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {
namespace {

// Layers [first_layer, last_layer) of a backward pass over one chunk.
template <class T>
struct Pass {
  std::int64_t first_layer = 0, last_layer = 0;
  std::array<StateGradientRows<T>, 2> states = {};
  bool backward_states_only = false;
};

// The chunks of a unidirectional network are computed again last to first, all layers of one
// together, and so do its gradients go. In a bidirectional one the backward direction's gradient
// comes from the chunk before, the forward one's from the chunk after, so a layer is done over all
// of T before the one below it: first the backward direction's states alone, first to last, whose
// gradients at the borders are kept; then both directions last to first, the order of the sums.
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
    const bool both = spec_.num_dirs() == 2, half = spec_.dtype == DType::kFloat16;
    const auto rows = [&](std::int64_t count, std::int64_t width, std::int64_t step) {
      return width > 0 ? UserRows<T>{carver.take<T>(count * width), false, step * width, width}
                       : UserRows<T>{};
    };
    places_.carve_layers(carver, spec_, chunk_);
    forward_ = Scratch<T>::carve(carver, packed_, {batch, chunk_.max_time, most_}, true);
    forward_.layers = places_.layers.data();
    backward_ = BackwardScratch<T>::carve(carver, {.packed = packed_,
                                                   .call = chunk_,
                                                   .threads = most_,
                                                   .between = spec_.num_layers > 1 && !both});
    carry_h_ = rows(planes * batch, h, batch);
    carry_c_ = rows(planes * batch, c, batch);
    // Of one layer; its rows are found without the number of the layer.
    border_h_ = rows(both ? used_ * batch : 0, h, 0);
    border_c_ = rows(both ? used_ * batch : 0, c, 0);
    const std::int64_t out = spec_.output_size();
    if (both && spec_.num_layers > 1) {
      between_ = {carver.take<T>(saved_.args.max_time * batch * out), batch * out, out};
    }
    dparams_ = half && args_.dparams ? carver.take<T>(packed_.layout().size())
                                     : static_cast<T*>(args_.dparams);
  }

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

  // Computes the layers below `layers` of a chunk again; of the last one from `direction` on.
  void recompute(std::int64_t chunk, std::int64_t layers, std::int64_t direction) {
    begin(chunk);
    ThreadLease lease(wanted_threads(packed_, chunk_, most_), alone_seconds(packed_, chunk_));
    const Plan plan = plan_for(packed_, chunk_, lease);
    const auto barriers = std::make_unique<Barrier[]>(2 * static_cast<std::size_t>(plan.threads()));
    ForwardRun<T> run{.shared = context(plan, forward_.order, barriers.get()),
                      .scratch = forward_,
                      .room = {chunk_.batch, chunk_.max_time, plan.threads()},
                      .layers = layers,
                      .first_direction = direction,
                      .x = places_.x,
                      .h0 = places_.h0,
                      .c0 = places_.c0};
    run_forward(run, lease);
  }

  void differentiate(std::int64_t chunk, const Pass<T>& pass) {
    ThreadLease lease(wanted_threads(packed_, chunk_, most_));
    const Plan plan = plan_for(packed_, chunk_, lease);
    const auto threads = static_cast<std::size_t>(plan.threads());
    const auto barriers = std::make_unique<Barrier[]>(2 * threads + 1);
    BackwardScratch<T> scratch = backward_;
    if (between_.row > 0) scratch.dx = between_.after(first_time_);
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
                       .backward_states_only = pass.backward_states_only};
    lease.run([&run](int thread) { run.thread_main(thread); });
  }

  // Of the forward direction: from the chunk after to the chunk before.
  StateGradientRows<T> carried(std::int64_t chunk) const {
    StateGradientRows<T> states = {carry_h_, carry_c_, carry_h_, carry_c_};
    if (chunk + 1 == used_) states.dhn = user_.dhn, states.dcn = user_.dcn;
    if (chunk == 0) states.dh0 = user_.dh0, states.dc0 = user_.dc0;
    return states;
  }

  // The backward direction's gradients before `chunk`.
  UserRows<T> border(const UserRows<T>& rows, std::int64_t chunk) const {
    return rows.base ? rows.from(chunk * saved_.args.batch * rows.row) : rows;
  }
  StateGradientRows<T> entering(std::int64_t chunk) const {
    if (chunk == 0) return {user_.dhn, user_.dcn, {}, {}};
    return {border(border_h_, chunk), border(border_c_, chunk), {}, {}};
  }

  void run_stack() {
    for (std::int64_t chunk = used_ - 1; chunk >= 0; --chunk) {
      recompute(chunk, spec_.num_layers, 0);
      differentiate(chunk, {.last_layer = spec_.num_layers, .states = {carried(chunk)}});
    }
  }

  void run_layer(std::int64_t layer) {
    Pass<T> pass{.first_layer = layer, .last_layer = layer + 1, .backward_states_only = true};
    for (std::int64_t chunk = 0; chunk + 1 < used_; ++chunk) {
      recompute(chunk, layer + 1, 1);
      pass.states[1] = entering(chunk);
      pass.states[1].dh0 = border(border_h_, chunk + 1);
      pass.states[1].dc0 = border(border_c_, chunk + 1);
      differentiate(chunk, pass);
    }
    pass.backward_states_only = false;
    for (std::int64_t chunk = used_ - 1; chunk >= 0; --chunk) {
      recompute(chunk, layer + 1, 0);
      pass.states = {carried(chunk), entering(chunk)};
      if (chunk + 1 == used_) pass.states[1].dh0 = user_.dh0, pass.states[1].dc0 = user_.dc0;
      differentiate(chunk, pass);
    }
  }

  // float16's gradients of parameters, and the padding of dx after the longest row.
  void finish() {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (dparams_ && spec_.dtype == DType::kFloat16) {
        packed_.table().narrow(dparams_, static_cast<std::uint16_t*>(args_.dparams),
                               packed_.layout().size());
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
  StateGradientRows<T> user_;
  UserRows<T> user_dy_, user_dx_;
  std::int64_t used_ = 1;        // chunks that a row reaches
  std::int64_t first_time_ = 0;  // of the chunk
  ForwardArgs chunk_;            // its call
  std::vector<std::int32_t> lengths_;
  SavedPlaces<T> places_;
  Scratch<T> forward_ = {};
  BackwardScratch<T> backward_ = {};
  UserRows<T> carry_h_, carry_c_, border_h_, border_c_;
  Grid<T> between_;  // [T][B][D*O], gradients between bidirectional layers
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
