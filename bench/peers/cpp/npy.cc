#include "npy.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace peers {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kPrelude = 10;  // magic, version, length of the header

template <class T>
std::vector<T> read(const std::string& path, const std::string& type) {
  std::ifstream file(path, std::ios::binary);
  char prelude[kPrelude];
  if (!file.read(prelude, kPrelude) || std::memcmp(prelude, kMagic, 6) != 0 || prelude[6] != 1) {
    throw std::runtime_error("[read] " + path + " is no .npy file of version 1");
  }
  const std::size_t length =
      static_cast<unsigned char>(prelude[8]) + 256U * static_cast<unsigned char>(prelude[9]);
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  if (header.find("'" + type + "'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos) {
    throw std::runtime_error("[read] " + path + " has the header " + header + ", expected " + type);
  }
  const auto begin = file.tellg();
  file.seekg(0, std::ios::end);
  std::vector<T> values(static_cast<std::size_t>(file.tellg() - begin) / sizeof(T));
  file.seekg(begin);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

}  // namespace

std::vector<float> read_floats(const std::string& path) { return read<float>(path, "<f4"); }
std::vector<std::int32_t> read_integers(const std::string& path) {
  return read<std::int32_t>(path, "<i4");
}

void write_floats(const std::string& path, const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
  header.resize((kPrelude + header.size() + 64) / 64 * 64 - kPrelude - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic, 6);
  const char rest[] = {1, 0, static_cast<char>(header.size() & 255U),
                       static_cast<char>(header.size() >> 8U)};
  file.write(rest, 4);
  file << header;
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file) throw std::runtime_error("[write] " + path + " cannot be written");
}

}  // namespace peers
