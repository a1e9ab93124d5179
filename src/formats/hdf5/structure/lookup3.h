// The checksum of HDF5's newer structures: Bob Jenkins's lookup3, hashlittle.
#pragma once

#include <cstdint>
#include <string_view>

namespace openrnn::formats {

std::uint32_t lookup3(std::string_view bytes);

}  // namespace openrnn::formats
