#include <algorithm>

#include "base/message.h"
#include "mapping/keras/keras.h"
#include "mapping/keras/write/model.h"

namespace openrnn::mapping {

namespace {

// What the files say they were written by: the version whose names and functions they have.
constexpr const char* kVersion = "3.0.0";
// Keras divides lists of more bytes among several attributes.
constexpr std::size_t kMostAttributeBytes = 64512;

void add_names(const SavedModel& model, std::vector<NamedValue>* values) {
  if (!model.names.empty()) values->push_back({kKerasNetworks, model.names});
}

// A list of strings, or an empty one as Keras has it.
void add_list(const std::string& name, std::vector<std::string> texts,
              std::vector<NamedValue>* values) {
  if (texts.empty()) {
    values->push_back({name, std::vector<double>()});
    return;
  }
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  const std::size_t each = std::max<std::size_t>(1, kMostAttributeBytes / longest);
  if (texts.size() <= each) {
    values->push_back({name, std::move(texts)});
    return;
  }
  for (std::size_t part = 0; part * each < texts.size(); ++part) {
    const auto begin = texts.begin() + static_cast<std::ptrdiff_t>(part * each);
    const auto end =
        begin + static_cast<std::ptrdiff_t>(std::min(each, texts.size() - part * each));
    values->push_back({message(name, part), std::vector<std::string>(begin, end)});
  }
}

// 'layers/lstm/cell/vars/0', and the names of the layers.
void add_weights(const SavedModel& model, std::vector<NamedView>* tensors,
                 std::vector<NamedValue>* values) {
  add_names(model, values);
  for (const SavedLayer& layer : model.layers) {
    const std::string path = "layers/" + layer.group;
    values->push_back({path + "/vars/name", layer.name});
    for (const SavedArray& array : layer.arrays) {
      tensors->push_back({path + "/" + array.path, array.values.view()});
    }
  }
}

}  // namespace

void save_keras_h5(const std::string& path, const MappedModel& model) {
  const SavedModel saved = make_saved_model(model, "a Keras .h5 file", true);
  std::vector<NamedView> tensors;
  std::vector<NamedValue> values{{"keras_version", std::string(kVersion)},
                                 {"backend", std::string("tensorflow")},
                                 {"model_config", keras_model_json(saved)},
                                 {"model_weights/keras_version", std::string(kVersion)},
                                 {"model_weights/backend", std::string("tensorflow")}};
  add_names(saved, &values);
  std::vector<std::string> layers;
  for (const SavedLayer& layer : saved.layers) {
    layers.push_back(layer.name);
    std::vector<std::string> names;
    for (const SavedArray& array : layer.arrays) {
      names.push_back(array.name);
      tensors.push_back({"model_weights/" + layer.name + "/" + array.name, array.values.view()});
    }
    add_list("model_weights/" + layer.name + "/weight_names", names, &values);
  }
  add_list("model_weights/layer_names", std::move(layers), &values);
  add_list("model_weights/top_level_model_weights/weight_names", {}, &values);
  write_hdf5(path, tensors, values);
}

void save_keras_weights(const std::string& path, const MappedModel& model) {
  const SavedModel saved = make_saved_model(model, "a Keras .weights.h5 file", false);
  std::vector<NamedView> tensors;
  std::vector<NamedValue> values;
  add_weights(saved, &tensors, &values);
  write_hdf5(path, tensors, values);
}

void save_keras_archive(const std::string& path, const MappedModel& model) {
  const SavedModel saved = make_saved_model(model, "a .keras file", true);
  std::vector<NamedView> tensors;
  // Equal networks give equal files.
  std::vector<NamedValue> values{
      {"config.json", keras_model_json(saved)},
      {"metadata.json", message("{\"keras_version\": \"", kVersion,
                                "\", \"date_saved\": \"1980-01-01@00:00:00\"}")}};
  add_weights(saved, &tensors, &values);
  write_keras_archive(path, tensors, values);
}

}  // namespace openrnn::mapping
