// What an object-based checkpoint refuses; a refused restore changes nothing.
#include "checkpoint/networks.h"
#include "formats/objects/object_graph.h"
#include "formats/temp_folder.h"
#include "openrnn/checkpoint.h"
#include "saveables/support.h"

namespace openrnn {
namespace {

using namespace testing;
using formats::TempFolder;
using testing::thrown;

const std::string kGraph(formats::kObjectGraphKey);

// A layer of two layers beside a variable, and a file of both.
struct Model {
  Graph graph;
  Graph::AsDefault current{graph};
  TempFolder folder;
  layers::CudnnLSTM layer{{.num_layers = 2, .num_units = 2, .training = {.seed = 1}}};
  Variable x{"x", varied(DType::kFloat32, {3}, 4)};
  Checkpoint checkpoint{{{"net", layer}, {"x", x}}};
  std::string prefix = folder / "good";
  std::vector<NamedTensor> tensors;
  formats::ObjectGraph objects;

  Model() {
    layer.build({1, 1, 1});
    checkpoint.write(prefix);
    const TensorBundleReader reader(prefix);
    for (const TensorInfo& info : reader.tensors()) {
      tensors.push_back({info.name, reader.read_value(info.name)});
    }
    objects = formats::decode_object_graph("good", reader.read_string(kGraph));
    x.assign(Array(DType::kFloat32, {3}).view());
    layer.kernel().assign(Array(DType::kFloat32, layer.kernel().shape()).view());
  }

