#include <gtest/gtest.h>
#include <openrnn/formats.h>

#include "base/crc/crc32c.h"
#include "formats/bundle/bundle_proto.h"
#include "formats/temp_folder.h"
#include "support/file_calls.h"
#include "support/raw_bundle.h"

namespace openrnn::formats {
namespace {

std::vector<NamedTensor> sample() {
  std::vector<NamedTensor> tensors;
  tensors.push_back({"net/kernel", array_of<float>({2, 3}, {1, -2, 3.5f, 1e-45f, 0, -0.0f})});
  tensors.push_back({"a/double", array_of<double>({1, 1, 2}, {0.1, -1e300})});
  tensors.push_back({"half", array_of<Half>({3}, {{0x3c00}, {0x0001}, {0x7c00}})});
  tensors.push_back({"brain", array_of<Bfloat16>({3}, {{0x3f80}, {0x0001}, {0x7f80}})});
  tensors.push_back({"global_step", array_of<std::int64_t>({}, {-5000000000})});
  tensors.push_back({"ints", array_of<std::int32_t>({2}, {INT32_MIN, 7})});
  tensors.push_back({"bytes", array_of<std::uint8_t>({3}, {0, 128, 255})});
  Array flags(DType::kBool, {2});
  flags.as<bool>()[1] = true;
  tensors.push_back({"flags", std::move(flags)});
  tensors.push_back({"empty", Array(DType::kFloat32, {3, 0})});
  tensors.push_back({"config", StringTensor{{}, {"{\"cell\": \"gru\"}"}}});
  tensors.push_back(
      {"words", StringTensor{{2, 2}, {"", std::string(200, 'w'), std::string(3, '\0'), "\xff"}}});
  tensors.push_back({"no words", StringTensor{{0, 4}, {}}});
  return tensors;
}

void expect_equal(const TensorValue& found, const TensorValue& expected, const std::string& name) {
  ASSERT_EQ(found.index(), expected.index()) << name;
  if (const auto* strings = std::get_if<StringTensor>(&expected)) {
    EXPECT_EQ(std::get<StringTensor>(found), *strings) << name;
    return;
  }
  const Array &a = std::get<Array>(found), &b = std::get<Array>(expected);
  EXPECT_EQ(a.dtype(), b.dtype()) << name;
  ASSERT_EQ(a.shape(), b.shape()) << name;
  const auto bytes_of = [](const Array& array) {
    return std::string_view(static_cast<const char*>(array.data()), array.size_bytes());
  };
  EXPECT_EQ(bytes_of(a), bytes_of(b)) << name;
}

TEST(TensorBundle, RoundTrip) {
  const TempFolder folder;
  const std::vector<NamedTensor> tensors = sample();
  write_tensor_bundle(folder / "model-7", tensors);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"model-7.data-00000-of-00001", "model-7.index"}));
  const TensorBundleReader reader(folder / "model-7");
  EXPECT_EQ(reader.tensors().size(), tensors.size());
  for (const auto& [name, value] : tensors) expect_equal(reader.read_value(name), value, name);
  EXPECT_EQ(reader.read_string("config"), "{\"cell\": \"gru\"}");
  EXPECT_NO_THROW(reader.verify());
}

TEST(TensorBundle, ListsSortedAndInFileOrder) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m", sample());
  const TensorBundleReader reader(folder / "m");
  EXPECT_EQ(reader.tensors().front().name, "a/double");
  EXPECT_EQ(reader.names_in_file_order().front(), "net/kernel");
  const TensorInfo& info = reader.info("net/kernel");
  EXPECT_EQ(info.name, "net/kernel");
  EXPECT_EQ(info.dtype, "float32");
  EXPECT_EQ(info.shape, Shape({2, 3}));
  EXPECT_EQ(info.bytes, 24u);
  EXPECT_FALSE(info.sliced);
  EXPECT_EQ(reader.info("words").dtype, "string");
  EXPECT_TRUE(reader.contains("half"));
  EXPECT_FALSE(reader.contains("hal"));
  EXPECT_FALSE(reader.contains(""));
}

