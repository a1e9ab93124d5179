#include "formats/model_file/looks_like.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/file/system.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  const char* what;
};

constexpr Signature kSignatures[] = {
    {0, "PK\x05\x06"sv, "an empty zip archive"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "\x1f\x8b"sv, "a gzip archive"},
    {0, "BZh"sv, "a bzip2 archive"},
    {0, "\xfd\x37zXZ\0"sv, "an xz archive"},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd archive"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive"},
    {0, "Rar!\x1a\x07"sv, "a RAR archive"},
    {257, "ustar"sv, "a tar archive"},
    {0, "GGUF"sv, "a GGUF file"},
    {0, "ggml"sv, "a GGML file"},
    {4, "TFL3"sv, "a TensorFlow Lite model"},
    {4, "ORTM"sv, "a model of ONNX Runtime's own format"},
    {0, "\x80\x02"sv, "a Python pickle"},
    {0, "\x80\x03"sv, "a Python pickle"},
    {0, "\x80\x04"sv, "a Python pickle"},
    {0, "\x80\x05"sv, "a Python pickle"},
    {0, "PAR1"sv, "a Parquet file"},
    {0, "SQLite format 3\0"sv, "an SQLite database"},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    {0, "\xff\xd8\xff"sv, "a JPEG image"},
    {0, "GIF8"sv, "a GIF image"},
    {8, "WEBP"sv, "a WebP image"},
    {8, "WAVE"sv, "a WAVE sound"},
    {0, "OggS"sv, "an Ogg sound"},
    {0, "fLaC"sv, "a FLAC sound"},
    {0, "ID3"sv, "an MP3 sound"},
    {4, "ftyp"sv, "an MPEG-4 film or sound"},
    {0, "%PDF-"sv, "a PDF document"},
    {0, "\x7f\x45LF"sv, "a program or library"},
    {0, "MZ"sv, "a program or library of Windows"},
    {0, "#!"sv, "a script"},
    {0, "version https:"sv, "a pointer of Git LFS, not the file itself"},
};

bool begins_as(std::string_view head, std::string_view word) {
  return head.size() >= word.size() &&
         std::equal(word.begin(), word.end(), head.begin(), [](char expected, char c) {
           return expected == (c | ('A' <= c && c <= 'Z' ? 0x20 : 0));
         });
}

// The last character may be cut.
bool is_text(std::string_view head) {
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t start = at;
    const std::int32_t character = next_code_point(head, at);
    if (character < 0) return start > 0 && head.size() - start < 4;
    if (character < 0x20 && character != '\t' && character != '\n' && character != '\r') {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string looks_like(std::string_view head) {
  if (head.empty()) return "an empty file";
  for (const Signature& signature : kSignatures) {
    if (head.size() >= signature.offset &&
        head.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.what;
    }
  }
  if (std::ranges::all_of(head, [](char c) { return c == '\0'; })) return "a file of zeros";
  const std::size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view start = head.substr(std::min(first, head.size()));
  if (begins_as(start, "<!doctype html") || begins_as(start, "<html")) return "an HTML page";
  if (begins_as(start, "<?xml")) return "an XML file";
  if (is_text(head)) return "a text file";
  return "a file";
}

std::string folder_looks_like(const std::string& path) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names = names_in(path);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  if (names.empty()) return "an empty folder";
  std::string text =
      message("a folder with ", names.size() == 1 ? "" : message(names.size(), " files: "));
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
    text += (i ? ", '" : "'") + excerpt(names[i]) + "'";
  }
  return names.size() > kMost ? text + ", .." : text;
}

void refuse_unknown(const std::string& path, std::string_view what) {
  throw FormatError(
      path, 0,
      message("this is ", what == "a file" ? "of no known kind" : what,
              ", expected a model: a file of OpenRNN, safetensors, an index of several, one of "
              "PyTorch, ONNX, Keras, NumPy (npz), TensorFlow, RTNeural or NeuralAmpModeler, or a "
              "folder or prefix of TensorFlow"));
}

}  // namespace openrnn::formats
