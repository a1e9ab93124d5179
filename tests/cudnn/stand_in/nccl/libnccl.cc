// NCCL's functions of the stand-in GPU, as its documentation says: calls enqueue, and the work
// waits on its stream until all ranks have made the same call. It reads STAND_IN_NCCL (its
// version), STAND_IN_NCCL_FAULT=N (the Nth call of a communicator fails), STAND_IN_NCCL_LOST=N (its
// work never ends, and is reported as a lost connection), both at rank STAND_IN_NCCL_RANK alone
// where it is set; STAND_IN_NCCL_ALONE=1 (the ranks never find each other).
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cudnn/stand_in/machine.h"
#include "cudnn/stand_in/nccl/exchange.h"

namespace {

using namespace openrnn::stand_in;  // NOLINT: this file is that namespace's face

enum Result : int {
  kSuccess = 0,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};
constexpr int kUint8 = 1, kFloat32 = 7, kFloat64 = 8, kSum = 0;

struct UniqueId {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

struct Communicator {
  std::shared_ptr<Exchange> exchange;
  int gpu = 0;
  bool blocking = true, connected = false, finalized = false;
  Result state = kSuccess;
  long step = 0;  // the first is that of the connection

  bool here() const {
    const long rank = setting("STAND_IN_NCCL_RANK", -1);
    return rank < 0 || rank == exchange->rank();
  }
};

struct Message {
  int peer;
  std::uint64_t address;
  std::size_t bytes;
};
struct Group {
  int depth = 0;
  Communicator* communicator = nullptr;
  Stream stream = 0;
  std::vector<Message> sends, receives;
};
thread_local Group group;

std::size_t width(int type) {
  return type == kUint8 ? 1 : type == kFloat32 ? 4 : type == kFloat64 ? 8 : 0;
}

/// What a call of a communicator answers before it does anything.
Result ready(Communicator* communicator, const char* call) {
  if (!communicator || !has_context()) return kInvalidArgument;
  if (!communicator->connected || communicator->finalized) return kInvalidUsage;
  if (current_gpu() != communicator->gpu) return kInvalidUsage;
  if (communicator->state != kSuccess) return communicator->state;
  ++communicator->step;
  if (communicator->here() && communicator->step == setting("STAND_IN_NCCL_FAULT", 0)) {
    return kInternalError;
  }
  return is_whole(call) ? kSuccess : kInternalError;
}

using Heard = std::function<void(const Exchange& exchange, long step)>;

/// Says `own()` when the stream gets there, and runs `use` when all have spoken.
Result exchange(Communicator& communicator, Stream stream, std::function<std::string()> own,
                Heard use) {
  const auto all = communicator.exchange;
  const long step = communicator.step;
  if (may_enqueue(stream) != CaptureAnswer::kAllowed) return kInvalidUsage;
  const bool lost = communicator.here() && step == setting("STAND_IN_NCCL_LOST", 0);
  if (lost) communicator.state = kRemoteError;
  enqueue(stream, [=] { all->say(step, own()); });
  enqueue_when(
      stream, [=] { return all->aborted || (!lost && all->all_have_spoken(step)); },
      [=] {
        if (!all->aborted) use(*all, step);
      });
  // Both answers are documented for one that does not block.
  return communicator.blocking || step % 2 == 0 ? kSuccess : kInProgress;
}

/// A head that all ranks must have alike, and after it the data.
std::string spoken(const std::string& head, const void* data, std::size_t bytes) {
  return head + "\n" + std::string(static_cast<const char*>(data), bytes);
}

std::string data_of(const Exchange& exchange, long step, int rank, const std::string& head) {
  const std::string all = exchange.heard(step, rank);
  if (all.compare(0, head.size() + 1, head + "\n") == 0) return all.substr(head.size() + 1);
  throw std::runtime_error("rank " + std::to_string(rank) + " of NCCL makes another call: '" +
                           all.substr(0, all.find('\n')) + "', not '" + head + "'");
}

template <class T>
void add(const std::string& from, void* to, std::size_t count, bool first) {
  std::vector<T> values(count);
  std::memcpy(values.data(), from.data(), count * sizeof(T));
  T* const sums = static_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i) sums[i] = first ? values[i] : sums[i] + values[i];
}

std::uint64_t number_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Result connect(Communicator& communicator) {
  const Exchange& all = *communicator.exchange;
  if (setting("STAND_IN_NCCL_ALONE", 0) != 0 || !all.all_have_spoken(0)) return kInProgress;
  std::map<std::string, int> gpus;
  for (int rank = 0; rank < all.size(); ++rank) {
    if (++gpus[all.heard(0, rank)] > 1) return kInvalidUsage;
  }
  communicator.connected = true;
  return kSuccess;
}

Result end_group() {
  const Group mine = std::exchange(group, {});
  if (!mine.communicator) return kSuccess;
  if (const Result answer = ready(mine.communicator, "ncclGroupEnd"); answer != kSuccess) {
    return answer;
  }
  const int own = mine.communicator->exchange->rank();
  return exchange(
      *mine.communicator, mine.stream,
      [sends = mine.sends] {
        std::string all;
        for (const Message& each : sends) {
          all += std::to_string(each.peer) + " " + std::to_string(each.bytes) + "\n";
          all.append(static_cast<const char*>(host_of(each.address, each.bytes)), each.bytes);
        }
        return all;
      },
      [receives = mine.receives, own](const Exchange& all, long step) {
        for (const Message& each : receives) {
          const std::string from = all.heard(step, each.peer);
          std::size_t at = 0;
          for (;;) {
            if (at >= from.size()) throw std::runtime_error("a message of NCCL that nobody sends");
            const std::size_t end = from.find('\n', at);
            const std::size_t space = from.find(' ', at);
            const int to = std::stoi(from.substr(at, space - at));
            const std::size_t bytes = std::stoull(from.substr(space + 1, end - space - 1));
            at = end + 1 + bytes;
            if (to != own) continue;
            if (bytes != each.bytes) throw std::runtime_error("messages of different sizes");
            std::memcpy(host_of(each.address, bytes), from.data() + end + 1, bytes);
            break;
          }
        }
      });
}

Result note(std::vector<Message>& messages, const void* data, std::size_t count, int type, int peer,
            Communicator* communicator, void* stream) {
  if (group.depth == 0 || !communicator || width(type) == 0) return kInvalidUsage;
  group.communicator = communicator;
  group.stream = number_of(stream);
  messages.push_back({peer, number_of(data), count * width(type)});
  return kSuccess;
}

}  // namespace

