// What is said where NCCL is missing, refuses or loses a rank. Over the stand-ins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>

#include "cudnn/calls/instead.h"
#include "cudnn/nccl/ranks.h"
#include "support/expect_error.h"
#include "support/in_child.h"
#include "support/setting.h"

namespace openrnn::train {
namespace {

namespace fs = std::filesystem;

using Errors = std::vector<std::string>;

std::string missing_with(const Settings& settings) { return answer(settings, nccl_missing); }

/// A folder with some of the stand-ins, each under its name.
class Libraries {
 public:
  explicit Libraries(const std::vector<std::pair<const char*, const char*>>& files)
      : folder_(fs::temp_directory_path() / ("openrnn_nccl_" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "nvidia/nccl/lib");
    const fs::path from = std::getenv("OPENRNN_CUDA_LIBRARIES");
    for (const auto& [file, name] : files) fs::copy_file(from / file, folder_ / name);
  }
  ~Libraries() { fs::remove_all(folder_); }
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;
  std::string folder() const { return folder_.string(); }

 private:
  fs::path folder_;
};

// First, before this process has opened anything.
TEST(NcclFaults, SaysWhatIsMissing) {
  const std::string cannot = "[nccl] NCCL cannot be used: ";
  const std::string remedy =
      "; install NCCL 2 for CUDA 13 (Debian: libnccl2, pip: nvidia-nccl-cu13) and name its folder "
      "in OPENRNN_CUDA_LIBRARIES";
  EXPECT_EQ(missing_with({}), "");
  EXPECT_EQ(missing_with({{"STAND_IN_GPUS", "0"}}),
            cannot + "the NVIDIA driver shows no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(missing_with({{"STAND_IN_NCCL", "21306"}}),
            cannot + "NCCL is of version 2.13.6, expected 2.14.0 or newer of version 2" + remedy);
  EXPECT_EQ(missing_with({{"STAND_IN_NCCL", "30000"}}),
            cannot + "NCCL is of version 3.0.0, expected 2.14.0 or newer of version 2" + remedy);
  EXPECT_EQ(missing_with({{"STAND_IN_NCCL", "21400"}}), "");
  {
    const Libraries wrong({{"libcuda.so.1", "libcuda.so.1"}, {"libcuda.so.1", "libnccl.so.2"}});
    EXPECT_EQ(missing_with({{"OPENRNN_CUDA_LIBRARIES", wrong.folder()}}),
              cannot + "NCCL is missing: libnccl.so.2 lacks ncclGetVersion" + remedy);
  }
  // Neither cuDNN nor cuBLAS is needed.
  const Libraries site(
      {{"libcuda.so.1", "libcuda.so.1"}, {"libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2"}});
  EXPECT_EQ(missing_with({{"OPENRNN_CUDA_LIBRARIES", site.folder()}}), "");
}

/// One rank's error without its call.
std::string end_of(const std::string& error) { return error.substr(error.find("rank ")); }

TEST(NcclFaults, ARankThatMissesSomethingIsNamedByAll) {
  const auto errors = on_ranks(2, [](Communicator& threads) {
    nccl_communicator(threads, {.device = threads.rank() == 1 ? 7 : 0});
  });
  EXPECT_EQ(errors[1],
            "[nccl_communicator] device 7, expected 0 to 3, or -1 for that of the rank on its "
            "machine");
  EXPECT_EQ(errors[0], "[Group] rank 1 of 2 has failed: " + errors[1]);
  for (const double wrong : {0.0, -1.0, std::nan("")}) {
    EXPECT_TRUE(on_nccl_ranks(
                    1, [](Communicator&) {}, wrong)[0]
                    .starts_with("[nccl_communicator] a timeout of "));
  }
}

TEST(NcclFaults, TwoRanksOfOneGpuAreRefused) {
  const auto errors =
      on_ranks(2, [](Communicator& threads) { nccl_communicator(threads, {.device = 2}); });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("NCCL answered invalid usage (of the stand-in), expected success; each "
                         "rank needs a GPU of its own: look at `device` and CUDA_VISIBLE_DEVICES"),
              std::string::npos)
        << error;
  }
}

