// What signals do to a training that watches for them.
#include "cli/train/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>

namespace openrnn::cli {
namespace {

/// The exit code of a process that does this, or the number of the signal that ended it, negative.
int end_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) std::signal(each, SIG_DFL);
    alarm(60);  // one that hangs ends
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Interrupts, TheFirstIsARequestAndTheSecondEndsTheProcess) {
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(end_of([each] {
                std::raise(each);
                return 3;
              }),
              -each)
        << "nobody watches yet";
    EXPECT_EQ(end_of([each] {
                watch_for_interrupts();
                const bool before = interrupted();
                std::raise(each);
                return !before && interrupted() ? 7 : 3;
              }),
              7)
        << each;
    EXPECT_EQ(end_of([each] {
                watch_for_interrupts();
                std::raise(each);
                std::raise(each);
                return 3;
              }),
              -each);
  }
}

TEST(Interrupts, WhatWasIgnoredStaysSo) {
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(end_of([each] {
                std::signal(each, SIG_IGN);
                watch_for_interrupts();
                std::raise(each);
                std::raise(each);
                return interrupted() ? 3 : 7;
              }),
              7)
        << each;
  }
}

TEST(Interrupts, AReaderThatGoesEndsNothingAndOtherSignalsDo) {
  EXPECT_EQ(end_of([] {
              watch_for_interrupts();
              std::raise(SIGPIPE);
              return interrupted() ? 3 : 7;
            }),
            7);
  EXPECT_EQ(end_of([] {
              watch_for_interrupts();
              std::raise(SIGUSR1);
              return 3;
            }),
            -SIGUSR1);
}

/// Whether the process waits in a call.
bool sleeps(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(") S ") != std::string::npos;
}

TEST(Interrupts, ACallThatWaitsGoesOnWaiting) {
  EXPECT_EQ(end_of([] {
              int ends[2];
              if (pipe(ends) != 0) return 4;
              watch_for_interrupts();
              const pid_t waiting = getpid();
              if (fork() == 0) {
                while (!sleeps(waiting) && kill(waiting, 0) == 0) continue;
                kill(waiting, SIGINT);
                while (!sleeps(waiting) && kill(waiting, 0) == 0) continue;
                _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
              }
              char byte = 0;
              const bool read_it = read(ends[0], &byte, 1) == 1;
              return read_it && byte == 'x' && interrupted() ? 7 : 3;
            }),
            7);
}

}  // namespace
}  // namespace openrnn::cli
