// Every kind of file after every other one: networks of every mode, direction, number of layers and
// dtype compute the same bits, and keep their parameters where both kinds have two biases.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {

// Of a failure; gtest would print bytes.
inline void PrintTo(const RnnSpec& spec, std::ostream* out) { *out << describe(spec); }

namespace {

using formats::TempFolder;

struct Kind {
  ModelFormat format;
  const char* file;
  // Every bias of the network has a place of its own.
  bool has_two_biases;
  bool has_bfloat16;
};
constexpr Kind kKinds[] = {
    {ModelFormat::kOpenrnn, "m.openrnn", true, true},
    {ModelFormat::kTorch, "m.pt", true, true},
    {ModelFormat::kSafetensors, "m.safetensors", true, true},
    {ModelFormat::kNpz, "m.npz", true, false},
    {ModelFormat::kOnnx, "m.onnx", true, true},
    {ModelFormat::kTensorflow, "m.index", false, true},
    {ModelFormat::kKeras, "m.keras", false, true},
    {ModelFormat::kKerasH5, "m.h5", false, true},
};

// One bias a gate is 0, so that no sum of two rounds; but the candidate's two of a GRU, which no
// kind of file adds.
MappedNetwork network_for_all(const RnnSpec& spec) {
  MappedNetwork network = network_of(spec, "net");
  const ParamsLayout layout(spec);
  const std::size_t width = dtype_size(spec.dtype);
  for (const ParamRegion& region : layout.biases()) {
    const Gate gate = gates_of(spec.mode)[static_cast<std::size_t>(region.gate)];
    if (region.role != ParamRole::kRecurrentBias) continue;
    if (spec.mode == RnnMode::kGru && gate == Gate::kN) continue;
    std::memset(static_cast<std::byte*>(network.params.data()) +
                    static_cast<std::size_t>(region.offset) * width,
                0, static_cast<std::size_t>(region.rows) * width);
  }
  return network;
}

// A file that is written to memory takes no time to sync.
void use_memory() {
  std::error_code ignored;
  if (std::filesystem::is_directory("/dev/shm", ignored)) ::setenv("TMPDIR", "/dev/shm", 1);
}

struct FormatRow {
  ModelFormat format;
  const char* name;
  std::vector<const char*> endings;
  bool layers;
  bool values = true;  // of any name
};

TEST(Formats, NamesEndingsAndWhichHoldWholeModels) {
  const FormatRow rows[] = {
      {ModelFormat::kOpenrnn, "openrnn", {".openrnn"}, true},
      {ModelFormat::kSafetensors, "safetensors", {".safetensors"}, false},
      {ModelFormat::kTorch, "torch", {".pt", ".pth", ".bin", ".ckpt"}, false},
      {ModelFormat::kOnnx, "onnx", {".onnx"}, false},
      {ModelFormat::kKeras, "keras", {".keras"}, true, false},
      {ModelFormat::kKerasWeights, "keras_weights", {".weights.h5"}, false, false},
      {ModelFormat::kKerasH5, "keras_h5", {".h5", ".hdf5"}, true, false},
      {ModelFormat::kTensorflow, "tensorflow", {".index"}, false},
      {ModelFormat::kRtneural, "rtneural", {".json"}, true, false},
      {ModelFormat::kNam, "nam", {".nam"}, true, false},
      {ModelFormat::kNpz, "npz", {".npz"}, false},
  };
  for (const char* name :
       {"version", "sample_rate", "head.weight", "head.bias", "metadata.author"}) {
    EXPECT_TRUE(holds_value(ModelFormat::kNam, name)) << name;
    EXPECT_FALSE(holds_value(ModelFormat::kRtneural, name)) << name;
  }
  for (const FormatRow& row : rows) {
    EXPECT_EQ(to_string(row.format), row.name);
    EXPECT_EQ(parse_model_format(row.name), row.format) << row.name;
    EXPECT_EQ(holds_layers(row.format), row.layers) << row.name;
    EXPECT_EQ(holds_value(row.format, "rate"), row.values) << row.name;
    for (const char* ending : row.endings) {
      EXPECT_EQ(model_format_of(std::string("a.b/c.") + "d" + ending), row.format) << ending;
      EXPECT_EQ(model_format_of(ending), row.format) << ending;
    }
  }
}

class Pairs : public testing::TestWithParam<RnnSpec> {
 protected:
  MappedModel loaded(const MappedModel& model, const Kind& kind, const TempFolder& folder) {
    save_networks(folder / kind.file, model, kind.format);
    MappedModel found = load_networks(folder / kind.file, hints_);
    EXPECT_TRUE(found.not_understood.empty());
    EXPECT_EQ(found.networks.size(), 1U);
    EXPECT_EQ(found.networks.at(0).name, "net");
    EXPECT_EQ(found.networks.at(0).spec.dtype, GetParam().dtype);
    return found;
  }

  MappingHints hints_{.mode = GetParam().mode, .reset_after = true, .forget_bias = 0.0};
};

TEST_P(Pairs, EqualBits) {
  use_memory();
  const TempFolder folder;
  const RnnSpec& spec = GetParam();
  MappedModel model;
  model.networks.push_back(network_for_all(spec));
  const std::vector<double> expected = output_of(model.networks[0]);
  for (const Kind& from : kKinds) {
    if (spec.dtype == DType::kBfloat16 && !from.has_bfloat16) {
      EXPECT_THROW(save_networks(folder / from.file, model, from.format), UnsupportedError);
      continue;
    }
    SCOPED_TRACE(from.file);
    const MappedModel first = loaded(model, from, folder);
    EXPECT_EQ(output_of(first.networks[0]), expected);
    for (const Kind& to : kKinds) {
      if (spec.dtype == DType::kBfloat16 && !to.has_bfloat16) continue;
      SCOPED_TRACE(to.file);
      const MappedNetwork found = std::move(loaded(first, to, folder).networks.at(0));
      EXPECT_EQ(output_of(found), expected);
      if (from.has_two_biases && to.has_two_biases) {
        EXPECT_TRUE(same_bytes(found.params, model.networks[0].params));
      }
    }
  }
}

std::vector<RnnSpec> all_specs() {
  std::vector<RnnSpec> specs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype :
             {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
          specs.push_back({.mode = mode,
                           .num_layers = layers,
                           .num_units = 5,
                           .input_size = 3,
                           .direction = direction,
                           .dtype = dtype});
        }
      }
    }
  }
  return specs;
}

std::string name_of(const testing::TestParamInfo<RnnSpec>& info) {
  const RnnSpec& spec = info.param;
  return std::string(to_string(spec.mode)) + "_" + std::string(to_string(spec.direction)) + "_L" +
         std::to_string(spec.num_layers) + "_" + std::string(dtype_name(spec.dtype));
}

INSTANTIATE_TEST_SUITE_P(All, Pairs, testing::ValuesIn(all_specs()), name_of);

}  // namespace
}  // namespace openrnn
