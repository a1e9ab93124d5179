#include "formats/tensors/elements.h"

#include <algorithm>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/zip/crc32.h"

namespace openrnn::formats {

namespace {

// Bytes that are read at a time for a checksum: they are in the L2 cache when it is computed.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 18;
// Bytes that are visited at a time, if a row is not larger: many rows, which are the columns of
// what is transposed.
constexpr std::uint64_t kVisitBytes = std::uint64_t{1} << 21;

// A dimension of a tensor with gaps.
struct StridedDim {
  std::int64_t size = 0;
  std::size_t stride_bytes = 0;
};

// Those of size 1 are left out: the counter would walk over them at every element.
std::vector<StridedDim> strided_dims(const Shape& shape, const TensorPlace& place) {
  std::vector<StridedDim> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    dims.push_back({shape[i], static_cast<std::size_t>(place.strides[i]) * place.element_bytes});
  }
  return dims;
}

// `from` is the first element.
void gather(const char* from, const std::vector<StridedDim>& dims, std::size_t element_bytes,
            std::uint64_t elements, char* out) {
  std::vector<std::int64_t> at(dims.size(), 0);
  std::size_t offset = 0;
  for (std::uint64_t i = 0; i < elements; ++i, out += element_bytes) {
    std::memcpy(out, from + offset, element_bytes);
    for (std::size_t d = dims.size(); d-- > 0;) {
      offset += dims[d].stride_bytes;
      if (++at[d] < dims[d].size) break;
      offset -= dims[d].stride_bytes * static_cast<std::size_t>(dims[d].size);
      at[d] = 0;
    }
  }
}

void compare_crc32(const FileContents& contents, std::size_t number, std::uint32_t crc) {
  const Extent& extent = contents.extents[number];
  if (crc == *extent.crc) {
    contents.verified->add(number);
    return;
  }
  throw FormatError(
      extent.source->path(), extent.offset,
      message(extent.bytes, " bytes of tensors have checksum ", crc, ", expected ", *extent.crc));
}

// The checksum of bytes [from, to) of the extent behind `crc`.
std::uint32_t crc32_over(const Extent& extent, std::uint64_t from, std::uint64_t to,
                         std::uint32_t crc) {
  std::string piece;
  for (; from < to; from += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, to - from)));
    extent.source->read_at(extent.offset + from, piece.data(), piece.size());
    crc = crc32_extend(crc, piece.data(), piece.size());
  }
  return crc;
}

// In one pass over the extent: what lies in front of the elements and behind them is read for the
// checksum alone.
void copy_verified(const FileContents& contents, std::size_t number, std::uint64_t first,
                   std::uint64_t bytes, char* out) {
  const Extent& extent = contents.extents[number];
  std::uint32_t crc = crc32_over(extent, 0, first, 0);
  for (std::uint64_t at = 0; at < bytes;) {
    const auto size = static_cast<std::size_t>(std::min(kPieceBytes, bytes - at));
    extent.source->read_at(extent.offset + first + at, out + at, size);
    crc = crc32_extend(crc, out + at, size);
    at += size;
  }
  compare_crc32(contents, number, crc32_over(extent, first + bytes, extent.bytes, crc));
}

void copy_strided(const FileContents& contents, std::size_t tensor, char* out) {
  const TensorInfo& info = contents.tensors[tensor];
  const TensorPlace& place = contents.places[tensor];
  const Extent& extent = contents.extents[place.extent];
  const std::vector<StridedDim> dims = strided_dims(info.shape, place);
  std::size_t span = place.element_bytes;
  for (const StridedDim& dim : dims) {
    span += static_cast<std::size_t>(dim.size - 1) * dim.stride_bytes;
  }
  const std::string bytes = extent.source->read_string(extent.offset + place.first, span);
  gather(bytes.data(), dims, place.element_bytes, info.bytes / place.element_bytes, out);
}

}  // namespace

void require_stored_elements(const FileContents& contents, std::size_t tensor) {
  const TensorInfo& info = contents.tensors[tensor];
  const Extent& extent = contents.extents[contents.places[tensor].extent];
  extent.source->require_readable();
  const std::uint64_t stored = extent.bytes;
  if (info.bytes <= stored) return;
  throw UnsupportedError(message("[read] tensor '", excerpt(info.name), "' of ", info.bytes,
                                 " bytes repeats elements of a storage of ", stored,
                                 " bytes, expected no more than are stored"));
}

void verify_extent(const FileContents& contents, std::size_t number) {
  const Extent& extent = contents.extents[number];
  if (extent.source_checks) {
    extent.source->read_string(extent.offset, extent.bytes);
    return;
  }
  if (!extent.crc || contents.verified->contains(number)) return;
  compare_crc32(contents, number, crc32_over(extent, 0, extent.bytes, 0));
}

void copy_elements(const FileContents& contents, std::size_t tensor, void* out) {
  const TensorInfo& info = contents.tensors[tensor];
  const TensorPlace& place = contents.places[tensor];
  const Extent& extent = contents.extents[place.extent];
  auto* const to = static_cast<char*>(out);
  if (!place.strides.empty()) {
    verify_extent(contents, place.extent);
    return copy_strided(contents, tensor, to);
  }
  if (extent.crc && !contents.verified->contains(place.extent)) {
    return copy_verified(contents, place.extent, place.first, info.bytes, to);
  }
  extent.source->read_at(extent.offset + place.first, to, static_cast<std::size_t>(info.bytes));
}

void visit_elements(const FileContents& contents, std::size_t tensor, std::uint64_t row_bytes,
                    const std::function<void(std::string_view bytes)>& visit) {
  const TensorInfo& info = contents.tensors[tensor];
  const TensorPlace& place = contents.places[tensor];
  const Extent& extent = contents.extents[place.extent];
  if (!place.strides.empty()) {
    std::string elements(static_cast<std::size_t>(info.bytes), '\0');
    copy_elements(contents, tensor, elements.data());
    return visit(elements);
  }
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kVisitBytes / row_bytes) * row_bytes;
  const std::uint64_t offset = extent.offset + place.first;
  if (!extent.crc || contents.verified->contains(place.extent)) {
    return extent.source->visit(offset, info.bytes, at_once, visit);
  }
  std::uint32_t crc = crc32_over(extent, 0, place.first, 0);
  extent.source->visit(offset, info.bytes, at_once, [&](std::string_view bytes) {
    crc = crc32_extend(crc, bytes.data(), bytes.size());
    visit(bytes);
  });
  compare_crc32(contents, place.extent,
                crc32_over(extent, place.first + info.bytes, extent.bytes, crc));
}

}  // namespace openrnn::formats
