// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/transpose.h"

namespace privml::ot {
namespace {

i64 whole_vectors(i64 blocks) { return ceil_div(blocks, kFoldBlocks) * kFoldBlocks; }

}  // namespace

u64 OffsetElement::value(crypto::Block delta) const {
  u64 value = 0;
  for (int b = 0; b < bits; ++b) {
    const int bit = first_bit + b;
    value |= ((bit < 64 ? delta.lo >> bit : delta.hi >> (bit - 64)) & 1) << b;
  }
  return value;
}

std::vector<OffsetElement> offset_elements(int k) {
  expect(1 <= k && k <= kSoftSpokenMaxDegree, "SoftSpoken OT: k must be in 1..10");
  std::vector<OffsetElement> elements;
  for (int bit = 0; bit < kSoftSpokenRows; bit += k) {
    elements.push_back({bit, std::min<int>(k, kSoftSpokenRows - bit)});
  }
  return elements;
}

SoftSpokenRows::SoftSpokenRows(int k, crypto::AesBackend backend)
    : elements_(offset_elements(k)),
      backend_(backend),

      // One vector more than the columns need: rows a power of two apart would fall into the same
      // few sets of the cache.
      stride_(kSlice / 128 + kFoldBlocks),
      scratch_((i64{1} << kFoldMaxDigit) * stride_),
      totals_((i64{1} << std::max(0, k - kFoldMaxDigit)) * stride_),
      rows_(kSoftSpokenRows * stride_) {
  i64 seeds = 0;
  for (const OffsetElement& element : elements_) seeds += i64{1} << element.bits;
  seeds_.reserve(seeds);
}

void SoftSpokenRows::add_seeds(const WipedVector<crypto::Block>& leaves) {
  for (crypto::Block leaf : leaves) seeds_.emplace_back(leaf, backend_);
}

void SoftSpokenRows::expand_element(i64 i, const crypto::Aes128* seeds, i64 blocks) {
  const i64 width = whole_vectors(blocks);
  crypto::Block* planes = row(elements_[i].first_bit);
  int bits = elements_[i].bits;
  // The lowest digit of x selects a row within a group, the next one a group of them, and so on.
  int digit = std::min(bits, kFoldMaxDigit);
  bits -= digit;
  for (i64 group = 0; group < i64{1} << bits; ++group, seeds += i64{1} << digit) {
    vole_expand(seeds, digit, position_, width, scratch_.data(), totals_.data() + group * width,
                {planes, stride_, group > 0});
  }
  while (bits > 0) {
    planes += digit * stride_;
    digit = std::min(bits, kFoldMaxDigit);
    bits -= digit;
    for (i64 group = 0; group < i64{1} << bits; ++group) {
      vole_fold(totals_.data() + (group << digit) * width, digit, width,
                totals_.data() + group * width, {planes, stride_, group > 0});
    }
  }
}

void SoftSpokenRows::transpose(i64 first, i64 blocks, crypto::Block* out) {
  transpose_128(row(0) + first, stride_, blocks - first, out);
}

PRIVML_TARGET_CLONES void xor_blocks(const crypto::Block* a, const crypto::Block* b, i64 blocks,
                                     crypto::Block* out) {
  for (i64 j = 0; j < blocks; ++j) out[j] = a[j] ^ b[j];
}

PRIVML_TARGET_CLONES void xor_selected(u8 bit, const crypto::Block* other, i64 blocks,
                                       crypto::Block* row) {
  for (i64 j = 0; j < blocks; ++j) row[j] ^= crypto::select(bit, other[j]);
}

}  // namespace privml::ot
