#include "cudnn/rnn/network.h"

#include <algorithm>

#include "cudnn/rnn/strip.h"

namespace openrnn::cudnn {
namespace {

class ForwardRun {
 public:
  ForwardRun(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args,
             CudnnSaved* saved)
      : packed_(*packed),
        spec_(packed->spec()),
        args_(args),
        saved_(saved),
        drops_(args.training && spec_.training.dropout > 0.0 && spec_.num_layers > 1),
        long_(args.max_time > most_steps()),
        by_layers_(args.layer_outputs || args.layer_cells || long_ || has_too_many_weights(spec_)),
        masks_(drops_ &&
               (by_layers_ || args.dropout.whole_batch > 0 || dropout_by() == DropoutBy::kExact)),
        sequence_(std::make_unique<Sequence>(packed->context(), args, by_layers_ || masks_)),
        copier_(*sequence_, spec_) {
    if (!saved_) return;
    saved_->packed = packed;
    saved_->masked = masks_;
    saved_->key = args.dropout;
    saved_->chunk = most_steps();
  }

  void run() {
    const std::int64_t width = spec_.output_size();
    const bool last_is_callers = sequence_->is_packed() && !saved_;
    take_states();
    const void* in = keep(copier_.pack(args_.x, spec_.input_size, !saved_));
    const std::int64_t stage = by_layers_ || masks_ ? 1 : spec_.num_layers;
    for (std::int64_t layer = 0; layer < spec_.num_layers; layer += stage) {
      const bool last = layer + stage == spec_.num_layers;
      void* out = last && last_is_callers ? args_.y : keep(copier_.vectors(width));
      if (sequence_->rows() > 0) run_stage({layer, stage, -1}, in, out);
      give_layer(layer, stage, in, out);
      if (!last) in = masked(layer, out);
    }
    give_states();
    if (saved_) saved_->sequence = std::move(sequence_);
  }

 private:
  void* keep(std::shared_ptr<void> memory) {
    void* pointer = memory.get();
    (saved_ ? saved_->memory : memory_).push_back(std::move(memory));
    return pointer;
  }

  // Initial states are read before final ones are written, which may be in the same memory.
  void take_states() {
    h0_ = keep(copier_.pack_states(args_.h0, spec_.hidden_size()));
    hn_ = states_for(args_.hn, spec_.hidden_size());
    if (!spec_.is_lstm()) return;
    c0_ = keep(copier_.pack_states(args_.c0, spec_.num_units));
    cn_ = states_for(args_.cn, spec_.num_units);
  }
  void* states_for(void* callers, std::int64_t width) {
    if (!callers) return nullptr;
    return sequence_->states_are_packed() ? callers : keep(copier_.states(width));
  }
  void give_states() {
    if (hn_ != args_.hn) copier_.unpack_states(hn_, spec_.hidden_size(), args_.h0, args_.hn);
    if (cn_ != args_.cn && spec_.is_lstm()) {
      copier_.unpack_states(cn_, spec_.num_units, args_.c0, args_.cn);
    }
  }

  /// The states of a part, of that width.
  template <class Pointer>
  Pointer of_part(Pointer states, const Part& part, std::int64_t width) const {
    return states_of(states, part, spec_, sequence_->rows() * width * element());
  }
  std::int64_t element() const { return static_cast<std::int64_t>(copier_.element_bytes()); }

  void run_stage(const Part& part, const void* in, void* out) {
    SavedStage stage{part, nullptr, {}};
    if (long_) {
      for (int d = 0; d < spec_.num_dirs(); ++d) run_direction(part, d, in, out, stage);
    } else {
      const PieceForward memory{in,
                                out,
                                of_part(static_cast<const void*>(h0_), part, spec_.hidden_size()),
                                of_part(static_cast<const void*>(c0_), part, spec_.num_units),
                                of_part(hn_, part, spec_.hidden_size()),
                                of_part(cn_, part, spec_.num_units)};
      OwnDropout own;
      if (drops_ && !masks_) own = {spec_.training.dropout, args_.dropout.seed, args_.dropout.call};
      const PieceCall call{&packed_.context(), &packed_.part(part), sequence_->all(),
                           saved_ || own.rate > 0.0, own};
      stage.piece = run_piece(call, memory);
    }
    if (saved_) saved_->stages.push_back(std::move(stage));
  }

