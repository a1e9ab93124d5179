#include "python/torch/network.h"

#include <algorithm>
#include <array>

#include "base/message.h"
#include "openrnn/runtime.h"

namespace openrnn::python::torch {
namespace {

constexpr std::array<ParamRole, 11> kOrder{
    ParamRole::kInputWeight,   ParamRole::kRecurrentWeight, ParamRole::kInputBias,
    ParamRole::kRecurrentBias, ParamRole::kProjection,      ParamRole::kPeephole,
    ParamRole::kInputGain,     ParamRole::kRecurrentGain,   ParamRole::kSumGain,
    ParamRole::kCellGain,      ParamRole::kCellBias};

std::size_t place_of(ParamRole role) {
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), role) - kOrder.begin());
}

void add(std::vector<Piece>& pieces, const ParamRegion& region) {
  const auto found = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.role == region.role && piece.layer == region.layer &&
           piece.direction == region.direction;
  });
  const std::int64_t cols = region.is_vector() ? 0 : region.cols;
  if (found == pieces.end()) {
    pieces.push_back({.role = region.role,
                      .layer = region.layer,
                      .direction = region.direction,
                      .rows = region.rows,
                      .cols = cols,
                      .offset = region.offset});
    return;
  }
  if (found->offset + found->size() != region.offset || found->cols != cols) {
    throw StateError(message("[network] region ", region.name, " does not follow its gate before"));
  }
  found->rows += region.rows;
}

std::vector<Piece> pieces_of(const ParamsLayout& layout) {
  std::vector<Piece> pieces;
  for (const ParamRegion& region : layout.weights()) add(pieces, region);
  for (const ParamRegion& region : layout.biases()) add(pieces, region);
  const auto key = [](const Piece& piece) {
    return std::tuple(piece.layer, piece.direction, place_of(piece.role));
  };
  std::sort(pieces.begin(), pieces.end(),
            [&](const Piece& a, const Piece& b) { return key(a) < key(b); });
  for (Piece& piece : pieces) {
    piece.shape =
        piece.cols == 0 ? nb::make_tuple(piece.rows) : nb::make_tuple(piece.rows, piece.cols);
  }
  return pieces;
}

}  // namespace

Network::Network(const RnnSpec& network, nb::object torch_dtype)
    : spec(network),
      layout(spec),
      engine(&choose_engine(spec)),
      element(dtype_size(network.dtype)),
      dtype(std::move(torch_dtype)),
      pieces(pieces_of(layout)) {}

std::vector<std::int32_t> lengths_of(const Call& call) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(call.batch), 0);
  for (std::int64_t t = 0; t < call.max_time; ++t) {
    for (std::int64_t b = 0; b < call.batch_sizes[t]; ++b) ++lengths[static_cast<std::size_t>(b)];
  }
  return lengths;
}

}  // namespace openrnn::python::torch