TEST(NcclFaults, TheGpuIsThatOfTheRankOnItsMachine) {
  // As ranks of another machine: 4 and 5 of it, with 4 GPUs.
  EXPECT_EQ(on_ranks(2, [](Communicator& threads) { nccl_communicator(threads)->barrier(); }),
            Errors(2));
  const testing::Setting local("SLURM_LOCALID", "5");
  EXPECT_EQ(on_ranks(1, [](Communicator& threads) { nccl_communicator(threads)->barrier(); }),
            Errors(1));
  const auto errors = on_ranks(2, [](Communicator& threads) { nccl_communicator(threads); });
  EXPECT_NE(errors[0].find("each rank needs a GPU of its own"), std::string::npos) << errors[0];
}

// Two ranks to which it says the same number are on one GPU.
TEST(NcclFaults, EachLauncherSaysTheRankOnItsMachine) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"}) {
    for (const char* value : {"0", "1"}) {
      const testing::Setting local(name, value);
      const auto errors = on_ranks(2, [](Communicator& threads) { nccl_communicator(threads); });
      EXPECT_NE(errors[0].find("each rank needs a GPU of its own"), std::string::npos)
          << name << value << ": " << errors[0];
    }
  }
}

TEST(NcclFaults, RefusesWhatIsOutOfRange) {
  const auto refused = [](const NcclOptions& options) {
    return on_ranks(1, [&](Communicator& threads) { nccl_communicator(threads, options); })[0];
  };
  EXPECT_EQ(refused({.device = 3}), "");
  for (const int device : {-2, 4}) {
    EXPECT_EQ(refused({.device = device}),
              "[nccl_communicator] device " + std::to_string(device) +
                  ", expected 0 to 3, or -1 for that of the rank on its machine");
  }
  for (const auto& [seconds, text] : {std::pair{0.0, "0"}, {-2.5, "-2.5"}, {std::nan(""), "nan"}}) {
    EXPECT_EQ(refused({.timeout_seconds = seconds}),
              "[nccl_communicator] a timeout of " + std::string(text) + " s, expected more than 0");
  }
  const auto errors = on_nccl_ranks(2, [](Communicator& all) {
    EXPECT_TRUE(all.takes_any_thread());
    EXPECT_EQ(all.failure(), "");
    std::int64_t number = 3;
    expect_error<ArgumentError>([&] { all.all_reduce(DType::kInt64, 1, &number); },
                                "[Communicator] all_reduce of int64, expected float32 or float64");
    double value = 0.5 + all.rank();
    all.all_reduce(DType::kFloat64, 1, &value);
    EXPECT_EQ(value, 2.0);
  });
  EXPECT_EQ(errors, Errors(2));
}

TEST(NcclFaults, ACallThatFailsIsNamedAndTheNextOnesToo) {
  const testing::Setting fault("STAND_IN_NCCL_FAULT", "2");
  const auto errors = on_nccl_ranks(2, [](Communicator& all) {
    all.barrier();
    float value = 1.0f;
    const auto call = [&] { all.all_reduce(DType::kFloat32, 1, &value); };
    const std::string first =
        "[ncclAllReduce] rank " + std::to_string(all.rank()) +
        " of 2: NCCL answered internal error (of the stand-in), expected success";
    expect_error<EngineError>(call, first);
    expect_error<EngineError>(call, "[nccl] a call after one that has failed (" + first +
                                        "), expected a communicator of its own");
    EXPECT_EQ(value, 1.0f);
  });
  EXPECT_EQ(errors, Errors(2));
  const testing::Setting no_id("STAND_IN_NCCL_FAULT", "-1");
  EXPECT_EQ(on_nccl_ranks(1, [](Communicator&) {})[0],
            "[ncclGetUniqueId] NCCL answered internal error (of the stand-in), expected success");
}

