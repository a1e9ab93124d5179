#include <numeric>

#include "base/message.h"
#include "engine/tangent.h"
#include "reference/reference.h"
#include "reference/sequence_gradient.h"
#include "reference/tangent.h"
#include "reference/write.h"

namespace openrnn {
namespace {

using namespace reference;  // NOLINT: this file is that namespace's face

class ReferencePacked : public PackedParams {
 public:
  ReferencePacked(const RnnSpec& spec, PackFor purpose, const ConstArrayView& params)
      : PackedParams(spec, purpose), net(make_network(spec)), values(net.size) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = element(params, static_cast<std::int64_t>(k));
    }
    store_weights(net, values);
  }
  const Network net;
  std::vector<double> values;
};

class ReferenceSaved : public SavedForward {
 public:
  std::shared_ptr<const ReferencePacked> packed;
  Call call;
  Tape<double> tape;
};

std::shared_ptr<const ReferencePacked> own_params(
    std::string_view call, const std::shared_ptr<const PackedParams>& params) {
  auto own = std::dynamic_pointer_cast<const ReferencePacked>(params);
  if (!own) {
    throw ArgumentError(
        message("[", call, "] params were packed by another engine, expected reference"));
  }
  return own;
}

Call call_of(const ForwardArgs& args) {
  Call call;
  call.max_time = static_cast<std::size_t>(args.max_time);
  call.batch = static_cast<std::size_t>(args.batch);
  call.time_major = args.time_major;
  call.lengths.assign(call.batch, call.max_time);
  if (args.sequence_lengths) {
    for (std::size_t b = 0; b < call.batch; ++b) {
      call.lengths[b] = static_cast<std::size_t>(args.sequence_lengths[b]);
    }
  }
  call.training = args.training;
  call.key = args.dropout;
  return call;
}

/// The whole array of one argument, as one dimension.
ConstArrayView flat(const Network& net, const void* data, std::size_t size) {
  return {data, net.dtype, {static_cast<std::int64_t>(size)}};
}

ForwardResult<double> run_forward(const ReferencePacked& packed, const Call& call,
                                  const ForwardArgs& args) {
  const Network& net = packed.net;
  const std::size_t states = net.pseudo.size() * call.batch;
  const std::size_t steps = call.max_time * call.batch;
  auto result = reference::forward<double>(
      net, call,
      {packed.values.data(), flat(net, args.x, steps * net.pseudo[0].input),
       flat(net, args.h0, states * net.hidden), flat(net, args.c0, states * net.units)});
  // Every input has been read, so that hn may be h0 and cn may be c0.
  write(net.dtype, result.y, args.y);
  write(net.dtype, result.hn, args.hn);
  if (net.has_cell) write(net.dtype, result.cn, args.cn);
  for (std::size_t layer = 0; layer < net.layers; ++layer) {
    if (args.layer_outputs && args.layer_outputs[layer]) {
      write(net.dtype, every_step(net, call, result.tape, layer, &Step<double>::h, net.hidden),
            args.layer_outputs[layer]);
    }
    if (args.layer_cells && args.layer_cells[layer]) {
      write(net.dtype, every_step(net, call, result.tape, layer, &Step<double>::c, net.units),
            args.layer_cells[layer]);
    }
  }
  return result;
}

class ReferenceEngine : public Engine {
 public:
  constexpr ReferenceEngine() = default;
  constexpr ~ReferenceEngine() override {}  // a defaulted one comes too late for g++ 12
  std::string_view name() const override { return "reference"; }
  std::string description() const override {
    return "plain loops in double, one thread: slow, for comparison";
  }
  std::string unsupported(const RnnSpec& spec) const override { return unsupported_on_cpu(spec); }
  std::string_view math_kind(const RnnSpec& spec) const override {
    if (spec.dtype == DType::kFloat64) return "float64";
    if (spec.compute.weights_dtype == WeightsDType::kInt8) return "int8";
    return spec.compute.math == Math::kBf16 ? "dot" : to_string(spec.compute.math);
  }

  bool has_row_gradients() const override { return true; }
  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    check_pack(*this, spec, options.purpose);
    check_params("pack", spec, params, static_cast<std::int64_t>(make_network(spec).size));
    return std::make_shared<ReferencePacked>(spec, options.purpose, params);
  }

  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams>,
                                            const WorkspaceLimits&) const override {
    return std::make_unique<Workspace>();
  }

  void forward(const ForwardArgs& args, Workspace*) const override {
    check_forward("forward", args);
    run_forward(*own_params("forward", args.params), call_of(args), args);
  }

  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    check_forward("forward_saving", args);
    check_recompute(*this, args.recompute);
    check_reserve("forward_saving", *this, args);
    if (args.params->purpose() != PackFor::kTraining) {
      throw StateError(
          "[forward_saving] params are packed for inference, expected them packed for training");
    }
    auto saved = std::make_unique<ReferenceSaved>();
    saved->packed = own_params("forward_saving", args.params);
    saved->call = call_of(args);
    saved->tape = run_forward(*saved->packed, saved->call, args).tape;
    return saved;
  }

  void backward(const BackwardArgs& args) const override {
    const auto* saved = dynamic_cast<const ReferenceSaved*>(args.saved);
    if (!saved) {
      throw ArgumentError(message("[backward] saved is ", args.saved ? "of another engine" : "null",
                                  ", expected what forward_saving of reference returned"));
    }
    check_rows(*this, args, static_cast<std::int64_t>(saved->call.batch));
    const Network& net = saved->packed->net;
    const std::size_t states = net.pseudo.size() * saved->call.batch;
    const std::size_t steps = saved->call.max_time * saved->call.batch;
    const auto result = reference::backward<double>(
        net, saved->call, saved->tape,
        {saved->packed->values.data(), flat(net, args.dy, steps * net.dirs * net.hidden),
         flat(net, args.dhn, states * net.hidden), flat(net, args.dcn, states * net.units),
         args.row_norms || args.row_dparams});
    write(net.dtype, result.dx, args.dx);
    write(net.dtype, result.dh0, args.dh0);
    if (net.has_cell) write(net.dtype, result.dc0, args.dc0);
    write(net.dtype, result.dparams, args.dparams);
    write_rows(net, result.rows, args);
  }

 private:
  static void write_rows(const Network& net, const std::vector<std::vector<double>>& rows,
                         const BackwardArgs& args) {
    for (std::size_t b = 0; args.row_norms && b < rows.size(); ++b) {
      args.row_norms[b] = std::inner_product(rows[b].begin(), rows[b].end(), rows[b].begin(), 0.0);
    }
    if (!args.row_dparams) return;
    std::vector<double> wanted;
    for (std::int64_t b = args.first_row; b < args.last_row; ++b) {
      const std::vector<double>& row = rows[static_cast<std::size_t>(b)];
      wanted.insert(wanted.end(), row.begin(), row.end());
    }
    write(net.dtype, wanted, args.row_dparams);
  }

  bool has_tangent(const RnnSpec& spec) const override { return tangents_know(spec); }
  void tangent(const TangentArgs& args) const override {
    if (!has_tangent(args.spec)) Engine::tangent(args);
    reference::tangent(args);
  }
};

// A constant: initialization of a static local by another thread at a fork never ends in the child.
constexpr ReferenceEngine kEngine;

}  // namespace

const Engine& reference_engine() { return kEngine; }

}  // namespace openrnn
