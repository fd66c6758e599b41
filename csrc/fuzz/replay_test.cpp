// SPDX-License-Identifier: Apache-2.0
// The fuzzing corpus and a few random inputs through every target, with any compiler: what a fuzzer
// has found once stays found, and the targets do what they say.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/error.h"
#include "fuzz/scripted.h"
#include "fuzz/targets.h"

namespace privml::fuzz {
namespace {

using Input = std::vector<u8>;

std::filesystem::path corpus_of(const Target& target) {
  return std::filesystem::path(PRIVML_FUZZ_CORPUS) / target.name;
}

Input contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

i64 peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class FuzzTargets : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzTargets, TakeTheirCorpus) {
  const i64 before = peak_kilobytes();
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus_of(GetParam()))) {
    SCOPED_TRACE(entry.path().filename().string());
    EXPECT_NO_THROW(GetParam().run(contents(entry.path())));
    ++count;
  }
  EXPECT_GT(count, 0);
  EXPECT_LT(peak_kilobytes() - before, 512 * 1024);
}

TEST_P(FuzzTargets, TakeRandomInputs) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i) {
    Input input(1 + random() % 60);
    for (u8& byte : input) byte = static_cast<u8>(random());
    input[0] = static_cast<u8>(4 * i + random() % 4);  // every dialogue
    EXPECT_NO_THROW(GetParam().run(input)) << i;
  }
}

// Nothing would be tested if a party gave up before the change, or never read to the end.
TEST_P(FuzzTargets, CompleteWithAnHonestPeerAndMissItsLastByte) {
  for (const Dialogue& dialogue : GetParam().dialogues()) {
    for (const int rank : {0, 1}) {
      Input received = dialogue.received(rank);
      EXPECT_EQ(dialogue.run_alone(rank, received), Ending::completed);
      if (received.empty()) continue;
      received.pop_back();
      EXPECT_EQ(dialogue.run_alone(rank, received), Ending::refused);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, FuzzTargets, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FuzzDialogue, PassesOnWhatAPeerMayNotCause) {
  const Dialogue dialogue([](net::Channel& channel, int rank) {
    u8 length = 1;
    if (rank == 0) return channel.write({&length, 1});
    channel.read({&length, 1});
    if (length > 100) throw std::length_error("a length field was believed");
    if (length > 50) throw ProtocolError("a wrong length");
  });
  EXPECT_EQ(dialogue.run_alone(1, Input{50}), Ending::completed);
  EXPECT_EQ(dialogue.run_alone(1, Input{51}), Ending::refused);
  EXPECT_EQ(dialogue.run_alone(1, {}), Ending::refused);
  EXPECT_THROW(dialogue.run_alone(1, Input{101}), std::length_error);
  EXPECT_THROW(run_any({&dialogue, 1}, Input{3, 101}), std::length_error);
  EXPECT_THROW(run_any({&dialogue, 1}, Input{1, 0, 0, 0, 0, 0, 0xfe, 0, 0}), std::length_error);
  EXPECT_NO_THROW(run_any({&dialogue, 1}, Input{1, 0, 0, 0, 0, 0, 2, 0, 0}));
}

TEST(FuzzScript, ChangesWhatItIsTold) {
  const Input script{1, 2, 3, 4};
  EXPECT_EQ(edited(script, {}), script);
  EXPECT_EQ(edited(script, Input{0, 0, 1, 0, 0, 4, 0, 0}), (Input{1, 6, 3, 4}));
  EXPECT_EQ(edited(script, Input{1, 1, 1, 0, 0, 9, 0, 0}), (Input{1, 9, 9, 4}));
  EXPECT_EQ(edited(script, Input{4, 1, 1, 0, 0, 9, 0, 0}), (Input{1, 9, 9, 2, 3, 4}));
  EXPECT_EQ(edited(script, Input{5, 9, 2, 0, 0, 0, 0, 0}), (Input{1, 2}));
  EXPECT_EQ(edited(script, Input{6, 1, 2, 0, 0, 0, 0, 0}), (Input{1, 2, 1, 2}));
  EXPECT_EQ(edited(script, Input{7, 0, 1, 0, 0, 0, 0, 0}), (Input{1}));
  EXPECT_EQ(edited({}, Input{4, 0, 1, 0, 0, 9, 0, 0}), (Input{9}));
}

}  // namespace
}  // namespace privml::fuzz
