#include "cpu/backward/backward_call.h"

#include "cpu/backward/backward_run.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {
namespace {

// What transposed weights of direction d need beside the gradient's own memory.
template <class T>
std::int64_t transposed_beside(const CpuSaved<T>& saved, std::int64_t d, T* dparams) {
  const CpuPacked<T>& packed = *saved.packed;
  std::int64_t most = 0;
  for (std::int64_t l = 0; packed.transposes() && l < packed.spec().num_layers; ++l) {
    if (transposed_in_gradient(packed, l, d, saved.args.batch, dparams)) continue;
    most = std::max(most, transposed_size(packed.layer(l, d)));
  }
  return most;
}

// The caller's dx is written last; until then it can hold the gradients between layers if its rows
// are as wide as theirs and lie in the same order.
template <class T>
bool dx_serves(const CpuSaved<T>& saved, const BackwardArgs& args) {
  const RnnSpec& s = saved.packed->spec();
  return args.dx && saved.args.time_major && s.dtype != DType::kFloat16 &&
         s.input_size == s.output_size();
}

// Columns of the products of weight gradients that are packed at once: those of both sides, so that
// the gate gradients are packed once for both, where that is seen and takes little memory.
template <class T>
std::int64_t columns_at_once(const CpuPacked<T>& packed) {
  const RnnSpec& s = packed.spec();
  const std::int64_t few = packed.arithmetic() == kExact ? 256 : 512;
  const std::int64_t widest = std::max({s.input_size, s.output_size(), s.num_units});
  return widest <= few ? 2 * divide_up(widest, 64) * 64 : widest;
}

}  // namespace

template <class T>
BackwardScratch<T> BackwardScratch<T>::carve(Carver& carver, const CpuSaved<T>& saved, int threads,
                                             const BackwardArgs& args) {
  const CpuPacked<T>& packed = *saved.packed;
  const RnnSpec& s = packed.spec();
  const std::int64_t batch = saved.args.batch, places = batch * saved.args.max_time;
  const bool half = s.dtype == DType::kFloat16;
  const auto grid = [&](bool wanted, std::int64_t count, std::int64_t width, std::int64_t step) {
    return wanted ? Grid<T>{carver.take<T>(count * width), step * width, width} : Grid<T>{};
  };
  BackwardScratch scratch{};
  scratch.order = carver.take<std::int32_t>(batch);
  for (std::size_t d = 0; d < static_cast<std::size_t>(s.num_dirs()); ++d) {
    scratch.da[d] = grid(true, places, packed.gradient_gates() * s.num_units, batch);
    scratch.dh_proj[d] = grid(s.projecting(), places, s.hidden_size(), batch);
    scratch.dc[d] = grid(s.is_lstm(), batch, s.num_units, 0);
    scratch.carry[d] = grid(true, batch, s.hidden_size(), 0);
  }
  scratch.dx = grid(s.num_layers > 1 && !dx_serves(saved, args), places, s.output_size(), batch);
  scratch.dy_wide = half ? carver.take<T>(places * s.output_size()) : nullptr;
  scratch.dx_wide = half ? carver.take<T>(places * s.input_size) : nullptr;
  scratch.params_wide = half ? carver.take<T>(packed.layout().size()) : nullptr;
  for (std::int64_t d = 0; d < s.num_dirs(); ++d) {
    T* const gradient = half ? scratch.params_wide : static_cast<T*>(args.dparams);
    scratch.transposed[static_cast<std::size_t>(d)] =
        carver.take<T>(transposed_beside(saved, d, gradient));
  }
  const std::int64_t outputs = std::max<std::int64_t>(
      {packed.gradient_gates() * s.num_units, s.hidden_size(), std::int64_t{192}, batch});
  const std::int64_t all = std::max<std::int64_t>(places, 192);
  const std::int64_t groups = divide_up(saved.args.max_time, kGradientSteps);
  scratch.threads = carver.take<BackwardSpace<T>>(threads);
  for (int i = 0; i < threads; ++i) {
    BackwardSpace<T> space{};
    for (const T*** list :
         {&space.a, &space.dy, &space.gates, &space.c, &space.c_prev, &space.h_prev}) {
      *list = carver.take<const T*>(batch);
    }
    for (T*** list : {&space.carry, &space.dc, &space.da}) *list = carver.take<T*>(batch);
    space.rows_a = carver.take<const T*>(all);
    space.rows_b = carver.take<const T*>(all);
    space.rows_h = carver.take<const T*>(all);
    space.groups = carver.take<std::int64_t>(groups);
    space.rows_c = carver.take<T*>(outputs);
    space.rows_r = carver.take<T*>(outputs);
    space.mask = carver.take<T>(s.output_size());
    space.sums = carver.take<T>(outputs);
    space.product = ProductScratch<T>::carve(carver, columns_at_once(packed), places, groups);
    space.staging = packed.stage(carver, std::max<std::int64_t>(batch, 192));
    // Null while the first pass measures.
    if (scratch.threads) scratch.threads[i] = space;
  }
  return scratch;
}

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args) {
  const CpuPacked<T>& packed = *saved.packed;
  const RnnSpec& spec = packed.spec();
  ThreadLease lease(wanted_threads(packed, saved.args, most_threads(saved.args.max_threads)));
  const Plan plan = plan_for(packed, saved.args, lease);
  Carver measure;
  BackwardScratch<T>::carve(measure, saved, plan.threads(), args);
  const Block memory(measure.used());
  Carver carver(memory.data());
  auto scratch = BackwardScratch<T>::carve(carver, saved, plan.threads(), args);
  const auto threads = static_cast<std::size_t>(lease.threads());
  const auto barriers = std::make_unique<Barrier[]>(2 * threads + 1);
  const auto dy = sequence_rows<T>(args.dy, spec, saved.args, spec.output_size());
  const auto dx = sequence_rows<T>(args.dx, spec, saved.args, spec.input_size);
  const auto place = [&](const UserRows<T>& user, T* wide, std::int64_t width) {
    if (!user.base) return Grid<T>{};
    if (wide) return Grid<T>{wide, saved.args.batch * width, width};
    return Grid<T>{static_cast<T*>(const_cast<void*>(user.base)), user.step, user.row};
  };
  const Grid<T> user_dx = place(dx, scratch.dx_wide, spec.input_size);
  if (dx_serves(saved, args)) scratch.dx = user_dx;
  T* const dparams = scratch.params_wide ? scratch.params_wide : static_cast<T*>(args.dparams);
  BackwardRun<T> run{saved,
                     args,
                     plan,
                     Rows(saved.args, plan, scratch.order),
                     scratch,
                     place(dy, scratch.dy_wide, spec.output_size()),
                     user_dx,
                     args.dparams ? dparams : nullptr,
                     barriers.get(),
                     barriers.get() + threads,
                     barriers.get() + 2 * threads};
  lease.run([&run](int thread) { run.thread_main(thread); });
}

template struct BackwardScratch<float>;
template struct BackwardScratch<double>;
template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
