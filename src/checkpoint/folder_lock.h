// Keeps the runs of several processes in one folder apart.
#pragma once

#include <memory>
#include <string>

#include "formats/file/system.h"

namespace openrnn::checkpoint {

/// The file FOLDER/openrnn.lock, which names its holder; removed by the last owner. It is a lock of
/// the operating system, so it ends with a process that dies, while its file may stay.
class FolderLock {
 public:
  /// Of this process: its owners share one. Throws: StateError naming the process that holds it,
  /// IoError. On a file system without locks nothing is locked.
  static std::shared_ptr<FolderLock> take(const std::string& folder);

  explicit FolderLock(const std::string& path);
  ~FolderLock();
  /// Whether this process took it, not one that forked it.
  bool is_own() const noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::string path_;
  formats::Descriptor file_;
  /// A forked child has the descriptor but is not an owner.
  int owner_;
};

}  // namespace openrnn::checkpoint
