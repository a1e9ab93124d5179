// Saver::save: steps, the state file, what is kept; and names and order of what is stored.
#include <cstring>

#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "openrnn/layers.h"
#include "openrnn/train.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using testing::same_bits;
using testing::thrown;
using Names = std::vector<std::string>;

struct OwnGraph {
  Graph graph;
  Graph::AsDefault current{graph};
};

Variable scalar(const std::string& name, float value) {
  return Variable(name, Array::of<float>({}, {&value, 1}));
}

float value_of(const Variable& variable) { return static_cast<float>(variable.read().item()); }

// A saveable of two tensors whose names are not sorted.
class Pair : public SaveableObject {
 public:
  Pair(std::string name, Variable variable) : name_(std::move(name)), variable_(variable) {}
  const std::string& name() const override { return name_; }
  const Variable& variable() const override { return variable_; }
  std::vector<std::string> spec_names() const override { return {name_ + "/z", name_ + "/a"}; }
  std::vector<Array> to_tensors(const ConstArrayView& value) const override {
    const float more = static_cast<const float*>(value.data)[0] + 0.5f;
    return {Array(value), Array::of<float>({}, {&more, 1})};
  }
  Array from_tensors(const std::vector<Array>& tensors) const override {
    return Array(tensors.at(0).view());
  }

 private:
  std::string name_;
  Variable variable_;
};

// The data file of float scalars.
std::vector<float> stored(const std::string& prefix) {
  std::ifstream file(prefix + ".data-00000-of-00001", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// A graph without variables is a mistake, unless there is something else to write.
TEST(Saver, WritesExtrasOfAGraphWithoutVariables) {
  const TempFolder folder;
  const OwnGraph own;
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver().write(folder / "none"); }),
            "[Saver::save] the graph has no variables, expected some that somebody holds, for '" +
                folder / "none" + "'");
  Extras extras;
  extras.set_int("n", 7);
  Saver().write(folder / "extras", extras);
  EXPECT_EQ(read_extras(folder / "extras").get_int("n"), 7);
  Saver({.variables = std::vector<Variable>{}}).write(folder / "chosen");
  EXPECT_TRUE(TensorBundleReader(folder / "chosen").tensors().empty());
}

TEST(SaverOrder, IsThatOfNamesWithSaveablesAmongTheVariables) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable z = scalar("z", 9.0f), m = scalar("m", 4.0f), a = scalar("a", 1.0f);
  Graph::current().add_saveable(std::make_shared<Pair>("n", z));
  Graph::current().add_saveable(std::make_shared<Pair>("b", m));
  Saver().write(folder / "all");
  // a, then b's tensors as its specs have them, m, n's, z.
  EXPECT_EQ(stored(folder / "all"), (std::vector<float>{1.0f, 4.0f, 4.5f, 4.0f, 9.0f, 9.5f, 9.0f}));
  Saver({.by_name = {{{"c", z}, {"d", std::make_shared<Pair>("x", a)}, {"y", a}, {"b", m}}}})
      .write(folder / "named");
  EXPECT_EQ(stored(folder / "named"), (std::vector<float>{4.0f, 9.0f, 1.0f, 1.5f, 1.0f}));
}

TEST(SaverByName, StoresUnderTheGivenNamesAndReadsThem) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f), b = scalar("b", 2.0f);
  const Saver renamed({.by_name = {{{"x/y", a}, {"b", b}}}});
  renamed.write(folder / "renamed");
  const TensorBundleReader reader(folder / "renamed");
  Names names;
  for (const TensorInfo& info : reader.tensors()) names.push_back(info.name);
  EXPECT_EQ(names, (Names{"b", "x/y"}));
  Saver({.by_name = {{{"x/y", b}, {"b", a}}}}).restore(folder / "renamed");
  EXPECT_EQ(value_of(a), 2.0f);
  EXPECT_EQ(value_of(b), 1.0f);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"gone", a}}}}).restore(folder / "renamed");
            }).find("gone") == std::string::npos,
            false);
  const Variable pair("pair", Array(DType::kFloat32, {2}));
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"b", pair}}}}).restore(folder / "renamed");
            }),
            "[Saver::restore] " + (folder / "renamed") +
                ": tensor b is float32 [], expected float32 [2]");
}

