// Rows of a table that is in memory.
#pragma once

#include <algorithm>

#include "openrnn/train_data.h"

namespace openrnn::train {

class MemoryRows final : public SeriesRows {
 public:
  /// [rows, columns] float64.
  explicit MemoryRows(Array values) : values_(std::move(values)) {}
  std::int64_t rows() const override { return values_.shape()[0]; }
  std::int64_t columns() const override { return values_.shape()[1]; }
  void read(std::int64_t first, std::int64_t count, double* values) const override {
    std::copy_n(values_.as<double>().data() + first * columns(), count * columns(), values);
  }
  const Array& values() const { return values_; }

 private:
  Array values_;
};

}  // namespace openrnn::train
