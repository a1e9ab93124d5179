// Processes of a test: threads, one a rank.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "openrnn/train_communicator.h"

namespace openrnn {

/// Calls another communicator, for tests that watch it.
class Forwarding : public train::Communicator {
 public:
  explicit Forwarding(train::Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    inner_.all_to_all(send, receive, bytes);
  }
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    inner_.all_gather(send, receive, bytes);
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    inner_.all_reduce(dtype, count, values);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    inner_.broadcast(data, bytes, root);
  }
  void barrier() override { inner_.barrier(); }
  void abort(const std::string& why) override { inner_.abort(why); }

 private:
  train::Communicator& inner_;
};

/// Calls `work` in `size` threads, each with its communicator. What each has thrown, "" nothing.
inline std::vector<std::string> on_ranks(int size,
                                         const std::function<void(train::Communicator&)>& work) {
  const auto communicators = train::thread_communicators(size);
  std::vector<std::string> errors(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(*communicators[rank]);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace openrnn