TEST(SaverByName, ARenamedVariableWithASaveableKeepsItsRawValue) {
  const TempFolder folder;
  const OwnGraph own;
  layers::CudnnLSTM layer({.network = {.num_units = 2, .training = {.seed = 1}},
                           .bias_initializer = random_uniform_initializer(-1.0, 1.0)});
  layer.build({1, 1, 1});
  const Saver saver({.by_name = {{{"raw", layer.kernel()}, {"pieces", layer.saveable()}}}});
  saver.write(folder / "a");
  const Array before = layer.kernel().to_host();
  layer.kernel().assign(Array(before.dtype(), before.shape()).view());
  saver.restore(folder / "a");
  // Halved sums of biases would differ.
  EXPECT_TRUE(same_bits(layer.kernel().to_host(), before));
}

// Given variables choose the saveables of theirs, unless it is saveables alone that are wanted.
TEST(SaverChoice, SaveablesBesideGivenVariables) {
  const TempFolder folder;
  OwnGraph own;
  const Variable a = scalar("a", 1.0f), b = scalar("b", 2.0f);
  const auto of_b = std::make_shared<Pair>("of_b", b);
  own.graph.add_saveable(std::make_shared<Pair>("of_a", a));
  own.graph.add_saveable(of_b);
  const auto names = [&](const SaverOptions& options) {
    Saver(options).write(folder / "a");
    Names found;
    const TensorBundleReader reader(folder / "a");
    for (const TensorInfo& info : reader.tensors()) found.push_back(info.name);
    return found;
  };
  EXPECT_EQ(names({.variables = {{a}}}), (Names{"a", "of_a/a", "of_a/z"}));
  const Names all{"of_a/a", "of_a/z", "of_b/a", "of_b/z"};
  EXPECT_EQ(names({.only_saveables = true}), all);
  EXPECT_EQ(names({.variables = {{a}}, .only_saveables = true}), all);
  EXPECT_EQ(names({.variables = {{a}}, .saveables = {{of_b}}, .only_saveables = true}),
            (Names{"of_b/a", "of_b/z"}));
}

TEST(SaverByName, RefusesWhatContradicts) {
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"x", a}, {"y", a}}}});
            }),
            "[Saver] 'x' and 'y' are the same, expected each variable and saveable once");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.variables = {{a}}, .by_name = {{{"x", a}}}});
            }),
            "[Saver] by_name is given beside variables, saveables or only_saveables, expected it "
            "alone");
  EXPECT_THROW(Saver({.by_name = {{{"x", a}}}, .only_saveables = true}), ArgumentError);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"x", Variable()}}}});
            }),
            "[Saver] 'x' is empty, expected a variable or a saveable");
  EXPECT_EQ(thrown<ArgumentError>([&] { Saver({.max_to_keep = -1}); }),
            "[Saver] max_to_keep -1, expected 0 or more");
}

TEST(SaverChoice, NothingAndNobodysAreTold) {
  const TempFolder folder;
  const OwnGraph own;
  const std::shared_ptr<SaveableObject> none;
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"x", none}}}});
            }),
            "[Saver] 'x' is null, expected a variable or a saveable");
  const Saver of_null({.saveables = {{none}}});
  EXPECT_EQ(thrown<ArgumentError>([&] { of_null.write(folder / "a"); }),
            "[Saver::save] a saveable is null");
  // Nothing that was chosen is no mistake.
  Saver({.saveables = std::vector<std::shared_ptr<SaveableObject>>{}}).write(folder / "saveables");
  Saver({.by_name = std::map<std::string, SaverItem>{}}).write(folder / "names");
  for (const char* name : {"saveables", "names"}) {
    EXPECT_TRUE(TensorBundleReader(folder / name).tensors().empty());
  }
  EXPECT_EQ(thrown<ArgumentError>([&] { of_null.restore(folder / "names"); }),
            "[Saver::restore] a saveable is null");
  const Variable a = scalar("a", 1.0f), b = scalar("b", 2.0f);
  const auto one = std::make_shared<Pair>("one", a), two = std::make_shared<Pair>("two", a);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              Saver({.by_name = {{{"x", one}, {"y", b}, {"z", one}}}});
            }),
            "[Saver] 'x' and 'z' are the same, expected each variable and saveable once");
  EXPECT_NO_THROW(Saver({.by_name = {{{"x", one}, {"y", two}, {"z", a}}}}));
}

