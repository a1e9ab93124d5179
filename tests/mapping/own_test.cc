// OpenRNN's own files: every network whole, there and back, and read by the core alone.
#include <gtest/gtest.h>
#include <openrnn/runtime_file.h>

#include <array>
#include <cstdio>

#include "base/crc/crc32c.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

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

// A network and a dense layer behind it, with slots.
MappedModel whole_model(const std::vector<std::string>& slots) {
  MappedModel given;
  given.networks = {network_of({.mode = RnnMode::kGru, .num_units = 2, .input_size = 1}, "gru")};
  const Array kernel = values_of(DType::kFloat32, {2, 3}, 5),
              bias = values_of(DType::kFloat32, {3}, 6);
  given.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, -1, 1}}}},
      {.name = "gru",
       .kind = "recurrent",
       .inputs = {{"x", 0}},
       .options = {{"network", std::string("gru")}}},
      {.name = "head/a",
       .kind = "dense",
       .inputs = {{"gru", 0}},
       .options = {{"units", std::int64_t{3}}},
       .weights = {{"kernel", kernel}, {"bias", bias}}}};
  for (LayerWeight& weight : given.layers[2].weights) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      weight.slots.emplace(slots[i], values_of(DType::kFloat32, weight.values.shape(), 20 + i));
    }
  }
  given.outputs = {{"head/a", 0}};
  return given;
}

TEST(OwnFile, SlotsOfLayersMayHaveAnyName) {
  const TempFolder folder;
  const MappedModel given =
      whole_model({"m", "a/b", "slots/kernel", "bias", "/", "x/", "\xc3\xa4"});
  save_networks(folder / "m", given, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  EXPECT_TRUE(found.not_understood.empty());
  ASSERT_EQ(found.layers.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerWeight &weight = given.layers[2].weights[i], &read = found.layers[2].weights.at(i);
    ASSERT_EQ(read.slots.size(), weight.slots.size());
    for (const auto& [slot, values] : weight.slots) {
      ASSERT_TRUE(read.slots.contains(slot)) << slot;
      EXPECT_TRUE(same_bytes(read.slots.at(slot), values)) << slot;
    }
  }
}

// The text of the layers with a change, and the checksum that fits it.
std::string error_with_layers(const std::string& from, const std::string& to) {
  const TempFolder folder;
  save_networks(folder / "m", whole_model({"m"}), ModelFormat::kOpenrnn);
  const ModelFile file(folder / "m");
  std::map<std::string, std::string> metadata;
  for (const NamedValue& value : file.values()) {
    metadata[value.name] = std::get<std::string>(value.value);
  }
  std::string& text = metadata.at("openrnn.layers");
  const std::size_t at = from.empty() ? 0 : text.find(from);
  if (at == std::string::npos) throw StateError(from + " is not in " + text);
  text.replace(at, from.empty() ? text.size() : from.size(), to);
  char sum[16];
  std::snprintf(sum, sizeof sum, "%08x", crc32c(text));
  metadata.at("openrnn.layers_checksum") = sum;
  std::vector<Array> kept;
  std::vector<NamedView> views;
  for (const TensorInfo& info : file.tensors()) kept.push_back(file.read(info.name));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    views.push_back({file.tensors()[i].name, kept[i].view()});
  }
  write_safetensors(folder / "n", views, {.metadata = metadata});
  return error_of<FormatError>([&] { load_networks(folder / "n"); });
}

