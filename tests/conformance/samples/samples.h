// Gradients of rows, as an engine gives them.
#pragma once

#include "conformance/support/bounds.h"
#include "conformance/support/difference.h"
#include "conformance/support/grid.h"
#include "conformance/support/parts.h"

namespace openrnn::conformance {

struct Samples {
  Array rows;  // [B, parameters]
  std::vector<double> norms;

  Result result() const {
    Result all;
    all.parts.emplace_back("rows", rows);
    all.parts.emplace_back("norms",
                           Array::of<double>({static_cast<std::int64_t>(norms.size())}, norms));
    return all;
  }
};

inline std::unique_ptr<SavedForward> save_call(const Engine& engine, const Case& c, const Data& d,
                                               std::int64_t recompute = 0) {
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs args =
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  args.recompute = recompute;
  return engine.forward_saving(args);
}

/// The gradients that a backward call begins with.
inline BackwardArgs upstream(const Case& c, const Data& d, const SavedForward& saved) {
  BackwardArgs args;
  args.saved = &saved;
  args.dy = d.dy.data();
  args.dhn = d.dhn.data();
  if (c.spec.has_cell()) args.dcn = d.dcn.data();
  return args;
}

/// Rows [first, last).
struct RowRange {
  std::int64_t first, last;
};
inline Array run_rows(const Engine& engine, const Case& c, const Data& d, const SavedForward& saved,
                      const RowRange& range) {
  const std::int64_t count = range.last - range.first, size = params_size(c.spec);
  Array rows = random_array(c.spec.dtype, count * size, 5, 6, 1).reshaped({count, size});
  BackwardArgs args = upstream(c, d, saved);
  args.row_dparams = rows.data();
  args.first_row = range.first;
  args.last_row = range.last;
  engine.backward(args);
  return rows;
}

/// Of all rows; the norms with and without them are the same.
inline Samples run_samples(const Engine& engine, const Case& c, const Data& d,
                           const SavedForward& saved) {
  Samples found{run_rows(engine, c, d, saved, {0, c.batch}), {}};
  const auto norms = [&](bool beside) {
    std::vector<double> squares(static_cast<std::size_t>(c.batch), 7.0);
    Array rows(c.spec.dtype, {c.batch, params_size(c.spec)});
    Array dx(c.spec.dtype, {c.seq_size(c.spec.input_size)});
    Array dparams(c.spec.dtype, {params_size(c.spec)});
    BackwardArgs args = upstream(c, d, saved);
    args.row_norms = squares.data();
    if (beside) {
      args.row_dparams = rows.data();
      args.last_row = c.batch;
      args.dx = dx.data();
      args.dparams = dparams.data();
    }
    engine.backward(args);
    return squares;
  };
  found.norms = norms(false);
  EXPECT_EQ(found.norms, norms(true)) << "beside other results";
  return found;
}

inline Array row_of(const Array& rows, std::int64_t b) {
  return take(rows, {1, rows.shape()[0], rows.shape()[1], b, 1});
}

/// The data with no losses but those of row b.
inline Data loss_of_row(const Case& c, const Data& d, std::int64_t b) {
  const RnnSpec& s = c.spec;
  const auto only = [&](Array& values, std::int64_t planes, std::int64_t width) {
    const Cut cut = row_cut(c, planes, width, b);
    Array zeros(values.dtype(), values.shape());
    const std::size_t bytes = static_cast<std::size_t>(cut.inner) * dtype_size(values.dtype());
    for (std::int64_t n = 0; n < cut.outer && bytes > 0; ++n) {
      const auto at = static_cast<std::size_t>(n * cut.size + cut.first) * bytes;
      std::memcpy(static_cast<char*>(zeros.data()) + at,
                  static_cast<const char*>(values.data()) + at, bytes);
    }
    values = std::move(zeros);
  };
  Data row = d;
  only(row.dy, c.time, s.output_size());
  only(row.dhn, s.num_pseudo_layers(), s.hidden_size());
  if (s.has_cell()) only(row.dcn, s.num_pseudo_layers(), s.num_units);
  return row;
}

}  // namespace openrnn::conformance
