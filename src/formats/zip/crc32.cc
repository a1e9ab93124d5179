#include "formats/zip/crc32.h"

#include "base/crc/crc_fold.h"
#include "base/crc/crc_tables.h"

namespace openrnn::formats {

namespace {

constexpr std::uint32_t kCrc32Polynomial = 0xedb88320u;
constexpr CrcTables kCrc32Tables = make_crc_tables(kCrc32Polynomial);
#if defined(__x86_64__)
constexpr CrcFold kCrc32Fold = make_crc_fold(kCrc32Polynomial);
#endif

}  // namespace

std::uint32_t crc32_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  if (can_fold_crcs()) return extend_crc_by_folding(kCrc32Fold, kCrc32Tables, crc, data, size);
#endif
  return extend_crc(kCrc32Tables, crc, data, size);
}

}  // namespace openrnn::formats
