#include "cpu/forward/scratch.h"

#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

// Lists of the rows of a step: those that are read, and those that are written.
template <class T>
using Space = ThreadSpace<T>;
template <class T>
constexpr const T** Space<T>::*kReadLists[] = {&Space<T>::h_prev, &Space<T>::c_prev,
                                               &Space<T>::operand, &Space<T>::masks};
template <class T>
constexpr T** Space<T>::*kWrittenLists[] = {&Space<T>::c,      &Space<T>::h,
                                            &Space<T>::gates,  &Space<T>::products,
                                            &Space<T>::inputs, &Space<T>::norms};
template <class T>
constexpr std::int64_t kRowLists = std::size(kReadLists<T>) + std::size(kWrittenLists<T>);

// Of the widest row that a thread masks.
std::int64_t mask_elements(const RnnSpec& spec) {
  return std::max(spec.output_size(), spec.num_units);
}

// Pre-activations of all threads. Whatever the plan, one step of all rows and units fits; shares
// are rounded up to rows and panels.
template <class T>
std::int64_t pre_elements(const CpuPacked<T>& packed, const Room& room) {
  const PackedLayer<T>& first = packed.layer(0, 0);
  const std::int64_t row = first.w.vectors * first.w.lanes, panel = first.w.width * first.w.lanes;
  const std::int64_t least = kChunkBytes / static_cast<std::int64_t>(sizeof(T));
  return room.threads * std::min(least, room.batch * room.max_time * row) +
         packed.spec().num_dirs() *
             ((room.batch + room.threads) * row + room.batch * room.threads * panel);
}

}  // namespace

template <class T>
Scratch<T> Scratch<T>::carve(Carver& carver, const CpuPacked<T>& packed, const Room& room,
                             bool saving) {
  const RnnSpec& s = packed.spec();
  const bool narrow = is_16_bit_float(s.dtype);
  const std::int64_t places = room.batch * room.max_time, dirs = s.num_dirs();
  const std::int64_t out = places * s.output_size(), rows = dirs * room.batch;
  const bool drops_state = s.training.drops_state();
  Scratch scratch{};
  scratch.order = carver.take<std::int32_t>(room.batch);
  scratch.layers = carver.take<LayerStore<T>>(s.num_layers);
  if (!saving) {
    scratch.x = carver.take<T>(narrow ? places * s.input_size : 0);
    scratch.h0 = carver.take<T>(narrow ? s.num_pseudo_layers() * room.batch * s.hidden_size() : 0);
    scratch.c0 = carver.take<T>(narrow ? s.num_pseudo_layers() * room.batch * s.num_units : 0);
    const bool shifts = room.threads > 1 && room.batch <= kShiftedRows;
    scratch.outs = shifts ? s.num_layers - 1 : std::min<std::int64_t>(s.num_layers - 1, 2);
    scratch.out_size = divide_up(out, kMostLanes) * kMostLanes;
    scratch.below = carver.take<T>(scratch.outs * scratch.out_size);
    scratch.last = carver.take<T>(narrow ? out : 0);
    scratch.c = carver.take<T>(s.has_cell() ? s.num_pseudo_layers() * room.batch * s.num_units : 0);
    scratch.h_tilde = carver.take<T>(s.projecting() ? dirs * room.batch * s.num_units : 0);
    scratch.c_now = carver.take<T>(s.zoneout_cell > 0.0 ? rows * s.num_units : 0);
    scratch.operand = carver.take<T>(drops_state ? 2 * rows * s.hidden_size() : 0);
    const std::int64_t gates = packed.hands_on_gates() ? packed.saved_gates() : 0;
    scratch.gates = carver.take<T>(gates * dirs * room.batch * s.num_units);
  }
  scratch.state_mask = carver.take<T>(drops_state ? rows * s.hidden_size() : 0);
  scratch.candidate_mask = carver.take<T>(s.training.drops_candidate() ? rows * s.num_units : 0);
  const std::int64_t threads = room.threads;
  const std::int64_t products = packed.normalizes() ? dirs * room.batch * packed.product_row() : 0;
  scratch.products = carver.take<T>(products);
  scratch.inputs = carver.take<T>(threads > 1 ? products : 0);
  scratch.pre = carver.take<T>(pre_elements(packed, room));
  const std::int64_t pointers = std::max(kChunkRows, room.batch) + kRowLists<T> * room.batch;
  scratch.pointers = carver.take<const T*>(threads * pointers);
  scratch.masks = carver.take<T>(threads * mask_elements(s));
  const std::int64_t staged = std::max(room.batch, std::min(kStagedRows, places));
  for (std::int64_t i = 0; i < threads; ++i) {
    const Staging own = packed.stage(carver, staged);
    if (i == 0) scratch.staging = own;
  }
  return scratch;
}

template <class T>
ThreadSpace<T> Scratch<T>::of_thread(int thread, const CpuPacked<T>& packed,
                                     const Room& room) const {
  const std::int64_t a_rows = std::max(kChunkRows, room.batch);
  const T** at = pointers + thread * (a_rows + kRowLists<T> * room.batch);
  ThreadSpace<T> space{};
  space.pre_size = pre_elements(packed, room) / room.threads / 16 * 16;
  space.pre = pre + thread * space.pre_size;
  space.a = at;
  space.a_rows = a_rows;
  at += a_rows;
  for (const auto list : kReadLists<T>) {
    space.*list = at;
    at += room.batch;
  }
  for (const auto list : kWrittenLists<T>) {
    space.*list = const_cast<T**>(at);
    at += room.batch;
  }
  space.mask = masks + thread * mask_elements(packed.spec());
  space.staging = packed.staging_of(staging, thread);
  return space;
}

template struct Scratch<float>;
template struct Scratch<double>;

}  // namespace openrnn::cpu
