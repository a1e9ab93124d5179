#include "stage.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace peers {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

/// The descriptors that the primitive is made from.
struct Stage::Layouts {
  memory::desc x, weights_layer, weights_iter, bias, y, hn, cn, h0, c0;
  memory::desc dx, dh, gradient_layer, gradient_iter, dy;
  dnnl::rnn_direction direction;

  explicit Layouts(const StageSizes& s) {
    const Type type = s.bf16 ? Type::bf16 : Type::f32;
    const memory::dims wl{s.layers, s.directions, s.input, s.gates(), s.units};
    const memory::dims wi{s.layers, s.directions, s.units, s.gates(), s.units};
    const memory::dims state{s.layers, s.directions, s.batch, s.units};
    x = {{s.time, s.batch, s.input}, type, Tag::tnc};
    y = {{s.time, s.batch, s.output()}, type, Tag::tnc};
    weights_layer = {wl, type, Tag::any};
    weights_iter = {wi, type, Tag::any};
    bias = {{s.layers, s.directions, s.bias_gates(), s.units}, Type::f32, Tag::ldgo};
    // Without states in training, release 3.2 gives wrong gradients of an LSTM's recurrent
    // matrices.
    hn = {state, type, Tag::ldnc};
    cn = {state, Type::f32, Tag::ldnc};
    dh = {state, Type::f32, Tag::ldnc};
    if (s.training || s.states) {
      h0 = hn;
      c0 = cn;
    }
    dx = {{s.time, s.batch, s.input}, Type::f32, Tag::tnc};
    dy = {{s.time, s.batch, s.output()}, Type::f32, Tag::tnc};
    gradient_layer = {wl, Type::f32, Tag::any};
    gradient_iter = {wi, Type::f32, Tag::any};
    direction = s.directions == 2 ? dnnl::rnn_direction::bidirectional_concat
                                  : dnnl::rnn_direction::unidirectional_left2right;
  }
};

template <class Forward, class Backward, class... Cell>
void Stage::make_primitives(const Layouts& l, const Cell&... cell) {
  constexpr bool kLstm = std::is_same_v<Forward, dnnl::lstm_forward>;
  const auto kind =
      sizes_.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto make_forward = [&] {
    if constexpr (kLstm) {
      return typename Forward::primitive_desc(engine_, kind, l.direction, l.x, l.h0, l.c0,
                                              l.weights_layer, l.weights_iter, l.bias, l.y, l.hn,
                                              l.cn);
    } else {
      return typename Forward::primitive_desc(engine_, kind, cell..., l.direction, l.x, l.h0,
                                              l.weights_layer, l.weights_iter, l.bias, l.y, l.hn);
    }
  };
  const auto forward = make_forward();
  forward_ = Forward(forward);
  kernel_ = forward.impl_info_str();
  packed_ = {memory(forward.weights_layer_desc(), engine_),
             memory(forward.weights_iter_desc(), engine_), plain_.bias};
  y_ = memory(l.y, engine_);
  hn_ = memory(l.hn, engine_);
  if (kLstm) cn_ = memory(l.cn, engine_);
  if (sizes_.training || sizes_.states) make_states(l);
  if (sizes_.training) make_backward<Backward>(l, forward, cell...);
}

void Stage::make_states(const Layouts& l) {
  h0_ = memory(l.h0, engine_);
  zero(h0_);
  if (!cn_) return;
  c0_ = memory(l.c0, engine_);
  zero(c0_);
}

template <class Backward, class Hint, class... Cell>
void Stage::make_backward(const Layouts& l, const Hint& forward, const Cell&... cell) {
  constexpr bool kLstm = std::is_same_v<Backward, dnnl::lstm_backward>;
  const auto zeros = [&](const memory::desc& like) {
    memory result(like, engine_);
    zero(result);
    return result;
  };
  dhn_ = zeros(l.dh);
  dh0_ = zeros(l.dh);
  if (kLstm) dc0_ = zeros(l.dh);
  workspace_ = memory(forward.workspace_desc(), engine_);
  const auto back = dnnl::prop_kind::backward;
  const auto describe = [&] {
    if constexpr (kLstm) {
      return typename Backward::primitive_desc(engine_, back, l.direction, l.x, l.h0, l.c0,
                                               l.weights_layer, l.weights_iter, l.bias, l.y, l.hn,
                                               l.cn, l.dx, l.dh, l.dh, l.gradient_layer,
                                               l.gradient_iter, l.bias, l.dy, l.dh, l.dh, forward);
    } else {
      return typename Backward::primitive_desc(
          engine_, back, cell..., l.direction, l.x, l.h0, l.weights_layer, l.weights_iter, l.bias,
          l.y, l.hn, l.dx, l.dh, l.gradient_layer, l.gradient_iter, l.bias, l.dy, l.dh, forward);
    }
  };
  const auto backward = describe();
  backward_ = Backward(backward);
  kernel_ += std::string(" and ") + backward.impl_info_str();
  packed_back_ = {memory(backward.weights_layer_desc(), engine_),
                  memory(backward.weights_iter_desc(), engine_), plain_.bias};
  raw_gradients_ = {memory(backward.diff_weights_layer_desc(), engine_),
                    memory(backward.diff_weights_iter_desc(), engine_), memory(l.bias, engine_)};
  dx_ = memory(l.dx, engine_);
  // A gradient that is plain already needs no second array.
  const auto plain = [&](const memory& raw, const memory& like) {
    return raw.get_desc() == like.get_desc() ? raw : memory(like.get_desc(), engine_);
  };
  gradients_ = {plain(raw_gradients_.layer, plain_.layer), plain(raw_gradients_.iter, plain_.iter),
                raw_gradients_.bias};
}

