#include "checkpoint/objects/object_file.h"

#include "base/excerpt.h"
#include "base/message.h"
#include "checkpoint/objects/tree.h"

namespace openrnn::checkpoint {
namespace {

std::string graph_bytes(const TensorBundleReader& reader) {
  if (!reader.contains(formats::kObjectGraphKey)) {
    throw ArgumentError(message("[Checkpoint::read] ", reader.prefix(),
                                " holds no object graph, expected an object-based checkpoint; a "
                                "Saver reads checkpoints by name"));
  }
  return reader.read_string(formats::kObjectGraphKey);
}

}  // namespace

ObjectFile::ObjectFile(const std::string& prefix)
    : reader(prefix),
      graph(formats::decode_object_graph(message(prefix, " ", formats::kObjectGraphKey),
                                         graph_bytes(reader))) {}

const std::string* ObjectFile::value_of(std::size_t node) const {
  const std::string* key = graph.nodes[node].value_key();
  if (key && !reader.contains(*key)) {
    throw FormatError(
        message(reader.prefix(), " ", formats::kObjectGraphKey), 0,
        message("the object graph names the tensor ", excerpt(*key), ", which is not there"));
  }
  return key;
}

std::optional<std::size_t> ObjectFile::slot_of(std::size_t optimizer, std::size_t original,
                                               const std::string& name) const {
  for (const formats::ObjectSlot& slot : graph.nodes[optimizer].slots) {
    if (slot.original == original && slot.name == name) return slot.node;
  }
  return {};
}

std::optional<std::int64_t> ObjectFile::save_counter() const {
  const formats::ObjectChild* child = graph.nodes[0].child(kSaveCounter);
  const std::string* key = child ? value_of(child->node) : nullptr;
  if (!key) return {};
  const TensorInfo& info = reader.info(*key);
  if (info.dtype == "int64" && info.shape.empty()) {
    const std::int64_t count = reader.read(*key).as<std::int64_t>()[0];
    if (count >= 0) return count;
  }
  throw FormatError(
      reader.prefix(), 0,
      message("the save counter ", excerpt(*key), " is no int64 scalar of at least 0"));
}

}  // namespace openrnn::checkpoint
