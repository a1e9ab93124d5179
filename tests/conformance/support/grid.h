// The cases: every combination at sizes that change from one to the next, and the odd ones by hand.
#pragma once

#include <algorithm>
#include <array>

#include "conformance/support/case.h"

namespace openrnn::conformance {

namespace detail {

struct Sizes {
  const char* text;
  const char* skip;  // the same with I == U
  const char* reason;
};

// Sizes around one, two and eight vectors of 16 units, and batches around a tile of rows. Their
// number is prime to that of every option, so each size meets each of them.
inline constexpr std::array kSizes = {
    Sizes{"L2 U7 I3 B3 T4", "L2 U7 I7 B3 T4", "fewer_units_than_a_vector"},
    Sizes{"L1 U17 I33 B7 T3", "L1 U17 I17 B7 T3", "one_unit_past_a_vector"},
    Sizes{"L3 U3 I1 B2 T5", "L3 U3 I3 B2 T5", "three_small_layers"},
    Sizes{"L1 U16 I16 B6 T4", "L1 U16 I16 B6 T4", "exactly_one_vector"},
    Sizes{"L2 U15 I17 B1 T3", "L2 U15 I15 B1 T3", "one_row"},
    Sizes{"L1 U1 I1 B15 T7", "L1 U1 I1 B15 T7", "one_unit_many_rows"},
    Sizes{"L2 U33 I7 B5 T1", "L2 U33 I33 B5 T1", "one_step"},
    Sizes{"L1 U33 I130 B16 T2", "L1 U33 I33 B16 T2", "wide_input"},
    Sizes{"L1 U130 I15 B3 T2", "L1 U130 I130 B3 T2", "nine_vectors"},
    Sizes{"L3 U16 I7 B17 T3", "L3 U16 I16 B17 T3", "one_row_past_the_tiles"},
    Sizes{"L2 U3 I33 B33 T3", "L2 U3 I3 B33 T3", "many_rows"},
};

// Fewer of these: they cost most.
inline constexpr std::array kLargeCases = {
    "lstm L1 U130 I33 B7 T3 f32",
    "gru L1 U130 I17 B3 T3 bi f32 lengths",
    "rnn_tanh L1 U130 I130 B16 T2 f64",
    "rnn_relu L1 U33 I130 B17 T3 f32 batch_major",
    "lstm L1 U16 I130 B33 T2 f32",
    "lstm L1 U130 I130 B2 T2 skip f16 lengths",
    "gru L2 U17 I7 B130 T2 f32",
    "rnn_tanh L1 U7 I3 B3 T33 f32 lengths",
    "lstm L1 U3 I3 B2 T130 f32",
    // Weight gradients: sides that are packed one after the other, and two blocks of k.
    "gru L2 U5 I300 B3 T2 f32",
    "lstm L1 U3 I5 B40 T30 f32",
};

inline constexpr std::array kOddCases = {
    std::array{"lstm L2 U7 I3 B3 T4 f32 null_states", "no_initial_states"},
    std::array{"gru L2 U7 I3 B3 T4 bi f32 null_states lengths", "no_initial_states"},
    std::array{"lstm L2 U7 I3 B0 T4 bi f32", "empty_batch"},
    std::array{"gru L1 U7 I3 B0 T4 f16", "empty_batch"},
    std::array{"lstm L2 U7 I3 B3 T0 bi f32", "no_steps_pass_states_through"},
    std::array{"gru L1 U7 I3 B3 T0 f64 batch_major", "no_steps_pass_states_through"},
    std::array{"rnn_relu L1 U7 I3 B0 T0 f32", "nothing_at_all"},
    std::array{"lstm L2 U17 I3 B3 T4 P5 f32", "projection"},
    std::array{"lstm L2 U17 I5 B7 T4 P16 bi f32 lengths", "projection"},
    std::array{"lstm L1 U33 I33 B3 T3 P1 skip f64 batch_major", "projection_to_one"},
    std::array{"lstm L2 U16 I3 B5 T4 P7 f16 lengths", "projection_in_half"},
    std::array{"lstm L1 U7 I3 B2 T3 P7 f32", "projection_as_wide_as_the_units_is_off"},
    std::array{"lstm L2 U17 I3 B5 T6 clip f32", "clamped_cells"},
    std::array{"lstm L1 U7 I7 B5 T6 clip P3 bi f64 lengths", "clamped_cells_and_projection"},
    std::array{"lstm L1 U16 I7 B5 T6 clip f16", "clamped_cells_in_half"},
    std::array{"lstm L3 U17 I3 B5 T4 D0.5 f32", "dropout"},
    std::array{"gru L2 U7 I3 B5 T4 D0.5 bi f64 lengths batch_major", "dropout"},
    std::array{"rnn_tanh L2 U16 I3 B5 T4 D0.3 f16", "dropout_with_a_scale_that_rounds"},
    std::array{"rnn_relu L2 U7 I3 B5 T4 D0.1 f32", "dropout_with_a_scale_that_rounds"},
    std::array{"lstm L2 U7 I3 B5 T4 D1 f32", "everything_dropped"},
    std::array{"gru L3 U7 I3 B5 T4 D1 bi f32 lengths", "everything_dropped"},
    std::array{"lstm L1 U7 I3 B5 T4 D0.5 f32", "one_layer_drops_nothing"},
    std::array{"lstm L3 U17 I17 B5 T6 D0.5 f32 lengths", "input_as_wide_as_the_output"},
    std::array{"gru L3 U7 I14 B5 T4 bi f64 lengths", "input_as_wide_as_the_output"},
    std::array{"lstm L2 U17 I10 B17 T4 P5 bi f32", "input_as_wide_as_the_output"},
    std::array{"rnn_relu L2 U33 I33 B1 T7 f32", "input_as_wide_as_the_output"},
    std::array{"lstm L2 U17 I3 B5 T6 bi forget f32 lengths", "forget_bias"},
    std::array{"lstm L1 U7 I7 B5 T4 forget P3 skip f64", "forget_bias_and_projection"},
    std::array{"lstm L2 U16 I5 B3 T4 forget f16", "forget_bias_in_half"},
    std::array{"lstm L1 U33 I5 B3 T4 forget clip f32", "forget_bias_and_clamped_cells"},
    std::array{"lstm L2 U17 I3 B5 T6 bi peepholes f32 lengths", "peepholes"},
    std::array{"lstm L1 U33 I7 B7 T5 peepholes clip P9 proj_clip f64 batch_major", "peepholes"},
    std::array{"lstm L2 U16 I5 B3 T4 peepholes coupled f16", "peepholes_in_half"},
    std::array{"lstm L1 U17 I17 B6 T5 coupled skip f32", "coupled_gates"},
    std::array{"lstm L2 U15 I3 B5 T4 P7 proj_clip bi f16 lengths", "clipped_projection"},
    std::array{"lstm L1 U7 I5 B5 T6 gate_clip forget f32", "clipped_gates"},
    std::array{"gru L2 U33 I5 B4 T5 gate_clip bi f64", "clipped_gates"},
    std::array{"rnn_tanh L1 U17 I5 B4 T5 gate_clip f32 lengths", "clipped_gates"},
    std::array{"gru L2 U17 I3 B5 T6 bi reset_before f32 lengths", "reset_before"},
    std::array{"gru L1 U130 I33 B7 T4 reset_before one_bias f32", "reset_before"},
    std::array{"gru L2 U7 I7 B3 T5 reset_before gate_clip skip f64 batch_major", "reset_before"},
    std::array{"gru L3 U16 I5 B1 T4 reset_before D0.5 no_bias f16 null_states", "reset_before"},
    std::array{"lstm L2 U7 I3 B3 T4 no_bias forget f32", "no_biases"},
    std::array{"lstm L1 U17 I5 B3 T4 one_bias bi f32", "one_bias"},
    std::array{"gru L2 U17 I5 B4 T4 one_bias f32 lengths", "one_bias"},
    std::array{"gru L1 U7 I5 B4 T4 no_bias f64", "no_biases"},
    std::array{"rnn_relu L2 U17 I5 B4 T4 no_bias P5 f32", "plain_projection"},
    std::array{"rnn_tanh L1 U33 I5 B3 T5 P16 proj_clip bi f64 lengths", "plain_projection"},
    std::array{"rnn_tanh L2 U16 I3 B5 T4 P7 act=softsign f16", "plain_projection"},
    std::array{"lstm L2 U17 I5 B4 T5 gates=hard_sigmoid f32 lengths", "hard_sigmoid"},
    std::array{"gru L1 U33 I5 B4 T5 gates=hard_sigmoid(0.1875,0.5) act=relu f32", "hard_sigmoid"},
    std::array{"gru L1 U16 I5 B4 T5 reset_before gates=hard_sigmoid act=softsign bi f32",
               "reset_before"},
    std::array{"lstm L1 U7 I5 B4 T5 act=relu out=relu f64", "activations"},
    std::array{"lstm L1 U17 I5 B4 T5 act=softsign out=elu(0.7) peepholes f32", "activations"},
    std::array{"lstm L1 U17 I5 B4 T5 act=affine(0.8,0.1) out=affine f32", "activations"},
    std::array{"lstm L1 U17 I5 B4 T5 act=scaled_tanh(1.7,0.6) gates=softsign f16", "activations"},
    std::array{"gru L2 U7 I5 B4 T5 act=leaky_relu(0.2) bi f32", "activations"},
    std::array{"gru L1 U17 I5 B4 T5 act=elu gates=softplus f64", "activations"},
    std::array{"rnn_tanh L1 U17 I5 B4 T5 act=thresholded_relu(0.1) f32", "activations"},
    std::array{"rnn_tanh L2 U17 I5 B4 T5 act=softplus f32 lengths", "activations"},
    std::array{"rnn_relu L1 U17 I5 B4 T5 act=sigmoid bi f32", "activations"},
    std::array{"rnn_tanh L2 U7 I5 B4 T5 act=relu f32 lengths", "activation_of_the_other_mode"},
    std::array{"rnn_relu L1 U7 I5 B4 T5 act=tanh bi f64", "activation_of_the_other_mode"},
    std::array{"lstm L2 U17 I5 B7 T6 drop_state=0.5 bi f32 lengths", "masked_state"},
    std::array{"lstm L1 U33 I3 B5 T5 drop_state=0.25 P9 proj_clip f64 batch_major", "masked_state"},
    std::array{"gru L2 U7 I5 B5 T5 drop_state=0.375 D0.5 bi f32 lengths", "masked_state"},
    std::array{"gru L1 U130 I5 B3 T4 drop_state=0.5 f16 null_states", "masked_state"},
    std::array{"gru L2 U17 I5 B5 T5 drop_state=0.5 reset_before bi f32 lengths", "masked_state"},
    std::array{"rnn_tanh L2 U15 I5 B5 T5 drop_state=0.3 P7 bi f32", "masked_state"},
    std::array{"rnn_relu L1 U3 I5 B7 T1 drop_state=0.5 f32", "masked_state_of_one_step"},
    std::array{"lstm L1 U17 I5 B3 T4 drop_state=1 f32", "no_state_enters"},
    std::array{"lstm L2 U33 I5 B7 T5 drop_candidate=0.5 bi f32 lengths", "masked_candidate"},
    std::array{"lstm L1 U16 I5 B3 T5 drop_candidate=0.3 coupled peepholes clip f64",
               "masked_candidate"},
    std::array{"lstm L1 U7 I5 B1 T5 drop_candidate=0.25 P3 f16", "masked_candidate"},
    std::array{"gru L2 U17 I5 B5 T5 drop_candidate=0.5 bi f32 lengths", "masked_candidate"},
    std::array{"gru L1 U33 I5 B5 T4 drop_candidate=0.5 reset_before f64", "masked_candidate"},
    std::array{"rnn_tanh L2 U15 I5 B5 T5 drop_candidate=0.375 bi f32 lengths", "masked_candidate"},
    std::array{"rnn_relu L1 U17 I5 B5 T4 drop_candidate=1 P5 f32", "no_candidate"},
    std::array{"lstm L2 U17 I5 B7 T6 zone=0.25 zone_cell=0.5 bi f32 lengths", "zoneout"},
    std::array{"lstm L1 U33 I5 B5 T5 zone=0.5 zone_cell=0.25 P9 proj_clip clip peepholes f64",
               "zoneout"},
    std::array{"lstm L2 U16 I5 B3 T4 zone=0.125 zone_cell=0.5 coupled f16 batch_major", "zoneout"},
    std::array{"lstm L1 U7 I5 B3 T4 zone_cell=0.5 drop_state=0.5 f32 null_states", "zoneout"},
    std::array{"lstm L1 U130 I5 B7 T4 zone=0.5 drop_candidate=0.25 f32", "zoneout"},
    std::array{"lstm L1 U15 I5 B1 T5 zone=1 zone_cell=1 f32", "everything_stays"},
    std::array{"gru L2 U17 I5 B5 T5 zone=0.25 drop_state=0.5 bi f32 lengths", "zoneout"},
    std::array{"gru L1 U33 I5 B6 T5 zone=0.5 reset_before drop_state=0.25 f32 lengths", "zoneout"},
    std::array{"gru L1 U7 I5 B4 T5 zone=0.5 reset_before f64 batch_major", "zoneout"},
    std::array{"gru L3 U16 I5 B5 T4 zone=0.25 D0.5 f16", "zoneout"},
    std::array{"rnn_tanh L2 U17 I5 B5 T5 zone=0.5 P7 bi f32 lengths", "zoneout"},
    std::array{"rnn_relu L1 U33 I33 B5 T5 zone=0.25 skip f32", "zoneout"},
    std::array{"lstm L2 U17 I3 B5 T4 norm=products cell_norm=output bi f32 lengths", "layer_norm"},
    std::array{"lstm L1 U33 I7 B7 T5 norm=products one_bias P9 proj_clip f64 batch_major",
               "layer_norm_and_projection"},
    std::array{"lstm L1 U16 I5 B3 T4 norm=products cell_norm=carried clip peepholes f16",
               "layer_norm_in_half"},
    std::array{"lstm L2 U15 I17 B1 T3 norm=gates cell_norm=carried one_bias forget f32 null_states",
               "layer_norm_of_gates"},
    std::array{"lstm L1 U33 I33 B6 T4 norm=gates cell_norm=carried tiny_epsilon skip bi f64",
               "layer_norm_of_gates"},
    std::array{"lstm L2 U17 I3 B5 T4 norm=gates cell_norm=output P5 D0.5 no_bias f32",
               "layer_norm_of_gates"},
    std::array{"lstm L1 U7 I5 B5 T5 norm=gates coupled gate_clip peepholes f32 lengths",
               "layer_norm_of_gates"},
    std::array{"lstm L1 U130 I33 B7 T4 norm=products cell_norm=output f32 lengths", "layer_norm"},
    std::array{"lstm L1 U3 I1 B2 T1 norm=gates cell_norm=output f64", "layer_norm_of_one_step"},
    std::array{"lstm L1 U16 I16 B4 T3 norm=products cell_norm=carried skip f32", "layer_norm"},
    std::array{"gru L2 U17 I3 B5 T5 norm=products bi f32 lengths", "layer_norm"},
    std::array{"gru L1 U33 I33 B7 T5 norm=products one_bias gate_clip skip f64 batch_major",
               "layer_norm"},
    std::array{"gru L1 U16 I5 B3 T4 norm=split_products f16", "layer_norm_in_half"},
    std::array{"gru L1 U130 I33 B7 T4 norm=split_products no_bias f32 lengths", "layer_norm"},
    std::array{"gru L1 U1 I1 B5 T3 norm=products act=softsign f32", "layer_norm_of_one_unit"},
    std::array{"lstm L1 U7 I5 B0 T3 norm=products f32", "layer_norm_of_no_rows"},
    std::array{"gru L1 U7 I5 B3 T0 norm=split_products f32", "layer_norm_of_no_steps"},
    std::array{"gru L2 U17 I5 B5 T5 P7 bi f32 lengths", "gru_projection"},
    std::array{"gru L1 U33 I5 B7 T5 P9 proj_clip gate_clip f64 batch_major", "gru_projection"},
    std::array{"gru L2 U16 I3 B3 T4 P3 one_bias act=softsign f16 null_states", "gru_projection"},
    std::array{"gru L3 U17 I17 B5 T4 P1 D0.5 skip f32", "gru_projection_to_one"},
    std::array{"gru L1 U130 I5 B1 T5 P33 drop_state=0.5 zone=0.25 zone_cell=0.5 f32",
               "gru_projection_and_zoneout"},
    std::array{"gru L1 U15 I5 B6 T6 P8 drop_candidate=0.5 zone_cell=0.25 bi f32 lengths",
               "gru_projection_and_zoneout"},
    std::array{"lstm L2 U16 I3 B5 T4 P7 b16 lengths", "projection_in_bfloat16"},
    std::array{"lstm L1 U17 I7 B5 T6 clip peepholes coupled b16", "clamped_cells_in_bfloat16"},
    std::array{"gru L2 U33 I5 B3 T5 D0.5 bi b16 batch_major", "dropout_in_bfloat16"},
    std::array{"gru L1 U16 I5 B3 T4 P3 zone=0.25 b16", "projection_in_bfloat16"},
    std::array{"gru L1 U17 I5 B3 T4 zone=0.25 reset_before b16 lengths", "zoneout_in_bfloat16"},
    std::array{"lstm L1 U15 I5 B3 T4 norm=products cell_norm=carried clip b16 lengths",
               "layer_norm_in_bfloat16"},
    std::array{"gru L1 U7 I3 B0 T4 b16", "empty_batch"},
    std::array{"rnn_relu L1 U7 I3 B3 T0 b16", "no_steps_pass_states_through"},
};

}  // namespace detail

/// Every mode x direction x input mode x dtype x lengths x layout; sizes take turns from `turn` on.
inline std::vector<Case> every_combination(std::size_t turn) {
  std::vector<Case> cases;
  for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* direction : {"", " bi"}) {
      for (const std::string input : {"", " skip", " auto"}) {
        for (const char* dtype : {" f32", " f64", " f16", " b16"}) {
          for (const char* rest : {"", " lengths", " batch_major", " lengths batch_major"}) {
            const detail::Sizes& sizes = detail::kSizes[turn++ % detail::kSizes.size()];
            // auto_select takes both forms in turn: with I == U it skips.
            const bool equal = input == " skip" || (input == " auto" && turn % 2);
            const std::string text = std::string(mode) + " " + (equal ? sizes.skip : sizes.text);
            if (reduced() && turn % 9 != 0) continue;
            cases.push_back(parse_case(text + direction + input + dtype + rest, sizes.reason));
          }
        }
      }
    }
  }
  return cases;
}

