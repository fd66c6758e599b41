// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/digit_transfer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/pack.h"

namespace privml::twopc {
namespace {

constexpr i64 kTile = 64;  // instances whose pads are in the cache at once; a multiple of 8

// For each bit b of an index: the slots whose index has it set; if a word has two halves, the
// second repeats the first.
template <int m, bool two_halves>
constexpr std::array<u64, m> slots_by_bit() {
  std::array<u64, m> slots{};
  for (int b = 0; b < m; ++b) {
    for (int j = 0; j < 1 << m; ++j) slots[b] |= static_cast<u64>(j >> b & 1) << j;
    if constexpr (two_halves) slots[b] |= slots[b] << (1 << m);
  }
  return slots;
}

// A bit over all slots.
constexpr u64 spread(u64 bit, u64 slots) { return slots & (u64{0} - bit); }

// What the functions on one digit and one tile work on. Pads of instance i and bit b of the number
// stand at [i * bits + b].
struct DigitTile {
  i64 count;
  int bits;
  int offset;
  const crypto::Block* pads0;
  const crypto::Block* pads1;
  const u64* numbers;      // own numbers
  const u64* corrections;  // chooser's digit ^ the correlations' own choices
  int digit;
  u64* words;
  u8* greater;
  u8* equal;
};

// A word without the slots 0 of its halves, which are zero; and back.
template <int m, bool two_halves>
constexpr u64 without_first(u64 word) {
  constexpr int slots = 1 << m;
  if constexpr (two_halves) {
    return (word & low_mask(slots)) >> 1 | word >> (slots + 1) << (slots - 1);
  } else {
    return word >> 1;
  }
}

template <int m, bool two_halves>
constexpr u64 with_first(u64 word) {
  constexpr int slots = 1 << m;
  if constexpr (two_halves) {
    return (word & low_mask(slots - 1)) << 1 | word >> (slots - 1) << (slots + 1);
  } else {
    return word << 1;
  }
}

// The answers of slot 0 under their pads are the sender's shares, and mask the other slots.
template <int m, bool greater, bool equality>
void make_words(const DigitTile& tile) {
  constexpr int slots = 1 << m;
  constexpr u64 all = low_mask(slots);
  constexpr bool both = greater && equality;
  constexpr std::array<u64, m> with_bit = slots_by_bit<m, both>();
  for (i64 i = 0; i < tile.count; ++i) {
    const crypto::Block* const pad0 = tile.pads0 + i * tile.bits + tile.offset;
    const crypto::Block* const pad1 = tile.pads1 + i * tile.bits + tile.offset;
    const u64 flips = tile.corrections[i] >> tile.offset;
    const u64 equal = u64{1} << (tile.numbers[i] >> tile.offset & (slots - 1));
    u64 word = equality ? equal : equal - 1;
    if constexpr (both) word = word << slots | (equal - 1);
    for (int b = 0; b < m; ++b) {
      const u64 flipped = u64{0} - (flips >> b & 1);
      const u64 second = with_bit[b] ^ flipped;
      word ^= pad0[b].lo ^ ((pad0[b].lo ^ pad1[b].lo) & second);
    }
    const u64 mask = word & 1;
    word ^= spread(mask, all);
    if constexpr (greater) {
      tile.greater[i] = static_cast<u8>(mask);
    } else {
      tile.equal[i] = static_cast<u8>(mask);
    }
    if constexpr (both) {
      tile.equal[i] = static_cast<u8>(word >> slots & 1);
      word ^= spread(tile.equal[i], all << slots);
    }
    tile.words[i] = without_first<m, both>(word);
  }
}

// Reads the chooser's slot of a word.
template <int m, bool greater, bool equality>
void pick(u64 word, const DigitTile& tile, i64 i, u8 keep) {
  constexpr int slots = 1 << m;
  word >>= tile.numbers[i] >> tile.offset & (slots - 1);
  if constexpr (greater) tile.greater[i] = (tile.greater[i] & keep) ^ (word & 1);
  if constexpr (greater && equality) word >>= slots;
  if constexpr (equality) tile.equal[i] = (tile.equal[i] & keep) ^ (word & 1);
}

template <int m, bool greater, bool equality>
void pick_pads(const DigitTile& tile) {
  for (i64 i = 0; i < tile.count; ++i) {
    const crypto::Block* const pad = tile.pads0 + i * tile.bits + tile.offset;
    u64 word = 0;
    for (int b = 0; b < m; ++b) word ^= pad[b].lo;
    pick<m, greater, equality>(word, tile, i, 0);
  }
}

template <int m, bool greater, bool equality>
void pick_words(const DigitTile& tile) {
  for (i64 i = 0; i < tile.count; ++i)
    pick<m, greater, equality>(with_first < m, greater && equality > (tile.words[i]), tile, i, 1);
}

struct DigitFunctions {
  void (*make_words)(const DigitTile&);
  void (*pick_pads)(const DigitTile&);
  void (*pick_words)(const DigitTile&);
};

template <int m, bool greater, bool equality>
constexpr DigitFunctions kFunctions{make_words<m, greater, equality>,
                                    pick_pads<m, greater, equality>,
                                    pick_words<m, greater, equality>};

template <bool greater, bool equality>
DigitFunctions functions_for(int m) {
  switch (m) {
    case 1:
      return kFunctions<1, greater, equality>;
    case 2:
      return kFunctions<2, greater, equality>;
    case 3:
      return kFunctions<3, greater, equality>;
    case 4:
      return kFunctions<4, greater, equality>;
    case 5:
      return kFunctions<5, greater, equality>;
    default:
      break;
  }
  // The word of a digit of 6 bits holds one answer only.
  if constexpr (!(greater && equality)) {
    if (m == 6) return kFunctions<6, greater, equality>;
  }
  throw InvalidArgument("digit transfer: the messages of a digit must fit a word");
}

DigitFunctions functions_for(const Digit& digit) {
  if (!digit.greater) return functions_for<false, true>(digit.bits);
  return digit.equality ? functions_for<true, true>(digit.bits)
                        : functions_for<true, false>(digit.bits);
}

int number_bits(const ComparisonPlan& plan) {
  return plan.digits.back().offset + plan.digits.back().bits;
}

// Calls work(digit index, tile) on every digit of one tile of instances.
template <class Work>
void for_each_digit(const ComparisonPlan& plan, DigitPlanes planes, i64 begin, DigitTile tile,
                    Work&& work) {
  for (int d = 0; d < static_cast<int>(plan.digits.size()); ++d) {
    const Digit& digit = plan.digits[d];
    tile.digit = d;
    tile.offset = digit.offset;
    tile.greater = planes.greater + d * planes.stride + begin;
    tile.equal = planes.equal + d * planes.stride + begin;
    work(digit, tile);
  }
}

}  // namespace

void choose_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> chooser,
                   DigitPlanes planes) {
  const int bits = number_bits(plan);
  WipedVector<crypto::Block> t(kTile * bits);
  std::array<u64, kTile> corrections;
  std::vector<u8> packed(packed_bytes(kTile, bits));
  for (i64 begin = 0; begin < std::ssize(chooser); begin += kTile) {
    const i64 count = std::min(kTile, std::ssize(chooser) - begin);
    const u64* const numbers = chooser.data() + begin;
    ot::draw_as_receiver(party, t.data(), count * bits);
    for (i64 i = 0; i < count; ++i) {
      u64 own = 0;
      for (int b = 0; b < bits; ++b) own |= (t[i * bits + b].lo & 1) << b;
      corrections[i] = numbers[i] ^ own;
    }
    pack(corrections.data(), count, bits, packed.data());
    party.channel.write({packed.data(), static_cast<std::size_t>(packed_bytes(count, bits))});
    party.hash.hash(t.data(), t.data(), count * bits);
    DigitTile tile{};
    tile.count = count;
    tile.bits = bits;
    tile.pads0 = t.data();
    tile.numbers = numbers;
    for_each_digit(plan, planes, begin, tile, [](const Digit& digit, const DigitTile& one) {
      functions_for(digit).pick_pads(one);
    });
  }
}

