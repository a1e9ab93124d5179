// Processes of a test: threads, one a rank.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "openrnn/train_communicator.h"

namespace openrnn {

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
