#include "cudnn/stand_in/nccl/exchange.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace openrnn::stand_in {

namespace fs = std::filesystem;

std::string Exchange::make_folder() {
  std::string name = (fs::temp_directory_path() / "openrnn_nccl_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no folder " + name);
  return name;
}

std::string Exchange::file(const std::string& step, int rank) const {
  return folder_ + "/" + step + "." + std::to_string(rank);
}

void Exchange::say(long step, const std::string& bytes) const {
  const std::string path = file(std::to_string(step), rank_);
  std::ofstream(path + ".part", std::ios::binary) << bytes;
  std::error_code ignored;
  fs::rename(path + ".part", path, ignored);
}

bool Exchange::all_have_spoken(long step) const {
  for (int rank = 0; rank < size_; ++rank) {
    std::error_code none;
    if (!fs::exists(file(std::to_string(step), rank), none)) return false;
  }
  // They are here because they are through with the step before.
  std::error_code ignored;
  fs::remove(file(std::to_string(step - 1), rank_), ignored);
  return true;
}

std::string Exchange::heard(long step, int rank) const {
  std::ifstream in(file(std::to_string(step), rank), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Exchange::leave() const {
  std::ofstream(file("left", rank_)) << "";
  std::error_code ignored;
  for (int rank = 0; rank < size_; ++rank) {
    if (!fs::exists(file("left", rank), ignored)) return;
  }
  fs::remove_all(folder_, ignored);
}

}  // namespace openrnn::stand_in
