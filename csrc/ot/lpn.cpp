// SPDX-License-Identifier: Apache-2.0
#include "ot/lpn.h"

#include <array>

#include "base/error.h"
#include "ot/field.h"

namespace privml::ot {
namespace {

typedef u32 Word __attribute__((may_alias));
constexpr crypto::Block kAllBits{~u64{0}, ~u64{0}};
constexpr crypto::Block kAllButLowest{~u64{1}, ~u64{0}};
constexpr u64 kNoHole = ~u64{0};

}  // namespace

LpnCode::LpnCode(crypto::Block seed, i64 secret, crypto::AesBackend backend)
    : generator_(seed, backend), length_(static_cast<u64>(secret)) {
  expect(secret > 0 && secret < i64{1} << 28, "LpnCode: length out of range");
}

void LpnCode::add(u64 matrix, i64 first, const crypto::Block* secret, crypto::Block* rows,
                  i64 count) const {
  add_rows(matrix, first, secret, {kAllBits, kNoHole}, rows, count);
}

void LpnCode::encode(u64 matrix, i64 first, const crypto::Block* secret, u64 hole,
                     crypto::Block* rows, i64 count) const {
  add_rows(matrix, first, secret, {kAllButLowest, hole}, rows, count);
}

void LpnCode::add_rows(u64 matrix, i64 first, const crypto::Block* secret, const RowNoise& noise,
                       crypto::Block* rows, i64 count) const {
  expect(first % kRowMultiple == 0 && count % kRowMultiple == 0,
         "LpnCode: rows come in multiples of 64");
  // Loads are independent, so the processor overlaps those of many rows by itself; prefetching and
  // sorting them were measured and gain nothing.
  crypto::Block counter{static_cast<u64>(first / kRowMultiple * kIndexBlocks), matrix};
  if (const OtKernels* kernels = ot_kernels(generator_.backend())) {
    const LpnRows code{generator_.round_keys(), counter, length_, secret};
    return kernels->add_rows(code, noise, rows, count);
  }
  alignas(64) std::array<crypto::Block, kIndexBlocks> random;
  const auto* words = reinterpret_cast<const Word*>(random.data());
  for (i64 done = 0; done < count; done += kRowMultiple, counter.lo += kIndexBlocks) {
    generator_.encrypt_counter(counter, random.data(), kIndexBlocks);
    for (i64 i = done; i < done + kRowMultiple; ++i) {
      rows[i] = (rows[i] & noise.keep) ^ crypto::select(static_cast<u64>(i) == noise.hole, {1, 0});
      const Word* word = words + (i - done) * kWeight;
      // Random 32-bit words to places: the upper half of their product with the length.
      for (int j = 0; j < kWeight; ++j) rows[i] ^= secret[word[j] * length_ >> 32];
    }
  }
}

}  // namespace privml::ot
