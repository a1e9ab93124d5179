#include "formats/hdf5/reader.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/hdf5/data/attributes.h"
#include "formats/hdf5/data/datasets.h"

namespace openrnn::formats {

namespace {

constexpr std::size_t kMaxHdf5Depth = 64;

bool has_link(const std::vector<Hdf5Link>& links, std::string_view name) {
  return std::any_of(links.begin(), links.end(),
                     [&](const Hdf5Link& link) { return link.name == name; });
}

FileKind kind_of_root(const std::vector<Hdf5Link>& links, const std::vector<NamedValue>& values) {
  const bool config = std::any_of(values.begin(), values.end(), [](const NamedValue& value) {
    return value.name == "layer_names" || value.name == "layer_names0" ||
           value.name == "model_config";
  });
  if (config || has_link(links, "model_weights")) return FileKind::kKerasH5;
  // Names of the attributes of a model, which Keras walks through.
  for (const char* name : {"layers", "_layer_checkpoint_dependencies", "vars"}) {
    if (has_link(links, name)) return FileKind::kKerasWeights;
  }
  return FileKind::kHdf5;
}

class TreeReader {
 public:
  TreeReader(const ByteSource& source, FileContents* contents)
      : file_(source), heap_(file_), contents_(contents) {}

  void read() {
    const Hdf5Object root = read_object(file_, file_.root());
    const std::vector<Hdf5Link> links = read_group(root, "");
    contents_->kind = kind_of_root(links, contents_->values);
    read_children(links, "", 0);
  }

 private:
  // The attributes of a group, and its links.
  std::vector<Hdf5Link> read_group(const Hdf5Object& group, const std::string& path) {
    add_values(read_attributes(file_, &heap_, group), path);
    return read_links(file_, group);
  }

  void add_values(std::vector<NamedValue> values, const std::string& path) {
    for (NamedValue& value : values) {
      contents_->values.push_back({path + value.name, std::move(value.value)});
    }
  }

  // `path` ends in '/' or is empty.
  void read_children(const std::vector<Hdf5Link>& links, const std::string& path,
                     std::size_t depth) {
    if (depth == kMaxHdf5Depth || path.size() > kMaxHdf5Name) {
      file_.fail(file_.root(),
                 message("'", excerpt(path), "' is deeper than ", kMaxHdf5Depth,
                         " groups or longer than ", kMaxHdf5Name, " bytes, expected less"));
    }
    for (const Hdf5Link& link : links) {
      const Hdf5Object object = read_object(file_, link.address);
      const std::string name = path + link.name;
      if (object.is_group()) {
        read_children(read_group(object, name + "/"), name + "/", depth + 1);
      } else if (object.is_dataset()) {
        add_dataset(object, name);
      }
    }
  }

  void add_dataset(const Hdf5Object& object, const std::string& name) {
    std::vector<NamedValue> attributes = read_attributes(file_, &heap_, object);
    Hdf5Dataset dataset = read_dataset(file_, object);
    TensorInfo info{
        .name = name, .dtype = dataset.type.name, .shape = dataset.shape, .bytes = dataset.bytes};
    // Keras's own way to say it: HDF5 has no such type.
    const auto is_brain = [](const NamedValue& value) {
      const auto* const text = std::get_if<std::string>(&value.value);
      return value.name == "dtype" && text && *text == "bfloat16";
    };
    if (dataset.type.bytes == 2 && std::erase_if(attributes, is_brain)) info.dtype = "bfloat16";
    add_values(std::move(attributes), name + "/");
    contents_->tensors.push_back(std::move(info));
    contents_->places.push_back({.extent = contents_->extents.size()});
    if (!dataset.fault.empty()) {
      contents_->sources.push_back(std::make_unique<FaultySource>(
          file_.source(), dataset.bytes,
          message("the dataset '", excerpt(name), "' ", dataset.fault)));
      contents_->extents.push_back({contents_->sources.back().get(), 0, dataset.bytes, {}});
    } else if (dataset.chunks) {
      contents_->sources.push_back(std::make_unique<ChunkedSource>(
          file_.source(), std::move(*dataset.chunks), dataset.bytes));
      contents_->extents.push_back({contents_->sources.back().get(), 0, dataset.bytes, {}});
    } else {
      contents_->extents.push_back({&file_.source(), dataset.offset, dataset.bytes, {}});
    }
  }

  /// Elements that cannot be read: asking for them says why.
  class FaultySource : public ByteSource {
   public:
    FaultySource(const ByteSource& file, std::uint64_t bytes, std::string fault)
        : file_(file), bytes_(bytes), fault_(std::move(fault)) {}
    const std::string& path() const noexcept override { return file_.path(); }
    std::uint64_t size() const noexcept override { return bytes_; }
    void read_at(std::uint64_t, void*, std::size_t) const override { refuse(); }
    std::string_view mapped() const override { refuse(); }
    void require_readable() const override { refuse(); }

   private:
    [[noreturn]] void refuse() const {
      throw UnsupportedError(
          message("[read] ", path(), ": ", fault_, ", expected it stored whole"));
    }
    const ByteSource& file_;
    std::uint64_t bytes_;
    std::string fault_;
  };

  Hdf5File file_;
  GlobalHeap heap_;
  FileContents* contents_;
};

}  // namespace

FileKind kind_of_hdf5(const ByteSource& source) {
  Hdf5File file(source);
  GlobalHeap heap(file);
  const Hdf5Object root = read_object(file, file.root());
  return kind_of_root(read_links(file, root), read_attributes(file, &heap, root));
}

FileContents read_hdf5(std::unique_ptr<ByteSource> file) {
  FileContents contents;
  TreeReader(*file, &contents).read();
  contents.sources.push_back(std::move(file));
  return contents;
}

}  // namespace openrnn::formats
