// OpenRNN's own files: every network whole, there and back, and read by the core alone.
#include <gtest/gtest.h>
#include <openrnn/runtime_file.h>

#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {
namespace {

using formats::TempFolder;

// A network of every kind of region and option, and one more.
MappedModel model() {
  MappedNetwork one = network_of({.num_layers = 2,
                                  .num_units = 5,
                                  .input_size = 3,
                                  .direction = Direction::kBidirectional,
                                  .dtype = DType::kFloat64,
                                  .num_proj = 2,
                                  .cell_clip = {{-1.5, 2.5}},
                                  .forget_bias = 0.1,
                                  .activation = parse_cell_activation("softsign"),
                                  .use_peepholes = true,
                                  .training = {.dropout = 0.25, .seed = 3}},
                                 "encoder/rnn");
  one.initial_h = values_of(DType::kFloat64, {4, 2}, 5);
  one.initial_c = values_of(DType::kFloat64, {4, 5}, 6);
  one.slots.emplace("m", values_of(DType::kFloat64, one.params.shape(), 7));
  one.slots.emplace("v/hat", values_of(DType::kFloat32, one.params.shape(), 8));
  const MappedNetwork two = network_of({.mode = RnnMode::kGru,
                                        .num_units = 7,
                                        .input_size = 1,
                                        .dtype = DType::kBfloat16,
                                        .reset_after = false,
                                        .compute = {.weights_dtype = WeightsDType::kInt8}},
                                       "\xc3\xa4 \"quoted\"", 2);
  MappedModel model;
  model.networks = {one, two};
  model.values = {{"author", std::string("me")}, {"epoch", std::int64_t{3}}};
  return model;
}

std::string bytes_of(const MappedModel& model) {
  const TempFolder folder;
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  return read_file(folder / "m");
}

std::span<const std::byte> span_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

void expect_same(const MappedNetwork& a, const MappedNetwork& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.spec, b.spec);
  EXPECT_TRUE(same_bytes(a.params, b.params));
  ASSERT_EQ(a.initial_h.has_value(), b.initial_h.has_value());
  ASSERT_EQ(a.initial_c.has_value(), b.initial_c.has_value());
  EXPECT_TRUE(!a.initial_h || same_bytes(*a.initial_h, *b.initial_h));
  EXPECT_TRUE(!a.initial_c || same_bytes(*a.initial_c, *b.initial_c));
  ASSERT_EQ(a.slots.size(), b.slots.size());
  for (const auto& [name, slot] : a.slots) EXPECT_TRUE(same_bytes(slot, b.slots.at(name)));
}

TEST(OwnFile, HoldsEverything) {
  const TempFolder folder;
  const MappedModel given = model();
  save_networks(folder / "m", given, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  EXPECT_EQ(found.kind, FileKind::kSafetensors);
  EXPECT_EQ(found.what, "a file of OpenRNN");
  ASSERT_EQ(found.networks.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) expect_same(found.networks[i], given.networks[i]);
  EXPECT_EQ(found.networks[0].tensors,
            (std::vector<std::string>{"encoder/rnn/params", "encoder/rnn/initial_h",
                                      "encoder/rnn/initial_c", "encoder/rnn/slots/m",
                                      "encoder/rnn/slots/v/hat"}));
  EXPECT_TRUE(found.not_understood.empty());
  ASSERT_EQ(found.values.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(found.values[1].value), 3);
  // Any reader of safetensors sees the tensors.
  const ModelFile file(folder / "m");
  EXPECT_EQ(file.tensors().size(), 6U);
}

TEST(OwnFile, EveryModeDirectionAndDtype) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype :
             {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
          MappedModel given;
          given.networks = {network_of({.mode = mode,
                                        .num_layers = layers,
                                        .num_units = 3,
                                        .input_size = 5,
                                        .direction = direction,
                                        .dtype = dtype})};
          const std::string bytes = bytes_of(given);
          const NetworkFile file(span_of(bytes));
          const StoredNetwork& stored = file.network("");
          EXPECT_EQ(stored.spec, given.networks[0].spec);
          EXPECT_TRUE(same_bytes(Array(stored.params), given.networks[0].params));
        }
      }
    }
  }
}