// That of the options, whatever graph is current.
TEST(SaverChoice, AnotherGraph) {
  const TempFolder folder;
  OwnGraph own;
  const Variable a = scalar("a", 1.0f);
  own.graph.add_saveable(std::make_shared<Pair>("of_a", a));
  Graph other;
  const Graph::AsDefault current(other);
  const Variable b = scalar("b", 2.0f);
  Saver({.graph = &own.graph}).write(folder / "of_own");
  Saver({.graph = &own.graph, .only_saveables = true}).write(folder / "saveables");
  Saver().write(folder / "of_other");
  EXPECT_EQ(stored(folder / "of_own"), (std::vector<float>{1.0f, 1.0f, 1.5f}));
  EXPECT_EQ(stored(folder / "saveables"), (std::vector<float>{1.0f, 1.5f}));
  EXPECT_EQ(stored(folder / "of_other"), std::vector<float>{2.0f});
}

// Without a folder in its name a checkpoint lies in the current one, and so does the state file.
TEST(SaverSave, InTheCurrentFolder) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  Saver saver;
  Checkpoint checkpoint({{"a", a}});
  EXPECT_EQ(saver.save("by_name", 3), "by_name-3");
  EXPECT_EQ(read_checkpoint_state(folder.path())->latest, folder / "by_name-3");
  EXPECT_EQ(checkpoint.save("objects"), "objects-1");
  EXPECT_EQ(read_checkpoint_state(folder.path())->latest, folder / "objects-1");
  std::filesystem::current_path(before);
}

TEST(SaverSave, NamesTheStepAndKeepsTheNewest) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f), step = train::get_or_create_global_step();
  Saver saver({.max_to_keep = 2});
  EXPECT_EQ(saver.save(folder / "model"), folder / "model");
  EXPECT_EQ(saver.save(folder / "model", 1), folder / "model-1");
  const std::int64_t seven = 7;
  step.assign(Array::of<std::int64_t>({}, {&seven, 1}).view());
  EXPECT_EQ(saver.save(folder / "model", step), folder / "model-7");
  EXPECT_EQ(saver.last_checkpoints(), (Names{folder / "model-1", folder / "model-7"}));
  EXPECT_EQ(folder.names(), (Names{"checkpoint", "model-1.data-00000-of-00001", "model-1.index",
                                   "model-7.data-00000-of-00001", "model-7.index"}));
  EXPECT_EQ(latest_checkpoint(folder.path()), folder / "model-7");
  // Saved again, it is the newest.
  EXPECT_EQ(saver.save(folder / "model", 1), folder / "model-1");
  EXPECT_EQ(saver.last_checkpoints(), (Names{folder / "model-7", folder / "model-1"}));
  EXPECT_EQ(read_checkpoint_state(folder.path())->all, saver.last_checkpoints());
  // Another one does not know them, and takes away none.
  Saver other({.max_to_keep = 1});
  other.save(folder / "other", 1, {});
  EXPECT_EQ(folder.names().size(), 7u);
  EXPECT_THROW(saver.save(folder / "gone/model", 8), IoError);
  EXPECT_EQ(saver.last_checkpoints().size(), 2u);
}

TEST(SaverSave, KeepsAllWhereThatIsAskedFor) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f);
  Saver saver({.max_to_keep = 0});
  for (std::int64_t step = 0; step < 7; ++step) saver.save(folder / "m", step);
  EXPECT_EQ(saver.last_checkpoints().size(), 7u);
  EXPECT_EQ(folder.names().size(), 15u);
}

// A name that only begins as those of extras do is that of a tensor.
TEST(SaverSave, ATensorWithThePrefixOfExtrasAlone) {
  const TempFolder folder;
  const OwnGraph own;
  const Variable a = scalar("a", 1.0f);
  const std::vector<NamedTensor> tensors{
      {"a", Array::of<float>({}, std::vector<float>{2.5f})},
      {"openrnn/", Array::of<float>({}, std::vector<float>{4})},
      {"openrnn/step", Array::of<std::int64_t>({}, std::vector<std::int64_t>{6})}};
  write_tensor_bundle(folder / "m", tensors);
  const Extras extras = Saver().restore(folder / "m");
  EXPECT_EQ(value_of(a), 2.5f);
  EXPECT_EQ(extras.values().size(), 1u);
  EXPECT_EQ(extras.get_int("step"), 6);
}

TEST(SaverSave, AFolderOfCheckpointsThatCannotBeMade) {
  const TempFolder folder;
  formats::write_raw(folder / "file", "no folder");
  for (const std::string& path : {folder / "file", folder / "file/sub"}) {
    EXPECT_EQ(
        thrown<IoError>([&] { CheckpointManager manager(path); }),
        "[CheckpointManager] " + path + ": cannot be made, expected a folder: Not a directory");
  }
}

}  // namespace
}  // namespace openrnn
