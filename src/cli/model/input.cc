#include "cli/model/input.h"

#include <fmt/core.h>

#include "formats/wav/wav.h"
#include "openrnn/formats_model_file.h"
#include "openrnn/train_data.h"

namespace openrnn::cli {

Array as_floating(const Array& values, DType dtype) {
  if (is_floating(values.dtype())) return cast(values.view(), dtype);
  Array wide(DType::kFloat64, values.shape());
  const auto to = wide.as<double>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    switch (values.dtype()) {
      case DType::kInt32:
        to[i] = values.as<std::int32_t>()[i];
        break;
      case DType::kInt64:
        to[i] = static_cast<double>(values.as<std::int64_t>()[i]);
        break;
      default:
        to[i] = static_cast<const unsigned char*>(values.data())[i];
    }
  }
  return cast(wide.view(), dtype);
}

namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv") || path.ends_with(".tsv"); }

}  // namespace

Array read_input(const std::string& path) {
  if (is_csv(path)) return train::load_series(path).values;
  if (path.ends_with(".wav")) return formats::read_wav(formats::FileSource(path));
  return read_npy(path);
}

Array as_indices(const Array& values) {
  const Array wide = as_floating(values, DType::kFloat64);
  Array indices(DType::kInt32, values.shape());
  for (std::size_t i = 0; i < wide.as<double>().size(); ++i) {
    const double value = wide.as<double>()[i];
    // No NaN passes.
    if (!(value >= INT32_MIN && value <= INT32_MAX) ||
        value != static_cast<double>(static_cast<std::int32_t>(value))) {
      throw ArgumentError(
          fmt::format("[run] --input has {} at {}, expected 32-bit integers", value, i));
    }
    indices.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
  return indices;
}

}  // namespace openrnn::cli
