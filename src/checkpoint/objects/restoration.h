// A restore that is not finished: values of variables that do not exist yet wait for the layers
// that make them.
#pragma once

#include "checkpoint/objects/restore.h"

namespace openrnn::checkpoint {

class Restoration : public std::enable_shared_from_this<Restoration> {
 public:
  /// Throws: as ObjectFile.
  Restoration(const std::string& prefix, NamedTrackables objects);
  const ObjectFile& file() const noexcept { return file_; }

  /// Restores what exists, and waits for the rest. Throws: as Checkpoint::read.
  CheckpointStatus start();
  /// Restores what was built since; returns the status.
  CheckpointStatus go_on();

 private:
  CheckpointStatus advance(bool first);
  void wait_at(const TreeNode& node);
  [[noreturn]] void throw_no_match(const CheckpointStatus& status) const;

  ObjectFile file_;
  NamedTrackables objects_;
  Given given_;
  /// The objects whose changes are listened to.
  std::set<std::shared_ptr<const void>> waiting_at_;
  /// Those that still lack something.
  std::set<std::shared_ptr<const void>> lacking_;
};

}  // namespace openrnn::checkpoint
