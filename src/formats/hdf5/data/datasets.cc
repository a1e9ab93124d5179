#include "formats/hdf5/data/datasets.h"

#include <set>

#include "base/message.h"
#include "formats/tensors/contents.h"
#include "formats/zip/inflate.h"

namespace openrnn::formats {

namespace {

enum LayoutClass : std::uint64_t { kCompact = 0, kContiguous = 1, kChunked = 2 };
// Of the fourth version of the layout message.
enum ChunkIndex : std::uint64_t { kSingleChunk = 1, kImplicit = 2, kFixedArray = 3 };
constexpr std::uint64_t kPartialUnfiltered = 1, kSingleFiltered = 2;

class DatasetReader {
 public:
  DatasetReader(Hdf5File& file, const Hdf5Object& object) : file_(file), object_(object) {}

  Hdf5Dataset read() {
    const Hdf5Message& type = need(Hdf5MessageType::kDatatype, "element type");
    const Hdf5Message& space = need(Hdf5MessageType::kDataspace, "dataspace");
    out_.type = parse_type(file_, type.offset, type.bytes);
    const std::optional<Shape> shape = parse_dataspace(file_, space.offset, space.bytes);
    out_.shape = shape ? *shape : Shape{0};
    const std::optional<std::uint64_t> count = element_count(out_.shape);
    if (!count || __builtin_mul_overflow(*count, out_.type.bytes, &out_.bytes)) {
      file_.fail(space.offset, message("a dataset of shape ", to_string(out_.shape),
                                       " has more than 2^63 elements, expected fewer"));
    }
    if (object_.find(Hdf5MessageType::kExternalFiles)) {
      out_.fault = "is in other files";
    } else {
      read_layout();
    }
    return std::move(out_);
  }

 private:
  const Hdf5Message& need(Hdf5MessageType type, const char* what) {
    if (const Hdf5Message* const found = object_.find(type)) return *found;
    file_.fail(object_.address, message("a dataset has no ", what, ", expected one"));
  }

  void read_layout() {
    const Hdf5Message& layout = need(Hdf5MessageType::kLayout, "layout");
    Hdf5Fields in(file_, layout.offset, layout.bytes, "the layout of a dataset");
    const std::uint64_t version = in.version(3, 4), kind = in.number(1);
    if (kind == kCompact) {
      const std::uint64_t stored = in.number(2);
      out_.offset = in.offset();
      in.skip(stored);
      require_size(in, stored);
    } else if (kind == kContiguous) {
      out_.offset = in.address();
      const std::uint64_t stored = in.number(8);
      take_contiguous(in, stored);
    } else if (kind == kChunked && version == 3) {
      read_chunks(&in);
    } else if (kind == kChunked) {
      read_new_chunks(&in);
    } else {
      out_.fault = "has a layout that is not read";
    }
  }

  void require_size(const Hdf5Fields& in, std::uint64_t stored) {
    if (stored == out_.bytes) return;
    in.fail(message("has ", stored, " bytes, expected ", out_.bytes, " of shape ",
                    to_string(out_.shape)));
  }

  void take_contiguous(const Hdf5Fields& in, std::uint64_t stored) {
    if (out_.offset == kNoAddress) {
      out_.offset = 0;
      if (out_.bytes) out_.fault = "has no elements stored";
      return;
    }
    require_size(in, stored);
    file_.take(out_.offset, stored, "a dataset");
  }

  // The sizes of a chunk; the last one is that of an element.
  Hdf5Chunks parse_shape(Hdf5Fields* in, std::uint64_t rank_and_one, std::size_t size_bytes) {
    Hdf5Chunks chunks{.shape = out_.shape, .chunk = {}, .element_bytes = out_.type.bytes};
    if (rank_and_one != out_.shape.size() + 1 || out_.shape.empty()) {
      in->fail(message("has rank ", rank_and_one, ", expected ", out_.shape.size() + 1));
    }
    std::uint64_t bytes = out_.type.bytes;
    for (std::size_t d = 0; d < out_.shape.size(); ++d) {
      const std::uint64_t size = in->number(size_bytes);
      if (size == 0 || size > UINT32_MAX || __builtin_mul_overflow(bytes, size, &bytes)) {
        in->fail(message("has chunks of ", size, ", expected a size of at least 1 that fits"));
      }
      chunks.chunk.push_back(static_cast<std::int64_t>(size));
    }
    const std::uint64_t file_bytes = file_.source().size();
    if (!may_grow_to(file_bytes, bytes) || !may_grow_to(file_bytes, out_.bytes)) {
      out_.fault = message("has ", std::max(bytes, out_.bytes), " bytes in a file of ", file_bytes,
                           ", more than ", kMostGrowth, " times as many");
    }
    return chunks;
  }

