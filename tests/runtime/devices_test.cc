// Names of devices, and the engine of each.
#include <gtest/gtest.h>

#include <algorithm>

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
  EXPECT_FALSE(list[0].description.empty());
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
