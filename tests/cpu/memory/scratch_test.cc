// Scratch memory of the passes: every piece has room for what is written into it. One that is too
// small reaches into the next one, which results show only where that is in use, too.
#include "cpu/forward/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/support/run.h"
#include "cpu/backward/backward_scratch.h"
#include "cpu/cpu_engine.h"
#include "cpu/pack/transposed.h"
#include "cpu/threading/share.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::Data;

/// Pieces of memory and what is written into them, as elements.
class Pieces {
 public:
  template <class T>
  void add(const std::string& name, T* at, std::int64_t count) {
    if (count == 0) return;
    EXPECT_NE(at, nullptr) << name;
    const auto* const first = reinterpret_cast<const char*>(at);
    pieces_.push_back({first, first + static_cast<std::size_t>(count) * sizeof(T), name});
  }
  template <class T>
  void add(const std::string& name, const Grid<T>& grid, std::int64_t count) {
    add(name, grid.base, count);
  }
  void expect_room() {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.first < b.first; });
    for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) {
      EXPECT_LE(static_cast<const void*>(pieces_[i].last),
                static_cast<const void*>(pieces_[i + 1].first))
          << pieces_[i].name << " reaches into " << pieces_[i + 1].name;
    }
  }

 private:
  struct Piece {
    const char *first, *last;
    std::string name;
  };
  std::vector<Piece> pieces_;
};

template <class T>
std::int64_t staging_size(const CpuPacked<T>& packed, std::int64_t rows) {
  Carver measure;
  packed.stage(measure, rows);
  return static_cast<std::int64_t>(measure.used());
}

/// One network, packed for training, and a call of it on some threads.
template <class T>
struct Call {
  const Case& c;
  const RnnSpec& s;
  int threads;
  std::shared_ptr<const CpuPacked<T>> packed;
  std::int64_t places, states, out, gates;  // T B, L D B, D O, those of a row of gate gradients

  Call(const Case& given, int threads_in)
      : c(given),
        s(given.spec),
        threads(threads_in),
        packed(std::make_shared<const CpuPacked<T>>(s, conformance::make_data(c).params.view(),
                                                    PackFor::kTraining)),
        places(c.time * c.batch),
        states(s.num_pseudo_layers() * c.batch),
        out(s.output_size()),
        gates((s.mode == RnnMode::kGru ? 4 : s.num_gates()) * s.num_units) {}
  bool half() const { return is_16_bit_float(s.dtype); }
  std::string name(const char* piece, int thread) const {
    return std::string(piece) + " of thread " + std::to_string(thread);
  }
};

/// Pre-activations of one step of a thread, whichever way the threads divide the call.
template <class T>
std::int64_t most_of_a_step(const Call<T>& call) {
  const PackedMatrix<T>& r = call.packed->layer(0, 0).r;
  const std::int64_t grain = call.s.num_gates() == 1 ? 1 : r.width;
  std::int64_t most = 0;
  for (int rows = 1; rows <= call.threads; ++rows) {
    for (int dirs = 1; dirs <= call.s.num_dirs(); ++dirs) {
      if (call.threads % (rows * dirs) != 0) continue;
      const int panels = call.threads / (rows * dirs);
      for (int panel = 0; panel < panels; ++panel) {
        const Share own(r.vectors, grain, panel, panels);
        most = std::max(most, divide_up(call.c.batch, rows) * (own.last - own.first) * r.lanes);
      }
    }
  }
  return most;
}