inline std::vector<Case> large_cases() {
  std::vector<Case> cases;
  for (const char* text : detail::kLargeCases) cases.push_back(parse_case(text, "large"));
  if (reduced()) cases.resize(2);
  return cases;
}

inline std::vector<Case> odd_cases() {
  std::vector<Case> cases;
  for (const auto& [text, reason] : detail::kOddCases) cases.push_back(parse_case(text, reason));
  return cases;
}

/// Without cell_clip, which cuDNN has in another sense, and what it has not.
inline std::vector<Case> of_cudnn(std::vector<Case> cases) {
  std::erase_if(cases, [](const Case& c) {
    const RnnSpec& s = c.spec;
    return s.dtype == DType::kBfloat16 || s.cell_clip || s.forget_bias != 0.0 ||
           !s.has_cudnn_step() || s.proj_clip || s.biases_per_gate() != 2 ||
           (s.projecting() && !s.is_lstm());
  });
  return cases;
}

/// Every `stride`-th of the combinations, each at `rounds` sizes, and all of the others.
inline std::vector<Case> some_cases(std::size_t stride, std::size_t rounds = 1) {
  std::vector<Case> cases = odd_cases();
  for (const Case& c : large_cases()) cases.push_back(c);
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::vector<Case> all = every_combination(5 * round);
    for (std::size_t n = round % stride; n < all.size(); n += stride) cases.push_back(all[n]);
  }
  return cases;
}

