#include "cudnn/rnn/strip.h"

namespace openrnn::cudnn {
namespace {

class BackwardRun {
 public:
  BackwardRun(const CudnnSaved& saved, const BackwardArgs& args)
      : saved_(saved),
        packed_(*saved.packed),
        spec_(packed_.spec()),
        args_(args),
        sequence_(*saved.sequence),
        copier_(sequence_, spec_),
        context_(packed_.context()) {}

  void run() {
    if (sequence_.rows() == 0) return run_nothing();
    dhn_ = copier_.pack_states(args_.dhn, spec_.hidden_size());
    dh0_ = copier_.states(spec_.hidden_size());
    if (spec_.is_lstm()) {
      dcn_ = copier_.pack_states(args_.dcn, spec_.num_units);
      dc0_ = copier_.states(spec_.num_units);
    }
    std::shared_ptr<void> dout = first_gradient();
    for (std::size_t n = saved_.stages.size(); n-- > 0;) {
      const SavedStage& stage = saved_.stages[n];
      auto din = copier_.vectors(spec_.layer_input_size(stage.part.layer));
      run_stage(stage, dout.get(), din.get());
      if (n > 0 && saved_.masked) {
        copier_.mask(saved_.key, stage.part.layer - 1, spec_.training.dropout, spec_.output_size(),
                     din.get(), din.get());
      }
      dout = std::move(din);
    }
    if (args_.dx) copier_.unpack(dout.get(), spec_.input_size, args_.dx);
    copier_.unpack_states(dh0_.get(), spec_.hidden_size(), args_.dhn, args_.dh0);
    if (spec_.is_lstm()) {
      copier_.unpack_states(dc0_.get(), spec_.num_units, args_.dcn, args_.dc0);
    }
  }

 private:
  // Every row is empty: gradients of states pass through, all others are 0.
  void run_nothing() {
    if (args_.dx) copier_.unpack(nullptr, spec_.input_size, args_.dx);
    copier_.unpack_states(nullptr, spec_.hidden_size(), args_.dhn, args_.dh0);
    if (spec_.is_lstm()) {
      copier_.unpack_states(nullptr, spec_.num_units, args_.dcn, args_.dc0);
    }
    if (args_.dparams) {
      context_.zero(args_.dparams,
                    static_cast<std::size_t>(packed_.layout().size()) * copier_.element_bytes());
    }
  }

  std::shared_ptr<void> first_gradient() const {
    if (args_.dy) return copier_.pack(args_.dy, spec_.output_size(), true);
    auto zeros = copier_.vectors(spec_.output_size());
    context_.zero(zeros.get(), static_cast<std::size_t>(sequence_.count() * spec_.output_size()) *
                                   copier_.element_bytes());
    return zeros;
  }

  template <class Pointer>
  Pointer of_part(Pointer states, const Part& part, std::int64_t width) const {
    return states_of(states, part, spec_,
                     sequence_.rows() * width * static_cast<std::int64_t>(copier_.element_bytes()));
  }

  /// Runs `body` with zeros in which a part's gradient gathers, and gives them to the caller.
  template <class Body>
  void with_gradient_of(const PartWeights& part, const Body& body) {
    if (!args_.dparams) return body(nullptr);
    const bool direct = part.map->is_ours && part.map->size == packed_.layout().size();
    const auto own = direct ? nullptr : context_.allocate(part.bytes());
    void* gradient = direct ? args_.dparams : own.get();
    context_.zero(gradient, part.bytes());
    body(gradient);
    if (!direct) unpack_gradient(context_, part, gradient, args_.dparams);
  }

  void run_stage(const SavedStage& stage, const void* dout, void* din) {
    if (!stage.piece) {
      for (int d = 0; d < spec_.num_dirs(); ++d) run_direction(stage, d, dout, din);
      return;
    }
    with_gradient_of(packed_.part(stage.part), [&](void* dweights) {
      const Part& part = stage.part;
      stage.piece->backward({dout, of_part<const void*>(dhn_.get(), part, spec_.hidden_size()),
                             of_part<const void*>(dcn_.get(), part, spec_.num_units), din,
                             of_part(dh0_.get(), part, spec_.hidden_size()),
                             of_part(dc0_.get(), part, spec_.num_units), dweights});
    });
  }

  void run_direction(const SavedStage& stage, int d, const void* dout, void* din) {
    const Part part{stage.part.layer, 1, d};
    const PartWeights& weights = packed_.part(part);
    with_gradient_of(weights, [&](void* dweights) {
      StripBackward strip{copier_, sequence_, weights, stage.strips[static_cast<std::size_t>(d)]};
      strip.chunk = saved_.chunk;
      strip.direction = d;
      strip.directions = spec_.num_dirs();
      strip.dout = dout;
      strip.din = din;
      strip.dhn = of_part<const void*>(dhn_.get(), part, spec_.hidden_size());
      strip.dcn = of_part<const void*>(dcn_.get(), part, spec_.num_units);
      strip.dh0 = of_part(dh0_.get(), part, spec_.hidden_size());
      strip.dc0 = of_part(dc0_.get(), part, spec_.num_units);
      strip.dweights = dweights;
      run_strip_gradient(strip);
    });
  }

  const CudnnSaved& saved_;
  const CudnnPacked& packed_;
  const RnnSpec& spec_;
  const BackwardArgs& args_;
  const Sequence& sequence_;
  SequenceCopier copier_;
  Context& context_;
  std::shared_ptr<void> dhn_, dcn_, dh0_, dc0_;
};

}  // namespace

void run_gradient(const CudnnSaved& saved, const BackwardArgs& args) {
  const Context::Current current(saved.packed->context());
  BackwardRun(saved, args).run();
}

}  // namespace openrnn::cudnn