template <class T>
void add_forward_threads(const Call<T>& call, const Scratch<T>& scratch, Pieces& pieces) {
  const Room room{call.c.batch, call.c.time, call.threads};
  const std::int64_t batch = call.c.batch;
  for (int i = 0; i < call.threads; ++i) {
    const ThreadSpace<T> space = scratch.of_thread(i, *call.packed, room);
    EXPECT_GE(space.pre_size, most_of_a_step(call)) << "thread " << i;
    EXPECT_GE(space.a_rows, batch) << "thread " << i;
    EXPECT_GE(space.staging.rows, batch) << "thread " << i;
    pieces.add(call.name("pre", i), space.pre, space.pre_size);
    pieces.add(call.name("a", i), space.a, space.a_rows);
    pieces.add(call.name("h_prev", i), space.h_prev, batch);
    pieces.add(call.name("c_prev", i), space.c_prev, batch);
    pieces.add(call.name("c", i), space.c, batch);
    pieces.add(call.name("h", i), space.h, batch);
    pieces.add(call.name("gates", i), space.gates, batch);
    pieces.add(call.name("operand", i), space.operand, batch);
    pieces.add(call.name("masks", i), space.masks, batch);
    pieces.add(call.name("mask", i), space.mask, std::max(call.out, call.s.num_units));
    pieces.add(call.name("staging", i), static_cast<char*>(space.staging.memory),
               staging_size(*call.packed, batch));
  }
}

template <class T>
void expect_forward_has_room(const Call<T>& call, bool saving) {
  const RnnSpec& s = call.s;
  const Room room{call.c.batch, call.c.time, call.threads};
  Carver measure;
  Scratch<T>::carve(measure, *call.packed, room, saving);
  const Block memory(measure.used());
  Carver carver(memory.data());
  const auto scratch = Scratch<T>::carve(carver, *call.packed, room, saving);
  Pieces pieces;
  const std::int64_t rows = s.num_dirs() * call.c.batch;
  const bool drops_state = s.training.drops_state();
  pieces.add("order", scratch.order, call.c.batch);
  pieces.add("layers", scratch.layers, s.num_layers);
  if (!saving) {
    const std::int64_t half = call.half() ? 1 : 0;
    pieces.add("x", scratch.x, half * call.places * s.input_size);
    pieces.add("h0", scratch.h0, half * call.states * s.hidden_size());
    pieces.add("c0", scratch.c0, half * call.states * s.num_units);
    pieces.add("last", scratch.last, half * call.places * call.out);
    // Layers take turns with two, or have one each.
    EXPECT_GE(scratch.outs, std::min<std::int64_t>(s.num_layers - 1, 2));
    for (std::int64_t i = 0; i < scratch.outs; ++i) {
      pieces.add("below", scratch.below + i * scratch.out_size, call.places * call.out);
    }
    pieces.add("c", scratch.c, s.has_cell() ? call.states * s.num_units : 0);
    pieces.add("h~", scratch.h_tilde,
               s.projecting() ? s.num_dirs() * call.c.batch * s.num_units : 0);
    pieces.add("c now", scratch.c_now, s.zoneout_cell > 0.0 ? rows * s.num_units : 0);
    pieces.add("operand", scratch.operand, drops_state ? 2 * rows * s.hidden_size() : 0);
  }
  pieces.add("masks of the state", scratch.state_mask, drops_state ? rows * s.hidden_size() : 0);
  pieces.add("masks of the candidate", scratch.candidate_mask,
             s.training.drops_candidate() ? rows * s.num_units : 0);
  add_forward_threads(call, scratch, pieces);
  pieces.add("the end", static_cast<char*>(memory.data()) + measure.used(), 1);
  pieces.expect_room();
}

template <class T>
void add_backward_thread(const Call<T>& call, const BackwardSpace<T>& space, int i,
                         Pieces& pieces) {
  const std::int64_t batch = call.c.batch;
  const auto rows = [&](const char* name, auto* at, std::int64_t count) {
    pieces.add(call.name(name, i), at, count);
  };
  rows("a", space.a, batch), rows("dy", space.dy, batch), rows("gates", space.gates, batch);
  rows("c", space.c, batch), rows("c_prev", space.c_prev, batch);
  rows("h_prev", space.h_prev, batch), rows("carry", space.carry, batch);
  rows("dc", space.dc, batch), rows("da", space.da, batch), rows("masks", space.masks, batch);
  rows("rows_a", space.rows_a, call.places), rows("rows_b", space.rows_b, call.places);
  rows("rows_h", space.rows_h, call.places);
  rows("groups", space.groups, divide_up(call.c.time, kGradientSteps));
  // Rows of a step, of a part of the input's gradient, and of the gradient of a matrix.
  rows("rows_c", space.rows_c,
       std::max({batch, std::min(kStagedRows, call.places), call.gates, call.s.hidden_size()}));
  rows("rows_r", space.rows_r, call.gates);
  rows("mask", space.mask, std::max(call.out, call.s.num_units));
  rows("sums", space.sums, call.gates);
  rows("the product's a", space.product.a, 1), rows("the product's b", space.product.b, 1);
  EXPECT_GE(space.staging.rows, std::max(batch, std::min(kStagedRows, call.places)));
  rows("staging", static_cast<char*>(space.staging.memory),
       staging_size(*call.packed, space.staging.rows));
}

