// Rows of a batch and pieces of time, cut out of a case.
#pragma once

#include "conformance/support/run.h"

namespace openrnn::conformance {

/// `count` of the `size` planes from `first` on, of an array seen as [outer, size, inner].
struct Cut {
  std::int64_t outer, size, inner, first, count;
};

inline Array take(const Array& from, const Cut& cut) {
  Array to(from.dtype(), {cut.outer * cut.count * cut.inner});
  const auto width = static_cast<std::size_t>(cut.inner) * dtype_size(from.dtype());
  const auto size = static_cast<std::size_t>(cut.size), count = static_cast<std::size_t>(cut.count);
  for (std::size_t n = 0; n < static_cast<std::size_t>(cut.outer) && width * count > 0; ++n) {
    std::memcpy(static_cast<char*>(to.data()) + n * count * width,
                static_cast<const char*>(from.data()) +
                    (n * size + static_cast<std::size_t>(cut.first)) * width,
                count * width);
  }
  return to;
}

/// The steps [first, first + count) of a sequence array.
inline Cut time_cut(const Case& c, std::int64_t width, std::int64_t first, std::int64_t count) {
  if (c.time_major) return {1, c.time, c.batch * width, first, count};
  return {c.batch, c.time, width, first, count};
}

/// Row b of a sequence array or of a state array of that width.
inline Cut row_cut(const Case& c, std::int64_t planes, std::int64_t width, std::int64_t b) {
  if (c.time_major) return {planes, c.batch, width, b, 1};
  return {1, c.batch, planes * width, b, 1};
}

/// The call that holds row b alone.
inline Case row_case(const Case& c, std::int64_t b) {
  Case row = c;
  row.batch = 1;
  if (!c.lengths.empty()) row.lengths = {c.lengths[static_cast<std::size_t>(b)]};
  return row;
}

inline Data row_data(const Case& c, const Data& d, std::int64_t b) {
  const RnnSpec& s = c.spec;
  const std::int64_t planes = s.num_pseudo_layers();
  Data row;
  row.params = d.params;
  row.x = take(d.x, row_cut(c, c.time, s.input_size, b));
  row.dy = take(d.dy, row_cut(c, c.time, s.output_size(), b));
  row.h0 = take(d.h0, row_cut(c, planes, s.hidden_size(), b));
  row.dhn = take(d.dhn, row_cut(c, planes, s.hidden_size(), b));
  if (!s.has_cell()) return row;
  row.c0 = take(d.c0, row_cut(c, planes, s.num_units, b));
  row.dcn = take(d.dcn, row_cut(c, planes, s.num_units, b));
  return row;
}

/// Row b of every part of a result that belongs to rows: all but dparams, and none that is empty.
inline Result row_result(const Case& c, const Result& result, std::int64_t b) {
  const RnnSpec& s = c.spec;
  const std::int64_t planes = s.num_pseudo_layers();
  Result row;
  for (const auto& [name, values] : result.parts) {
    const std::string kind = name.substr(name.rfind(' ') + 1);
    if (kind == "dparams" || values.size() == 0) continue;
    Cut cut = row_cut(c, planes, s.hidden_size(), b);
    if (kind == "y") cut = row_cut(c, c.time, s.output_size(), b);
    if (kind == "dx") cut = row_cut(c, c.time, s.input_size, b);
    if (kind == "cn" || kind == "dc0") cut = row_cut(c, planes, s.num_units, b);
    row.parts.emplace_back(name, take(values, cut));
  }
  return row;
}

}  // namespace openrnn::conformance
