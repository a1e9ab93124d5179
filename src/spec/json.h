// A spec as JSON.
#pragma once

#include "base/text/json.h"
#include "openrnn/spec_fields.h"

namespace openrnn::spec {

/// The inverse of spec_to_json. Fields that are not there are at their defaults. Throws:
/// FormatError for what is no spec, for a field that this version does not know, which would be
/// another network, and for what validate() refuses.
RnnSpec spec_from_json(JsonScanner& json);

}  // namespace openrnn::spec
