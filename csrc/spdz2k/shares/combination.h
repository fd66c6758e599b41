// SPDX-License-Identifier: Apache-2.0
// Random subset sums of many words, and the coefficients of random sums of these sums: the local
// part of a MAC check (check.h).
#pragma once

#include <array>

#include "base/types.h"

namespace privml::spdz2k {

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

}  // namespace privml::spdz2k
