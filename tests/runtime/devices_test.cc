// Names of devices, and the engine of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

RnnSpec small() {
  RnnSpec spec;
  spec.num_units = 3;
  spec.input_size = 2;
  return spec;
}

bool has_gpu() { return list_devices().size() > 1; }

TEST(Devices, TheCpuIsAlwaysThere) {
  EXPECT_EQ(&device("cpu"), &cpu_device());
  const std::vector<DeviceInfo> list = list_devices();
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list[0].name, "cpu");
  EXPECT_EQ(list[0].description, "this processor, " + std::string(cpu_isa()));
}

TEST(Devices, EveryOneThatIsListedIsFoundByItsName) {
  for (const DeviceInfo& each : list_devices()) EXPECT_EQ(device(each.name).name(), each.name);
}

TEST(Devices, OtherNamesAreErrors) {
  for (const char* name : {"", "CPU", "cuda", "cuda:0", "gpu:", "gpu:-1", "gpu:01", "gpu:0 ",
                           "gpu:99999999999999999999", "gpu:x", "test:0"}) {
    expect_error<ArgumentError>(
        [name] { device(name); },
        std::string("[device] name is '") + name + "', expected 'cpu', 'gpu' or 'gpu:N', N from 0");
  }
}

TEST(Devices, AGpuThatIsNotThereSaysWhatIsMissing) {
  EXPECT_NE(error_of<EngineError>([] { device("gpu:4711"); }).find("gpu:4711"), std::string::npos);
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  for (const char* name : {"gpu", "gpu:0"}) {
    const std::string what = error_of<EngineError>([name] { device(name); });
    EXPECT_NE(what.find("gpu:0"), std::string::npos) << what;
  }
}

TEST(Engines, ADeviceHasItsOwn) {
  const Engine& engine = choose_engine(small(), test_device());
  EXPECT_EQ(&engine, test_device().engine());
  EXPECT_EQ(engine.device(), &test_device());
  EXPECT_EQ(&choose_engine(small(), cpu_device()), &choose_engine(small()));
  EXPECT_EQ(math_kind(small(), test_device()), "float32");
}

TEST(Engines, ADeviceThatCannotSaysWhy) {
  RnnSpec spec = small();
  spec.compute.weights_dtype = WeightsDType::kInt8;
  try {
    choose_engine(spec, test_device(1));
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("[choose_engine] device 'test:1' cannot run "), 0u) << what;
    EXPECT_NE(what.find("no weights_dtype; device='cpu' has them"), std::string::npos) << what;
  }
  spec = small();
  spec.num_units = 0;
  EXPECT_THROW(choose_engine(spec, test_device()), ArgumentError);
  spec = small();
  spec.compute.math = Math::kTf32;
  EXPECT_THROW(choose_engine(spec, test_device()), EngineError);
}

TEST(Sessions, RunOnADevice) {
  const RnnSpec spec = small();
  const Array params = initialize_params(ParamsLayout(spec), 1);
  const float x[] = {0.5F, -0.25F, 0.75F, 1.0F};
  float here[6], there[6];
  InferenceSession plain(std::make_shared<const PackedModel>(spec, params.view()));
  ForwardArgs args;
  args.max_time = 2;
  args.batch = 1;
  args.x = x;
  args.y = here;
  plain.run(args);

  const Device& device = test_device();
  const DeviceArray of_params = DeviceArray::from_host(device, params.view());
  const DeviceArray of_x = DeviceArray::from_host(device, {x, DType::kFloat32, {2, 1, 2}});
  DeviceArray y(device, DType::kFloat32, {2, 1, 3});
  const auto model = std::make_shared<const PackedModel>(
      spec, ConstArrayView{of_params.data(), DType::kFloat32, of_params.shape()}, device);
  InferenceSession session(model);
  args.x = of_x.data();
  args.y = y.mutable_data();
  session.run(args);
  device.download(there, y.data(), sizeof there);
  EXPECT_TRUE(std::equal(here, here + 6, there));
  expect_error<ArgumentError>([&] { StreamPool(model, {.streams = 2}); },
                              "[StreamPool] the model is on test:0, expected one on the cpu, where "
                              "the states lie");
}

