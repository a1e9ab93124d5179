// Results of the cpu engine are the same bits on every machine: hashes kept from one to the next.
// OPENRNN_REGENERATE_GOLDEN=1 writes the file anew.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "support/files/fnv.h"
#include "support/files/source_file.h"

namespace openrnn::conformance {
namespace {

const std::string kFile = source_file("tests/golden/cpu_hashes.txt");

/// Over the bytes of every part, without zeros in front.
std::string hash_of(const Result& result) {
  Hash hash;
  for (const auto& [name, values] : result.parts) {
    hash.add({static_cast<const char*>(values.data()), values.size_bytes()});
  }
  std::ostringstream out;
  out << std::hex << hash.value();
  return out.str();
}

std::vector<Case> golden_cases() {
  std::vector<Case> cases = odd_cases();
  for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* dtype : {" f32", " f64", " f16", " b16"}) {
      for (const char* rest : {" L2 U33 I17 B7 T5", " L1 U16 I16 B3 T4 skip lengths bi"}) {
        cases.push_back(parse_case(mode + std::string(rest) + dtype, "kept"));
      }
    }
    cases.push_back(parse_case(mode + std::string(" L1 U130 I33 B3 T5 f32"), "large"));
    for (const char* arithmetic :
         {" bf16", " stored_float16", " stored_bfloat16", " stored_int8"}) {
      for (const char* rest : {" L2 U33 I17 B7 T5 f32", " L1 U16 I16 B3 T4 skip lengths bi f16"}) {
        cases.push_back(parse_case(mode + std::string(rest) + arithmetic, "kept"));
      }
    }
  }
  cases.push_back(parse_case("lstm L2 U33 I17 B3 T5 P7 f32 bf16", "projection"));
  cases.push_back(parse_case("lstm L2 U33 I17 B3 T5 P7 f32 stored_int8", "projection"));
  return cases;
}

std::map<std::string, std::string> computed_hashes() {
  std::map<std::string, std::string> hashes;
  for (const Case& c : golden_cases()) {
    const Data d = make_data(c);
    // bf16 is two functions; the one that every machine has is kept.
    const ForcedIsa forced(cpu().math_kind(c.spec) == "amx" ? "scalar" : cpu_isa());
    hashes[c.text] = hash_of(run_all(cpu(), c, d));
  }
  return hashes;
}

std::map<std::string, std::string> kept_hashes() {
  std::map<std::string, std::string> hashes;
  std::ifstream file(kFile);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    hashes[line.substr(space + 1)] = line.substr(0, space);
  }
  return hashes;
}

TEST(Golden, HashesOfResultsAreThoseKept) {
  const auto computed = computed_hashes();
  if (const char* text = std::getenv("OPENRNN_REGENERATE_GOLDEN"); text && *text == '1') {
    std::ofstream file(kFile);
    file << "# FNV-1a of the cpu engine's results: inference, training and gradients of a case.\n";
    for (const auto& [name, hash] : computed) file << hash << " " << name << "\n";
    ASSERT_TRUE(file.good()) << "cannot write " << kFile;
    GTEST_SKIP() << "wrote " << kFile;
  }
  const auto kept = kept_hashes();
  EXPECT_EQ(kept.size(), computed.size()) << kFile;
  for (const auto& [name, hash] : computed) {
    const auto at = kept.find(name);
    EXPECT_EQ(at == kept.end() ? "missing" : at->second, hash) << name;
  }
}

TEST(Golden, HashNoticesOneBit) {
  const Case c = golden_cases().front();
  Result result = run_all(cpu(), c, make_data(c));
  const std::string before = hash_of(result);
  EXPECT_EQ(hash_of(result), before);
  static_cast<unsigned char*>(result.parts.back().second.data())[0] ^= 1;
  EXPECT_NE(hash_of(result), before);
}

}  // namespace
}  // namespace openrnn::conformance
