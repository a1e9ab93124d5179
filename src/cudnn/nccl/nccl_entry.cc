// The calls of a rank: pieces of the host's buffers go to the GPU, through NCCL, and back.
#include "engine/nccl_entry.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "cudnn/nccl/link.h"

namespace openrnn {
namespace cudnn {
namespace {

const char* at(const void* data, std::size_t offset) {
  return static_cast<const char*>(data) + offset;
}
char* at(void* data, std::size_t offset) { return static_cast<char*>(data) + offset; }

/// Calls `piece(offset, bytes)` for all bytes, at most `most` at a time.
template <class Piece>
void in_pieces(std::size_t bytes, std::size_t most, Piece&& piece) {
  for (std::size_t begin = 0; begin < bytes; begin += most) {
    piece(begin, std::min(most, bytes - begin));
  }
}

class Rank final : public NcclRank {
 public:
  Rank(const NcclPlace& place, const NcclId& id) : link_(place, id) {}

  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    if (bytes > 0) {
      std::memcpy(at(receive, own() * bytes), at(send, own() * bytes), bytes);
    }
    if (size() == 1) return;
    link_.with_gpu([&] {
      in_pieces(bytes, each(), [&](std::size_t begin, std::size_t count) {
        for (std::size_t peer = 0; peer < size(); ++peer) {
          if (peer != own()) link_.copy_in(peer * count, at(send, peer * bytes + begin), count);
        }
        exchange(count);
        for (std::size_t peer = 0; peer < size(); ++peer) {
          if (peer != own()) link_.copy_out(at(receive, peer * bytes + begin), peer * count, count);
        }
      });
    });
  }

  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    constexpr const char* kCall = "ncclAllGather";
    link_.with_gpu([&] {
      in_pieces(bytes, each(), [&](std::size_t begin, std::size_t count) {
        link_.copy_in(0, at(send, begin), count);
        link_.accept(nccl().api.all_gather(link_.send_buffer(), link_.receive_buffer(), count,
                                           NcclType::kUint8, link_.comm(), link_.stream()),
                     kCall);
        link_.wait(kCall);
        for (std::size_t peer = 0; peer < size(); ++peer) {
          link_.copy_out(at(receive, peer * bytes + begin), peer * count, count);
        }
      });
    });
  }

  void all_reduce(bool is_double, std::size_t count, void* values) override {
    constexpr const char* kCall = "ncclAllReduce";
    const std::size_t width = is_double ? sizeof(double) : sizeof(float);
    link_.with_gpu([&] {
      in_pieces(count * width, NcclLink::kPieceBytes, [&](std::size_t begin, std::size_t bytes) {
        link_.copy_in(0, at(values, begin), bytes);
        link_.accept(
            nccl().api.all_reduce(link_.send_buffer(), link_.receive_buffer(), bytes / width,
                                  is_double ? NcclType::kFloat64 : NcclType::kFloat32, NcclOp::kSum,
                                  link_.comm(), link_.stream()),
            kCall);
        link_.wait(kCall);
        link_.copy_out(at(values, begin), 0, bytes);
      });
    });
  }

  void broadcast(void* data, std::size_t bytes, int root) override {
    constexpr const char* kCall = "ncclBroadcast";
    const bool sends = link_.place().rank == root;
    link_.with_gpu([&] {
      in_pieces(bytes, NcclLink::kPieceBytes, [&](std::size_t begin, std::size_t count) {
        if (sends) link_.copy_in(0, at(data, begin), count);
        link_.accept(nccl().api.broadcast(link_.send_buffer(), link_.receive_buffer(), count,
                                          NcclType::kUint8, root, link_.comm(), link_.stream()),
                     kCall);
        link_.wait(kCall);
        if (!sends) link_.copy_out(at(data, begin), 0, count);
      });
    });
  }

  void abort() noexcept override { link_.abort(); }

 private:
  std::size_t size() const { return static_cast<std::size_t>(link_.place().size); }
  std::size_t own() const { return static_cast<std::size_t>(link_.place().rank); }
  /// Bytes of a rank in a buffer for all of them.
  std::size_t each() const { return NcclLink::kPieceBytes / size(); }

  // A group's calls are made when it ends, by all ranks at once.
  void exchange(std::size_t count) {
    constexpr const char* kCall = "ncclSend, ncclRecv";
    const NcclApi& api = nccl().api;
    link_.accept(api.group_start(), "ncclGroupStart");
    NcclResult first = NcclResult::kSuccess;
    const auto note = [&](NcclResult result) {
      if (first == NcclResult::kSuccess && result != NcclResult::kInProgress) first = result;
    };
    for (std::size_t peer = 0; peer < size(); ++peer) {
      if (peer == own()) continue;
      const int rank = static_cast<int>(peer);
      note(api.send(at(link_.send_buffer(), peer * count), count, NcclType::kUint8, rank,
                    link_.comm(), link_.stream()));
      note(api.receive(at(link_.receive_buffer(), peer * count), count, NcclType::kUint8, rank,
                       link_.comm(), link_.stream()));
    }
    const NcclResult end = api.group_end();
    link_.accept(first == NcclResult::kSuccess ? end : first, kCall);
    link_.wait(kCall);
  }

  NcclLink link_;
};

const Nccl& usable() {
  if (forked()) throw EngineError(message("[nccl] NCCL cannot be used: ", forked_text()));
  const Nccl& all = nccl();
  if (all.missing.empty()) return all;
  throw EngineError(message("[nccl] NCCL cannot be used: ", all.missing));
}

}  // namespace
}  // namespace cudnn

int nccl_gpus() {
  cudnn::usable();
  return cudnn::libraries().gpus;
}

NcclId nccl_id() {
  cudnn::NcclUniqueId id{};
  const cudnn::NcclApi& api = cudnn::usable().api;
  if (const auto result = api.unique_id(&id); result != cudnn::NcclResult::kSuccess) {
    throw EngineError(message("[ncclGetUniqueId] NCCL answered ", api.error_string(result), " (",
                              api.last_error(nullptr), "), expected success"));
  }
  return id.bytes;
}

std::unique_ptr<NcclRank> nccl_rank(const NcclPlace& place, const NcclId& id) {
  cudnn::usable();
  return std::make_unique<cudnn::Rank>(place, id);
}

}  // namespace openrnn
