#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"
#include "device/part_rows.h"

namespace openrnn::cudnn {

void GpuDevice::add_row(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                        const void* row, void* y) const {
  const gpu::Number number = number_of("add_row", dtype);
  if (rows <= 0 || cols <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_add_row", for_cells(rows, cols),
         gpu::AddRowArguments{number, rows, cols, x, row, y});
}

void GpuDevice::column_sum(DType dtype, std::int64_t rows, std::int64_t cols, const void* x,
                           void* out) const {
  const gpu::Number number = number_of("column_sum", dtype);
  if (cols <= 0) return;
  const std::size_t wide = dtype == DType::kFloat64 ? 8 : 4;
  const LaunchShape shape{
      .grid_x = grid_blocks("column_sum", (cols - 1) / gpu::kColumnTile + 1),
      .block_x = gpu::kColumnTile,
      .block_y = gpu::kThreads / gpu::kColumnTile,
      .shared_bytes = static_cast<unsigned>(wide * gpu::kColumnTile * gpu::kColumnTileRows)};
  const Context::Current current(context_);
  launch(context_, "openrnn_column_sum", shape,
         gpu::ColumnSumArguments{number, rows, cols, x, out});
}

void GpuDevice::gather_rows(DType dtype, std::int64_t count, std::int64_t cols, const void* table,
                            const std::int32_t* indices, void* out) const {
  const std::size_t bytes = static_cast<std::size_t>(cols) * dtype_size(dtype);
  if (count <= 0 || bytes == 0) return;
  const Context::Current current(context_);
  copy_blocks({.count = count,
               .bytes = bytes,
               .from = table,
               .from_stride = bytes,
               .to = out,
               .to_stride = bytes},
              indices);
}

void GpuDevice::scatter_add_rows(DType dtype, std::int64_t count, std::int64_t cols,
                                 const void* rows, const std::int32_t* indices, void* table) const {
  const gpu::Number number = number_of("scatter_add_rows", dtype);
  if (count <= 0 || cols <= 0) return;
  const std::int64_t across = (cols - 1) / gpu::kRowThreads + 1;
  const LaunchShape shape{.grid_x = grid_blocks("scatter_add_rows", count),
                          .grid_y = static_cast<unsigned>(std::min<std::int64_t>(across, 1 << 10)),
                          .block_x = gpu::kRowThreads,
                          // Two ints a thread, and the count.
                          .shared_bytes = (2 * gpu::kRowThreads + 1) * sizeof(int)};
  const Context::Current current(context_);
  launch(context_, "openrnn_scatter_add", shape,
         gpu::ScatterArguments{number, count, cols, rows, indices, table});
}

void GpuDevice::dropout(const DropoutArgs& args) const {
  const gpu::Number number = number_of("dropout", args.dtype);
  if (args.rows <= 0 || args.cols <= 0) return;
  const Context::Current current(context_);
  const counter::PartRows part = part_rows(args);
  // A thread makes the four numbers of one counter.
  launch(context_, "openrnn_dropout", for_cells(args.rows, (args.cols - 1) / 4 + 1),
         gpu::DropoutArguments{number, args.rows, args.cols, args.key.seed, args.key.call,
                               part.group, part.stride, part.first, args.rate, args.x, args.out});
}

}  // namespace openrnn::cudnn
