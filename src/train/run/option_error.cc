#include "train/run/option_error.h"

namespace openrnn::train {
namespace {

std::string joined(const std::vector<OptionError::Piece>& pieces,
                   const std::function<std::string(const std::string&)>& name_of) {
  std::string text;
  for (const OptionError::Piece& piece : pieces) {
    text += piece.is_option ? name_of(piece.text) : piece.text;
  }
  return text;
}

std::string same_name(const std::string& option) { return option; }

}  // namespace

OptionError::OptionError(const std::string& call, std::vector<Piece> pieces)
    : ArgumentError("[" + call + "] " + joined(pieces, same_name)),
      call_(call),
      pieces_(std::move(pieces)) {}

std::string OptionError::text(
    const std::function<std::string(const std::string& option)>& name_of) const {
  return joined(pieces_, name_of);
}

}  // namespace openrnn::train