extern "C" {

STAND_IN_API Result ncclGetVersion(int* version) {
  *version = static_cast<int>(setting("STAND_IN_NCCL", 22809));
  return kSuccess;
}
STAND_IN_API Result ncclGetUniqueId(UniqueId* id) {
  if (setting("STAND_IN_NCCL_FAULT", 0) < 0) return kInternalError;
  const std::string folder = Exchange::make_folder();
  std::memset(id->bytes, 0, sizeof(id->bytes));
  folder.copy(id->bytes, sizeof(id->bytes) - 1);
  return kSuccess;
}
STAND_IN_API Result ncclCommInitRankConfig(Communicator** made, int ranks, UniqueId id, int rank,
                                           const Config* config) {
  if (!has_context() || !is_whole("ncclCommInitRankConfig")) return kInternalError;
  if (config->magic != 0xcafebeef || config->size < sizeof(Config) || config->version < 21400 ||
      rank < 0 || rank >= ranks) {
    return kInvalidArgument;
  }
  auto* mine = new Communicator;
  mine->exchange = std::make_shared<Exchange>(id.bytes, rank, ranks);
  mine->gpu = current_gpu();
  mine->blocking = config->blocking != 0;
  mine->exchange->say(0, std::to_string(mine->gpu));
  *made = mine;
  return kInProgress;
}
STAND_IN_API Result ncclCommGetAsyncError(Communicator* communicator, Result* error) {
  if (!communicator->connected) communicator->state = connect(*communicator);
  *error = communicator->state;
  return kSuccess;
}
STAND_IN_API Result ncclCommFinalize(Communicator* communicator) {
  communicator->finalized = true;
  return kSuccess;
}
STAND_IN_API Result ncclCommAbort(Communicator* communicator) {
  communicator->exchange->aborted = true;
  communicator->exchange->leave();
  delete communicator;
  return kSuccess;
}
STAND_IN_API Result ncclCommDestroy(Communicator* communicator) {
  if (!communicator->finalized) return kInvalidUsage;
  communicator->exchange->leave();
  delete communicator;
  return kSuccess;
}
STAND_IN_API const char* ncclGetErrorString(Result result) {
  return result == kInvalidUsage    ? "invalid usage"
         : result == kInternalError ? "internal error"
         : result == kRemoteError   ? "remote process exited or there was a network error"
                                    : "an error of the stand-in";
}
STAND_IN_API const char* ncclGetLastError(Communicator*) { return "of the stand-in"; }

STAND_IN_API Result ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}
STAND_IN_API Result ncclGroupEnd() {
  if (group.depth == 0) return kInvalidUsage;
  return --group.depth > 0 ? kSuccess : end_group();
}
STAND_IN_API Result ncclSend(const void* data, std::size_t count, int type, int peer,
                             Communicator* communicator, void* stream) {
  return note(group.sends, data, count, type, peer, communicator, stream);
}
STAND_IN_API Result ncclRecv(void* data, std::size_t count, int type, int peer,
                             Communicator* communicator, void* stream) {
  return note(group.receives, data, count, type, peer, communicator, stream);
}