/// Streams and memory of the GPUs that were made and not given back.
struct Held {
  testing::Balance<&cudnn::DriverApi::stream_create, &cudnn::DriverApi::stream_destroy> streams;
  testing::Balance<&cudnn::DriverApi::memory_alloc, &cudnn::DriverApi::memory_free> blocks;
  testing::Balance<&cudnn::DriverApi::event_create, &cudnn::DriverApi::event_destroy> events;
  testing::Balance<&cudnn::DriverApi::context_push, &cudnn::DriverApi::context_pop> contexts;

  void expect_none(int streams_made, const std::string& after) const {
    EXPECT_EQ(streams.made, streams_made) << after;
    EXPECT_EQ(blocks.made, 2 * streams_made) << after;
    EXPECT_EQ(streams.alive, 0) << after;
    EXPECT_EQ(blocks.alive, 0) << after;
    EXPECT_EQ(events.alive, 0) << after;
    EXPECT_EQ(contexts.alive, 0) << after;
  }
};

TEST(NcclFaults, EveryEndGivesStreamsAndMemoryBack) {
  const auto gather = [](Communicator& all) {
    char own = 1, received[2] = {};
    all.all_gather(&own, received, 1);
  };
  const auto expect_none = [](const std::string& after, const auto& work) {
    const Held held;
    work();
    held.expect_none(2, after);
  };
  expect_none("good calls", [&] { EXPECT_EQ(on_nccl_ranks(2, gather), Errors(2)); });
  expect_none("an abort",
              [&] { on_nccl_ranks(2, [](Communicator& all) { all.abort("enough"); }); });
  expect_none("one GPU for two", [] {
    on_ranks(2, [](Communicator& threads) { nccl_communicator(threads, {.device = 2}); });
  });
  const testing::Setting fault("STAND_IN_NCCL_FAULT", "1");
  expect_none("a call that fails", [&] { on_nccl_ranks(2, gather); });
}

constexpr auto kInternal = static_cast<cudnn::NcclResult>(3);

// Asking how far a call has come may fail itself.
TEST(NcclFaults, AnErrorOfTheQuestionIsOne) {
  const testing::Instead<&cudnn::NcclApi::async_error> fails(
      [](auto own, auto communicator, auto* now) {
        own(communicator, now);
        *now = cudnn::NcclResult::kSuccess;
        return kInternal;
      });
  EXPECT_EQ(on_nccl_ranks(1, [](Communicator&) {}),
            Errors{"[ncclCommInitRankConfig] rank 0 of 1: NCCL answered internal error (of the "
                   "stand-in), expected success"});
}

TEST(NcclFaults, SoIsOneWhileTheGpuWaits) {
  const testing::Setting lost("STAND_IN_NCCL_LOST", "2");
  const auto errors = on_nccl_ranks(1, [](Communicator& all) {
    all.barrier();
    std::atomic<int> asked{0};
    const testing::Instead<&cudnn::NcclApi::async_error> fails([&](auto, auto, auto* now) {
      *now = cudnn::NcclResult::kSuccess;
      return ++asked < 3 ? cudnn::NcclResult::kSuccess : kInternal;
    });
    char own = 1, received[1] = {};
    all.all_gather(&own, received, 1);
  });
  EXPECT_EQ(errors, Errors{"[ncclAllGather] rank 0 of 1: NCCL answered internal error (of the "
                           "stand-in), expected success"});
}

/// What a rank alone throws where a function fails in this call.
template <auto Which, class Answer>
std::string failing(Answer answer, const std::function<void(Communicator&)>& work) {
  return on_nccl_ranks(1, [&](Communicator& all) {
    all.barrier();
    const testing::Instead<Which> fails([=](auto, auto...) { return answer; });
    work(all);
  })[0];
}