/// Every combination at three sizes, and the others.
inline std::vector<Case> all_cases() { return some_cases(1, reduced() ? 1 : 3); }

/// The other arithmetics: every mode x direction x input mode x dtype x arithmetic, with lengths
/// and layouts in turn; then what each kind of network adds.
inline std::vector<Case> arithmetic_cases() {
  const std::array arithmetics = {" bf16", " stored_int8", " stored_bfloat16", " stored_float16",
                                  " bf16x3"};
  const std::array rests = {"", " lengths", " batch_major", " lengths batch_major", " null_states"};
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (const std::string mode : {"lstm ", "gru ", "rnn_tanh ", "rnn_relu "}) {
    for (const std::string rest : {"", " bi", " skip", " bi skip"}) {
      for (const std::string dtype : {" f32", " f16", " b16"}) {
        for (std::size_t n = 0; n < 2 * arithmetics.size(); ++n, ++turn) {
          const detail::Sizes& sizes = detail::kSizes[turn % detail::kSizes.size()];
          const bool skips = rest.ends_with("skip");
          if (reduced() && turn % 9 != 0) continue;
          cases.push_back(parse_case(mode + (skips ? sizes.skip : sizes.text) + rest + dtype +
                                         arithmetics[n % arithmetics.size()] +
                                         rests[(turn + n / arithmetics.size()) % rests.size()],
                                     sizes.reason));
        }
      }
    }
  }
  for (const std::string arithmetic : arithmetics) {
    for (const auto& [text, reason] : detail::kOddCases) {
      const std::string full = text + arithmetic;
      if (full.find("f64") == std::string::npos) cases.push_back(parse_case(full, reason));
    }
    for (const char* text : {"lstm L1 U130 I33 B7 T3 f32 lengths", "gru L2 U17 I130 B33 T2 bi f32",
                             "rnn_tanh L1 U33 I3 B3 T33 f32", "gru L1 U65 I7 B1 T17 f32",
                             "lstm L2 U130 I17 B2 T5 P33 bi f16"}) {
      cases.push_back(parse_case(text + arithmetic, "large"));
    }
  }
  return cases;
}

/// Every third of them.
inline std::vector<Case> some_arithmetic_cases() {
  std::vector<Case> cases;
  const std::vector<Case> all = arithmetic_cases();
  for (std::size_t n = 0; n < all.size(); n += 3) cases.push_back(all[n]);
  return cases;
}

}  // namespace openrnn::conformance