Stage::Stage(const StageSizes& sizes, const dnnl::engine& engine, dnnl::stream stream,
             StageWeights weights, memory x)
    : sizes_(sizes),
      engine_(engine),
      stream_(std::move(stream)),
      plain_(std::move(weights)),
      x_(std::move(x)) {
  make_forward(Layouts(sizes));
  pack(packed_.layer, plain_.layer);
  pack(packed_.iter, plain_.iter);
  stream_.wait();
  if (!sizes.training) plain_.layer = plain_.iter = memory();
}

void Stage::make_forward(const Layouts& layouts) {
  if (sizes_.cell == "lstm") {
    make_primitives<dnnl::lstm_forward, dnnl::lstm_backward>(layouts);
  } else if (sizes_.cell == "gru") {
    make_primitives<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>(layouts);
  } else {
    make_primitives<dnnl::vanilla_rnn_forward, dnnl::vanilla_rnn_backward>(
        layouts, dnnl::algorithm::eltwise_tanh);
  }
}

void Stage::pack(memory& to, const memory& from) {
  dnnl::reorder(from, to).execute(stream_, const_cast<memory&>(from), to);
}

void Stage::zero(memory& memory) {
  std::memset(memory.get_data_handle(), 0, memory.get_desc().get_size());
}

void Stage::add_states(Arguments& args) const {
  args.emplace(DNNL_ARG_DST_ITER, hn_);
  if (cn_) args.emplace(DNNL_ARG_DST_ITER_C, cn_);
  if (workspace_) args.emplace(DNNL_ARG_WORKSPACE, workspace_);
  if (h0_) args.emplace(DNNL_ARG_SRC_ITER, h0_);
  if (c0_) args.emplace(DNNL_ARG_SRC_ITER_C, c0_);
}

void Stage::begin_with(const float* h, const float* c) {
  std::memcpy(h0_.get_data_handle(), h, h0_.get_desc().get_size());
  if (c0_) std::memcpy(c0_.get_data_handle(), c, c0_.get_desc().get_size());
}

void Stage::forward() {
  if (sizes_.training) {
    pack(packed_.layer, plain_.layer);
    pack(packed_.iter, plain_.iter);
  }
  Arguments args{{DNNL_ARG_SRC_LAYER, x_},
                 {DNNL_ARG_WEIGHTS_LAYER, packed_.layer},
                 {DNNL_ARG_WEIGHTS_ITER, packed_.iter},
                 {DNNL_ARG_BIAS, packed_.bias},
                 {DNNL_ARG_DST_LAYER, y_}};
  add_states(args);
  forward_.execute(stream_, args);
}

void Stage::backward(const memory& dy) {
  pack(packed_back_.layer, plain_.layer);
  pack(packed_back_.iter, plain_.iter);
  // The primitive adds to what is there.
  zero(raw_gradients_.layer);
  zero(raw_gradients_.iter);
  zero(raw_gradients_.bias);
  Arguments args{{DNNL_ARG_SRC_LAYER, x_},
                 {DNNL_ARG_WEIGHTS_LAYER, packed_back_.layer},
                 {DNNL_ARG_WEIGHTS_ITER, packed_back_.iter},
                 {DNNL_ARG_BIAS, packed_back_.bias},
                 {DNNL_ARG_DST_LAYER, y_},
                 {DNNL_ARG_DIFF_DST_LAYER, dy},
                 {DNNL_ARG_DIFF_DST_ITER, dhn_},
                 {DNNL_ARG_DIFF_SRC_LAYER, dx_},
                 {DNNL_ARG_DIFF_SRC_ITER, dh0_},
                 {DNNL_ARG_DIFF_WEIGHTS_LAYER, raw_gradients_.layer},
                 {DNNL_ARG_DIFF_WEIGHTS_ITER, raw_gradients_.iter},
                 {DNNL_ARG_DIFF_BIAS, raw_gradients_.bias}};
  add_states(args);
  if (cn_) {
    args.emplace(DNNL_ARG_DIFF_DST_ITER_C, dhn_);  // zeros, too
    args.emplace(DNNL_ARG_DIFF_SRC_ITER_C, dc0_);
  }
  backward_.execute(stream_, args);
  if (gradients_.layer != raw_gradients_.layer) pack(gradients_.layer, raw_gradients_.layer);
  if (gradients_.iter != raw_gradients_.iter) pack(gradients_.iter, raw_gradients_.iter);
}

}  // namespace peers
