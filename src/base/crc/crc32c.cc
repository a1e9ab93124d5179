#include "base/crc/crc32c.h"

#include "base/crc/crc_fold.h"
#include "base/crc/crc_tables.h"

namespace openrnn {

namespace {

constexpr std::uint32_t kCrc32cPolynomial = 0x82f63b78u;
constexpr CrcTables kCrc32cTables = make_crc_tables(kCrc32cPolynomial);
#if defined(__x86_64__)
constexpr CrcFold kCrc32cFold = make_crc_fold(kCrc32cPolynomial);
#endif

}  // namespace

std::uint32_t crc32c_extend_portable(std::uint32_t crc, const void* data,
                                     std::size_t size) noexcept {
  return extend_crc(kCrc32cTables, crc, data, size);
}

std::uint32_t crc32c_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  if (can_fold_crcs()) {
    return extend_crc_by_folding(kCrc32cFold, kCrc32cTables, crc, data, size);
  }
#endif
  return crc32c_extend_portable(crc, data, size);
}

}  // namespace openrnn