  void run_direction(const Part& layer, int d, const void* in, void* out, SavedStage& stage) {
    const Part part{layer.layer, 1, d};
    StripForward strip{copier_, *sequence_, packed_.part(part)};
    strip.chunk = most_steps();
    strip.in = in;
    strip.out = out;
    strip.h0 = of_part(static_cast<const void*>(h0_), part, spec_.hidden_size());
    strip.c0 = of_part(static_cast<const void*>(c0_), part, spec_.num_units);
    strip.hn = of_part(hn_, part, spec_.hidden_size());
    strip.cn = of_part(cn_, part, spec_.num_units);
    strip.direction = d;
    strip.directions = spec_.num_dirs();
    SavedStrip* saved = nullptr;
    if (saved_) saved = &stage.strips.emplace_back();
    run_strip(strip, saved, saved_ ? saved_->memory : memory_);
  }

  /// Writes what the caller wants of the layers that were just run.
  void give_layer(std::int64_t layer, std::int64_t layers, const void* in, const void* out) {
    const std::int64_t width = spec_.output_size();
    if (layer + layers == spec_.num_layers) copier_.unpack(out, width, args_.y);
    if (args_.layer_outputs && args_.layer_outputs[layer]) {
      copier_.unpack(out, width, args_.layer_outputs[layer]);
    }
    if (args_.layer_cells && args_.layer_cells[layer]) give_cells(layer, in);
  }

  // cuDNN does not return the cells of the steps, so the layer is run again, one call a step.
  void give_cells(std::int64_t layer, const void* in) {
    std::vector<std::shared_ptr<void>> memory;
    const std::int64_t width = spec_.num_dirs() * spec_.num_units;
    const auto cells = copier_.vectors(width);
    const auto out = copier_.vectors(spec_.output_size());
    for (int d = 0; d < spec_.num_dirs() && sequence_->rows() > 0; ++d) {
      const Part part{layer, 1, d};
      StripForward strip{copier_, *sequence_, packed_.part(part)};
      strip.chunk = 1;
      strip.in = in;
      strip.out = out.get();
      strip.cells = cells.get();
      strip.h0 = of_part(static_cast<const void*>(h0_), part, spec_.hidden_size());
      strip.c0 = of_part(static_cast<const void*>(c0_), part, spec_.num_units);
      strip.direction = d;
      strip.directions = spec_.num_dirs();
      run_strip(strip, nullptr, memory);
    }
    copier_.unpack(cells.get(), width, args_.layer_cells[layer]);
  }

  /// What the next layer reads.
  const void* masked(std::int64_t layer, void* out) {
    if (!masks_) return out;
    // A saved output stays as it was.
    void* to = saved_ ? keep(copier_.vectors(spec_.output_size())) : out;
    if (sequence_->rows() > 0) {
      copier_.mask(args_.dropout, layer, spec_.training.dropout, spec_.output_size(), out, to);
    }
    return to;
  }

  const CudnnPacked& packed_;
  const RnnSpec& spec_;
  const ForwardArgs& args_;
  CudnnSaved* saved_;
  bool drops_, long_, by_layers_, masks_;
  std::unique_ptr<Sequence> sequence_;
  SequenceCopier copier_;
  std::vector<std::shared_ptr<void>> memory_;
  void *h0_ = nullptr, *c0_ = nullptr, *hn_ = nullptr, *cn_ = nullptr;
};

}  // namespace

void run_network(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args,
                 CudnnSaved* saved, const Enqueue& enqueue) {
  const Context::Current current(packed->context());
  ForwardRun run(packed, args, saved);
  if (enqueue) {
    enqueue([&run] { run.run(); });
  } else {
    run.run();
  }
}

}  // namespace openrnn::cudnn
