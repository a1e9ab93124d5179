// Communicators of the threads of one process.
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "openrnn/train_communicator.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// A barrier that abort() opens for ever, and where each rank shows what it sends.
class Place {
 public:
  explicit Place(int size) : sent_(static_cast<std::size_t>(size)) {}
  int size() const { return static_cast<int>(sent_.size()); }
  const std::byte* sent(int rank) const { return sent_[static_cast<std::size_t>(rank)]; }

  void show(int rank, const void* data) {
    sent_[static_cast<std::size_t>(rank)] = static_cast<const std::byte*>(data);
    wait();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    throw_if_aborted();
    const std::uint64_t mine = passed_;
    if (++arrived_ == size()) {
      arrived_ = 0;
      ++passed_;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [&] { return passed_ != mine || !why_.empty(); });
    // Who has passed must not fail: the others have, too.
    if (passed_ == mine) throw_if_aborted();
  }
  void abort(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = message("Communicator", "rank ", rank, " gave up: ", why);
    all_.notify_all();
  }
  std::string why() {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  void throw_if_aborted() const {
    if (!why_.empty()) throw EngineError(why_);
  }

  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<const std::byte*> sent_;
  int arrived_ = 0;
  std::uint64_t passed_ = 0;
  std::string why_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, std::shared_ptr<Place> place)
      : rank_(rank), place_(std::move(place)) {}
  int rank() const override { return rank_; }
  int size() const override { return place_->size(); }
  bool takes_any_thread() const override { return true; }

  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    exchange(send, receive, bytes, bytes * static_cast<std::size_t>(rank_));
  }
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    exchange(send, receive, bytes, 0);
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
      throw ArgumentError(message("Communicator", "all_reduce of ", dtype_name(dtype),
                                  ", expected float32 or float64"));
    }
    const auto n = static_cast<std::size_t>(count);
    dtype == DType::kFloat32 ? add_all<float>(n, values) : add_all<double>(n, values);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    place_->show(rank_, data);
    if (rank_ != root && bytes > 0) std::memcpy(data, place_->sent(root), bytes);
    place_->wait();
  }
  void barrier() override { place_->wait(); }
  void abort(const std::string& why) override { place_->abort(rank_, why); }
  std::string failure() const override { return place_->why(); }

 private:
  void exchange(const void* send, void* receive, std::size_t bytes, std::size_t offset) {
    place_->show(rank_, send);
    for (int from = 0; bytes > 0 && from < size(); ++from) {
      std::memcpy(static_cast<std::byte*>(receive) + bytes * static_cast<std::size_t>(from),
                  place_->sent(from) + offset, bytes);
    }
    place_->wait();
  }
  template <class T>
  void add_all(std::size_t count, void* values) {
    std::vector<T> sum(count);
    place_->show(rank_, values);
    for (int from = 0; from < size(); ++from) {
      const T* const theirs = reinterpret_cast<const T*>(place_->sent(from));
      for (std::size_t i = 0; i < count; ++i) sum[i] = from == 0 ? theirs[i] : sum[i] + theirs[i];
    }
    place_->wait();
    if (count > 0) std::memcpy(values, sum.data(), count * sizeof(T));
  }

  int rank_;
  std::shared_ptr<Place> place_;
};

}  // namespace

Communicator::~Communicator() = default;

std::vector<std::unique_ptr<Communicator>> thread_communicators(int size) {
  if (size < 1) {
    throw ArgumentError(message("thread_communicators", "size ", size, ", expected 1 or more"));
  }
  const auto place = std::make_shared<Place>(size);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < size; ++rank) {
    all.push_back(std::make_unique<ThreadCommunicator>(rank, place));
  }
  return all;
}

std::string_view to_string(Reduction reduction) {
  return reduction == Reduction::kExact ? "exact" : "fast";
}

Reduction parse_reduction(std::string_view name) {
  for (const Reduction each : {Reduction::kExact, Reduction::kFast}) {
    if (name == to_string(each)) return each;
  }
  throw ArgumentError(message("reduction", "'", name, "', expected one of exact, fast"));
}

}  // namespace openrnn::train
