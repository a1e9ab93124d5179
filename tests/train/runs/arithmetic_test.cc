// What runs and their files know of the arithmetic.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "openrnn/runtime.h"
#include "openrnn/train.h"

namespace openrnn::train {
namespace {

/// A text model's run as the tool leaves it, in a folder that goes with it.
class SavedRun {
 public:
  explicit SavedRun(Math math, bool says_so = true)
      : folder_(std::filesystem::temp_directory_path() /
                ("openrnn_arithmetic_" + std::to_string(getpid()))),
        current_(graph_) {
    std::filesystem::create_directories(folder_);
    config_.model.network.num_units = 17;
    config_.model.embedding = 5;
    config_.model.network.training.seed = 3;
    config_.model.network.compute.math = math;
    const Vocabulary vocabulary = Vocabulary::of_text("abc\n", TextLevel::kByte);
    config_.model.vocabulary = config_.model.outputs = vocabulary.size();
    const SequenceModel model(config_.model);
    Extras extras;
    std::string json = to_json(config_);
    if (says_so) {
      save_arithmetic(model, std::nullopt, extras);
    } else {
      json.erase(json.find("\"math\""), std::string_view("\"math\": \"float32\",").size());
    }
    extras.set_string("config", json);
    const std::vector<std::int32_t>& codes = vocabulary.codes();
    extras.set("vocabulary", Array::of<std::int32_t>({static_cast<std::int64_t>(codes.size())},
                                                     std::span<const std::int32_t>(codes)));
    Saver().write(prefix(), extras);
  }
  ~SavedRun() { std::filesystem::remove_all(folder_); }
  SavedRun(const SavedRun&) = delete;
  SavedRun& operator=(const SavedRun&) = delete;
  std::string prefix() const { return (folder_ / "run").string(); }

 private:
  std::filesystem::path folder_;
  Graph graph_;
  Graph::AsDefault current_;
  RunConfig config_;
};

TEST(RunArithmetic, IsInTheConfiguration) {
  RunConfig config;
  config.model.network.compute.math = Math::kBf16;
  EXPECT_EQ(run_config_from_json(to_json(config)).model.network.compute.math, Math::kBf16);
  const SavedRun run(Math::kBf16);
  TrainedModel trained(run.prefix());
  EXPECT_EQ(trained.model().rnn().network().compute.math, Math::kBf16);
  const TrainedArithmetic found = trained_arithmetic(trained.extras());
  EXPECT_EQ(found.math, "bf16");
  EXPECT_EQ(found.kind, trained.model().rnn().math_kind());
  EXPECT_EQ(found.version, "3");
}

TEST(RunArithmetic, OfOlderFilesIsFloat32) {
  const SavedRun run(Math::kFloat32, false);
  TrainedModel trained(run.prefix());
  EXPECT_EQ(trained.model().rnn().network().compute.math, Math::kFloat32);
  EXPECT_EQ(trained_arithmetic(trained.extras()).math, "float32");
  EXPECT_EQ(trained_arithmetic(trained.extras()).kind, "float32");
  EXPECT_EQ(trained_arithmetic(trained.extras()).version, "1");
  Extras strange;
  strange.set_int("math_kind", 3);
  EXPECT_EQ(trained_arithmetic(strange).kind, "float32");
  for (const StringTensor& other : {StringTensor{{2}, {"a", "b"}}, StringTensor{{0}, {}}}) {
    strange.set("math_kind", other);
    EXPECT_EQ(trained_arithmetic(strange).kind, "float32");
  }
}

TEST(RunArithmetic, AnotherOneMayBeChosenForATrainedModel) {
  const SavedRun run(Math::kBf16);
  TrainedModel stored(run.prefix(), {.weights_dtype = WeightsDType::kInt8});
  EXPECT_EQ(stored.model().rnn().network().compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_EQ(stored.model().rnn().network().compute.math, Math::kFloat32);
  EXPECT_EQ(stored.model().rnn().math_kind(), "int8");
  TrainedModel plain(run.prefix(), {.math = Math::kFloat32});
  EXPECT_EQ(plain.model().rnn().math_kind(), "float32");
  const double bits = score_text(plain.model(), plain.vocabulary(), "abcab\nc").bits;
  EXPECT_NEAR(score_text(stored.model(), stored.vocabulary(), "abcab\nc").bits, bits, 0.1);
}

TEST(RunArithmetic, NamesEveryKindThatTookPart) {
  const SavedRun run(Math::kBf16);
  TrainedModel trained(run.prefix());
  const std::string here(trained.model().rnn().math_kind());
  Extras resumed, again;
  resumed.set_string("math_kind", "elsewhere");
  save_arithmetic(trained.model(), resumed, again);
  EXPECT_EQ(again.get_string("math_kind"), "elsewhere, " + here);
  EXPECT_EQ(again.get_string("arithmetic"), "1, 3");
  Extras third;
  save_arithmetic(trained.model(), again, third);
  EXPECT_EQ(third.get_string("math_kind"), "elsewhere, " + here);
  EXPECT_EQ(third.get_string("arithmetic"), "1, 3");
  EXPECT_EQ(third.get_string("math"), "bf16");
  // Another one whose name ends as this one's.
  Extras longer, both;
  longer.set_string("math_kind", "not-" + here);
  save_arithmetic(trained.model(), longer, both);
  EXPECT_EQ(both.get_string("math_kind"), "not-" + here + ", " + here);
  // A file from before there were kinds says nothing of those that took part.
  Extras silent, after;
  save_arithmetic(trained.model(), silent, after);
  EXPECT_EQ(after.get_string("math_kind"), here);
  EXPECT_EQ(after.get_string("arithmetic"), "1, 3");
}

}  // namespace
}  // namespace openrnn::train
