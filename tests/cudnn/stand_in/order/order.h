// Which work of the stand-in GPU is ordered before which, whatever order it ran in here.
#pragma once

#include "cudnn/stand_in/machine.h"

namespace openrnn::stand_in {

/// A piece of work.
struct Piece {
  Stream stream = 0;
  long number = 0;
  Done before;  // when it begins
};

/// Of each stream that has used some memory, its last piece of work that did.
using Uses = std::map<Stream, long>;

/// The next work of the stream. Not for two threads at once, as all of these.
Piece next_piece(Stream stream);
/// What is done once all that the stream was given is.
Done done_by(Stream stream);
/// Later work of the stream, or of all streams, begins when this is done.
void learn(Stream stream, const Done& done);
void learn(const Done& done);

/// This thread runs the piece while it lives.
class Running {
 public:
  explicit Running(const Piece& piece);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};
/// The piece that runs on this thread, if one does, uses memory. Throws: std::runtime_error when
/// another stream used it and nothing says that this is done, so that a GPU might do both at once.
void use(Uses& uses);

}  // namespace openrnn::stand_in
