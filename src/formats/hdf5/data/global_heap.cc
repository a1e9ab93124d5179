#include "base/message.h"
#include "formats/hdf5/data/attributes.h"

namespace openrnn::formats {

namespace {
constexpr std::uint64_t kCollectionHead = 16, kObjectHead = 16;
constexpr const char* kCollection = "a collection of the global heap";
}  // namespace

GlobalHeap::Objects& GlobalHeap::collection(std::uint64_t address) {
  const auto [found, is_new] = collections_.try_emplace(address);
  Objects& objects = found->second;
  if (!is_new) return objects;
  const std::string head = file_.read(address, kCollectionHead, kCollection);
  Hdf5Fields fields(file_, address, head, kCollection);
  fields.expect("GCOL");
  fields.version(1, 1);
  fields.skip(3);
  const std::uint64_t bytes = fields.number(8);
  if (bytes < kCollectionHead) fields.fail(message("has ", bytes, " bytes, expected more"));
  const std::uint64_t begin = address + kCollectionHead;
  const std::string all = file_.read(begin, bytes - kCollectionHead, kCollection);
  Hdf5Fields in(file_, begin, all, kCollection);
  while (in.remaining() >= kObjectHead) {
    const std::uint64_t index = in.number(2);
    in.skip(2 + 4);
    const std::uint64_t size = in.number(8);
    if (index == 0) break;  // what is free
    const std::string_view object = in.bytes(size);
    if (!objects.emplace(index, object).second) {
      in.fail(message("has object ", index, " twice, expected it once"));
    }
    in.skip(std::min<std::uint64_t>((8 - size % 8) % 8, in.remaining()));
  }
  return objects;
}

std::string GlobalHeap::take(std::uint64_t address, std::uint64_t index) {
  Objects& objects = collection(address);
  const auto found = objects.find(index);
  if (found == objects.end()) {
    file_.fail(address, message("object ", index,
                                " of the global heap is not there, or used twice, expected it "
                                "for one string"));
  }
  std::string object = std::move(found->second);
  objects.erase(found);
  return object;
}

}  // namespace openrnn::formats