// One without elements begins where the next one does, and stands before it.
TEST(TensorBundle, EmptyTensorsHaveTheirPlaceInTheFile) {
  const TempFolder folder;
  TensorBundleWriter writer(folder / "m");
  for (const char* name : {"z", "m", "y", "a"}) {
    const bool empty = name[0] > 'x';
    writer.add(name,
               array_of<float>({empty ? 0 : 1}, empty ? std::vector<float>{} : std::vector{1.0F}));
  }
  writer.finish();
  EXPECT_EQ(TensorBundleReader(folder / "m").names_in_file_order(),
            (std::vector<std::string>{"z", "m", "y", "a"}));
}

TEST(TensorBundle, AMessageNamesEightTensors) {
  for (const int count : {1, 8, 9, 11}) {
    const TempFolder folder;
    TensorBundleWriter writer(folder / "m");
    std::string names;
    for (int i = 0; i < count; ++i) {
      const std::string name = "t" + std::to_string(10 + i);
      writer.add(name, array_of<float>({1}, {1}));
      if (i < 8) names += (i ? ", '" : "'") + name + "'";
    }
    writer.finish();
    if (count > 8) names += " and " + std::to_string(count - 8) + " more";
    const TensorBundleReader reader(folder / "m");
    const std::string said = thrown<ArgumentError>([&] { reader.read("x"); });
    EXPECT_TRUE(said.ends_with("expected one of: " + names)) << said;
  }
}

TEST(TensorBundle, WrongQuestions) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m", sample());
  const TensorBundleReader reader(folder / "m");
  EXPECT_MESSAGE(ArgumentError, reader.read("kernel"), "[read] 'kernel' is not in");
  EXPECT_MESSAGE(ArgumentError, reader.info("kernel"), "'config', 'empty', 'flags'");
  EXPECT_MESSAGE(ArgumentError, reader.read("kernel"), "and 4 more");
  EXPECT_MESSAGE(TypeError, reader.read("words"), "[read] tensor 'words' holds strings");
  EXPECT_MESSAGE(TypeError, reader.read_strings("half"), "element type float16, expected string");
  EXPECT_MESSAGE(TypeError, reader.read_string("words"), "shape [2, 2], expected a scalar");
  EXPECT_MESSAGE(IoError, TensorBundleReader(folder / "absent"),
                 "absent.index is missing, expected the prefix of a checkpoint");
}

TEST(TensorBundle, WrongAdds) {
  const TempFolder folder;
  TensorBundleWriter writer(folder / "m");
  const Array array = array_of<float>({1}, {2});
  writer.add("x", array);
  EXPECT_MESSAGE(ArgumentError, writer.add("x", array), "[add] 'x' was added before");
  EXPECT_MESSAGE(ArgumentError, writer.add("", array), "name is empty");
  EXPECT_MESSAGE(ArgumentError, writer.add(std::string(1, '\0'), array), "starts with a zero byte");
  EXPECT_MESSAGE(ArgumentError, writer.add("s", StringTensor{{3}, {"a", "b"}}),
                 "has 2 strings, expected 3 for the shape [3]");
  writer.finish();
  EXPECT_MESSAGE(StateError, writer.add("y", array), "after finish()");
  EXPECT_MESSAGE(StateError, writer.finish(), "[finish] called after finish()");
  const TensorBundleReader reader(folder / "m");
  ASSERT_EQ(reader.tensors().size(), 1u);
  EXPECT_EQ(reader.read("x").as<float>()[0], 2.0f);
}

TEST(TensorBundle, NoTensorsAtAll) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m", {});
  EXPECT_TRUE(TensorBundleReader(folder / "m").tensors().empty());
}

TEST(TensorBundle, UnfinishedWriterLeavesNothing) {
  const TempFolder folder;
  TensorBundleWriter(folder / "m").add("x", array_of<float>({1}, {2}));
  EXPECT_TRUE(folder.names().empty());
}

