#include "cudnn/rnn/strip.h"

#include <algorithm>

namespace openrnn::cudnn {
namespace {

template <class Pointer>
Pointer offset(Pointer base, std::int64_t bytes) {
  if (!base) return nullptr;
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(base) + bytes;
}

/// Memory and copies of one strip.
class Strip {
 public:
  Strip(const SequenceCopier& copier, const Sequence& sequence, const PartWeights& weights)
      : copier_(copier), sequence_(sequence), spec_(weights.spec) {}

  std::int64_t bytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(copier_.element_bytes());
  }
  std::shared_ptr<void> states(std::int64_t rows, std::int64_t width) const {
    return context().allocate(static_cast<std::size_t>(bytes(rows * width)));
  }
  Context& context() const { return sequence_.context(); }
  const RnnSpec& spec() const { return spec_; }

  /// Initial states of every row, to be overwritten as rows end or begin.
  std::shared_ptr<void> start(const void* from, std::int64_t width) const {
    auto to = states(sequence_.rows(), width);
    const auto size = static_cast<std::size_t>(bytes(sequence_.rows() * width));
    if (from) {
      context().copy(to.get(), from, size);
    } else {
      context().zero(to.get(), size);
    }
    return to;
  }

 private:
  const SequenceCopier& copier_;
  const Sequence& sequence_;
  const RnnSpec& spec_;
};

/// Final states of one chunk, of its rows.
struct Chunk {
  std::shared_ptr<void> h, c;
};

}  // namespace

void run_strip(const StripForward& s, SavedStrip* saved,
               std::vector<std::shared_ptr<void>>& memory) {
  const Strip strip(s.copier, s.sequence, s.weights);
  const RnnSpec& spec = strip.spec();
  const std::int64_t in = spec.input_size, out = spec.hidden_size(), units = spec.num_units;
  const bool reversed = s.direction == 1;
  const auto keep = [&memory](std::shared_ptr<void> block) {
    memory.push_back(std::move(block));
    return memory.back().get();
  };
  const void* x = s.in;
  if (reversed) {
    void* backwards = keep(s.copier.vectors(in));
    s.copier.move({s.in, in, backwards, in, in, true, false});
    x = backwards;
  }
  void* y = keep(s.copier.vectors(out));
  void* cells = s.cells ? keep(s.copier.vectors(units)) : nullptr;
  const void *h = s.h0, *c = s.c0;
  for (const Slice& slice : cut(s.sequence, s.chunk)) {
    void* h_after = keep(strip.states(slice.rows, out));
    // The cells of a call of one step are its last ones.
    void* c_after = cells            ? offset(cells, strip.bytes(slice.start * units))
                    : spec.is_lstm() ? keep(strip.states(slice.rows, units))
                                     : nullptr;
    const PieceCall call{&strip.context(), &s.weights, slice, saved != nullptr, {}, s.chunk > 1};
    auto piece =
        run_piece(call, {offset(x, strip.bytes(slice.start * in)),
                         offset(y, strip.bytes(slice.start * out)), h, c, h_after, c_after});
    if (saved) saved->pieces.push_back(std::move(piece));
    // Rows that end later, which come first, overwrite theirs.
    const auto bytes = [&](std::int64_t width) {
      return static_cast<std::size_t>(strip.bytes(slice.rows * width));
    };
    if (s.hn) strip.context().copy(s.hn, h_after, bytes(out));
    if (s.cn && c_after) strip.context().copy(s.cn, c_after, bytes(units));
    h = h_after;
    c = c_after;
  }
  const auto place = [&](const void* from, std::int64_t width, void* to) {
    s.copier.move({from, width, offset(to, strip.bytes(s.direction * width)), s.directions * width,
                   width, reversed, false});
  };
  place(y, out, s.out);
  if (cells) place(cells, units, s.cells);
}

void run_strip_gradient(const StripBackward& s) {
  const Strip strip(s.copier, s.sequence, s.weights);
  const RnnSpec& spec = strip.spec();
  const std::int64_t in = spec.input_size, out = spec.hidden_size(), units = spec.num_units;
  const bool reversed = s.direction == 1;
  const auto dy = s.copier.vectors(out), dx = s.copier.vectors(in);
  s.copier.move({offset(s.dout, strip.bytes(s.direction * out)), s.directions * out, dy.get(), out,
                 out, reversed, false});
  // Gradients of final states, kept until the chunk where a row ends.
  const auto dh = strip.start(s.dhn, out);
  const auto dc = spec.is_lstm() ? strip.start(s.dcn, units) : nullptr;
  const std::vector<Slice> slices = cut(s.sequence, s.chunk);
  for (std::size_t n = slices.size(); n-- > 0;) {
    const Slice& slice = slices[n];
    const auto dh_before = strip.states(slice.rows, out);
    const auto dc_before = spec.is_lstm() ? strip.states(slice.rows, units) : nullptr;
    s.saved.pieces[n]->backward(
        {offset(static_cast<const void*>(dy.get()), strip.bytes(slice.start * out)), dh.get(),
         dc.get(), offset(dx.get(), strip.bytes(slice.start * in)), dh_before.get(),
         dc_before.get(), s.dweights});
    const auto bytes = [&](std::int64_t width) {
      return static_cast<std::size_t>(strip.bytes(slice.rows * width));
    };
    strip.context().copy(dh.get(), dh_before.get(), bytes(out));
    if (dc) strip.context().copy(dc.get(), dc_before.get(), bytes(units));
  }
  const auto give = [&](void* to, const std::shared_ptr<void>& from, std::int64_t width) {
    if (!to || !from) return;
    strip.context().copy(to, from.get(),
                         static_cast<std::size_t>(strip.bytes(s.sequence.rows() * width)));
  };
  give(s.dh0, dh, out);
  give(s.dc0, dc, units);
  s.copier.move({dx.get(), in, s.din, in, in, reversed, s.direction > 0});
}

}  // namespace openrnn::cudnn
