// With OPENRNN_TEST_DEVICE=tagged all tests of a program run on memory that the host cannot read.
#include <cstdlib>
#include <string_view>

#include "openrnn/graph.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

const bool chosen = [] {
  const char* const name = std::getenv("OPENRNN_TEST_DEVICE");
  if (name && std::string_view(name) == "tagged") set_default_device(test_device());
  return true;
}();

}  // namespace
}  // namespace openrnn::testing
