// SPDX-License-Identifier: Apache-2.0
// For tests against dishonest peers: what a network or a dishonest party could do to a message.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "crypto/prg.h"

namespace privml::spdz2k::testing {

enum class Alteration {
  none,
  first_bit,  // flipped
  inner_bit,  // flipped, somewhere
  add_one,    // to every word of 64 bits, as a biased generator would
  zeros,      // in place of everything
  noise,      // random bytes in place of everything
  replay,     // an earlier message of the same length in its place, else its own first half twice
  exchange,   // its halves exchanged
  reorder,    // sent after the next message
  repeat,     // sent twice
  truncate,   // its last byte missing
  withhold,   // not sent, and nothing after it
};

inline constexpr std::array kAlterations{
    Alteration::first_bit, Alteration::inner_bit, Alteration::add_one,  Alteration::zeros,
    Alteration::noise,     Alteration::replay,    Alteration::exchange, Alteration::reorder,
    Alteration::repeat,    Alteration::truncate,  Alteration::withhold};

inline const char* name_of(Alteration alteration) {
  constexpr std::array names{"nothing",
                             "first bit flipped",
                             "inner bit flipped",
                             "words plus one",
                             "zeros",
                             "noise",
                             "replayed",
                             "halves exchanged",
                             "reordered",
                             "sent twice",
                             "last byte missing",
                             "withheld"};
  return names[static_cast<int>(alteration)];
}

// Whether a peer may have to wait for its deadline to notice.
inline bool may_stall(Alteration alteration) {
  return alteration == Alteration::reorder || alteration == Alteration::truncate ||
         alteration == Alteration::withhold;
}

// What becomes of the bytes of message `number`, of at least one byte, after those of `earlier`;
// when a message is sent is for the channel to alter.
inline void alter_bytes(Alteration alteration, i64 number, std::span<const std::vector<u8>> earlier,
                        std::vector<u8>& message) {
  const i64 size = std::ssize(message), half = size / 2;
  switch (alteration) {
    case Alteration::none:
    case Alteration::reorder:
    case Alteration::withhold:
      return;
    case Alteration::first_bit:
      message[0] ^= 1;
      return;
    case Alteration::inner_bit: {
      const i64 bit = (number * 977 + 331) % (8 * size);
      message[bit / 8] ^= static_cast<u8>(1 << bit % 8);
      return;
    }
    case Alteration::add_one:
      for (i64 i = 0; i < size; i += 8) {
        for (i64 j = i; j < std::min(i + 8, size) && ++message[j] == 0; ++j) {
        }
      }
      return;
    case Alteration::zeros:
      std::fill(message.begin(), message.end(), u8{0});
      return;
    case Alteration::noise:
      crypto::Prg({static_cast<u64>(number), 0x6e6f697365}).fill_bytes(message);
      return;
    case Alteration::replay:
      for (auto before = earlier.rbegin(); before != earlier.rend(); ++before) {
        if (before->size() == message.size() && *before != message) {
          message = *before;
          return;
        }
      }
      std::copy(message.begin(), message.begin() + half, message.begin() + half);
      return;
    case Alteration::exchange:
      std::rotate(message.begin(), message.begin() + half, message.end());
      return;
    case Alteration::repeat:
      message.insert(message.end(), message.begin(), message.begin() + size);
      return;
    case Alteration::truncate:
      message.pop_back();
  }
}

}  // namespace privml::spdz2k::testing