TEST(OwnFile, TheCoreRunsItFromMemoryAndFromAFile) {
  const MappedModel given = model();
  const std::string bytes = bytes_of(given);
  const TempFolder folder;
  formats::write_raw(folder / "m", bytes);
  const RnnSpec& spec = given.networks[0].spec;
  const Array x = values_of(spec.dtype, {4, 2, 3}, 9);
  const auto run = [&](std::shared_ptr<const PackedModel> packed) {
    Array y(spec.dtype, {4, 2, spec.output_size()});
    ForwardArgs args;
    args.max_time = 4;
    args.batch = 2;
    args.x = x.data();
    args.y = y.data();
    InferenceSession(std::move(packed)).run(args);
    return y;
  };
  const Array expected =
      run(std::make_shared<const PackedModel>(spec, given.networks[0].params.view()));
  EXPECT_TRUE(same_bytes(run(load_packed(span_of(bytes), "encoder/rnn")), expected));
  EXPECT_TRUE(same_bytes(run(load_packed(folder / "m", "encoder/rnn")), expected));
  // Bytes at any address.
  const std::string shifted = "x" + bytes;
  EXPECT_TRUE(same_bytes(run(load_packed(span_of(shifted).subspan(1), "encoder/rnn")), expected));
  EXPECT_MESSAGE(ArgumentError, load_packed(folder / "m"), "'' is no network of");
  EXPECT_MESSAGE(ArgumentError, load_packed(folder / "m", "decoder"), "encoder/rnn");
  EXPECT_MESSAGE(IoError, load_packed(folder / "none"), "No such file");
  EXPECT_MESSAGE(IoError, load_packed(folder.path()), "no regular file");
}

TEST(OwnFile, EveryCutIsAnError) {
  const std::string bytes = bytes_of(model());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_THROW(NetworkFile(span_of(cut)), FormatError) << size;
  }
}

// What is read is what was written, or an error.
TEST(OwnFile, EveryFlippedBitIsAnErrorOrChangesNoNetwork) {
  const MappedModel given = model();
  const std::string bytes = bytes_of(given);
  std::size_t errors = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    try {
      const NetworkFile file(span_of(bad));
      ASSERT_EQ(file.networks().size(), 2U) << at;
      for (std::size_t i = 0; i < 2; ++i) {
        const StoredNetwork& stored = file.networks()[i];
        file.verify(stored);
        EXPECT_EQ(stored.spec, given.networks[i].spec) << at;
        EXPECT_TRUE(same_bytes(Array(stored.params), given.networks[i].params)) << at;
      }
    } catch (const Error&) {
      ++errors;
    }
  }
  // All but those of metadata, padding and the arithmetic's version.
  EXPECT_GT(errors, bytes.size() - 64);
}

TEST(OwnFile, AWrongChecksumOfATensorIsFoundWhenLoading) {
  std::string bytes = bytes_of(model());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const TempFolder folder;
  formats::write_raw(folder / "m", bytes);
  EXPECT_MESSAGE(FormatError, load_networks(folder / "m"), "has the checksum");
  // A network whose tensors are whole is packed all the same.
  const NetworkFile file(folder / "m");
  std::size_t broken = 0;
  for (const StoredNetwork& network : file.networks()) {
    try {
      file.verify(network);
      EXPECT_EQ(load_packed(folder / "m", network.name)->spec(), network.spec);
    } catch (const FormatError&) {
      EXPECT_THROW(load_packed(folder / "m", network.name), FormatError);
      ++broken;
    }
  }
  EXPECT_EQ(broken, 1U);
}

TEST(OwnFile, LaterVersionsAndOtherFilesAreRefused) {
  std::string bytes = bytes_of(model());
  const std::string key = "\"openrnn.layout\":\"1\"";
  const std::size_t at = bytes.find(key);
  ASSERT_NE(at, std::string::npos);
  bytes[at + key.size() - 2] = '2';
  EXPECT_MESSAGE(UnsupportedError, NetworkFile(span_of(bytes)), "a later OpenRNN wrote it");
  bytes[at + key.size() - 2] = '0';
  EXPECT_MESSAGE(FormatError, NetworkFile(span_of(bytes)), "expected a version from 1 on");
  const TempFolder folder;
  const Array array = values_of(DType::kFloat32, {3}, 1);
  const NamedView view{"a", array.view()};
  write_safetensors(folder / "m", {&view, 1});
  EXPECT_MESSAGE(FormatError, NetworkFile(folder / "m"), "expected a file of OpenRNN");
  MappedModel own = model();
  own.values.push_back({"openrnn.networks", std::string("[]")});
  EXPECT_MESSAGE(ArgumentError, save_networks(folder / "n", own, ModelFormat::kOpenrnn),
                 "'openrnn.networks' has a name of OpenRNN's own");
}

}  // namespace
}  // namespace openrnn
