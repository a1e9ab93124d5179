#include "train/group/share_table.h"

#include <algorithm>
#include <sstream>

#include "train/data/csv_rows.h"
#include "train/data/fingerprint.h"
#include "train/data/memory_rows.h"

namespace openrnn::train {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // of one message

/// The bytes of rank 0 take the place of those of the others.
void share(Group& group, void* data, std::size_t size) {
  group.with_messages([&](Communicator& all) {
    auto* const bytes = static_cast<std::byte*>(data);
    for (std::size_t at = 0; at < size; at += kMost) {
      all.broadcast(bytes + at, std::min(kMost, size - at), 0);
    }
  });
}

template <class T>
void share(Group& group, std::vector<T>& values) {
  values.resize(std::stoull(group.text_of_first(std::to_string(values.size()))));
  share(group, values.data(), values.size() * sizeof(T));
}

/// Of some of a file's bytes, which differ where somebody else's file of that name does.
std::string sample_of(const formats::ByteSource& file) {
  constexpr std::uint64_t kPlaces = 256, kBytes = 256;
  Fingerprint all;
  all.add(std::to_string(file.size()));
  const std::uint64_t bytes = std::min(file.size(), kBytes), last = file.size() - bytes;
  for (std::uint64_t i = 0; i < kPlaces; ++i) {
    // The last ones of the file among them.
    all.add(file.read_string(last / (kPlaces - 1) * i + last % (kPlaces - 1) * i / (kPlaces - 1),
                             bytes));
  }
  return all.text();
}

/// What is said of a file that is not in memory.
void share_index(Group& group, const std::string& path, SeriesFile& file) {
  const auto* const own = dynamic_cast<const CsvRows*>(file.rows.get());
  CsvIndex index = own ? own->index() : CsvIndex{};
  std::vector<std::uint64_t> numbers{index.bytes, static_cast<unsigned char>(index.delimiter),
                                     static_cast<std::uint64_t>(index.rows), index.width};
  share(group, numbers);
  share(group, index.blocks);
  share(group, index.cells);
  std::shared_ptr<const formats::FileSource> source;
  group.together([&] {
    if (!own) source = std::make_shared<const formats::FileSource>(path);
  });
  std::string sample;
  group.together([&] { sample = sample_of(own ? own->file() : *source); });
  group.require_same("Run", "a file to train on of fingerprint", sample);
  if (own) return;
  index.bytes = numbers[0];
  index.delimiter = static_cast<char>(numbers[1]);
  index.rows = static_cast<std::int64_t>(numbers[2]);
  index.width = numbers[3];
  file.rows = std::make_shared<const CsvRows>(std::move(source), std::move(index));
}

/// The numbers themselves.
void share_values(Group& group, SeriesFile& file) {
  const auto* const own = dynamic_cast<const MemoryRows*>(file.rows.get());
  std::vector<std::int64_t> shape(2);
  if (own) shape = {own->rows(), own->columns()};
  share(group, shape);
  Array values = own ? own->values() : Array(DType::kFloat64, {shape[0], shape[1]});
  share(group, values.data(), values.size_bytes());
  if (!own) file.rows = std::make_shared<const MemoryRows>(std::move(values));
}

}  // namespace

// The names, each on a line, as none has two; before them the fingerprint and how it is read.
void share_table(Group& group, const std::string& path, SeriesFile& file) {
  std::string text;
  if (group.first()) {
    const bool in_memory = dynamic_cast<const MemoryRows*>(file.rows.get()) != nullptr;
    text = (in_memory ? "values\n" : "index\n") + file.fingerprint;
    for (const std::string& name : file.names) text += '\n' + name;
  }
  std::istringstream lines(group.text_of_first(text));
  std::string kind, line;
  std::getline(lines, kind);
  std::getline(lines, file.fingerprint);
  file.names.clear();
  while (std::getline(lines, line)) file.names.push_back(line);
  if (kind == "index") {
    share_index(group, path, file);
  } else {
    share_values(group, file);
  }
}

void share_scaling(Group& group, SeriesScaling& scaling) {
  for (Normalisation* each : {&scaling.values, &scaling.changes}) {
    share(group, each->mean);
    share(group, each->deviation);
  }
}

}  // namespace openrnn::train
