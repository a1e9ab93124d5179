// A worker in C++: the protocol of workers/server.py, and the problem's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace peers {

using Floats = std::vector<float>;

/// This side cannot do the task; the text says why.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What to set up, from the `key=value` words of a command.
class Task {
 public:
  explicit Task(std::map<std::string, std::string> options) : options_(std::move(options)) {}
  std::string text(const std::string& key, const std::string& otherwise = "") const;
  std::int64_t number(const std::string& key, std::int64_t otherwise = 0) const;
  bool training() const { return text("pass") == "training"; }
  /// An input of the problem: '<folder>/<name>.npy'. Throws: std::runtime_error.
  Floats floats(const std::string& name) const;
  std::vector<std::int32_t> integers(const std::string& name) const;
  /// Whether the problem has that input.
  bool has(const std::string& name) const;

 private:
  std::map<std::string, std::string> options_;
};

/// A task that is set up.
class Job {
 public:
  Job() = default;
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /// What computes it, for people.
  virtual std::string kernel() const = 0;
  /// One repetition; a job that measures itself returns its nanoseconds, others 0.
  virtual double call() = 0;
  /// Nanoseconds of each of `count` calls after `warm` untimed ones.
  virtual std::vector<double> times(long count, long warm);
  /// What a call is from now on, where a job knows several. Throws: std::runtime_error.
  virtual void choose(const std::string& pass);
  /// Of the last call: y, hn, cn; in training dx and dparams, in the problem's layout.
  virtual std::map<std::string, Floats> results() const = 0;
};

using Maker = std::function<std::unique_ptr<Job>(const Task&)>;

/// Holds the process to the first cores, as many as PEERS_THREADS says, and returns their number.
int pin();

/// Answers commands until the input ends. What libraries print goes to stderr.
int serve(const Maker& make, const std::string& about);

}  // namespace peers