// Writes down what it is asked to make.
class RecordingEngine : public TaggedEngine {
 public:
  using TaggedEngine::TaggedEngine;
  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    packed.push_back(options);
    return TaggedEngine::pack(spec, params, options);
  }
  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    made.push_back({limits.batch, limits.time, limits.max_threads});
    return TaggedEngine::make_workspace(std::move(params), limits);
  }
  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    ran.push_back(args.max_threads);
    TaggedEngine::forward(args, workspace);
  }
  mutable std::vector<int> ran;
  mutable std::vector<PackOptions> packed;
  mutable std::vector<std::array<std::int64_t, 3>> made;
};

class RecordingDevice : public TaggedDevice {
 public:
  RecordingDevice() : TaggedDevice("recording:0", false), engine_(*this, false) {}
  const RecordingEngine* engine() const override { return &engine_; }

 private:
  RecordingEngine engine_;
};

// A session's workspace grows by the larger one of each size, and is made anew only then.
TEST(Sessions, MakeAWorkspaceOfAllThatWasPreparedFor) {
  using Made = std::vector<std::array<std::int64_t, 3>>;
  static const RecordingDevice device;
  const RnnSpec spec = small();
  const Array params = initialize_params(ParamsLayout(spec), 1);
  const DeviceArray there = DeviceArray::from_host(device, params.view());
  const ConstArrayView view{there.data(), DType::kFloat32, there.shape()};
  const auto model =
      std::make_shared<const PackedModel>(spec, view, device, ModelOptions{.max_threads = 3});
  ASSERT_EQ(device.engine()->packed.size(), 1U);
  EXPECT_EQ(device.engine()->packed[0].max_threads, 3);
  EXPECT_EQ(device.engine()->packed[0].purpose, PackFor::kInference);
  const auto made_by = [&](const SessionOptions& options,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes) {
    device.engine()->made.clear();
    InferenceSession session(model, options);
    for (const auto& [batch, time] : sizes) session.prepare(batch, time);
    return device.engine()->made;
  };
  EXPECT_EQ(made_by({}, {{4, 1}, {1, 6}, {4, 6}, {2, 2}, {0, 0}, {5, 2}}),
            (Made{{4, 1, 1}, {4, 6, 1}, {5, 6, 1}}));
  EXPECT_EQ(made_by({.max_threads = 0}, {{1, 1}}), (Made{{1, 1, 3}}));
  EXPECT_EQ(made_by({.max_threads = 2}, {{1, 1}, {1, 1}}), (Made{{1, 1, 2}}));
  EXPECT_EQ(made_by({.max_threads = 5}, {{1, 2}}), (Made{{1, 2, 3}}));
}

// The strictest limit of the call, the session and the model; 0 is none.
TEST(Sessions, RunWithTheFewestThreadsThatAnybodyAllows) {
  static const RecordingDevice device;
  const RnnSpec spec = small();
  const Array params = initialize_params(ParamsLayout(spec), 1);
  const DeviceArray there = DeviceArray::from_host(device, params.view());
  const ConstArrayView view{there.data(), DType::kFloat32, there.shape()};
  const auto ran = [&](int of_model, int of_session, int of_call) {
    InferenceSession session(std::make_shared<const PackedModel>(
                                 spec, view, device, ModelOptions{.max_threads = of_model}),
                             {.max_threads = of_session});
    ForwardArgs args;
    args.max_threads = of_call;
    session.run(args);
    return device.engine()->ran.back();
  };
  EXPECT_EQ(ran(0, 0, 0), 0);
  EXPECT_EQ(ran(3, 0, 0), 3);
  EXPECT_EQ(ran(3, 2, 0), 2);
  EXPECT_EQ(ran(3, 2, 1), 1);
  EXPECT_EQ(ran(3, 5, 4), 3);
  EXPECT_EQ(ran(0, 5, 4), 4);
  EXPECT_EQ(ran(0, 2, 4), 2);
}

TEST(Engines, ArithmeticOfGpusNamesTheirDevice) {
  for (const Math math : {Math::kTf32, Math::kFp16}) {
    RnnSpec spec = small();
    spec.compute.math = math;
    const std::string what = error_of<EngineError>([&] { choose_engine(spec, cpu_device()); });
    EXPECT_NE(what.find("device='gpu:0'"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace openrnn::testing
