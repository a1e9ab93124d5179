// Runs a function in a forked child and brings back what it returns.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define OPENRNN_CHILDREN_HAVE_THREADS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OPENRNN_CHILDREN_HAVE_THREADS 0
#endif
#endif
#ifndef OPENRNN_CHILDREN_HAVE_THREADS
#define OPENRNN_CHILDREN_HAVE_THREADS 1
#endif

namespace openrnn {

/// Why a test of children with threads is left out; empty: it is not.
inline std::string no_threads_in_children() {
  if (OPENRNN_CHILDREN_HAVE_THREADS) return {};
  return "the thread sanitizer ends a child that starts threads after a fork with several";
}

namespace detail {

template <class Function>
[[noreturn]] void be_child(int to, Function function) {
  int status = 1;
  try {
    const std::string bytes = function();
    std::size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t n = write(to, bytes.data() + written, bytes.size() - written);
      if (n <= 0) break;
      written += static_cast<std::size_t>(n);
    }
    status = written == bytes.size() ? 0 : 1;
  } catch (...) {
    status = 2;
  }
  _exit(status);
}

}  // namespace detail

/// The bytes that `function` returns in a forked child; nothing if it throws, dies or hangs for a
/// minute.
template <class Function>
std::optional<std::string> in_child(Function function) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    detail::be_child(ends[1], function);
  }
  close(ends[1]);
  std::string bytes;
  char part[4096];
  pollfd ready{ends[0], POLLIN, 0};
  bool ended = false;
  while (child > 0 && poll(&ready, 1, 60'000) > 0) {
    const ssize_t n = read(ends[0], part, sizeof(part));
    ended = n == 0;
    if (n <= 0) break;
    bytes.append(part, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  if (child < 0) return std::nullopt;
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return bytes;
}

using Settings = std::vector<std::pair<const char*, std::string>>;

/// What `question` answers in a child with those settings of the environment.
template <class Question>
std::string answer(const Settings& settings, const Question& question) {
  return in_child([&] {
           for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
           return question();
         })
      .value_or("(the child died)");
}

}  // namespace openrnn
