// Calls of the GPU engine over its own memory, with and without graphs.
#pragma once

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cudnn/calls/counted.h"
#include "cudnn/graphs/graph_cache.h"
#include "openrnn/device.h"
#include "support/setting.h"

namespace openrnn::conformance {

inline const Device& gpu() { return gpu_device(0); }

/// A test that begins without graphs, and without any that were made before.
class WithoutGraphs : public ::testing::Test {
 protected:
  void SetUp() override { cudnn::GraphCache::of(cudnn::Context::of(0)).clear(); }

 private:
  openrnn::testing::Setting off_{"OPENRNN_CUDA_GRAPHS", "0"};
};

/// While it lives, calls are recorded and run by graphs.
struct Graphs : openrnn::testing::Setting {
  Graphs() : Setting("OPENRNN_CUDA_GRAPHS", "1") {}
};

/// -1 on a GPU, which does not count.
inline long graph_launches() {
  return openrnn::testing::stand_in_count("stand_in_graph_launches").value_or(-1);
}
inline long graphs_alive() {
  return openrnn::testing::stand_in_count("stand_in_graphs").value_or(-1);
}

/// Graphs that were launched while it lives.
class Launches {
 public:
  /// Fails unless there were so many, where they are counted.
  void expect(long count) const {
    if (before_ < 0) return;
    EXPECT_EQ(graph_launches() - before_, count);
  }

 private:
  long before_ = graph_launches();
};

/// Parameters on a GPU, packed.
inline std::shared_ptr<const PackedParams> packed_of(const Case& c, const Data& d,
                                                     PackFor purpose = PackFor::kTraining,
                                                     const Device& where = gpu()) {
  const auto params = DeviceArray::from_host(where, d.params.view());
  return where.engine()->pack(c.spec, {params.data(), params.dtype(), params.shape()}, purpose);
}

/// The arrays of one call, on a GPU.
class DeviceCall {
 public:
  DeviceCall(const Case& c, const Data& d, const Device& where = gpu()) : c_(c), where_(where) {
    const auto up = [&](const Array& array) { return DeviceArray::from_host(where, array.view()); };
    x_ = up(d.x);
    h0_ = up(d.h0);
    c0_ = up(d.c0);
    dy_ = up(d.dy);
    dhn_ = up(d.dhn);
    dcn_ = up(d.dcn);
    ForwardBuffers wrong = forward_buffers(c);
    y_ = up(wrong.y);
    hn_ = up(wrong.hn);
    cn_ = up(wrong.cn);
    const auto room = [&](std::int64_t size) { return DeviceArray(where, c.spec.dtype, {size}); };
    dx_ = room(c.seq_size(c.spec.input_size));
    dh0_ = room(c.h_size());
    dc0_ = room(c.c_size());
    dparams_ = room(params_size(c.spec));
  }

  ForwardArgs args(std::shared_ptr<const PackedParams> params, bool training) {
    ForwardArgs args = args_without_arrays(c_, std::move(params), training);
    args.x = x_.data();
    args.y = y_.mutable_data();
    args.hn = hn_.mutable_data();
    if (!c_.null_states) args.h0 = h0_.data();
    if (c_.spec.is_lstm()) {
      args.cn = cn_.mutable_data();
      if (!c_.null_states) args.c0 = c0_.data();
    }
    return args;
  }
  void infer(const std::shared_ptr<const PackedParams>& params) {
    where_.engine()->forward(args(params, false));
  }
  std::unique_ptr<SavedForward> save(const std::shared_ptr<const PackedParams>& params) {
    return where_.engine()->forward_saving(args(params, true));
  }
  void backward(const SavedForward& saved, bool of_inputs = true) {
    BackwardArgs args;
    args.saved = &saved;
    args.dy = dy_.data();
    args.dhn = dhn_.data();
    if (of_inputs) args.dx = dx_.mutable_data();
    if (of_inputs) args.dh0 = dh0_.mutable_data();
    if (c_.spec.is_lstm()) {
      args.dcn = dcn_.data();
      if (of_inputs) args.dc0 = dc0_.mutable_data();
    }
    args.dparams = dparams_.mutable_data();
    where_.engine()->backward(args);
  }

  Result outputs() const {
    Result found;
    append_forward(found, "", {y_.to_host(), hn_.to_host(), cn_.to_host()});
    return found;
  }
  Result gradients() const {
    Result found;
    found.parts.emplace_back("dx", dx_.to_host());
    found.parts.emplace_back("dh0", dh0_.to_host());
    found.parts.emplace_back("dc0", dc0_.to_host());
    found.parts.emplace_back("dparams", dparams_.to_host());
    return found;
  }

 private:
  const Case& c_;
  const Device& where_;
  DeviceArray x_, h0_, c0_, dy_, dhn_, dcn_, y_, hn_, cn_, dx_, dh0_, dc0_, dparams_;
};

inline Result inferred(const Case& c, const Data& d,
                       const std::shared_ptr<const PackedParams>& params) {
  DeviceCall call(c, d);
  call.infer(params);
  return call.outputs();
}

/// Outputs and gradients of a training step without its update.
inline Result trained(const Case& c, const Data& d,
                      const std::shared_ptr<const PackedParams>& params,
                      const Device& where = gpu()) {
  DeviceCall call(c, d, where);
  const auto saved = call.save(params);
  call.backward(*saved);
  Result found = call.outputs();
  for (auto& part : call.gradients().parts) found.parts.push_back(std::move(part));
  return found;
}

}  // namespace openrnn::conformance