TEST(OwnFile, TextsOfLayersThatDoNotFit) {
  const char* const place = "an input or output is no [NAME, NUMBER], expected one";
  const char* const units = "the option 'units' is of another type than its default";
  const char* const names =
      "the layer 'head/a' has tensors of other names than embeddings, kernel, bias and "
      "slots/SLOT/NAME";
  const std::array<const char*, 3> cases[] = {
      {"", "[]", "no 'layers' in [], expected it"},
      {"", R"({"layers": {}})", "'layers' is no list, expected one"},
      {"", R"({"layers": []})", "no 'outputs' in {\"layers\":[]}, expected it"},
      {"", R"({"layers": [], "outputs": []})", "[layers] no output, expected at least one"},
      {"", R"({"layers": [3], "outputs": []})", "no 'name' in 3, expected it"},
      {R"("kind":"dense")", R"("kind":3)", "'kind' is no string, expected one"},
      {R"([["gru",0]])", R"([["gru",0,1]])", place},
      {R"([["gru",0]])", R"([[0,"gru"]])", place},
      {R"([["gru",0]])", R"([["gru",0.5]])", place},
      {R"([["gru",0]])", R"(["gru"])", place},
      {R"([["gru",0]])", R"("gru")", "'inputs' is no list, expected one"},
      {R"("units":3)", R"("units":3.0)", units},
      {R"("units":3)", R"("units":"3")", units},
      {R"("units":3)", R"("units":true)", units},
      {R"("units":3)", R"("units":[3])", units},
      {R"("units":3)", R"("units":4)",
       "[layers] the layer 'head/a' (dense) has kernel float32 [2, 3], expected float32 [2, 4]"},
      {R"("units":3)", R"("other":3)", "[layers] the layer 'head/a' (dense) has no option 'other'"},
      {R"({"units":3})", R"([])", "options and crc32c of a layer are no objects, expected two"},
      {R"("slots/m/kernel")", R"("slots/kernel")", names},
      {R"("slots/m/kernel")", R"("slots/m/other")", names},
      {R"("slots/m/kernel")", R"("slots/n/kernel")",
       "tensor 'layers/head/a/slots/n/kernel' is not there"},
      {R"("slots/m/kernel")", R"("slot/m/kernel")", names},
  };
  for (const auto& [from, to, expected] : cases) {
    const std::string found = error_with_layers(from, to);
    EXPECT_EQ(found.substr(found.find(" @ ")), std::string(" @ 0] openrnn.layers: ") + expected)
        << to;
  }
  const std::array<const char*, 3> others[] = {
      {"", "{", "is no JSON"},
      {R"("kind":"dense")", R"("kind":"conv")", "the kind of layer 'conv', expected one of input"},
      {R"("kernel":)", R"("kernel":1)", "tensor 'layers/head/a/kernel' has the checksum "},
      {R"("kernel":)", R"("kernel":-)", "tensor 'layers/head/a/kernel' has the checksum "},
  };
  for (const auto& [from, to, expected] : others) {
    const std::string found = error_with_layers(from, to);
    EXPECT_NE(found.find(expected), std::string::npos) << to << "\n" << found;
  }
}

TEST(OwnFile, NamesOfOurOwnAreNotForOthers) {
  const TempFolder folder;
  for (const auto& [name, refused] : {std::pair("openrnn.x", true),
                                      {"openrnn.", true},
                                      {"openrnn", false},
                                      {"Openrnn.x", false}}) {
    MappedModel given = model();
    given.values = {{name, std::int64_t{1}}};
    const std::string error =
        error_of([&] { save_networks(folder / "m", given, ModelFormat::kOpenrnn); });
    EXPECT_EQ(!error.empty(), refused) << name << error;
    if (refused) continue;
    EXPECT_EQ(load_networks(folder / "m").values.at(0).name, name);
  }
}

// initial_c is of cells that have one; each state has its shape and dtype.
TEST(OwnFile, StatesAndSlotsThatDoNotFitAreRefusedInEveryFormat) {
  const TempFolder folder;
  const RnnSpec gru{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2};
  const RnnSpec lstm{.num_units = 3, .input_size = 2, .num_proj = 2};
  const auto with = [](const RnnSpec& spec, auto change) {
    MappedModel given;
    given.networks = {network_of(spec, "n")};
    change(given.networks[0]);
    return given;
  };
  const auto state = [](Shape shape, DType dtype = DType::kFloat32) {
    return values_of(dtype, std::move(shape), 3);
  };
  const std::pair<MappedModel, const char*> cases[] = {
      {with(gru,
            [&](MappedNetwork& n) {
              n.initial_c = state({1, 3});
            }),
       "expected none of gru"},
      {with(lstm,
            [&](MappedNetwork& n) {
              n.initial_h = state({1, 3});
            }),
       "float32 [1, 2]"},
      {with(lstm,
            [&](MappedNetwork& n) {
              n.initial_c = state({1, 2});
            }),
       "float32 [1, 3]"},
      {with(lstm,
            [&](MappedNetwork& n) {
              n.initial_c = state({2, 3});
            }),
       "float32 [1, 3]"},
      {with(lstm,
            [&](MappedNetwork& n) {
              n.initial_c = state({1, 3}, DType::kFloat64);
            }),
       "expected float32 [1, 3]"},
      {with(lstm, [&](MappedNetwork& n) { n.params = state({4}); }), "4"},
      {with(lstm,
            [&](MappedNetwork& n) { n.params = values_of(DType::kFloat64, n.params.shape(), 2); }),
       "float64"},
      {with(lstm, [&](MappedNetwork& n) { n.slots.emplace("m", state({1})); }),
       "the slot has 1 elements"},
  };
  for (const ModelFormat format :
       {ModelFormat::kOpenrnn, ModelFormat::kTorch, ModelFormat::kOnnx}) {
    for (const auto& [given, expected] : cases) {
      const std::string found = error_of<ArgumentError>(
          [&, given = given] { save_networks(folder / "m", given, format); });
      EXPECT_NE(found.find(expected), std::string::npos) << expected << "\n" << found;
    }
  }
  EXPECT_TRUE(folder.names().empty());
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
