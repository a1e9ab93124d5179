// A folder that goes when the test ends, and little helpers for the files in it.
#pragma once

#include <gtest/gtest.h>
#include <openrnn/formats.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace openrnn::formats {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "openrnn-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw IoError("mkdtemp failed");
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& item : std::filesystem::directory_iterator(path_)) {
      found.push_back(item.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_;
};

inline void write_raw(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The message of the E that `call` throws; "" and a failed test if it throws none.
template <class E, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

template <class T>
Array array_of(Shape shape, std::vector<T> values) {
  return Array::of<T>(std::move(shape), values);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace openrnn::formats

#define EXPECT_MESSAGE(Type, call, part)                                             \
  do {                                                                               \
    const std::string thrown_text = ::openrnn::formats::thrown<Type>([&] { call; }); \
    EXPECT_TRUE(::openrnn::formats::contains(thrown_text, part))                     \
        << "the message is " << thrown_text;                                         \
  } while (false)
