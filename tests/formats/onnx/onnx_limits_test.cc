// Limits of an ONNX model: shapes, where elements are, domains and names.
#include <gtest/gtest.h>
#include <openrnn/formats_onnx.h>

#include <functional>
#include <protozero/pbf_writer.hpp>

#include "formats/onnx/onnx_file.h"
#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

using protozero::pbf_writer;

OnnxModel parsed(const std::string& bytes) {
  return parse_onnx(std::make_shared<MemorySource>("m", bytes), [](const std::string& name) {
    return std::make_unique<MemorySource>(name, "");
  });
}

// A tensor of elements in one field, each a value of its own.
template <class Put>
std::string with_elements(std::int32_t type, const Shape& shape, const Put& put) {
  std::string bytes;
  pbf_writer out(bytes);
  pbf_writer graph(out, 7);
  {
    pbf_writer tensor(graph, 5);
    tensor.add_packed_int64(1, shape.begin(), shape.end());
    tensor.add_int32(2, type);
    tensor.add_string(8, "t");
    put(&tensor);
  }
  return bytes;
}

TEST(OnnxLimits, ElementsThatAreImpossible) {
  const auto none = [](const Shape& shape) { return with_elements(1, shape, [](pbf_writer*) {}); };
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  EXPECT_MESSAGE(FormatError, parsed(none({kMost})), "has 0 bytes, expected 1152921504606846976");
  EXPECT_MESSAGE(FormatError, parsed(none({kMost + 1})), "has impossible shape");
  EXPECT_MESSAGE(FormatError, parsed(none({-1})), "has impossible shape");
  EXPECT_NO_THROW(parsed(none({kMost, 0, kMost})));
}