  void read_chunks(Hdf5Fields* in) {
    const std::uint64_t rank_and_one = in->number(1), tree = in->address();
    Hdf5Chunks chunks = parse_shape(in, rank_and_one, 4);
    expect_element(in, 4);
    read_filters(&chunks);
    if (tree != kNoAddress) chunks.chunks = read_chunk_tree(file_, tree, chunks);
    finish(*in, std::move(chunks));
  }

  void expect_element(Hdf5Fields* in, std::size_t bytes) {
    const std::uint64_t element = in->number(bytes);
    if (element != out_.type.bytes) {
      in->fail(message("has elements of ", element, " bytes, expected ", out_.type.bytes));
    }
  }

  void read_new_chunks(Hdf5Fields* in) {
    const std::uint64_t flags = in->number(1), rank_and_one = in->number(1);
    const std::uint64_t size_bytes = in->number(1);
    if (size_bytes < 1 || size_bytes > 8) in->fail(message("has sizes of ", size_bytes, " bytes"));
    Hdf5Chunks chunks = parse_shape(in, rank_and_one, size_bytes);
    expect_element(in, size_bytes);
    read_filters(&chunks);
    const std::uint64_t index = in->number(1);
    std::uint64_t bytes = chunks.element_bytes;
    for (const std::int64_t size : chunks.chunk) bytes *= static_cast<std::uint64_t>(size);
    if ((flags & kPartialUnfiltered) != 0) {
      out_.fault = "has chunks at its ends without filters";
    } else if (index == kSingleChunk) {
      Hdf5Chunk chunk{.first = Shape(out_.shape.size(), 0), .offset = 0, .bytes = bytes};
      if (flags & kSingleFiltered) {
        chunk.bytes = in->number(8);
        chunk.skipped_filters = in->number(4);
      }
      chunk.offset = in->address();
      if (chunk.offset != kNoAddress) chunks.chunks.push_back(std::move(chunk));
    } else if (index == kImplicit) {
      add_in_order(in->address(), bytes, &chunks);
    } else if (index == kFixedArray) {
      in->skip(1);  // bits of a page
      read_fixed_array(in->address(), bytes, &chunks);
    } else {
      out_.fault = message("has an index of chunks of type ", index);
    }
    finish(*in, std::move(chunks));
  }

  // Of a dataset whose fault is known nothing more is read.
  std::uint64_t count_of_chunks(const Hdf5Chunks& chunks) const {
    if (!out_.fault.empty() || out_.bytes == 0) return 0;
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < chunks.shape.size(); ++d) {
      count *= static_cast<std::uint64_t>((chunks.shape[d] - 1) / chunks.chunk[d] + 1);
    }
    return count;  // at most the elements, which do not overflow
  }

  static Shape place_of(const Hdf5Chunks& chunks, std::uint64_t number) {
    Shape first(chunks.shape.size());
    for (std::size_t d = first.size(); d-- > 0;) {
      const auto along = static_cast<std::uint64_t>((chunks.shape[d] - 1) / chunks.chunk[d] + 1);
      first[d] = static_cast<std::int64_t>(number % along) * chunks.chunk[d];
      number /= along;
    }
    return first;
  }

  void add_in_order(std::uint64_t address, std::uint64_t bytes, Hdf5Chunks* chunks) {
    if (address == kNoAddress) return;
    for (std::uint64_t i = 0; i < count_of_chunks(*chunks); ++i) {
      if (address + i * bytes > file_.source().size()) {
        file_.fail(object_.address, "the chunks of a dataset end beyond the file");
      }
      chunks->chunks.push_back({place_of(*chunks, i), address + i * bytes, bytes, 0});
    }
  }

