#include "cudnn/stand_in/order/order.h"

#include <algorithm>
#include <stdexcept>

namespace openrnn::stand_in {
namespace {

// Those below are the default streams, which keep order with the others by themselves.
constexpr Stream kFirstMade = 0x1000;

struct Order {
  std::map<Stream, Done> known;  // by each stream's last piece
  std::map<Stream, long> pieces;
  Done host;
};

Order& order() {
  static auto* all = new Order;
  return *all;
}

thread_local const Piece* running = nullptr;

void join(Done& to, const Done& from) {
  for (const auto& [stream, number] : from) to[stream] = std::max(to[stream], number);
}

}  // namespace

Piece next_piece(Stream stream) {
  Done& known = order().known[stream];
  join(known, order().host);
  Piece piece{stream, ++order().pieces[stream], known};
  known[stream] = piece.number;
  return piece;
}

Done done_by(Stream stream) { return order().known[stream]; }

void learn(Stream stream, const Done& done) { join(order().known[stream], done); }
void learn(const Done& done) { join(order().host, done); }

Running::Running(const Piece& piece) { running = &piece; }
Running::~Running() { running = nullptr; }

void use(Uses& uses) {
  if (!running || running->stream < kFirstMade) return;
  for (const auto& [stream, number] : uses) {
    if (stream == running->stream || stream < kFirstMade) continue;
    const auto known = running->before.find(stream);
    if (known != running->before.end() && known->second >= number) continue;
    throw std::runtime_error(
        "work uses memory that work of another stream uses, and no event orders the two");
  }
  uses[running->stream] = std::max(uses[running->stream], running->number);
}

}  // namespace openrnn::stand_in
