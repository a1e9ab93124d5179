// Keeps the runs of several processes in one folder apart.
#pragma once

#include <memory>
#include <string>

#include "formats/file/system.h"

namespace openrnn::checkpoint {

/// The file FOLDER/openrnn.lock, which says who holds it; gone with the last owner. The lock is the
/// system's, so it ends with a process that dies, and its file may stay.
class FolderLock {
 public:
  /// Of this process: its owners share one. Throws: StateError naming the process that holds it,
  /// IoError. Where the file system knows no locks, nothing is kept apart.
  static std::shared_ptr<FolderLock> take(const std::string& folder);

  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::string path_;
  formats::Descriptor file_;
  /// A child after a fork has the descriptor and is no owner.
  int owner_;
};

}  // namespace openrnn::checkpoint
