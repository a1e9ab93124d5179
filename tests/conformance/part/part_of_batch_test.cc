// Calls of a part of a batch draw the masks of the whole call, on every engine.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/parts.h"
#include "openrnn/engine_tangent.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const std::string& engine : tested_engines()) {
    for (const char* text :
         {"lstm L2 U17 I3 B7 T5 f64 D0.5", "gru L3 U7 I5 B5 T4 f32 D0.3 bi",
          "lstm L2 U9 I3 B6 T5 f32 D0.5 bi lengths batch_major",
          "gru L2 U33 I3 B9 T3 f16 D0.5 lengths", "lstm L2 U5 I3 B3 T1 f64 D0.5",
          "rnn_tanh L2 U5 I3 B1 T4 f32 D0.5", "lstm L2 U17 I3 B7 T5 P5 f64 D0.5"}) {
      list.push_back({engine, parse_case(text, "between_layers")});
    }
    if (engine == "cudnn") continue;  // has no masks inside a step
    for (const char* text :
         {"lstm L2 U17 I3 B7 T5 f64 zone=0.3 zone_cell=0.2", "gru L1 U7 I5 B5 T4 f32 bi zone=0.4",
          "lstm L1 U9 I3 B6 T5 f32 drop_state=0.4 lengths",
          "lstm L1 U9 I3 B1 T1 f64 drop_state=0.4",
          "gru L2 U33 I3 B9 T3 f64 drop_candidate=0.5 bi lengths batch_major",
          "lstm L2 U5 I3 B5 T4 P3 f64 D0.5 zone=0.3 zone_cell=0.2 drop_candidate=0.5 bi lengths"}) {
      list.push_back({engine, parse_case(text, "inside_steps")});
    }
  }
  return list;
}

/// Rows [first, first + count) of a call and its data.
struct Rows {
  Case c;
  Data d;
  Rows(const Case& whole, const Data& all, std::int64_t first, std::int64_t count) : c(whole) {
    c.batch = count;
    if (!whole.lengths.empty()) {
      c.lengths.assign(whole.lengths.begin() + first, whole.lengths.begin() + first + count);
    }
    const RnnSpec& s = whole.spec;
    const auto rows = [&](const Array& from, std::int64_t planes, std::int64_t width) {
      Cut cut = row_cut(whole, planes, width, first);
      cut.count = count;
      return take(from, cut);
    };
    const std::int64_t planes = s.num_pseudo_layers();
    d.params = all.params;
    d.x = rows(all.x, whole.time, s.input_size);
    d.dy = rows(all.dy, whole.time, s.output_size());
    d.h0 = rows(all.h0, planes, s.hidden_size());
    d.dhn = rows(all.dhn, planes, s.hidden_size());
    d.c0 = s.has_cell() ? rows(all.c0, planes, s.num_units) : Array(s.dtype, {0});
    d.dcn = s.has_cell() ? rows(all.dcn, planes, s.num_units) : Array(s.dtype, {0});
  }
};

/// A training call and its gradient, of rows from `first_row` of a batch; 0, 0: a whole one.
Result run_part(const Engine& engine, const Case& c, const Data& d, std::int64_t first_row,
                std::int64_t whole_batch) {
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs args =
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  args.dropout.first_row = first_row;
  args.dropout.whole_batch = whole_batch;
  const auto saved = engine.forward_saving(args);
  Result result;
  append_forward(result, "", std::move(out));
  for (auto& part : run_backward(engine, c, d, *saved).parts) {
    result.parts.push_back(std::move(part));
  }
  return result;
}

/// Those rows of everything but the gradient of the parameters, which is a sum over rows.
Result rows_of(const Case& c, const Result& all, std::int64_t first, std::int64_t count) {
  const RnnSpec& s = c.spec;
  const std::int64_t planes = s.num_pseudo_layers();
  Result result;
  for (const auto& [name, array] : all.parts) {
    if (name == "dparams") continue;
    const bool cells = name == "cn" || name == "dc0";
    if (cells && !s.has_cell()) continue;
    Cut cut = name == "y"    ? row_cut(c, c.time, s.output_size(), first)
              : name == "dx" ? row_cut(c, c.time, s.input_size, first)
                             : row_cut(c, planes, cells ? s.num_units : s.hidden_size(), first);
    cut.count = count;
    result.parts.emplace_back(name, take(array, cut));
  }
  return result;
}