TEST(TensorBundle, SavingOverReplaces) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m", sample());
  const std::vector<NamedTensor> other{{"x", array_of<float>({1}, {2})}};
  write_tensor_bundle(folder / "m", other);
  EXPECT_EQ(TensorBundleReader(folder / "m").tensors().size(), 1u);
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(TensorBundle, RemoveTakesItsOwnFilesOnly) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m-1", sample());
  write_tensor_bundle(folder / "m-10", sample());
  for (const char* name :
       {"m-1.data-00001-of-00002", "m-1.data-00000-of-00001.new", "m-1.index.new",
        "m-1.data-0-of-1", "m-1.data-00000-of-00001.bak", "m-1.meta"}) {
    write_raw(folder / name, "x");
  }
  EXPECT_TRUE(tensor_bundle_exists(folder / "m-1"));
  remove_tensor_bundle(folder / "m-1");
  EXPECT_FALSE(tensor_bundle_exists(folder / "m-1"));
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"m-1.data-0-of-1", "m-1.data-00000-of-00001.bak", "m-1.meta",
                                      "m-10.data-00000-of-00001", "m-10.index"}));
  EXPECT_NO_THROW(remove_tensor_bundle(folder / "m-1"));
  EXPECT_NO_THROW(remove_tensor_bundle(folder / "no-folder/m-1"));
}

TEST(TensorBundle, MissingFolder) {
  const TempFolder folder;
  EXPECT_MESSAGE(IoError, TensorBundleWriter(folder / "no/m"), "No such file or directory");
}

// The index first: what is left of a removal that ends early is no checkpoint.
TEST(TensorBundle, IsRemovedIndexFirst) {
  const TempFolder folder;
  write_tensor_bundle(folder / "m", sample());
  write_raw(folder / "m.index.new", "x");
  write_raw(folder / "m.data-00000-of-00001.new", "x");
  std::vector<std::string> removed;
  {
    const testing::WatchFiles watch([&](const std::string& call, const std::string& name) {
      if (call == "remove") removed.push_back(name);
      return 0;
    });
    remove_tensor_bundle(folder / "m");
  }
  ASSERT_EQ(removed.size(), 4U);
  EXPECT_EQ(removed[0], "m.index.new");
  EXPECT_EQ(removed[1], "m.index");
  std::sort(removed.begin() + 2, removed.end());
  EXPECT_EQ(removed[2], "m.data-00000-of-00001");
  EXPECT_EQ(removed[3], "m.data-00000-of-00001.new");
}

TEST(TensorBundle, AnUnfinishedIndexIsACheckpointToLookFor) {
  const TempFolder folder;
  EXPECT_FALSE(tensor_bundle_exists(folder / "m"));
  for (const char* name : {"m.index", "m.index.new"}) {
    write_raw(folder / name, "");
    EXPECT_TRUE(tensor_bundle_exists(folder / "m")) << name;
    std::filesystem::remove(folder / name);
    std::filesystem::create_directory(folder / name);
    EXPECT_FALSE(tensor_bundle_exists(folder / "m")) << name;
    std::filesystem::remove(folder / name);
  }
  write_raw(folder / "m.data-00000-of-00001", "");
  EXPECT_FALSE(tensor_bundle_exists(folder / "m"));
}

// The number of a data file and how many there are, as each name has them.
TEST(TensorBundle, OfManyDataFiles) {
  const TempFolder folder;
  constexpr int kFiles = 12;
  RawBundle raw;
  raw.header = encode_header(kFiles);
  for (int i = 0; i < kFiles; ++i) {
    BundleEntry& entry = raw.entries["t" + std::to_string(100 - i)];
    entry.dtype = 4;
    entry.shape = {1};
    entry.shard = i;
    entry.offset = i;
    entry.size = 1;
    const std::string byte(1, static_cast<char>('a' + i));
    entry.crc = mask_crc(crc32c(byte));
    const std::string number = std::to_string(100000 + i).substr(1);
    write_raw(folder / "m.data-" + number + "-of-00012",
              std::string(static_cast<std::size_t>(i), '-') + byte);
  }
  write_raw(folder / "m.index", raw.index());
  const TensorBundleReader reader(folder / "m");
  reader.verify();
  std::vector<std::string> in_order;
  for (int i = 0; i < kFiles; ++i) {
    in_order.push_back("t" + std::to_string(100 - i));
    EXPECT_EQ(reader.read(in_order.back()).as<std::uint8_t>()[0], 'a' + i);
  }
  EXPECT_EQ(reader.names_in_file_order(), in_order);
  EXPECT_EQ(reader.prefix(), folder / "m");
  remove_tensor_bundle(folder / "m");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace openrnn::formats
