// One run at a time in a folder, among the runs of this process.
#pragma once

#include <string>

namespace openrnn::train {

/// Holds a folder until it is destroyed. The lock file of a CheckpointManager keeps out other
/// processes alone: the managers of one process share it.
class FolderClaim {
 public:
  /// Throws: StateError when another claim of this process holds the folder.
  explicit FolderClaim(const std::string& folder);
  ~FolderClaim();
  FolderClaim(const FolderClaim&) = delete;
  FolderClaim& operator=(const FolderClaim&) = delete;

 private:
  std::string path_;
};

}  // namespace openrnn::train
