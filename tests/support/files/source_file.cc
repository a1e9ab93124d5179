// The one file that knows where the sources lie: the others compile to the same in every checkout,
// which a cache of compilations makes use of.
#include "support/files/source_file.h"

namespace openrnn {

std::string source_file(const std::string& path) {
  return std::string(OPENRNN_SOURCE_DIR) + "/" + path;
}

}  // namespace openrnn
