// The table of a series: rank 0 reads or indexes the file, and the others have what it found.
#pragma once

#include "openrnn/train_data.h"
#include "train/group/group.h"

namespace openrnn::train {

/// Of rank 0, which has opened it: the others get its numbers, or its index, and open `path`
/// themselves. Throws: IoError; StateError in a rank where that is another file; PeerError.
void share_table(Group& group, const std::string& path, SeriesFile& file);
/// Of rank 0, for so many columns.
void share_scaling(Group& group, std::size_t columns, SeriesScaling& scaling);

}  // namespace openrnn::train
