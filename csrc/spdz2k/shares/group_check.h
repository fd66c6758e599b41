// SPDX-License-Identifier: Apache-2.0
// One party's part of a MAC check (check.h) in one group of openings: random subset sums of its
// words, and random sums of these sums.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// The label of the commitments to the results.
inline constexpr const char* kCheckLabel = "privml spdz2k mac check";

// A separate seed for every group.
constexpr crypto::Block seed_of(crypto::Block common, int group) {
  return common ^ crypto::Block{static_cast<u64>(group), 0};
}

// How many masked sums a group of n openings has.
template <class R>
constexpr i64 masked_sums(i64 n) {
  return std::min<i64>(n, R::s);
}

// sums[l] += sum of words[i] over the i with bit l in subsets[i]; `sums` are as many as bits of a
// word. All public but the words, of which time does not depend.
void add_subset_sums(const u64* words, const u64* subsets, i64 n, u64* sums);
void add_subset_sums(const u32* words, const u32* subsets, i64 n, u32* sums);
void add_subset_sums(const u8* words, const u8* subsets, i64 n, u8* sums);

// The sum of weights[l] over the bits l of a subset: eight weights' sum must fit a word B.
template <class B>
class SubsetWeights {
 public:
  explicit SubsetWeights(const B* weights) {
    for (std::size_t byte = 0; byte < sizeof(B); ++byte) {
      for (int subset = 0; subset < 256; ++subset) {
        B sum = 0;
        for (int bit = 0; bit < 8; ++bit) {
          if (subset >> bit & 1) sum = static_cast<B>(sum + weights[8 * byte + bit]);
        }
        sums_[byte][subset] = sum;
      }
    }
  }
  template <class W>
  W of(B subset) const {
    W sum = 0;
    for (std::size_t byte = 0; byte < sizeof(B); ++byte) {
      sum = static_cast<W>(sum + sums_[byte][static_cast<u8>(subset >> 8 * byte)]);
    }
    return sum;
  }

 private:
  std::array<std::array<B, 256>, sizeof(B)> sums_;
};

// W are the words of the group's shares, `bits` its modulus.
template <class R, class W>
class GroupCheck {
 public:
  using BitWord = typename R::BitWord;

  // `subsets` is the first seed of this group, not used if n <= s. Draws the masks.
  GroupCheck(Session<R>& session, ShareView<W> slots, int bits, crypto::Block subsets)
      : slots_(slots),
        bits_(bits),
        alpha_(static_cast<W>(session.alpha())),
        subsets_(subsets),
        masks_(masked_sums<R>(slots.size())),
        sums_(masks_.size()) {
    session.supply().randoms(masks_);
    if (each_by_itself()) {
      for (i64 i = 0; i < slots.size(); ++i) sums_[i] = upper(i);
    } else {
      std::vector<BitWord> words(kBlock);
      in_blocks([&](i64 first, i64 count, const BitWord* subset) {
        for (i64 i = 0; i < count; ++i) words[i] = upper(first + i);
        add_subset_sums(words.data(), subset, count, sums_.data());
      });
    }
    for (i64 l = 0; l < masks_.size(); ++l) {
      sums_[l] = reduced(static_cast<BitWord>(sums_[l] + static_cast<BitWord>(masks_.value[l])));
    }
  }

  // This party's parts of the masked sums.
  const std::vector<BitWord>& masked() const { return sums_; }

  // z^j from the peer's parts of the masked sums and the second seed.
  W result(const BitWord* theirs, crypto::Block seed) const {
    const std::vector<BitWord> weights = draw_weights(seed);
    W sum = 0;
    for (i64 l = 0; l < masks_.size(); ++l) {
      const BitWord opened = reduced(static_cast<BitWord>(sums_[l] + theirs[l]));
      const W difference =
          static_cast<W>(static_cast<W>(masks_.mac[l]) - product(alpha_, W{opened}));
      sum = static_cast<W>(sum + product(W{weights[l]}, static_cast<W>(difference << bits_)));
    }
    if (each_by_itself()) {
      for (i64 i = 0; i < slots_.size(); ++i) {
        sum = static_cast<W>(sum + product(W{weights[i]}, W{slots_.mac[i]}));
      }
    } else {
      const SubsetWeights<BitWord> weight(weights.data());
      in_blocks([&](i64 first, i64 count, const BitWord* subset) {
        const W* residual = slots_.mac.data() + first;
        for (i64 i = 0; i < count; ++i) {
          sum = static_cast<W>(sum + product(weight.template of<W>(subset[i]), residual[i]));
        }
      });
    }
    return low_bits(sum, modulus());
  }

  // Bits of the group's shares: b + s, or s for shared bits.
  int modulus() const { return std::min(bits_ + R::s, kWordBits<W>); }

 private:
  static constexpr i64 kBlock = 2048;

  bool each_by_itself() const { return slots_.size() <= R::s; }
  BitWord upper(i64 i) const { return static_cast<BitWord>(slots_.value[i] >> bits_); }
  BitWord reduced(BitWord word) const { return low_bits(word, modulus() - bits_); }

  template <class Function>
  void in_blocks(Function&& function) const {
    crypto::Prg prg(subsets_);
    std::vector<BitWord> subset(kBlock);
    for (i64 first = 0; first < slots_.size(); first += kBlock) {
      const i64 count = std::min(kBlock, slots_.size() - first);
      prg.fill_bytes({reinterpret_cast<u8*>(subset.data()), count * sizeof(BitWord)});
      function(first, count, subset.data());
    }
  }

  // Mod 2^s for shared bits, whose sums matter mod 2^s; else three bits less, so that the sum of
  // eight is exact.
  std::vector<BitWord> draw_weights(crypto::Block seed) const {
    std::vector<BitWord> weights(masks_.size());
    crypto::Prg(seed).fill_bytes(
        {reinterpret_cast<u8*>(weights.data()), weights.size() * sizeof(BitWord)});
    if (sizeof(W) > sizeof(BitWord)) {
      for (BitWord& weight : weights) weight >>= 3;
    }
    return weights;
  }

  ShareView<W> slots_;
  int bits_;
  W alpha_;
  crypto::Block subsets_;
  WordShares<R> masks_;
  std::vector<BitWord> sums_;
};

}  // namespace privml::spdz2k
