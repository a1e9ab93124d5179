// What several subcommands share.
#include <cstdio>
#include <filesystem>
#include <new>

#include "base/out_of_memory.h"
#include "cli/commands.h"
#include "openrnn/base.h"

namespace openrnn::cli {

namespace {

template <class T>
bool is(const std::exception& error) {
  return dynamic_cast<const T*>(&error) != nullptr;
}

}  // namespace

Fault fault_of(const std::exception& error) {
  constexpr int kMachines = 1, kUsers = 2;
  if (is<std::bad_alloc>(error) && !is<OutOfMemory>(error)) {
    return {kMachines,
            "[memory] this machine has too little for these sizes, expected smaller ones"};
  }
  const bool users = is<Error>(error) && !is<IoError>(error) && !is<EngineError>(error);
  return {users ? kUsers : kMachines, error.what()};
}

void complain(const Fault& fault) { std::fprintf(stderr, "openrnn: %s\n", fault.text.c_str()); }

train::ArithmeticChoice choice_of(const ArithmeticFlags& flags) {
  train::ArithmeticChoice choice;
  if (flags.math) choice.math = parse_math(*flags.math);
  if (flags.weights_dtype) choice.weights_dtype = parse_weights_dtype(*flags.weights_dtype);
  return choice;
}

void use_threads(int threads) {
  if (threads > 0) set_num_threads(threads);
}

void use_device(const std::string& device) {
  if (!device.empty()) set_default_device(device);
}

void require_file(const std::string& flag, const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw ArgumentError("[openrnn] " + flag + " '" + path + "': no such file, expected one");
  }
  if (std::filesystem::is_directory(status)) {
    throw ArgumentError("[openrnn] " + flag + " '" + path + "' is a folder, expected a file");
  }
}

void require_model(const std::string& flag, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;
  if (!std::filesystem::exists(path + ".index", ignored)) require_file(flag, path);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw IoError("[stdout] not all output could be written, expected a writable output");
  }
}

}  // namespace openrnn::cli
