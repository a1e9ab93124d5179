// Records of event files made by hand.
#pragma once

#include <string>

#include "base/crc/crc32c.h"
#include "formats/coding.h"

namespace openrnn::formats {

/// An event's length and bytes, each before its checksum.
inline std::string event_record(const std::string& event) {
  std::string out;
  put_fixed(&out, std::uint64_t{event.size()});
  put_fixed(&out, mask_crc(crc32c(out)));
  out += event;
  put_fixed(&out, mask_crc(crc32c(event)));
  return out;
}

}  // namespace openrnn::formats