TEST(NcclFaults, EachFunctionOfACallIsNamed) {
  using Api = cudnn::NcclApi;
  using Driver = cudnn::DriverApi;
  char own = 1, received[2] = {};
  float value = 1.0F;
  const auto gather = [&](Communicator& all) { all.all_gather(&own, received, 1); };
  const auto reduce = [&](Communicator& all) { all.all_reduce(DType::kFloat32, 1, &value); };
  const auto broadcast = [&](Communicator& all) { all.broadcast(received, 2, 0); };
  const auto expect = [](const std::string& error, const std::string& start) {
    EXPECT_TRUE(error.starts_with(start)) << error << ", expected " << start;
  };
  const std::string internal =
      " rank 0 of 1: NCCL answered internal error (of the stand-in), expected success";
  expect(failing<&Api::all_gather>(kInternal, gather), "[ncclAllGather]" + internal);
  expect(failing<&Api::all_reduce>(kInternal, reduce), "[ncclAllReduce]" + internal);
  expect(failing<&Api::broadcast>(kInternal, broadcast), "[ncclBroadcast]" + internal);
  constexpr CUresult kLost = CUDA_ERROR_ILLEGAL_ADDRESS;
  for (const std::function<void(Communicator&)>& work :
       {std::function<void(Communicator&)>(gather), std::function<void(Communicator&)>(reduce)}) {
    expect(failing<&Driver::copy_in>(kLost, work), "[cuMemcpyHtoDAsync] the driver");
    expect(failing<&Driver::copy_out>(kLost, work), "[cuMemcpyDtoHAsync] the driver");
    expect(failing<&Driver::stream_synchronize>(kLost, work), "[cuStreamSynchronize] the");
    expect(failing<&Driver::event_create>(kLost, work), "[cuEventCreate] the driver");
    expect(failing<&Driver::event_record>(kLost, work), "[cuEventRecord] the driver");
    expect(failing<&Driver::event_query>(kLost, work), "[cuEventQuery] the driver");
    expect(failing<&Driver::context_push>(kLost, work), "[cuCtxPushCurrent] the driver");
  }
}

TEST(NcclFaults, WithoutWordsAreStillErrors) {
  using Api = cudnn::NcclApi;
  const auto text = [] {
    const testing::Instead<&Api::init_rank> fails([](auto, auto...) { return kInternal; });
    return on_nccl_ranks(1, [](Communicator&) {})[0];
  };
  const std::string start = "[ncclCommInitRankConfig] rank 0 of 1: NCCL answered ";
  for (const char* const none : {static_cast<const char*>(nullptr), ""}) {
    const testing::Instead<&Api::last_error> no_text([=](auto, auto) { return none; });
    EXPECT_EQ(text(), start + "internal error (no text), expected success");
    const testing::Instead<&Api::error_string> no_name([](auto, auto) { return nullptr; });
    EXPECT_EQ(text(), start + "an unknown error (no text), expected success");
  }
}

// A communicator is destroyed once all has left, else aborted, and never both.
TEST(NcclFaults, EachConnectionEndsOnce) {
  using Api = cudnn::NcclApi;
  std::string ends;
  const auto noting = [&ends](const char* end) {
    return [&ends, end](auto own, auto communicator) {
      ends += end;
      return own(communicator);
    };
  };
  bool finalizes_fail = false;
  const testing::Instead<&Api::finalize> finalizes([&](auto own, auto communicator) {
    ends += "finalize ";
    return finalizes_fail ? kInternal : own(communicator);
  });
  const testing::Instead<&Api::destroy> destroys(noting("destroy "));
  const testing::Instead<&Api::abort> aborts(noting("abort "));
  const auto ended = [&ends] { return std::exchange(ends, ""); };
  on_nccl_ranks(1, [](Communicator& all) { all.barrier(); });
  EXPECT_EQ(ended(), "finalize destroy ");
  on_nccl_ranks(1, [](Communicator& all) { all.abort("enough"); });
  EXPECT_EQ(ended(), "abort ");
  {
    const testing::Setting fault("STAND_IN_NCCL_FAULT", "1");
    on_nccl_ranks(1, [](Communicator& all) { all.barrier(); });
    EXPECT_EQ(ended(), "abort ");
  }
  finalizes_fail = true;
  on_nccl_ranks(1, [](Communicator& all) { all.barrier(); });
  EXPECT_EQ(ended(), "finalize abort ");
}