class PartOfBatch : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (tests_gpu() && !pretends()) GTEST_SKIP() << "a GPU's sums depend on the batch";
  }
};

TEST_P(PartOfBatch, HasTheBitsOfTheWhole) {
  const Case& c = GetParam().c;
  const Engine& subject = engine(GetParam().engine);
  const Data d = make_data(c);
  const Result whole = run_part(subject, c, d, 0, 0);
  EXPECT_EQ(first_difference(whole, run_part(subject, c, d, 0, c.batch)), "");
  bool others = c.batch == 1;
  for (const std::int64_t count : {std::int64_t{1}, (c.batch + 1) / 2, c.batch}) {
    for (std::int64_t first = 0; first < c.batch; first += count) {
      const Rows rows(c, d, first, std::min(count, c.batch - first));
      const auto run = [&](std::int64_t from) {
        return rows_of(rows.c, run_part(subject, rows.c, rows.d, from, c.batch), 0, rows.c.batch);
      };
      const Result part = run(first);
      EXPECT_EQ(first_difference(rows_of(c, whole, first, rows.c.batch), part), "")
          << "rows " << first << " to " << first + rows.c.batch;
      others = others || !first_difference(part, run(0)).empty();
    }
  }
  EXPECT_TRUE(others) << "rows have masks of their own";
}

/// J v of a training call for a direction of x, as "y".
Result tangent_of_part(const Engine& engine, const Case& c, const Data& d, std::int64_t first_row,
                       std::int64_t whole_batch) {
  Array moved(c.spec.dtype, {c.seq_size(c.spec.output_size())});
  DropoutKey key = kKey;
  key.first_row = first_row;
  key.whole_batch = whole_batch;
  engine.tangent({.spec = c.spec,
                  .max_time = c.time,
                  .batch = c.batch,
                  .time_major = c.time_major,
                  .sequence_lengths = c.lengths.empty() ? nullptr : c.lengths.data(),
                  .training = true,
                  .dropout = key,
                  .at = {d.x.data(), d.h0.data(), d.c0.data(), d.params.data()},
                  .direction = {.x = d.x.data()},
                  .moved = {.y = moved.data()}});
  Result result;
  result.parts.emplace_back("y", std::move(moved));
  return result;
}

TEST_P(PartOfBatch, HasTheTangentsOfTheWhole) {
  const Case& c = GetParam().c;
  const Engine& subject = engine(GetParam().engine);
  if (!subject.has_tangent(c.spec)) GTEST_SKIP() << "the engine has none of this network";
  const Data d = make_data(c);
  const Result whole = tangent_of_part(subject, c, d, 0, 0);
  for (std::int64_t first = 0; first < c.batch; ++first) {
    const Rows row(c, d, first, 1);
    EXPECT_EQ(first_difference(rows_of(c, whole, first, 1),
                               tangent_of_part(subject, row.c, row.d, first, c.batch)),
              "")
        << "row " << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, PartOfBatch, testing::ValuesIn(subjects()), subject_name);

TEST(PartOfBatch, RowsOutsideOfTheBatchAreRefused) {
  const Case c = parse_case("lstm L2 U5 I3 B3 T2 f64 D0.5", "refused");
  const Data d = make_data(c);
  for (const std::string& name : tested_engines()) {
    const auto run = [&](std::int64_t first, std::int64_t whole) {
      return [&, first, whole] { run_part(engine(name), c, d, first, whole); };
    };
    const std::string expected = ", expected rows within it, and at most 2^32";
    const std::string call = "[forward_saving] first_row is ";
    expect_error<ArgumentError>(run(2, 4), call + "2 of 3 rows, and whole_batch 4" + expected);
    expect_error<ArgumentError>(run(-1, 4), call + "-1 of 3 rows, and whole_batch 4" + expected);
    expect_error<ArgumentError>(run(1, 0), call + "1 of 3 rows, and whole_batch 0" + expected);
    expect_error<ArgumentError>(run(0, (std::int64_t{1} << 32) + 1),
                                call + "0 of 3 rows, and whole_batch 4294967297" + expected);
  }
}

}  // namespace
}  // namespace openrnn::conformance