  std::size_t node(const std::vector<std::string>& path) const {
    std::size_t at = 0;
    for (const std::string& name : path) at = objects.nodes[at].child(name)->node;
    return at;
  }
  TensorValue& value(const std::string& name) {
    for (NamedTensor& tensor : tensors) {
      if (tensor.name == name) return tensor.value;
    }
    throw ArgumentError(name);
  }
  // Writes what is changed here, reads it, and sees that nothing came of it.
  template <class E>
  std::string refused() {
    value(kGraph) = StringTensor{{}, {formats::encode_object_graph(objects)}};
    return refused_as_it_is<E>();
  }
  template <class E>
  std::string refused_as_it_is() {
    const std::string bad = folder / "bad";
    write_tensor_bundle(bad, tensors);
    const std::string text = thrown<E>([&] { checkpoint.read(bad); });
    EXPECT_EQ(element(x.to_host().view(), 1), 0.0);
    EXPECT_EQ(element(layer.kernel().to_host().view(), 1), 0.0);
    const std::size_t at = text.find(bad);
    return at == std::string::npos ? text
                                   : text.substr(0, at) + "BAD" + text.substr(at + bad.size());
  }
};

TEST(ObjectErrors, TheGoodFileIsTaken) {
  Model model;
  model.checkpoint.read(model.prefix).assert_consumed();
  EXPECT_NE(element(model.x.to_host().view(), 1), 0.0);
  EXPECT_NE(element(model.layer.kernel().to_host().view(), 1), 0.0);
}

TEST(ObjectErrors, APartOfALayer) {
  Model model;
  std::erase_if(model.objects.nodes[model.node({"net", "cell-1"})].children,
                [](const formats::ObjectChild& child) { return child.name == "bias"; });
  EXPECT_EQ(model.refused<ArgumentError>(),
            "[Checkpoint::read] BAD holds 3 of the 4 pieces of cudnn_lstm/opaque_kernel and lacks "
            "net/cell-1/bias, expected all of them");
}

TEST(ObjectErrors, AWrongShapeOrDtype) {
  Model model;
  model.value("x/.ATTRIBUTES/VARIABLE_VALUE") = Array(DType::kFloat64, {3});
  EXPECT_EQ(model.refused<ArgumentError>(),
            "[Checkpoint::read] BAD: x is float64 [3], expected float32 [3]");
  model.value("x/.ATTRIBUTES/VARIABLE_VALUE") = Array(DType::kFloat32, {3});
  model.value("net/cell-0/kernel/.ATTRIBUTES/VARIABLE_VALUE") = Array(DType::kFloat32, {4, 8});
  EXPECT_EQ(model.refused<ArgumentError>(),
            "[CudnnLSTMSaveable] tensor rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel"
            " has shape [4, 8], expected [3, 8]");
}

TEST(ObjectErrors, NoObjectGraph) {
  Model model;
  std::erase_if(model.tensors, [](const NamedTensor& tensor) { return tensor.name == kGraph; });
  EXPECT_EQ(model.refused_as_it_is<ArgumentError>(),
            "[Checkpoint::read] BAD holds no object graph, expected an object-based checkpoint; a "
            "Saver reads checkpoints by name");
}

TEST(ObjectErrors, ABrokenObjectGraph) {
  Model model;
  model.value(kGraph) = StringTensor{{}, {"\x0a\x05nope"}};
  EXPECT_NE(model.refused_as_it_is<FormatError>().find("the object graph is broken"),
            std::string::npos);
  model.objects.nodes[model.node({"x"})].attributes[0].key = "elsewhere";
  EXPECT_NE(model.refused<FormatError>().find("names the tensor elsewhere, which is not there"),
            std::string::npos);
}

TEST(ObjectErrors, OneObjectHereAndTwoThere) {
  Model model;
  const Checkpoint twice({{"a", model.x}, {"x", model.x}});
  model.objects.nodes[0].children.push_back({model.node({"net", "cell-0", "bias"}), "a"});
  model.value(kGraph) = StringTensor{{}, {formats::encode_object_graph(model.objects)}};
  write_tensor_bundle(model.folder / "two", model.tensors);
  EXPECT_EQ(thrown<ArgumentError>([&] { twice.read(model.folder / "two"); }),
            "[Checkpoint::read] " + (model.folder / "two") +
                ": a and x are two objects there, expected one as they are here");
}

TEST(ObjectErrors, WhatDidNotMatchIsNamed) {
  Model model;
  const Variable y("y", varied(DType::kFloat32, {2}, 9));
  const CheckpointStatus status = Checkpoint({{"net", model.layer}, {"y", y}}).read(model.prefix);
  EXPECT_EQ(status.missing, std::vector<std::string>{"y"});
  EXPECT_EQ(status.unused, std::vector<std::string>{"x/.ATTRIBUTES/VARIABLE_VALUE"});
  EXPECT_EQ(thrown<ArgumentError>([&] { status.assert_consumed(); }),
            "[assert_consumed] " + model.prefix +
                " has no value for 1 variable: y; and it holds 1 values that nothing took: "
                "x/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(
      thrown<ArgumentError>([&] { status.assert_existing_objects_matched(); }),
      "[assert_existing_objects_matched] " + model.prefix + " has no value for 1 variable: y");
  status.assert_nontrivial_match();
}

// An object is told from a variable, and one from several.
TEST(ObjectErrors, MissingObjectsAndVariablesAreCountedApart) {
  Model model;
  const Variable y("y", varied(DType::kFloat32, {2}, 9)), z("z", varied(DType::kFloat32, {2}, 8));
  const int one = 1, two = 2;
  const auto empty = [](const int& identity) {
    return Trackable::from([&identity] { return TrackedObject{.identity = &identity}; });
  };
  const auto said = [&](NamedTrackables objects) {
    objects.emplace_back("x", model.x);
    const CheckpointStatus status = Checkpoint(std::move(objects)).read(model.prefix);
    return thrown<ArgumentError>([&] { status.assert_existing_objects_matched(); });
  };
  const std::string start =
      "[assert_existing_objects_matched] " + model.prefix + " has no value for ";
  EXPECT_EQ(said({{"a", empty(one)}}), start + "1 object: a");
  EXPECT_EQ(said({{"a", empty(one)}, {"b", empty(two)}}), start + "2 objects: a, b");
  EXPECT_EQ(said({{"a", empty(one)}, {"y", y}}), start + "1 variable and 1 object: y, a");
  EXPECT_EQ(said({{"a", empty(one)}, {"b", empty(two)}, {"y", y}, {"z", z}}),
            start + "2 variables and 2 objects: y, z, a, b");
}

TEST(ObjectErrors, NothingMatches) {
  Model model;
  const Variable y("y", varied(DType::kFloat32, {2}, 9));
  Checkpoint other({{"y", y}});
  const std::string text = thrown<ArgumentError>([&] { other.restore(model.prefix); });
  EXPECT_NE(text.find("nothing of " + model.prefix + " matches: it holds net/cell-0/bias"),
            std::string::npos);
  EXPECT_TRUE(text.ends_with(", expected some of y")) << text;
  layers::Dense unbuilt({.units = 2});
  Checkpoint elsewhere({{"model", unbuilt}});
  EXPECT_TRUE(thrown<ArgumentError>([&] {
                elsewhere.read(model.prefix);
              }).ends_with(", expected some of model"));
  const CheckpointStatus nothing = other.restore(std::nullopt);
  EXPECT_TRUE(nothing.restored.empty());
  EXPECT_EQ(thrown<ArgumentError>([&] { nothing.assert_consumed(); }),
            "[assert_consumed] restore() was given no checkpoint, expected one");
}

// Who asks for nothing is given nothing, and so is who has no variable for a file without values.
TEST(ObjectErrors, NothingThatWasAskedForIsNoError) {
  Model model;
  const CheckpointStatus status = Checkpoint(NamedTrackables{}).read(model.prefix);
  EXPECT_EQ(status.unused.size(), 5u);
  EXPECT_TRUE(status.missing.empty());
  EXPECT_TRUE(status.restored.empty());
  const Checkpoint group({{"group", NamedTrackables{}}});
  group.write(model.folder / "group");
  group.read(model.folder / "group").assert_consumed();
}

TEST(ObjectErrors, AnObjectThatIsGone) {
  Model model;
  auto dense = std::make_unique<layers::Dense>(layers::DenseOptions{.units = 2});
  const Checkpoint checkpoint({{"dense", *dense}});
  dense.reset();
  EXPECT_EQ(thrown<StateError>([&] { checkpoint.write(model.folder / "gone"); }),
            "[Checkpoint] the object 'dense' is gone, expected it to outlive the checkpoint");
}

TEST(ObjectErrors, Names) {
  Model model;
  for (const char* name : {"", "save_counter"}) {
    EXPECT_EQ(thrown<ArgumentError>([&] {
                Checkpoint({{name, model.x}});
              }),
              std::string("[Checkpoint] an object is named '") + name +
                  "', expected different names, not empty, other than 'save_counter'");
  }
  EXPECT_NE(thrown<ArgumentError>([&] { Checkpoint({{"x", model.x}, {"x", model.layer}}); }), "");
  const Variable y("y", varied(DType::kFloat32, {2}, 9));
  const Checkpoint clash({{"a", NamedTrackables{{"b", model.x}, {"b", y}}}});
  EXPECT_EQ(thrown<ArgumentError>([&] { clash.write(model.folder / "c"); }),
            "[Checkpoint] two objects under 'a' are named 'b', expected different names");
  const Checkpoint empty({{"a", NamedTrackables{{"", model.x}}}});
  EXPECT_EQ(thrown<ArgumentError>([&] { empty.write(model.folder / "c"); }),
            "[Checkpoint] an object under 'a' has an empty name, expected one");
  EXPECT_EQ(thrown<ArgumentError>([&] { model.checkpoint.write(""); }),
            "[Checkpoint::write] prefix '', expected FOLDER/NAME");
  EXPECT_EQ(thrown<ArgumentError>([&] { Trackable::from({}); }),
            "[Trackable] describe is empty, expected a function");
  EXPECT_FALSE(tensor_bundle_exists(model.folder / "c"));
}

TEST(ObjectErrors, ASaveCounterThatIsNone) {
  Model model;
  model.checkpoint.save(model.folder / "n");
  const TensorBundleReader reader(model.folder / "n-1");
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    tensors.push_back({info.name, reader.read_value(info.name)});
    if (info.name.starts_with("save_counter")) {
      tensors.back().value = Array::of<std::int64_t>({}, std::vector<std::int64_t>{-1});
    }
  }
  write_tensor_bundle(model.folder / "bad", tensors);
  const std::string at = "[" + model.folder / "bad" + " @ 0] ";
  EXPECT_EQ(thrown<FormatError>([&] { model.checkpoint.restore(model.folder / "bad"); }),
            at +
                "the save counter save_counter/.ATTRIBUTES/VARIABLE_VALUE is no int64 scalar of at "
                "least 0");
  EXPECT_EQ(model.checkpoint.save_counter(), 1);
  model.checkpoint.read(model.folder / "bad").assert_consumed();
  const auto with_counter = [&](const Array& counter) {
    for (NamedTensor& tensor : tensors) {
      if (tensor.name.starts_with("save_counter")) tensor.value = counter;
    }
    write_tensor_bundle(model.folder / "other", tensors);
    model.checkpoint.restore(model.folder / "other");
    return model.checkpoint.save_counter();
  };
  EXPECT_THROW(with_counter(Array(DType::kInt32, {})), FormatError);
  EXPECT_THROW(with_counter(Array(DType::kInt64, {1})), FormatError);
  EXPECT_EQ(model.checkpoint.save_counter(), 1);
  EXPECT_EQ(with_counter(Array(DType::kInt64, {})), 0);
}

// What an optimizer keeps beside a layer has the dtype in which it was kept.
TEST(ObjectErrors, ASlotOfAnotherDtype) {
  Model model;
  const auto optimizer = [&](const Variable& slot) {
    return Trackable::from([&model, slot] {
      TrackedObject object;
      object.slots.push_back({"m", model.layer.kernel(), slot});
      return object;
    });
  };
  const Array values = model.layer.kernel().to_host();
  const Variable wide("wide", cast(values.view(), DType::kFloat64)), narrow("narrow", values);
  Checkpoint({{"net", model.layer}, {"opt", optimizer(wide)}}).write(model.folder / "slots");
  EXPECT_EQ(
      thrown<ArgumentError>([&] {
        Checkpoint({{"net", model.layer}, {"opt", optimizer(narrow)}}).read(model.folder / "slots");
      }),
      "[Checkpoint::read] " + model.folder / "slots" +
          ": the slot 'm' of cudnn_lstm/opaque_kernel is float64, expected float32");
}

// A cell has one bias where the layer had two.
TEST(ObjectErrors, ASlotOfTwoBiasesForOne) {
  Model model;
  const Variable both("both", varied(DType::kFloat32, model.layer.kernel().shape(), 3));
  const auto optimizer = [](const Variable& variable, const Variable& slot) {
    return Trackable::from([variable, slot] {
      TrackedObject object;
      object.slots.push_back({"m", variable, slot});
      return object;
    });
  };
  Checkpoint({{"net", model.layer}, {"opt", optimizer(model.layer.kernel(), both)}})
      .write(model.folder / "two");
  const Variable bias("bias", Array(DType::kFloat32, {8})), slot("m", Array(DType::kFloat32, {8}));
  const NamedTrackables cell{{"bias", bias}};
  const Checkpoint one(
      {{"net", NamedTrackables{{"cell-0", cell}}}, {"opt", optimizer(bias, slot)}});
  EXPECT_EQ(thrown<ArgumentError>([&] { one.read(model.folder / "two"); }),
            "[Checkpoint::read] " + model.folder / "two" +
                ": net/cell-0/bias/.OPTIMIZER_SLOT/opt/m differs between the input and the "
                "recurrent bias, expected one value for the single bias here");
}

// None is made for variables of which the file has none.
TEST(ObjectErrors, SlotsThatTheFileLacks) {
  Model model;
  const Variable of_x("of_x", varied(DType::kFloat32, {3}, 5));
  int made = 0;
  const Trackable optimizer = Trackable::from([&] {
    TrackedObject object;
    object.slots = {{"m", model.x, of_x}, {"v", model.x, of_x}};
    object.make_slots = [&](const std::vector<Variable>&) { ++made; };
    return object;
  });
  const Checkpoint both({{"x", model.x}, {"net", model.layer}, {"opt", optimizer}});
  EXPECT_EQ(both.read(model.prefix).missing,
            (std::vector<std::string>{"x/.OPTIMIZER_SLOT/opt/m", "x/.OPTIMIZER_SLOT/opt/v"}));
  EXPECT_EQ(made, 0);
  // An optimizer that the file has, without slots of the layer and of x.
  const Variable y("y", varied(DType::kFloat32, {2}, 6));
  const Trackable other = Trackable::from([&] {
    TrackedObject object;
    object.slots = {{"m", y, y}};
    return object;
  });
  Checkpoint({{"x", model.x}, {"y", y}, {"net", model.layer}, {"opt", other}})
      .write(model.folder / "other");
  EXPECT_EQ(both.read(model.folder / "other").missing,
            (std::vector<std::string>{"x/.OPTIMIZER_SLOT/opt/m", "x/.OPTIMIZER_SLOT/opt/v"}));
  EXPECT_EQ(made, 0);
  EXPECT_EQ(element(of_x.to_host().view(), 1), element(varied(DType::kFloat32, {3}, 5).view(), 1));
}

// A write refuses it; a restore that waits for another one goes on.
TEST(ObjectErrors, AnObjectThatIsGoneWhenAnotherIsBuilt) {
  Model model;
  layers::Dense from({.units = 2}), to({.units = 2});
  from.build({3, 4});
  auto other = std::make_unique<layers::Dense>(layers::DenseOptions{.units = 5});
  other->build({3, 4});
  Checkpoint({{"dense", from}, {"other", *other}}).write(model.folder / "two");
  other = std::make_unique<layers::Dense>(layers::DenseOptions{.units = 5});
  const CheckpointStatus status =
      Checkpoint({{"dense", to}, {"other", *other}}).read(model.folder / "two");
  EXPECT_TRUE(status.restored.empty());
  other.reset();
  to.build({3, 4});
  EXPECT_TRUE(same_bits(to.get_weights()[0], from.get_weights()[0]));
  EXPECT_EQ(thrown<ArgumentError>([&] { status.assert_consumed(); }),
            "[assert_consumed] " + model.folder / "two" +
                " holds 2 values that nothing took: other/bias/.ATTRIBUTES/VARIABLE_VALUE, "
                "other/kernel/.ATTRIBUTES/VARIABLE_VALUE");
}

// Each of the calls says its own name, and what the file holds besides.
TEST(ObjectErrors, WhatEachAssertionSays) {
  Model model;
  const Checkpoint only_x({{"x", model.x}});
  const CheckpointStatus status = only_x.read(model.prefix);
  const std::string rest =
      "net/cell-0/bias/.ATTRIBUTES/VARIABLE_VALUE, net/cell-0/kernel/.ATTRIBUTES/VARIABLE_VALUE, "
      "net/cell-1/bias/.ATTRIBUTES/VARIABLE_VALUE, net/cell-1/kernel/.ATTRIBUTES/VARIABLE_VALUE";
  EXPECT_EQ(thrown<ArgumentError>([&] { status.assert_consumed(); }),
            "[assert_consumed] " + model.prefix + " holds 4 values that nothing took: " + rest);
  status.assert_existing_objects_matched();
  layers::Dense unbuilt({.units = 2});
  const CheckpointStatus nothing = Checkpoint({{"net", unbuilt}}).read(model.prefix);
  EXPECT_EQ(thrown<ArgumentError>([&] { nothing.assert_nontrivial_match(); }),
            "[assert_nontrivial_match] nothing of " + model.prefix +
                " was restored, expected one value at least; it holds: " + rest +
                ", x/.ATTRIBUTES/VARIABLE_VALUE");
  const CheckpointStatus none = Checkpoint({{"x", model.x}}).restore(std::nullopt);
  const auto without = [](const std::string& call) {
    return "[" + call + "] restore() was given no checkpoint, expected one";
  };
  EXPECT_EQ(thrown<ArgumentError>([&] { none.assert_existing_objects_matched(); }),
            without("assert_existing_objects_matched"));
  EXPECT_EQ(thrown<ArgumentError>([&] { none.assert_nontrivial_match(); }),
            without("assert_nontrivial_match"));
  Checkpoint checkpoint({{"x", model.x}});
  EXPECT_EQ(thrown<ArgumentError>([&] { checkpoint.save("a/"); }),
            "[Checkpoint::save] prefix 'a/', expected FOLDER/NAME");
  EXPECT_EQ(thrown<ArgumentError>([&] { checkpoint.write("a/"); }),
            "[Checkpoint::write] prefix 'a/', expected FOLDER/NAME");
  // Of a file that holds nothing.
  Checkpoint(NamedTrackables{}).write(model.folder / "empty");
  EXPECT_EQ(thrown<ArgumentError>([&] { only_x.read(model.folder / "empty"); }),
            "[Checkpoint::read] nothing of " + model.folder / "empty" +
                " matches: it holds no values, expected some of x");
}

}  // namespace
}  // namespace openrnn