// What the network reports while the GPU waits.
TEST(NcclFaults, ALostConnectionEndsTheWait) {
  const testing::Setting lost("STAND_IN_NCCL_LOST", "2");
  const auto errors = on_nccl_ranks(4, [](Communicator& all) {
    all.barrier();
    std::vector<char> own(8), received(8);
    all.all_to_all(own.data(), received.data(), 2);
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(end_of(error).substr(6),
              " of 4: NCCL answered remote process exited or there was a network error (of the "
              "stand-in), expected success; another process has ended, or the network has failed");
  }
}

// Of one rank alone, which tells the others by the communicator that they found each other by.
TEST(NcclFaults, AbortEndsTheWaitOfTheOthers) {
  const testing::Setting fault("STAND_IN_NCCL_FAULT", "2"), where("STAND_IN_NCCL_RANK", "1");
  const auto errors = on_nccl_ranks(4, [](Communicator& all) {
    char own = 1, received[4] = {};
    try {
      all.barrier();
      all.all_gather(&own, received, 1);
    } catch (const std::exception& error) {
      if (all.rank() == 1) {
        EXPECT_EQ(all.failure(), "");
        all.abort(error.what());
      }
      throw;
    }
  });
  const std::string first =
      "[ncclAllGather] rank 1 of 4: NCCL answered internal error (of the stand-in), expected "
      "success";
  const std::string told = "[Communicator] rank 1 gave up: " + first;
  EXPECT_EQ(errors, (Errors{told, first, told, told}));
}

// One that NCCL has not failed for; alone, so that no other rank's end is told.
TEST(NcclFaults, NothingIsCalledAfterAnAbort) {
  const auto errors = on_nccl_ranks(1, [](Communicator& all) {
    all.barrier();
    all.abort("enough");
    char own = 1, received[1] = {};
    all.all_gather(&own, received, 1);
  });
  EXPECT_EQ(errors, Errors{"[nccl] a call after one that has failed (it was aborted), expected a "
                           "communicator of its own"});
}

// Also for a rank that never comes.
TEST(NcclFaults, NothingIsWaitedForLongerThanTheTimeout) {
  const testing::Setting alone("STAND_IN_NCCL_ALONE", "1");
  const auto errors = on_nccl_ranks(
      2, [](Communicator&) {}, 0.05);
  const std::string waited =
      " of 2 has waited for 0.05 s, expected all ranks to make the same call by then: another one "
      "has ended, or needs a longer `timeout`";
  // The first one to give up tells the other.
  const bool first = errors[0].starts_with("[ncclCommInitRankConfig]");
  const std::string call = "[ncclCommInitRankConfig] rank " + std::string(first ? "0" : "1");
  EXPECT_EQ(errors[first ? 0 : 1], call + waited);
  const std::string& other = errors[first ? 1 : 0];
  EXPECT_NE(other.find(waited), std::string::npos) << other;
}

TEST(NcclFaults, AForkedProcessIsRefused) {
  EXPECT_EQ(on_nccl_ranks(1, [](Communicator& all) { all.barrier(); }), Errors(1));
  const std::string said = missing_with({});
  EXPECT_TRUE(said.starts_with("[nccl] NCCL cannot be used: the process was forked")) << said;
}

}  // namespace
}  // namespace openrnn::train
