// What the GPU's room refuses, and how it says what a library of NVIDIA has answered.
#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cudnn/calls/instead.h"
#include "cudnn/gpu/check.h"
#include "cudnn/graphs/device_calls.h"
#include "device/support.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

using cudnn::GpuError;
using cudnn::GpuFault;

template <class Answer>
std::pair<std::string, GpuFault> said(Answer answer) {
  try {
    cudnn::check(answer, "call");
  } catch (const GpuError& error) {
    return {error.what(), error.fault()};
  }
  return {"nothing", GpuFault::kOther};
}

TEST(CudnnAnswers, OfTheDriverHaveARemedy) {
  cudnn::check(CUDA_SUCCESS, "call");
  const std::string success = "), expected success";
  const std::tuple<CUresult, std::string, GpuFault> answers[] = {
      {CUDA_ERROR_OUT_OF_MEMORY, "; use a smaller batch or time, or free other memory of the GPU",
       GpuFault::kNoRoom},
      {CUDA_ERROR_NO_BINARY_FOR_GPU,
       "; the driver is too old for this GPU or this build: install a newer one", GpuFault::kOther},
      {CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
       "; the driver is too old for this GPU or this build: install a newer one", GpuFault::kOther},
      {CUDA_ERROR_ILLEGAL_ADDRESS,
       "; an earlier operation on the GPU failed, and the process must be restarted",
       GpuFault::kOther},
      {CUDA_ERROR_LAUNCH_FAILED,
       "; an earlier operation on the GPU failed, and the process must be restarted",
       GpuFault::kOther},
      {CUDA_ERROR_INVALID_VALUE, "", GpuFault::kOther}};
  for (const auto& [answer, remedy, fault] : answers) {
    const auto [text, found] = said(answer);
    EXPECT_EQ(text.find("[call] the driver answered CUDA_ERROR"), 0U) << text;
    EXPECT_TRUE(text.ends_with(success + remedy)) << text;
    EXPECT_EQ(found, fault) << text;
  }
}

