// What the ranks of the stand-in NCCL, threads or processes, have in common: files of one folder.
#pragma once

#include <atomic>
#include <string>

namespace openrnn::stand_in {

/// One rank's view. What it says at a step is a file that all can read.
class Exchange {
 public:
  Exchange(std::string folder, int rank, int size)
      : folder_(std::move(folder)), rank_(rank), size_(size) {}
  /// A new folder. Throws: std::runtime_error.
  static std::string make_folder();

  int rank() const { return rank_; }
  int size() const { return size_; }
  void say(long step, const std::string& bytes) const;
  /// Whether all have spoken; what this one said before is then heard, and removed.
  bool all_have_spoken(long step) const;
  std::string heard(long step, int rank) const;
  /// After the last step; the last one removes the folder.
  void leave() const;

  /// Nothing is waited for any more.
  std::atomic<bool> aborted{false};

 private:
  std::string file(const std::string& step, int rank) const;
  std::string folder_;
  int rank_, size_;
};

}  // namespace openrnn::stand_in
