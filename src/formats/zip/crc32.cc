#include "formats/zip/crc32.h"

#include "base/crc/crc_tables.h"

namespace openrnn::formats {

namespace {
constexpr CrcTables kCrc32Tables = make_crc_tables(0xedb88320u);
}  // namespace

std::uint32_t crc32_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept {
  return extend_crc(kCrc32Tables, crc, data, size);
}

}  // namespace openrnn::formats
