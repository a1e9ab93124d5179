#include <algorithm>

#include "base/message.h"
#include "mapping/kinds.h"
#include "mapping/support/finite.h"

namespace openrnn {

MappedModel load_networks(const std::string& path, const MappingHints& hints) {
  FoundFile found = identify_file(path);
  const mapping::ReadableKind* const row = mapping::find_readable(found.kind);
  if (!row) {
    const ModelFile file(path);  // which refuses what is no model file
    throw UnsupportedError(
        message("[load_networks] ", path, " is ", found.what, ", of which no networks are made"));
  }
  MappedModel model = row->load(path, hints);
  if (model.what.empty()) model.what = std::move(found.what);
  for (const MappedNetwork& network : model.networks) {
    std::ranges::copy(mapping::non_finite_notes(network), std::back_inserter(model.notes));
  }
  return model;
}

}  // namespace openrnn