template <class T>
void add_backward_direction(const Call<T>& call, const LayerScratch<T>& of, std::size_t d,
                            Pieces& pieces) {
  const RnnSpec& s = call.s;
  const std::int64_t h = call.c.batch * s.hidden_size(), c = call.c.batch * s.num_units;
  const bool drops_state = s.training.drops_state();
  pieces.add("da", of.da[d], call.places * call.gates);
  pieces.add("dh_proj", of.dh_proj[d], s.projecting() ? call.places * s.hidden_size() : 0);
  pieces.add("dc", of.dc[d], s.has_cell() ? c : 0);
  pieces.add("carry", of.carry[d], h);
  pieces.add("masks of the state", of.state_mask[d], drops_state ? h : 0);
  pieces.add("masks of the candidate", of.candidate_mask[d], s.training.drops_candidate() ? c : 0);
  pieces.add("dh", of.dh_split[d], drops_state || s.zoneout > 0.0 ? h : 0);
  pieces.add("kept dc", of.dc_kept[d], s.zoneout_cell > 0.0 ? c : 0);
}

// Of each layer but the last, which has what layers take turns with elsewhere.
template <class T>
void add_shifted_layers(const Call<T>& call, const BackwardScratch<T>& scratch, Pieces& pieces) {
  for (std::int64_t l = 0; l + 1 < call.s.num_layers; ++l) {
    add_backward_direction(call, scratch.layers[l], 0, pieces);
    const bool transposes = call.packed->transposes();
    pieces.add("transposed", scratch.layers[l].transposed[0],
               transposes ? transposed_size(call.packed->layer(l, 0), true) : 0);
  }
}

template <class T>
void expect_backward_has_room(const Call<T>& call, bool dx_wanted, const Plan& plan) {
  const RnnSpec& s = call.s;
  const CpuSaved<T> saved(call.packed, conformance::args_without_arrays(call.c, call.packed, true));
  Array dparams(s.dtype, {params_size(s)}), dx(s.dtype, {call.places * s.input_size});
  BackwardArgs args;
  args.dparams = dparams.data();
  args.dx = dx_wanted ? dx.data() : nullptr;
  Carver measure;
  BackwardScratch<T>::carve(measure, saved, plan, args);
  const Block memory(measure.used());
  Carver carver(memory.data());
  const auto scratch = BackwardScratch<T>::carve(carver, saved, plan, args);
  Pieces pieces;
  pieces.add("order", scratch.order, call.c.batch);
  for (std::size_t d = 0; d < static_cast<std::size_t>(s.num_dirs()); ++d) {
    add_backward_direction(call, scratch, d, pieces);
  }
  if (plan.layer_groups > 1) add_shifted_layers(call, scratch, pieces);
  const bool own_dx = s.num_layers > 1 && !dx_serves(saved, args);
  pieces.add("dx", scratch.dx, own_dx ? call.places * call.out : 0);
  if (call.half()) {
    pieces.add("dy_wide", scratch.dy_wide, call.places * call.out);
    pieces.add("dx_wide", scratch.dx_wide, call.places * s.input_size);
    pieces.add("params_wide", scratch.params_wide, params_size(s));
  }
  pieces.add("threads", scratch.threads, call.threads);
  for (int i = 0; i < call.threads; ++i) {
    add_backward_thread(call, scratch.threads[i], i, pieces);
  }
  pieces.add("the end", static_cast<char*>(memory.data()) + measure.used(), 1);
  pieces.expect_room();
}