  // One page: up to some thousand chunks.
  void read_fixed_array(std::uint64_t address, std::uint64_t bytes, Hdf5Chunks* chunks) {
    constexpr std::uint64_t kHeader = 28, kBlockHead = 14, kChecksum = 4;
    constexpr const char* kWhat = "an array of chunks";
    if (address == kNoAddress) return;
    const std::string header = file_.read(address, kHeader, kWhat);
    check_lookup3(file_, address, header, kWhat);
    Hdf5Fields in(file_, address, header, kWhat);
    in.expect("FAHD");
    in.version(0, 0);
    const std::uint64_t filtered = in.number(1), entry_bytes = in.number(1);
    const std::uint64_t page_bits = in.number(1), entries = in.number(8), block = in.address();
    const std::uint64_t least = filtered ? 8 + 4 + 1 : 8;
    if (filtered > 1 || entry_bytes < least || entry_bytes > least + 7 ||
        entries != count_of_chunks(*chunks)) {
      if (!out_.fault.empty()) return;
      in.fail(message("has ", entries, " entries of ", entry_bytes, " bytes, expected ",
                      count_of_chunks(*chunks), " of ", least, " or more"));
    }
    if (page_bits >= 63 || entries > std::uint64_t{1} << page_bits) {
      out_.fault = message("has an index of ", entries, " chunks in pages");
      return;
    }
    if (block == kNoAddress) return;
    const std::string all =
        file_.read(block, kBlockHead + entries * entry_bytes + kChecksum, kWhat);
    check_lookup3(file_, block, all, kWhat);
    Hdf5Fields list(file_, block, all, kWhat);
    list.expect("FADB");
    list.skip(kBlockHead - 4);
    for (std::uint64_t i = 0; i < entries; ++i) {
      Hdf5Chunk chunk{.first = place_of(*chunks, i), .offset = list.address(), .bytes = bytes};
      if (filtered) {
        chunk.bytes = list.number(static_cast<std::size_t>(entry_bytes - 12));
        chunk.skipped_filters = list.number(4);
      }
      if (chunk.offset != kNoAddress) chunks->chunks.push_back(std::move(chunk));
    }
  }

  void read_filters(Hdf5Chunks* chunks) {
    const Hdf5Message* const found = object_.find(Hdf5MessageType::kFilters);
    if (!found) return;
    Hdf5Fields in(file_, found->offset, found->bytes, "the filters of a dataset");
    const std::uint64_t version = in.version(1, 2), count = in.number(1);
    if (version == 1) in.skip(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      constexpr std::uint64_t kFirstWithName = 256;
      const std::uint64_t id = in.number(2);
      const std::uint64_t name = version == 1 || id >= kFirstWithName ? in.number(2) : 0;
      in.skip(2);
      const std::uint64_t values = in.number(2);
      in.skip(version == 1 ? (name + 7) / 8 * 8 : name);
      in.skip(values * 4 + (version == 1 && values % 2 ? 4 : 0));
      if (id != 1 && id != 2) {
        out_.fault = message("is stored with filter ", id, ", expected gzip and shuffle alone");
      }
      chunks->filters.push_back(static_cast<Hdf5Filter>(id));
    }
    constexpr std::size_t kMostFilters = 4;
    if (chunks->filters.size() > kMostFilters) {
      out_.fault = message("is stored with ", chunks->filters.size(), " filters");
    }
  }

  // Each chunk is at its own place, and all are there.
  void finish(const Hdf5Fields& in, Hdf5Chunks chunks) {
    std::set<Shape> places;
    for (const Hdf5Chunk& chunk : chunks.chunks) {
      for (std::size_t d = 0; d < chunk.first.size(); ++d) {
        const std::int64_t first = chunk.first[d];
        if (first < 0 || first >= chunks.shape[d] || first % chunks.chunk[d] != 0) {
          in.fail(message("has a chunk at ", to_string(chunk.first), " of a dataset of shape ",
                          to_string(chunks.shape), ", expected it inside"));
        }
      }
      if (!places.insert(chunk.first).second) {
        in.fail(message("has two chunks at ", to_string(chunk.first), ", expected one"));
      }
      file_.take(chunk.offset, chunk.bytes, "a chunk of a dataset");
    }
    const std::uint64_t count = count_of_chunks(chunks);
    if (out_.fault.empty() && chunks.chunks.size() != count) {
      out_.fault = message("has ", chunks.chunks.size(), " of ", count, " chunks stored");
    }
    out_.chunks = std::move(chunks);
  }

  Hdf5File& file_;
  const Hdf5Object& object_;
  Hdf5Dataset out_;
};

}  // namespace

Hdf5Dataset read_dataset(Hdf5File& file, const Hdf5Object& object) {
  return DatasetReader(file, object).read();
}

}  // namespace openrnn::formats
