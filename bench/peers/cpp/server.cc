#include "server.h"

#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "npy.h"

namespace peers {
namespace {

constexpr std::size_t kMostElements = 1U << 20U;  // as MOST_ELEMENTS of workers/server.py

Floats thin(const Floats& values) {
  const std::size_t step = ((values.size() + kMostElements - 1) / kMostElements) | 1U;
  Floats found;
  for (std::size_t i = 0; i < values.size(); i += step) found.push_back(values[i]);
  return found;
}

std::int64_t status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return text.substr(0, 300);
}

class Server {
 public:
  Server(const Maker& make, std::string about) : make_(make), about_(std::move(about)) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "setup") return setup(words);
    if (word == "about") return "ok " + about_;
    if (word == "mark" || word == "reset" || word == "memory") return memory(word);
    if (word == "release") {
      job_.reset();
      malloc_trim(0);
      return "ok";
    }
    if (!job_) return "error " + word + " without a job";
    if (word == "run") return run(words);
    if (word == "output") return output(words);
    if (word == "choose") return choose(words);
    return "error unknown command " + word;
  }

 private:
  std::string setup(std::istringstream& words) {
    job_.reset();
    std::map<std::string, std::string> options;
    for (std::string word; words >> word;) {
      const std::size_t at = word.find('=');
      options[word.substr(0, at)] = word.substr(at + 1);
    }
    try {
      job_ = make_(Task(std::move(options)));
    } catch (const std::exception& error) {
      return "refused " + one_line(error.what());
    }
    return "ok " + job_->kernel();
  }

  std::string run(std::istringstream& words) {
    long count = 0, warm = 0;
    words >> count >> warm;
    std::ostringstream text;
    text.precision(12);
    text << "times";
    for (const double time : job_->times(count, warm)) text << ' ' << time;
    return text.str();
  }

  std::string choose(std::istringstream& words) {
    std::string pass;
    words >> pass;
    job_->choose(pass);
    return "ok";
  }

  std::string output(std::istringstream& words) {
    std::string folder;
    words >> folder;
    job_->call();
    std::filesystem::create_directories(folder);
    for (const auto& [name, values] : job_->results()) {
      write_floats(folder + "/" + name + ".npy", thin(values));
    }
    return "ok";
  }

  std::string memory(const std::string& word) {
    malloc_trim(0);
    if (word == "mark") {
      baseline_ = status_bytes("VmRSS");
    } else if (word == "reset") {
      std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again
    } else {
      return "bytes " +
             std::to_string(std::max<std::int64_t>(0, status_bytes("VmHWM") - baseline_));
    }
    return "ok";
  }

  const Maker& make_;
  std::string about_;
  std::unique_ptr<Job> job_;
  std::int64_t baseline_ = 0;
};

}  // namespace

std::string Task::text(const std::string& key, const std::string& otherwise) const {
  const auto found = options_.find(key);
  return found == options_.end() ? otherwise : found->second;
}

std::int64_t Task::number(const std::string& key, std::int64_t otherwise) const {
  const auto found = options_.find(key);
  return found == options_.end() ? otherwise : std::stoll(found->second);
}

Floats Task::floats(const std::string& name) const {
  return read_floats(text("folder") + "/" + name + ".npy");
}

std::vector<std::int32_t> Task::integers(const std::string& name) const {
  return read_integers(text("folder") + "/" + name + ".npy");
}

bool Task::has(const std::string& name) const {
  return std::filesystem::exists(text("folder") + "/" + name + ".npy");
}

std::vector<double> Job::times(long count, long warm) {
  for (long i = 0; i < warm; ++i) call();
  std::vector<double> times;
  for (long i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double own = call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(own > 0.0 ? own : spent.count());
  }
  return times;
}

void Job::choose(const std::string& pass) {
  throw std::runtime_error("[choose] pass is '" + pass + "', expected none: the job has one");
}

int pin() {
  const char* wanted = std::getenv("PEERS_THREADS");
  const int threads = wanted ? std::atoi(wanted) : 1;
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof all, &all) == 0) {
    for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < threads; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      CPU_SET(cpu, &mine);
      ++taken;
    }
    sched_setaffinity(0, sizeof mine, &mine);
  }
  return threads;
}

int serve(const Maker& make, const std::string& about) {
  std::FILE* const answers = fdopen(dup(1), "w");
  dup2(2, 1);
  Server server(make, about);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::string reply;
    try {
      reply = server.answer(line);
    } catch (const std::exception& error) {
      reply = "error " + one_line(error.what());
    }
    std::fprintf(answers, "%s\n", reply.c_str());
    std::fflush(answers);
  }
  std::fclose(answers);
  return 0;
}

}  // namespace peers
