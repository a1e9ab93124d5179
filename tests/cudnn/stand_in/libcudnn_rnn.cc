// cuDNN's functions that compute, or that say what computing needs.
#include <cudnn.h>

#include <cstring>

#include "cudnn/stand_in/faults.h"
#include "cudnn/stand_in/libcudnn.h"
#include "cudnn/stand_in/machine.h"
#include "cudnn/stand_in/rnn_on_cpu.h"
#include "openrnn/params.h"

namespace openrnn::stand_in {
namespace {

int directions(const RnnDescriptor& rnn) { return rnn.direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }

std::size_t weight_bytes(const RnnDescriptor& rnn) {
  // What the real ones do from there on: success, and a size that has wrapped.
  std::int64_t matrices = 0;
  const openrnn::ParamsLayout layout(rnn.spec());
  for (const openrnn::ParamRegion& region : layout.weights()) matrices += region.size();
  if (matrices > setting("STAND_IN_MAX_WEIGHTS", 0x7FFFFFFF)) return SIZE_MAX - 15;
  return static_cast<std::size_t>(weight_places(rnn.spec()).size) * bytes_of_type(rnn.type);
}

// Some sizes that depend on everything they may depend on; no multiples of anything.
std::size_t reserve_bytes(const RnnDescriptor& rnn, const DataDescriptor& x) {
  return 8 * static_cast<std::size_t>(x.count() * directions(rnn) * rnn.layers + rnn.hidden + 16) +
         5;
}
std::size_t work_bytes(const RnnDescriptor& rnn, const DataDescriptor& x, bool training) {
  return static_cast<std::size_t>(std::int64_t{8} * rnn.hidden * x.batch + (training ? 4099 : 259) +
                                  64 * static_cast<std::int64_t>(rnn.algo));
}

// What the small-hidden algorithm takes.
int most_small_units(const RnnDescriptor& rnn, bool training) {
  const bool gated = rnn.cell == CUDNN_LSTM || rnn.cell == CUDNN_GRU;
  return gated ? (training ? 128 : 192) : (training ? 256 : 384);
}

cudnnStatus_t check_network(const RnnDescriptor& rnn, const DataDescriptor& x, bool training) {
  if (x.width != rnn.input_size || x.type != rnn.type) return CUDNN_STATUS_BAD_PARAM;
  if (rnn.input == CUDNN_SKIP_INPUT && rnn.input_size != rnn.hidden) return CUDNN_STATUS_BAD_PARAM;
  const bool padded = (rnn.flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0;
  if (x.packed() == padded) return CUDNN_STATUS_BAD_PARAM;
  if (rnn.algo == CUDNN_RNN_ALGO_STANDARD) return CUDNN_STATUS_SUCCESS;
  if (rnn.algo == CUDNN_RNN_ALGO_PERSIST_DYNAMIC || !x.even()) return CUDNN_STATUS_NOT_SUPPORTED;
  if (rnn.algo == CUDNN_RNN_ALGO_PERSIST_STATIC &&
      rnn.hidden > setting("STAND_IN_MOST_PERSISTENT", 1024)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (rnn.algo == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H &&
      rnn.hidden > most_small_units(rnn, training)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_output(const RnnDescriptor& rnn, const DataDescriptor& x,
                           const DataDescriptor& y) {
  const bool fits = y.width == directions(rnn) * rnn.projection && y.type == x.type &&
                    y.layout == x.layout && y.time == x.time && y.batch == x.batch &&
                    y.lengths == x.lengths;
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t check_state(const RnnDescriptor& rnn, int batch, int width,
                          cudnnTensorDescriptor_t descriptor) {
  if (!descriptor) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const TensorDescriptor& d = *inside<TensorDescriptor>(descriptor);
  const std::vector<int> dims = {rnn.layers * directions(rnn), batch, width};
  const std::vector<int> strides = {batch * width, width, 1};
  const bool fits = d.type == rnn.type && d.dims == dims && d.strides == strides;
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t check_states(const RnnDescriptor& rnn, int batch, cudnnTensorDescriptor_t h,
                           cudnnTensorDescriptor_t c) {
  if (const auto bad = check_state(rnn, batch, rnn.projection, h); bad) return bad;
  return rnn.cell == CUDNN_LSTM ? check_state(rnn, batch, rnn.hidden, c) : CUDNN_STATUS_SUCCESS;
}

// As large as was said, and on the device.
cudnnStatus_t check_space(const void* space, std::size_t bytes, std::size_t wanted) {
  if (bytes != wanted) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  if (!space || !contains(reinterpret_cast<std::uint64_t>(space), bytes)) {
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  return CUDNN_STATUS_SUCCESS;
}

/// Kernels may move words of 16 bytes. Null is aligned.
cudnnStatus_t check_alignment(std::initializer_list<const void*> addresses) {
  for (const void* address : addresses) {
    if (reinterpret_cast<std::uint64_t>(address) % 16 != 0) {
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

template <class... Checks>
cudnnStatus_t first_problem(Checks... checks) {
  cudnnStatus_t found = CUDNN_STATUS_SUCCESS;
  ((found = found == CUDNN_STATUS_SUCCESS ? checks() : found), ...);
  return answer(found);
}

double milliseconds(const RnnDescriptor& rnn) {
  static constexpr const char* kNames[] = {"STAND_IN_TIME_STANDARD", "STAND_IN_TIME_STATIC",
                                           "STAND_IN_TIME_DYNAMIC", "STAND_IN_TIME_SMALL_H"};
  const double base = static_cast<double>(setting(kNames[rnn.algo], 4));
  return base + ((rnn.flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0 ? 0.5 : 0.0);
}

/// Enqueues `work`, whose results are `call`'s.
template <class Call>
cudnnStatus_t submit(const char* name, cudnnHandle_t handle, void* space, std::size_t bytes,
                     const Call& call, void (*work)(const Call&)) {
  if (!is_whole(name) || may_enqueue(*inside<Stream>(handle)) != CaptureAnswer::kAllowed) {
    return answer(CUDNN_STATUS_EXECUTION_FAILED);
  }
  enqueue(*inside<Stream>(handle), [call, work, space, bytes, time = milliseconds(call.rnn)] {
    std::memset(host_of<char>(space, bytes), 0xFF, bytes);
    run_persistent(call.rnn, call.x_at.batch);
    work(call);
    spoil(call);
    advance_clock(time);
  });
  return answer(broken().empty() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED);
}

}  // namespace
}  // namespace openrnn::stand_in

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

extern "C" {

STAND_IN_API cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                                      std::size_t* bytes) {
  if (!handle || !d) return answer(CUDNN_STATUS_BAD_PARAM);
  *bytes = weight_bytes(*inside<RnnDescriptor>(d));
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                                   std::int32_t pseudo, std::size_t bytes,
                                                   const void* base, std::int32_t id,
                                                   cudnnTensorDescriptor_t matrix, void** matrix_at,
                                                   cudnnTensorDescriptor_t bias, void** bias_at) {
  const RnnDescriptor& rnn = *inside<RnnDescriptor>(d);
  const openrnn::RnnSpec spec = rnn.spec();
  const openrnn::ParamsLayout layout(spec);
  const WeightPlaces places = weight_places(spec);
  if (!handle || bytes < weight_bytes(rnn)) return answer(CUDNN_STATUS_BAD_PARAM);
  const auto give = [&](auto regions, const auto& starts, cudnnTensorDescriptor_t to, void** at) {
    *at = nullptr;
    *inside<TensorDescriptor>(to) = {rnn.type, {0, 0, 0}, {0, 0, 0}};
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const openrnn::ParamRegion& region = regions[r];
      if (region.layer * spec.num_dirs() + region.direction != pseudo || region.slot != id ||
          region.size() == 0) {
        continue;
      }
      const int rows = static_cast<int>(region.rows), cols = static_cast<int>(region.cols);
      *inside<TensorDescriptor>(to) = {rnn.type, {1, rows, cols}, {rows * cols, cols, 1}};
      const auto offset = static_cast<std::uint64_t>(starts[r]) * bytes_of_type(rnn.type);
      *at = static_cast<char*>(const_cast<void*>(base)) + offset;
    }
  };
  give(layout.weights(), places.weights, matrix, matrix_at);
  give(layout.biases(), places.biases, bias, bias_at);
  return CUDNN_STATUS_SUCCESS;
}

STAND_IN_API cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                                     cudnnForwardMode_t mode,
                                                     cudnnRNNDataDescriptor_t x, std::size_t* work,
                                                     std::size_t* reserve) {
  if (!handle || !d || !x) return answer(CUDNN_STATUS_BAD_PARAM);
  const RnnDescriptor& rnn = *inside<RnnDescriptor>(d);
  const DataDescriptor& at = *inside<DataDescriptor>(x);
  const bool training = mode == CUDNN_FWD_MODE_TRAINING;
  if (work) *work = work_bytes(rnn, at, training);
  if (reserve) *reserve = training ? reserve_bytes(rnn, at) : 0;
  return answer(check_network(rnn, at, training));
}

STAND_IN_API cudnnStatus_t
cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnForwardMode_t mode,
                const std::int32_t* device_lengths, cudnnRNNDataDescriptor_t x_at, const void* x,
                cudnnRNNDataDescriptor_t y_at, void* y, cudnnTensorDescriptor_t h_at,
                const void* hx, void* hy, cudnnTensorDescriptor_t c_at, const void* cx, void* cy,
                std::size_t weight_size, const void* weights, std::size_t work_size, void* work,
                std::size_t reserve_size, void* reserve) {
  if (!handle || device_lengths || !x || !y || (hx && hx == hy) || (cx && cx == cy)) {
    return answer(CUDNN_STATUS_BAD_PARAM);
  }
  const bool training = mode == CUDNN_FWD_MODE_TRAINING;
  RnnCall call{
      *inside<RnnDescriptor>(d),
      *inside<DataDescriptor>(x_at),
      *inside<DataDescriptor>(y_at),
      x,
      hx,
      cx,
      weights,
      y,
      hy,
      cy,
      training ? reserve : nullptr,
      training ? reserve_bytes(*inside<RnnDescriptor>(d), *inside<DataDescriptor>(x_at)) : 0};
  const auto& rnn = call.rnn;
  if (const auto bad = first_problem(
          [&] { return check_network(rnn, call.x_at, training); },
          [&] {
            return check_alignment({x, hx, cx, y, hy, cy, weights, work, reserve});
          },
          [&] { return check_output(rnn, call.x_at, call.y_at); },
          [&] { return check_states(rnn, call.x_at.batch, h_at, c_at); },
          [&] { return check_space(weights, weight_size, weight_bytes(rnn)); },
          [&] { return check_space(work, work_size, work_bytes(rnn, call.x_at, training)); },
          [&] {
            return training ? check_space(reserve, reserve_size, reserve_bytes(rnn, call.x_at))
                            : CUDNN_STATUS_SUCCESS;
          });
      bad != CUDNN_STATUS_SUCCESS) {
    return bad;
  }
  return submit("cudnnRNNForward", handle, work, work_size, call, run_forward);
}

STAND_IN_API cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t d, const std::int32_t* device_lengths,
    cudnnRNNDataDescriptor_t y_at, const void* y, const void* dy, cudnnRNNDataDescriptor_t x_at,
    void* dx, cudnnTensorDescriptor_t h_at, const void* hx, const void* dhy, void* dhx,
    cudnnTensorDescriptor_t c_at, const void* cx, const void* dcy, void* dcx,
    std::size_t weight_size, const void* weights, std::size_t work_size, void* work,
    std::size_t reserve_size, void* reserve) {
  if (!handle || device_lengths || !y || !dy || !dx) return answer(CUDNN_STATUS_BAD_PARAM);
  RnnGradient call{*inside<RnnDescriptor>(d),
                   *inside<DataDescriptor>(x_at),
                   *inside<DataDescriptor>(y_at),
                   nullptr,
                   y,
                   hx,
                   cx,
                   weights,
                   dy,
                   dhy,
                   dcy,
                   dx,
                   dhx,
                   dcx,
                   nullptr,
                   reserve,
                   reserve_bytes(*inside<RnnDescriptor>(d), *inside<DataDescriptor>(x_at))};
  const auto& rnn = call.rnn;
  if (const auto bad = first_problem(
          [&] { return check_network(rnn, call.x_at, true); },
          [&] {
            return check_alignment({y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weights, work, reserve});
          },
          [&] { return check_output(rnn, call.x_at, call.y_at); },
          [&] { return check_states(rnn, call.x_at.batch, h_at, c_at); },
          [&] { return check_space(weights, weight_size, weight_bytes(rnn)); },
          [&] { return check_space(work, work_size, work_bytes(rnn, call.x_at, true)); },
          [&] { return check_space(reserve, reserve_size, reserve_bytes(rnn, call.x_at)); });
      bad != CUDNN_STATUS_SUCCESS) {
    return bad;
  }
  return submit("cudnnRNNBackwardData_v8", handle, work, work_size, call, run_backward_data);
}

STAND_IN_API cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnWgradMode_t mode,
    const std::int32_t* device_lengths, cudnnRNNDataDescriptor_t x_at, const void* x,
    cudnnTensorDescriptor_t h_at, const void* hx, cudnnRNNDataDescriptor_t y_at, const void* y,
    std::size_t weight_size, void* dweights, std::size_t work_size, void* work,
    std::size_t reserve_size, void* reserve) {
  if (mode != CUDNN_WGRAD_MODE_ADD) return answer(CUDNN_STATUS_NOT_SUPPORTED);
  if (!handle || device_lengths || !x || !y) return answer(CUDNN_STATUS_BAD_PARAM);
  RnnGradient call{*inside<RnnDescriptor>(d),
                   *inside<DataDescriptor>(x_at),
                   *inside<DataDescriptor>(y_at),
                   x,
                   y,
                   hx,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   nullptr,
                   dweights,
                   reserve,
                   reserve_bytes(*inside<RnnDescriptor>(d), *inside<DataDescriptor>(x_at))};
  const auto& rnn = call.rnn;
  if (const auto bad = first_problem(
          [&] { return check_network(rnn, call.x_at, true); },
          [&] {
            return check_alignment({x, hx, y, dweights, work, reserve});
          },
          [&] { return check_output(rnn, call.x_at, call.y_at); },
          [&] { return check_state(rnn, call.x_at.batch, rnn.projection, h_at); },
          [&] { return check_space(dweights, weight_size, weight_bytes(rnn)); },
          [&] { return check_space(work, work_size, work_bytes(rnn, call.x_at, true)); },
          [&] { return check_space(reserve, reserve_size, reserve_bytes(rnn, call.x_at)); });
      bad != CUDNN_STATUS_SUCCESS) {
    return bad;
  }
  return submit("cudnnRNNBackwardWeights_v8", handle, work, work_size, call, run_backward_weights);
}

}  // extern "C"