STAND_IN_API Result ncclAllGather(const void* send, void* receive, std::size_t count, int type,
                                  Communicator* communicator, void* stream) {
  if (const Result answer = ready(communicator, "ncclAllGather"); answer != kSuccess) return answer;
  const std::size_t bytes = count * width(type);
  const std::string head = "all_gather " + std::to_string(bytes);
  return exchange(
      *communicator, number_of(stream),
      [=] { return spoken(head, host_of(number_of(send), bytes), bytes); },
      [=](const Exchange& all, long step) {
        for (int rank = 0; rank < all.size(); ++rank) {
          const std::string data = data_of(all, step, rank, head);
          const auto to = number_of(receive) + bytes * static_cast<std::size_t>(rank);
          std::memcpy(host_of(to, bytes), data.data(), bytes);
        }
      });
}
STAND_IN_API Result ncclAllReduce(const void* send, void* receive, std::size_t count, int type,
                                  int operation, Communicator* communicator, void* stream) {
  if (const Result answer = ready(communicator, "ncclAllReduce"); answer != kSuccess) return answer;
  if (operation != kSum || (type != kFloat32 && type != kFloat64)) return kInvalidArgument;
  const std::size_t bytes = count * width(type);
  const std::string head = "all_reduce " + std::to_string(type) + " " + std::to_string(bytes);
  return exchange(
      *communicator, number_of(stream),
      [=] { return spoken(head, host_of(number_of(send), bytes), bytes); },
      [=](const Exchange& all, long step) {
        void* const to = host_of(number_of(receive), bytes);
        for (int rank = 0; rank < all.size(); ++rank) {
          const std::string data = data_of(all, step, rank, head);
          (type == kFloat32 ? add<float> : add<double>)(data, to, count, rank == 0);
        }
      });
}
STAND_IN_API Result ncclBroadcast(const void* send, void* receive, std::size_t count, int type,
                                  int root, Communicator* communicator, void* stream) {
  if (const Result answer = ready(communicator, "ncclBroadcast"); answer != kSuccess) return answer;
  const std::size_t bytes = count * width(type);
  const std::string head = "broadcast " + std::to_string(root) + " " + std::to_string(bytes);
  const bool sends = communicator->exchange->rank() == root;
  return exchange(
      *communicator, number_of(stream),
      [=] {
        return sends ? spoken(head, host_of(number_of(send), bytes), bytes) : spoken(head, "", 0);
      },
      [=](const Exchange& all, long step) {
        const std::string data = data_of(all, step, root, head);
        std::memcpy(host_of(number_of(receive), bytes), data.data(), bytes);
      });
}

}  // extern "C"
