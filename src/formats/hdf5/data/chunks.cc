#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "formats/hdf5/data/datasets.h"
#include "formats/zip/inflate.h"

namespace openrnn::formats {

namespace {

// Byte k of all elements lies together.
std::string unshuffled(const std::string& bytes, std::size_t element_bytes) {
  const std::size_t elements = bytes.size() / element_bytes;
  std::string out = bytes;  // what is left over at the end is not shuffled
  for (std::size_t k = 0; k < element_bytes; ++k) {
    for (std::size_t i = 0; i < elements; ++i) {
      out[i * element_bytes + k] = bytes[k * elements + i];
    }
  }
  return out;
}

std::uint64_t bytes_of_chunk(const Hdf5Chunks& chunks) {
  std::uint64_t bytes = chunks.element_bytes;
  for (const std::int64_t size : chunks.chunk) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

}  // namespace

std::vector<Hdf5Chunk> read_chunk_tree(Hdf5File& file, std::uint64_t address,
                                       const Hdf5Chunks& shape) {
  constexpr std::uint64_t kHead = 24;
  constexpr const char* kWhat = "a B-tree of chunks";
  const std::size_t rank = shape.shape.size();
  const std::uint64_t key_bytes = 4 + 4 + 8 * (rank + 1);
  std::vector<Hdf5Chunk> chunks;
  // Every node is taken once, so the list of those to come is bounded.
  std::vector<std::pair<std::uint64_t, std::optional<std::uint64_t>>> nodes{{address, {}}};
  while (!nodes.empty()) {
    const auto [at, expected_level] = nodes.back();
    nodes.pop_back();
    const std::string head = file.read(at, kHead, kWhat);
    Hdf5Fields in(file, at, head, kWhat);
    in.expect("TREE");
    const std::uint64_t type = in.number(1), level = in.number(1), entries = in.number(2);
    if (type != 1 || (expected_level && level != *expected_level)) {
      in.fail(message("has type ", type, " and level ", level, ", expected type 1 one level down"));
    }
    const std::string all = file.read(at + kHead, entries * (key_bytes + 8) + key_bytes, kWhat);
    Hdf5Fields fields(file, at + kHead, all, kWhat);
    for (std::uint64_t i = 0; i < entries; ++i) {
      Hdf5Chunk chunk;
      chunk.bytes = fields.number(4);
      chunk.skipped_filters = fields.number(4);
      for (std::size_t d = 0; d <= rank; ++d) {
        const std::uint64_t first = fields.number(8);
        if (d < rank) chunk.first.push_back(static_cast<std::int64_t>(first));
      }
      chunk.offset = fields.address();
      if (level == 0) {
        chunks.push_back(std::move(chunk));
      } else {
        nodes.emplace_back(chunk.offset, level - 1);
      }
    }
  }
  return chunks;
}

void ChunkedSource::read_at(std::uint64_t offset, void* out, std::size_t count) const {
  check_range(offset, count);
  if (count == bytes_) {
    decode(static_cast<char*>(out));
  } else if (count) {
    std::memcpy(out, mapped().data() + offset, count);
  }
}

void ChunkedSource::visit(std::uint64_t offset, std::uint64_t count, std::uint64_t /*at_once*/,
                          const std::function<void(std::string_view bytes)>& visit) const {
  check_range(offset, count);
  std::string elements(static_cast<std::size_t>(bytes_), '\0');
  decode(elements.data());
  visit(std::string_view(elements).substr(static_cast<std::size_t>(offset),
                                          static_cast<std::size_t>(count)));
}

std::string_view ChunkedSource::mapped() const {
  const std::lock_guard lock(mutex_);
  if (elements_.size() != bytes_) {
    std::string elements(static_cast<std::size_t>(bytes_), '\0');
    decode(elements.data());
    elements_ = std::move(elements);
  }
  return elements_;
}

// Together the chunks are the whole dataset.
void ChunkedSource::decode(char* out) const {
  const auto bytes = static_cast<std::size_t>(bytes_of_chunk(chunks_));
  for (const Hdf5Chunk& chunk : chunks_.chunks) {
    std::string elements = file_.read_string(chunk.offset, chunk.bytes);
    for (std::size_t i = chunks_.filters.size(); i-- > 0;) {
      if (chunk.skipped_filters >> i & 1u) continue;
      if (chunks_.filters[i] == Hdf5Filter::kShuffle) {
        elements = unshuffled(elements, static_cast<std::size_t>(chunks_.element_bytes));
        continue;
      }
      std::string inflated(bytes, '\0');
      if (!inflate_zlib(elements, inflated.data(), inflated.size())) {
        throw FormatError(path(), chunk.offset,
                          message("a chunk of ", chunk.bytes, " bytes is no zlib stream of ", bytes,
                                  " bytes, expected one"));
      }
      elements = std::move(inflated);
    }
    if (elements.size() != bytes) {
      throw FormatError(path(), chunk.offset,
                        message("a chunk has ", elements.size(), " bytes, expected ", bytes));
    }
    copy_chunk(chunk, elements, out);
  }
}

// Row by row of the last dimension; what reaches beyond the dataset is left out.
void ChunkedSource::copy_chunk(const Hdf5Chunk& chunk, const std::string& elements,
                               char* out) const {
  const std::size_t rank = chunks_.shape.size();
  Shape inside(rank), at(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    inside[d] = std::min(chunks_.chunk[d], chunks_.shape[d] - chunk.first[d]);
  }
  const auto width = static_cast<std::size_t>(chunks_.element_bytes);
  const std::size_t row = static_cast<std::size_t>(inside[rank - 1]) * width;
  for (;;) {
    std::size_t from = 0, to = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      from = from * static_cast<std::size_t>(chunks_.chunk[d]) + static_cast<std::size_t>(at[d]);
      to = to * static_cast<std::size_t>(chunks_.shape[d]) +
           static_cast<std::size_t>(chunk.first[d] + at[d]);
    }
    std::memcpy(out + to * width, elements.data() + from * width, row);
    std::size_t d = rank - 1;
    while (d > 0 && ++at[d - 1] == inside[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace openrnn::formats