template <class T>
void expect_saved_has_room(const Call<T>& call) {
  const RnnSpec& s = call.s;
  ForwardArgs args = conformance::args_without_arrays(call.c, call.packed, true);
  const Data d = conformance::make_data(call.c);
  args.h0 = d.h0.data();
  args.c0 = d.c0.data();
  const CpuSaved<T> saved(call.packed, args);
  Pieces pieces;
  pieces.add("x", saved.x, call.places * s.input_size);
  pieces.add("h0", saved.h0, call.states * s.hidden_size());
  pieces.add("c0", saved.c0, s.has_cell() ? call.states * s.num_units : 0);
  for (const LayerStore<T>& layer : saved.layers) {
    pieces.add("out", layer.out, call.places * call.out);
    if (layer.input.base != layer.out.base)
      pieces.add("input", layer.input, call.places * call.out);
    for (std::size_t i = 0; i < static_cast<std::size_t>(s.num_dirs()); ++i) {
      pieces.add("gates", layer.gates[i], call.places * call.gates);
      pieces.add("c", layer.c[i], s.has_cell() ? call.places * s.num_units : 0);
      pieces.add("h~", layer.h_tilde[i], s.projecting() ? call.places * s.num_units : 0);
      pieces.add("c now", layer.c_now[i], s.zoneout_cell > 0.0 ? call.places * s.num_units : 0);
      pieces.add("operand", layer.operand[i],
                 s.training.drops_state() ? call.places * s.hidden_size() : 0);
    }
  }
  pieces.expect_room();
}

template <class T>
void expect_room(const Case& c) {
  for (const int threads : {1, 2, 3, 4}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    const Call<T> call(c, threads);
    for (const bool yes : {false, true}) {
      expect_forward_has_room(call, yes);
      expect_backward_has_room(call, yes, {.row_groups = threads});
      if (threads == 1 || call.s.num_layers == 1 || call.s.num_dirs() == 2) continue;
      expect_backward_has_room(call, yes, {.layer_groups = threads});
    }
    expect_saved_has_room(call);
  }
}

class ScratchRoom : public testing::TestWithParam<const char*> {};

TEST_P(ScratchRoom, IsEnough) {
  const Case c = conformance::parse_case(GetParam(), "");
  c.spec.dtype == DType::kFloat64 ? expect_room<double>(c) : expect_room<float>(c);
}

// Each size is once far above all others, and above every size that is always there.
INSTANTIATE_TEST_SUITE_P(
    Sizes, ScratchRoom,
    testing::Values("lstm L3 U3 I5 B1500 T1 P2 D0.5 bi f32", "lstm L1 U1 I1 B1500 T2 f64",
                    "gru L2 U3 I1 B1500 T1 bi f16", "rnn_relu L1 U2 I1 B1500 T1 bf16",
                    "lstm L3 U3 I5 B2 T1500 P2 bi f32", "gru L2 U3 I7 B1 T1500 bi f64 lengths",
                    "rnn_tanh L3 U5 I3 B3 T1500 D0.5 f16", "gru L2 U100 I3 B2 T2 bi f32",
                    "lstm L2 U70 I3 B2 T2 P60 bi bf16", "lstm L1 U3 I500 B3 T2 f16",
                    "lstm L2 U17 I34 B7 T5 bi bf16x3", "lstm L1 U130 I3 B5000 T1 f32",
                    "lstm L2 U130 I3 B7 T40 P3 bi drop_state=0.5 zone=0.5 zone_cell=0.5 f32",
                    "lstm L1 U5 I3 B2 T1500 P2 drop_state=0.5 zone=0.5 zone_cell=0.5 f16",
                    "gru L2 U33 I3 B1500 T2 drop_candidate=0.5 zone=0.5 bi f64",
                    "rnn_tanh L1 U3 I2 B1500 T2 drop_state=0.5 bf16"));

}  // namespace
}  // namespace openrnn::cpu