// Where the elements are: 0 is here, and 1 elsewhere.
TEST(OnnxLimits, WhereElementsAre) {
  const auto located = [](int where) {
    return with_elements(1, {0}, [&](pbf_writer* out) {
      for (const auto& [key, value] : {std::pair{"location", "x"}, {"other", "1y"}}) {
        pbf_writer entry(*out, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
      }
      out->add_enum(14, where);
    });
  };
  EXPECT_NO_THROW(parsed(located(0)));
  EXPECT_NO_THROW(parsed(located(1)));
  const auto placed = [](const char* key, const char* value, const char* name = "x") {
    return with_elements(2, {1}, [&](pbf_writer* out) {
      for (const auto& [one, text] : {std::pair{"location", name}, {key, value}}) {
        pbf_writer entry(*out, 13);
        entry.add_string(1, one);
        entry.add_string(2, text);
      }
      out->add_enum(14, 1);
    });
  };
  const std::string data = "abc";
  const auto byte_of = [&](const std::string& bytes) {
    const OnnxModel model = parse_onnx(
        std::make_shared<MemorySource>("m", bytes),
        [&](const std::string& name) { return std::make_unique<MemorySource>(name, data); });
    return std::string(model.graph.initializers.at(0).bytes);
  };
  EXPECT_EQ(byte_of(placed("offset", "0")), "a");
  EXPECT_EQ(byte_of(placed("offset", "2")), "c") << "the last one";
  EXPECT_EQ(byte_of(placed("length", "1")), "a");
  EXPECT_MESSAGE(FormatError, byte_of(placed("offset", "3")), "expected them inside its 3");
  for (const char* length : {"0", "2"}) {
    EXPECT_MESSAGE(FormatError, byte_of(placed("length", length)), "bytes, expected 1 of uint8");
  }
  for (const char* number : {"", "-1", "1x", "0x1", " 1", "18446744073709551616"}) {
    EXPECT_MESSAGE(FormatError, byte_of(placed("offset", number)), "expected a decimal one");
  }
  for (const char* name : {"", ".", "..", "/x", "a/x", "a\\x", "\x01"}) {
    EXPECT_MESSAGE(FormatError, byte_of(placed("offset", "0", name)),
                   "expected the name of a file in the folder");
  }
}

TEST(OnnxLimits, DomainsAndNames) {
  const auto of = [](const std::function<void(pbf_writer*)>& put) {
    std::string bytes;
    pbf_writer out(bytes);
    put(&out);
    return bytes;
  };
  const auto opset = [](pbf_writer* out, const char* domain, std::int64_t version) {
    pbf_writer one(*out, 8);
    if (*domain) one.add_string(1, domain);
    one.add_int64(2, version);
  };
  EXPECT_EQ(parsed(of([&](pbf_writer* out) {
              out->add_string(7, "");
              opset(out, "ai.onnx", 15);
            })).opset(),
            15);
  EXPECT_MESSAGE(FormatError, parsed(of([&](pbf_writer* out) {
                   out->add_string(7, "");
                   opset(out, "ai.onnx", 15);
                   opset(out, "", 15);
                 })),
                 "the domain '' has two versions, expected one");
  EXPECT_MESSAGE(FormatError, parsed(of([&](pbf_writer* out) {
                   out->add_string(7, "");
                   pbf_writer entry(*out, 14);
                   entry.add_string(2, "\xff");
                 })),
                 "a text is not UTF-8");
  // Constants of no name are not listed.
  OnnxModel model;
  const auto value =
      std::make_shared<const OnnxTensor>(OnnxTensor::of("", array_of<float>({1}, {1})));
  model.graph.nodes = {{.op_type = "Constant", .attributes = {{"value", value}}}};
  const TempFolder folder;
  write_onnx(folder / "m", model);
  EXPECT_TRUE(
      read_onnx_contents(std::make_shared<FileSource>(folder / "m"), nullptr).tensors.empty());
}

// Every attribute says its type, by the numbers of the format; readers of others go by it.
TEST(OnnxLimits, TypesOfAttributes) {
  const auto tensor =
      std::make_shared<const OnnxTensor>(OnnxTensor::of("", array_of<float>({1}, {1})));
  const std::pair<OnnxAttributeValue, char> kinds[] = {{1.5F, 1},
                                                       {std::int64_t{3}, 2},
                                                       {std::string("a"), 3},
                                                       {tensor, 4},
                                                       {std::make_shared<const OnnxGraph>(), 5},
                                                       {std::vector<float>{1.5F}, 6},
                                                       {std::vector<std::int64_t>{3}, 7},
                                                       {std::vector<std::string>{"a"}, 8}};
  for (const auto& [value, type] : kinds) {
    OnnxModel model;
    model.graph.nodes = {{.op_type = "Op", .attributes = {{"k", value}}}};
    // Field 20 of the attribute, then the name of the graph.
    const std::string end = std::string("\xa0\x01") + type + std::string("\x12\0", 2);
    EXPECT_TRUE(encode_onnx(model).ends_with(end)) << int{type};
  }
}

// Every byte as a bool, behind a good one: raw and as a field of its own.
TEST(OnnxLimits, BytesThatAreNoBools) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes = {'\1', static_cast<char>(byte)};
    const std::string stored[] = {
        with_elements(9, {2}, [&](pbf_writer* out) { out->add_bytes(9, bytes); }),
        with_elements(9, {2}, [&](pbf_writer* out) {
          out->add_int32(5, 1);
          out->add_int32(5, byte);
        })};
    for (const std::string& model : stored) {
      if (byte <= 1) {
        EXPECT_EQ(parsed(model).graph.initializers.at(0).bytes, bytes);
        continue;
      }
      const std::string said = "' has the bool " + std::to_string(byte) + ", expected 0 or 1";
      EXPECT_MESSAGE(FormatError, parsed(model), "tensor 't" + said);
    }
  }
  // No type but bool is looked at.
  for (const std::int32_t type : {2, 3, 17}) {
    EXPECT_EQ(parsed(with_elements(type, {1}, [](pbf_writer* out) { out->add_bytes(9, "\x80"); }))
                  .graph.initializers.at(0)
                  .bytes,
              "\x80")
        << type;
  }
}

}  // namespace
}  // namespace openrnn::formats
