#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn {

FormatError::FormatError(const std::string& path, std::uint64_t offset, const std::string& what)
    : Error(message("[", path, " @ ", offset, "] ", what)), path_(path), offset_(offset) {}

}  // namespace openrnn
