// MPI's module as the library sees it, over a stand-in that needs no MPI.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "formats/temp_folder.h"
#include "openrnn/train_communicator.h"
#include "support/expect_error.h"
#include "support/in_child.h"
#include "support/setting.h"

namespace openrnn::train {
namespace {

constexpr const char* kLibrary = "OPENRNN_MPI_LIBRARY";

/// What the stand-in has been asked in this process.
std::string calls() {
  void* const module = dlopen(OPENRNN_MPI_STAND_IN, RTLD_NOW | RTLD_NOLOAD);
  if (!module) return "(it is not loaded)";
  return reinterpret_cast<const char* (*)()>(dlsym(module, "stand_in_mpi_calls"))();
}

template <class... Parts>
std::string of(const Parts&... parts) {
  std::ostringstream text;
  ((text << parts << ' '), ...);
  return text.str().substr(0, text.str().size() - 1) + "; ";
}

// A process opens its module once, so each question has a process of its own.
template <class Question>
std::string over_stand_in(const Question& question, Settings settings = {}) {
  settings.emplace_back(kLibrary, OPENRNN_MPI_STAND_IN);
  return answer(settings, question);
}

TEST(Mpi, HandsEachCallOnAsItIs) {
  EXPECT_EQ(over_stand_in([]() -> std::string {
              const auto all = mpi_communicator();
              char send[4], receive[4];
              const void *const from = send, *const to = receive;
              std::string expected = "start; ";
              all->all_to_all(send, receive, 7);
              expected += of("all_to_all", from, to, 7);
              all->all_gather(send, receive, 9);
              expected += of("all_gather", from, to, 9);
              all->all_reduce(DType::kFloat32, 11, receive);
              expected += of("all_reduce", 0, 11, to);
              all->all_reduce(DType::kFloat64, 12, receive);
              expected += of("all_reduce", 1, 12, to);
              all->broadcast(receive, 13, 3);
              expected += of("broadcast", to, 13, 3);
              all->barrier();
              all->abort("no memory");
              expected += "barrier; abort no memory 1; ";
              finish_mpi();
              expected += "finish; ";
              if (all->rank() != 2 || all->size() != 5) return "rank or size";
              if (!all->takes_any_thread()) return "takes_any_thread";
              if (!all->failure().empty()) return all->failure();
              return calls() == expected ? "as it is" : calls() + " is not " + expected;
            }),
            "as it is");
  EXPECT_EQ(over_stand_in([] { return mpi_communicator()->takes_any_thread() ? "yes" : "no"; },
                          {{"STAND_IN_MPI_ONE_THREAD", "1"}}),
            "no");
}

TEST(Mpi, SaysWhatHasFailed) {
  const std::pair<const char*, void (*)(Communicator&)> cases[] = {
      {"all_to_all", [](Communicator& all) { all.all_to_all(nullptr, nullptr, 0); }},
      {"all_gather", [](Communicator& all) { all.all_gather(nullptr, nullptr, 0); }},
      {"all_reduce", [](Communicator& all) { all.all_reduce(DType::kFloat32, 0, nullptr); }},
      {"broadcast", [](Communicator& all) { all.broadcast(nullptr, 0, 0); }},
      {"barrier", [](Communicator& all) { all.barrier(); }},
      {"start", [](Communicator&) {}},
      {"finish", [](Communicator&) { finish_mpi(); }}};
  for (const auto& [call, run] : cases) {
    const auto question = [run = run] {
      return error_of<EngineError>([&] { run(*mpi_communicator()); });
    };
    EXPECT_EQ(over_stand_in(question), "") << call;
    EXPECT_EQ(over_stand_in(question, {{"STAND_IN_MPI_FAULT", call}}),
              "[mpi] " + std::string(call) + ": of the stand-in, expected all processes to go on");
  }
}

std::string opening() {
  return error_of<EngineError>([] { mpi_communicator(); });
}

const char* const kExpected =
    "; expected libopenrnn_mpi.so, which the build makes where it finds MPI (Debian: "
    "libopenmpi-dev, openmpi-bin), beside the program, or its path in OPENRNN_MPI_LIBRARY";

TEST(Mpi, AModuleOfAnotherVersionIsRefused) {
  const auto refused = [](const std::string& path) {
    return "[mpi] '" + path +
           "' is not of this version of the library, expected the libopenrnn_mpi.so that was "
           "built with it";
  };
  EXPECT_EQ(over_stand_in(opening), "");
  for (const char* version : {"1", "3"}) {
    EXPECT_EQ(over_stand_in(opening, {{"STAND_IN_MPI_VERSION", version}}),
              refused(OPENRNN_MPI_STAND_IN));
  }
  // Any other library.
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&std::puts), &libc), 0);
  EXPECT_EQ(answer({{kLibrary, libc.dli_fname}}, opening), refused(libc.dli_fname));
}

TEST(Mpi, AModuleThatCannotBeOpened) {
  const formats::TempFolder folder;
  const std::string missing = folder / "none.so", text = folder / "text.so";
  EXPECT_EQ(answer({{kLibrary, missing}}, opening),
            "[mpi] MPI cannot be opened: no file " + missing + kExpected);
  std::ofstream(text) << "no library";
  const std::string said = answer({{kLibrary, text}}, opening);
  EXPECT_EQ(said.find("[mpi] MPI cannot be opened: " + text + ": "), 0U) << said;
  EXPECT_TRUE(said.ends_with(kExpected)) << said;
}

TEST(Mpi, SeveralProcessesAreThoseThatMpirunCounts) {
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("PMI_SIZE");
  EXPECT_FALSE(started_by_mpi());
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    for (const auto& [value, several] :
         {std::pair{"0", false}, {"1", false}, {"2", true}, {"16", true}, {"", false}}) {
      const testing::Setting setting(name, value);
      EXPECT_EQ(started_by_mpi(), several) << name << value;
    }
  }
}

}  // namespace
}  // namespace openrnn::train