void send_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> sender,
                 DigitPlanes planes) {
  const int bits = number_bits(plan);
  const i64 n = std::ssize(sender);
  const crypto::Block delta = party.sender.delta();
  WipedVector<crypto::Block> pads(2 * kTile * bits);
  std::array<u64, kTile> corrections, words;
  std::vector<u8> choices(packed_bytes(n, bits));
  std::vector<u8> message(digit_message_bytes(plan, kTile));
  party.channel.read(choices);
  for (i64 begin = 0; begin < n; begin += kTile) {
    const i64 count = std::min(kTile, n - begin);
    crypto::Block* const pads0 = pads.data();
    crypto::Block* const pads1 = pads0 + count * bits;
    ot::draw_as_sender(party, pads0, count * bits);
    for (i64 i = 0; i < count * bits; ++i) pads1[i] = pads0[i] ^ delta;
    party.hash.hash(pads0, pads0, 2 * count * bits);
    unpack(choices.data() + packed_bytes(begin, bits), count, bits, corrections.data());
    DigitTile tile{};
    tile.count = count;
    tile.bits = bits;
    tile.pads0 = pads0;
    tile.pads1 = pads1;
    tile.numbers = sender.data() + begin;
    tile.corrections = corrections.data();
    tile.words = words.data();
    u8* end = message.data();
    for_each_digit(plan, planes, begin, tile, [&](const Digit& digit, const DigitTile& one) {
      functions_for(digit).make_words(one);
      pack(words.data(), count, digit.word_bits(), end);
      end += packed_bytes(count, digit.word_bits());
    });
    party.channel.write({message.data(), static_cast<std::size_t>(end - message.data())});
  }
}

void receive_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> chooser,
                    DigitPlanes planes) {
  std::array<u64, kTile> words;
  std::vector<u8> message(digit_message_bytes(plan, kTile));
  for (i64 begin = 0; begin < std::ssize(chooser); begin += kTile) {
    const i64 count = std::min(kTile, std::ssize(chooser) - begin);
    party.channel.read(
        {message.data(), static_cast<std::size_t>(digit_message_bytes(plan, count))});
    DigitTile tile{};
    tile.count = count;
    tile.numbers = chooser.data() + begin;
    tile.words = words.data();
    const u8* next = message.data();
    for_each_digit(plan, planes, begin, tile, [&](const Digit& digit, const DigitTile& one) {
      unpack(next, count, digit.word_bits(), words.data());
      next += packed_bytes(count, digit.word_bits());
      functions_for(digit).pick_words(one);
    });
  }
}

i64 digit_choice_bytes(const ComparisonPlan& plan, i64 n) {
  return packed_bytes(n, number_bits(plan));
}

i64 digit_message_bytes(const ComparisonPlan& plan, i64 n) {
  i64 bytes = 0;
  for (const Digit& digit : plan.digits) bytes += packed_bytes(n, digit.word_bits());
  return bytes;
}

i64 digit_correlations(const ComparisonPlan& plan) { return number_bits(plan); }

}  // namespace privml::twopc
