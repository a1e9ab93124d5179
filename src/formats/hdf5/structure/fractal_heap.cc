#include "formats/hdf5/structure/fractal_heap.h"

#include <algorithm>
#include <bit>

#include "base/message.h"
#include "formats/hdf5/structure/lookup3.h"

namespace openrnn::formats {

namespace {

constexpr std::uint64_t kHeaderBytes = 146;
constexpr unsigned kMaxHeapBits = 63;
constexpr const char* kHeap = "a fractal heap";

bool is_power_of_two(std::uint64_t value) { return std::has_single_bit(value); }

}  // namespace

FractalHeap::FractalHeap(Hdf5File& file, std::uint64_t address) : file_(file), address_(address) {
  read_header();
  if (root_address_ == kNoAddress) return;
  if (root_rows_ == 0) {
    read_direct(root_address_, 0, start_bytes_);
  } else {
    read_indirect(root_address_, 0, root_rows_);
  }
}

void FractalHeap::read_header() {
  const std::string header = file_.read(address_, kHeaderBytes, kHeap);
  Hdf5Fields in(file_, address_, header, kHeap);
  in.expect("FRHP");
  in.version(0, 0);
  id_bytes_ = in.number(2);
  if (in.number(2) != 0) file_.refuse(address_, "a fractal heap is compressed, expected none");
  check_lookup3(file_, address_, header, kHeap);
  has_checksums_ = (in.number(1) & 2u) != 0;
  max_object_ = in.number(4);
  in.skip(std::uint64_t{12} * 8);  // large objects, free space, counts
  table_width_ = in.number(2);
  start_bytes_ = in.number(8);
  max_direct_bytes_ = in.number(8);
  max_bits_ = static_cast<unsigned>(in.number(2));
  in.skip(2);
  root_address_ = in.address();
  root_rows_ = in.number(2);
  if (!is_power_of_two(table_width_) || !is_power_of_two(start_bytes_) ||
      !is_power_of_two(max_direct_bytes_) || start_bytes_ > max_direct_bytes_ ||
      max_bits_ > kMaxHeapBits || max_bits_ == 0 || root_rows_ > max_bits_) {
    in.fail(message("has blocks of ", start_bytes_, " to ", max_direct_bytes_, " bytes in rows of ",
                    table_width_, " and ", max_bits_, " bits, expected powers of two that fit"));
  }
  offset_bytes_ = (max_bits_ + 7) / 8;
  // The library's own counts: of a power of two its logarithm, of a length one byte more at 256.
  const auto direct_bits = static_cast<std::size_t>(std::bit_width(max_direct_bytes_) - 1);
  const auto object_bits = static_cast<std::size_t>(std::bit_width(max_object_ | 1u) - 1);
  length_bytes_ = std::min((direct_bits + 7) / 8, object_bits / 8 + 1);
}

// Rows 0 and 1 have blocks of the first size, and each row after them of twice the size.
std::uint64_t FractalHeap::row_bytes(std::uint64_t row) const {
  const std::uint64_t doublings = row == 0 ? 0 : row - 1;
  if (doublings >= kMaxHeapBits || start_bytes_ > (std::uint64_t{1} << kMaxHeapBits) >> doublings) {
    file_.fail(address_, "a fractal heap has rows beyond 2^63 bytes, expected fewer");
  }
  return start_bytes_ << doublings;
}

void FractalHeap::read_direct(std::uint64_t address, std::uint64_t first, std::uint64_t bytes) {
  std::string block = file_.read(address, bytes, kHeap);
  Hdf5Fields in(file_, address, block, "a block of a fractal heap");
  in.expect("FHDB");
  in.version(0, 0);
  if (in.address() != address_ || in.number(offset_bytes_) != first) {
    in.fail("is of another heap or place, expected this one");
  }
  if (has_checksums_) {
    const std::size_t at = block.size() - in.remaining();
    const std::uint64_t stored = in.number(4);
    std::fill_n(block.begin() + static_cast<std::ptrdiff_t>(at), 4, '\0');
    const std::uint32_t sum = lookup3(block);
    if (sum != stored) in.fail(message("has checksum ", sum, ", expected ", stored));
  }
  blocks_.push_back({first, address, std::move(block)});
}

void FractalHeap::read_indirect(std::uint64_t address, std::uint64_t first, std::uint64_t rows) {
  if (rows > max_bits_) file_.fail(address, message("a fractal heap has ", rows, " rows"));
  const std::uint64_t head = 4 + 1 + 8 + offset_bytes_;
  const std::string bytes = file_.read(address, head + rows * table_width_ * 8 + 4, kHeap);
  check_lookup3(file_, address, bytes, kHeap);
  Hdf5Fields in(file_, address, bytes, "an indirect block of a fractal heap");
  in.expect("FHIB");
  in.version(0, 0);
  if (in.address() != address_ || in.number(offset_bytes_) != first) {
    in.fail("is of another heap or place, expected this one");
  }
  std::uint64_t at = first;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t size = row_bytes(row);
    for (std::uint64_t column = 0; column < table_width_; ++column) {
      const std::uint64_t child = in.address();
      if (child != kNoAddress && size <= max_direct_bytes_) {
        read_direct(child, at, size);
      } else if (child != kNoAddress) {
        const std::uint64_t whole_row = start_bytes_ * table_width_;
        if (size < whole_row) in.fail("has a child without rows, expected some");
        // As many rows as together have that size.
        read_indirect(child, at, static_cast<std::uint64_t>(std::bit_width(size / whole_row)));
      }
      if (__builtin_add_overflow(at, size, &at)) in.fail("is beyond 2^64 bytes, expected fewer");
    }
  }
}

FractalHeap::Object FractalHeap::find(std::string_view id) {
  Hdf5Fields in(file_, address_, id, "an identifier in a fractal heap");
  const std::uint64_t kind = in.number(1);
  if (kind != 0) {
    file_.refuse(address_, message("an object of a fractal heap has type ", kind,
                                   ", expected one inside its blocks"));
  }
  const std::uint64_t at = in.number(offset_bytes_), bytes = in.number(length_bytes_);
  const auto next =
      std::upper_bound(blocks_.begin(), blocks_.end(), at,
                       [](std::uint64_t value, const Block& block) { return value < block.first; });
  if (next == blocks_.begin()) in.fail("is outside of its blocks, expected it inside");
  const Block& block = *std::prev(next);
  const std::uint64_t skipped = at - block.first;
  if (skipped > block.bytes.size() || bytes > block.bytes.size() - skipped) {
    in.fail("is outside of its blocks, expected it inside");
  }
  if (!objects_.add(at, bytes)) in.fail("shares bytes with another, expected its own");
  return {block.offset + skipped, std::string_view(block.bytes).substr(skipped, bytes)};
}

}  // namespace openrnn::formats
