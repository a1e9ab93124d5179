#include "formats/npy/npy.h"

#include <algorithm>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "formats/npy/header.h"
#include "formats/tensors/contents.h"
#include "openrnn/formats_model_file.h"

namespace openrnn {

namespace formats {

namespace {

// Columns first: the first index is the fastest.
Array from_columns(const Array& columns, const Shape& shape) {
  Array rows(columns.dtype(), shape);
  const std::size_t width = dtype_size(columns.dtype());
  std::vector<std::int64_t> index(shape.size(), 0);
  const auto* const from = static_cast<const std::byte*>(columns.data());
  auto* const to = static_cast<std::byte*>(rows.data());
  for (std::int64_t at = 0; at < columns.size(); ++at) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      place = place * shape[axis] + index[axis];
    std::memcpy(to + static_cast<std::size_t>(place) * width,
                from + static_cast<std::size_t>(at) * width, width);
    for (std::size_t axis = 0; axis < shape.size() && ++index[axis] == shape[axis]; ++axis) {
      index[axis] = 0;
    }
  }
  return rows;
}

DType npy_dtype(const ByteSource& file, const NpyHeader& header) {
  if (header.type.kind == NpyKind::kNumbers) {
    if (const std::optional<DType> dtype = find_dtype(header.type.name)) return *dtype;
  }
  throw UnsupportedError(
      message("[read_npy] ", file.path(), " has elements '",
              header.descr.starts_with('[') ? "structures" : excerpt(header.descr),
              "', expected one of OpenRNN's dtypes, little-endian"));
}

void check_npy_bools(const ByteSource& file, std::uint64_t offset, const Array& values) {
  const auto* const first = static_cast<const unsigned char*>(values.data());
  const auto* const bad =
      std::find_if(first, first + values.size(), [](unsigned char c) { return c > 1; });
  if (bad == first + values.size()) return;
  throw FormatError(file.path(), offset + static_cast<std::uint64_t>(bad - first),
                    message("a bool is ", int{*bad}, ", expected 0 or 1"));
}

}  // namespace

Array read_npy(const ByteSource& file) {
  const NpyHeader header = read_npy_header(file);
  const DType dtype = npy_dtype(file, header);
  Array values(dtype, header.shape);
  if (values.size() > 0) file.read_at(header.offset, values.data(), values.size_bytes());
  if (dtype == DType::kBool) check_npy_bools(file, header.offset, values);
  return header.columns_first && header.shape.size() > 1 ? from_columns(values, header.shape)
                                                         : std::move(values);
}

}  // namespace formats

Array read_npy(const std::string& path) { return formats::read_npy(formats::FileSource(path)); }

void write_npy(const std::string& path, const ConstArrayView& values) {
  const std::string prefix = formats::npy_prefix("write_npy", values);
  formats::replace_file(path, [&](formats::OutputFile& file) {
    file.write(prefix);
    file.write(values.data, values.size_bytes());
  });
}

}  // namespace openrnn