TEST(CudnnAnswers, OfItsLibrariesSayWhatTheyMean) {
  cudnn::check(CUBLAS_STATUS_SUCCESS, "call");
  cudnn::check(CUDNN_STATUS_SUCCESS, "call");
  const auto [product, no_product] = said(CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(product, "[call] cuBLAS answered CUBLAS_STATUS_INVALID_VALUE, expected success");
  EXPECT_EQ(no_product, GpuFault::kOther);
  EXPECT_EQ(said(CUBLAS_STATUS_ALLOC_FAILED).second, GpuFault::kNoRoom);
  const std::tuple<cudnnStatus_t, GpuFault, std::string> answers[] = {
      {CUDNN_STATUS_BAD_PARAM, GpuFault::kOther, ", expected success"},
      {CUDNN_STATUS_INTERNAL_ERROR, GpuFault::kOther, ", expected success"},
      {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, GpuFault::kNoRoom, ", expected success"},
      {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, GpuFault::kNoRoom,
       ", expected success"},
      {CUDNN_STATUS_NOT_SUPPORTED, GpuFault::kRefused,
       ", expected success; device='cpu' can run it"},
      {CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, GpuFault::kRefused,
       ", expected success; device='cpu' can run it"}};
  for (const auto& [answer, fault, end] : answers) {
    const auto [text, found] = said(answer);
    EXPECT_EQ(text.find("[call] cuDNN answered CUDNN_STATUS_"), 0U) << text;
    EXPECT_TRUE(text.ends_with(end)) << text;
    EXPECT_EQ(found, fault) << text;
  }
  if (!conformance::pretends()) return;
  EXPECT_EQ(said(CUDNN_STATUS_BAD_PARAM).first,
            "[call] cuDNN answered CUDNN_STATUS_BAD_PARAM (words of the stand-in), expected "
            "success");
}

// What a library does not say, or says at length.
TEST(CudnnAnswers, WithoutWordsAreStillAnswers) {
  cudnn::CudnnApi& api = api_of(static_cast<cudnn::CudnnApi*>(nullptr));
  const auto words = std::exchange(api.last_error, nullptr);
  const auto text = [](auto answer) { return said(answer).first; };
  const std::string bad = "[call] cuDNN answered CUDNN_STATUS_BAD_PARAM";
  EXPECT_EQ(text(CUDNN_STATUS_BAD_PARAM), bad + ", expected success") << "as before version 9";
  api.last_error = words;
  std::string told;
  const Instead<&cudnn::CudnnApi::last_error> tells(
      [&](auto, char* to, std::size_t size) { to[told.copy(to, size)] = '\0'; });
  EXPECT_EQ(text(CUDNN_STATUS_BAD_PARAM), bad + ", expected success");
  told = "w";
  EXPECT_EQ(text(CUDNN_STATUS_BAD_PARAM), bad + " (w), expected success");
  told.assign(2000, 'w');
  EXPECT_EQ(text(CUDNN_STATUS_BAD_PARAM),
            bad + " (" + std::string(511, 'w') + "), expected success");
  told = "w";
  const Instead<&cudnn::CudnnApi::error_string> no_name([](auto, auto) { return nullptr; });
  EXPECT_EQ(text(CUDNN_STATUS_NOT_SUPPORTED),
            "[call] cuDNN answered unknown status (w), expected success; device='cpu' can run it");
  const Instead<&cudnn::CublasApi::status_string> no_status([](auto, auto) { return nullptr; });
  EXPECT_EQ(text(CUBLAS_STATUS_INVALID_VALUE),
            "[call] cuBLAS answered an unknown status, expected success");
  const Instead<&cudnn::DriverApi::error_name> no_error(
      [](auto, auto, auto) { return CUDA_ERROR_INVALID_VALUE; });
  const Instead<&cudnn::DriverApi::error_string> no_text(
      [](auto, auto, auto) { return CUDA_ERROR_INVALID_VALUE; });
  EXPECT_EQ(text(CUDA_ERROR_INVALID_VALUE),
            "[call] the driver answered an unknown error (no text), expected success");
}

TEST(CudnnDevice, RefusesProductsThatItCannotCompute) {
  const Device& gpu = tested();
  expect_error<TypeError>([&] { gpu.matmul({.dtype = DType::kBfloat16}); },
                          "[matmul] dtype is bfloat16 on a GPU, expected float16, float32 or "
                          "float64; device='cpu' has bfloat16");
  expect_error<ArgumentError>([&] { gpu.matmul({.dtype = DType::kInt32}); },
                              "[matmul] dtype is int32, expected float16, float32 or float64");
  for (const auto& [m, n, k] : {std::tuple(-1, 2, 3), {1, -2, 3}, {1, 2, -3}}) {
    expect_error<ArgumentError>([&, m = m, n = n, k = k] { gpu.matmul({.m = m, .n = n, .k = k}); },
                                "[matmul] m, n, k are " + std::to_string(m) + ", " +
                                    std::to_string(n) + ", " + std::to_string(k) +
                                    ", expected 0 or more");
  }
  const float bias = 1.0F;
  expect_error<ArgumentError>([&] { gpu.matmul({.bias = &bias, .accumulate = true}); },
                              "[matmul] both bias and accumulate are given, expected one of them");
  expect_error<TypeError>([&] { gpu.optimizer_step({.dtype = DType::kFloat16}); },
                          "[optimizer_step] dtype is float16, expected float32 or float64");
}

void expect_no_rows(const Engine& engine, const SavedForward& saved) {
  double norms[2] = {};
  float rows[1] = {};
  BackwardArgs of_norms{.saved = &saved}, of_rows{.saved = &saved};
  of_norms.row_norms = norms;
  of_rows.row_dparams = rows;
  for (const BackwardArgs& args : {of_norms, of_rows}) {
    expect_error<UnsupportedError>([&] { engine.backward(args); },
                                   "[backward] gradients of rows are asked of engine 'cudnn', "
                                   "which has none, expected engine 'cpu'");
  }
}

// The engine of the host's memory, and that of the GPU's.
TEST(CudnnEngines, RefuseWhatTheyHaveNot) {
  const conformance::Case c = conformance::parse_case("lstm L1 U5 I3 B2 T3 f32", "refused");
  const conformance::Data d = conformance::make_data(c);
  conformance::ForwardBuffers out = conformance::forward_buffers(c);
  const Engine &host = engine("cudnn"), &own = *conformance::gpu().engine();
  const auto of_host = host.pack(c.spec, d.params.view(), PackFor::kTraining),
             on_gpu = conformance::packed_of(c, d);
  for (const auto& [which, params] : {std::pair(&host, of_host), {&own, on_gpu}}) {
    const Engine& subject = *which;
    ForwardArgs again = conformance::forward_args(c, d, out, params, true), reserved = again;
    again.recompute = 32;
    reserved.reserve = out.y.data();
    expect_error<UnsupportedError>(
        [&] { subject.forward_saving(again); },
        "[forward_saving] engine 'cudnn' keeps all that backward reads and cannot recompute it, "
        "expected save=True (recompute 0), or engine 'cpu'");
    expect_error<UnsupportedError>(
        [&] { subject.forward_saving(reserved); },
        "[forward_saving] engine 'cudnn' keeps what backward reads in memory of its own, expected "
        "no reserve, or engine 'cpu'");
  }
  const ForwardArgs args = conformance::forward_args(c, d, out, of_host, true);
  expect_no_rows(host, *host.forward_saving(args));
  expect_no_rows(own, *conformance::DeviceCall(c, d).save(on_gpu));
}

// Before any of its arrays is read.
TEST(CudnnEngines, RefuseCallsThatCudnnCannotCount) {
  const conformance::Case c = conformance::parse_case("lstm L1 U5 I3 B2 T3 f32", "large");
  const conformance::Data d = conformance::make_data(c);
  conformance::ForwardBuffers out = conformance::forward_buffers(c);
  const Engine& own = *conformance::gpu().engine();
  ForwardArgs wide = conformance::forward_args(c, d, out, conformance::packed_of(c, d), true);
  ForwardArgs both = wide;
  wide.batch = std::int64_t{1} << 30;
  both.batch = 10000;
  both.max_time = 100000;
  const std::string most = ", expected at most 2147483647 on 'cudnn', which counts in 32 bits; ";
  for (const auto& [args, said] :
       {std::pair(wide, "] num_layers * num_dirs * batch * num_units is 5368709120" + most +
                            "split the batch"),
        {both, "] time * batch * width of the widest layer is 3276750000" + most +
                   "split the batch: 6553 rows of 65535 steps fit"}}) {
    expect_error<EngineError>([&, &args = args] { own.forward(args); }, "[forward" + said);
    expect_error<EngineError>([&, &args = args] { own.forward_saving(args); },
                              "[forward_saving" + said);
  }
}

TEST(CudnnSettings, OfGraphsIsATruth) {
  const conformance::Case c = conformance::parse_case("gru L1 U5 I3 B2 T3 f32", "setting");
  const conformance::Data d = conformance::make_data(c);
  const Setting wrong("OPENRNN_CUDA_GRAPHS", "yes");
  expect_error<ArgumentError>([&] { run_inference(engine("cudnn"), c, d); },
                              "[OPENRNN_CUDA_GRAPHS] is 'yes', expected '0' or '1'");
}

}  // namespace
}  // namespace openrnn::testing
