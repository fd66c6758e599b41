// SPDX-License-Identifier: Apache-2.0
// The 128 rows of SoftSpoken OT, slice by slice: every element of the offset contributes the planes
// of one small-field VOLE (Roy, Crypto 2022, section 3).
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/vole_fold.h"

namespace privml::ot {

inline constexpr i64 kSoftSpokenRows = 128;
inline constexpr int kSoftSpokenMaxDegree = 10;

// Bits [first_bit, first_bit + bits) of the offset: one element of F_{2^k}; the last may be
// shorter.
struct OffsetElement {
  int first_bit;
  int bits;
  u64 value(crypto::Block delta) const;
};
std::vector<OffsetElement> offset_elements(int k);

class SoftSpokenRows {
 public:
  explicit SoftSpokenRows(int k, crypto::AesBackend backend = crypto::best_aes_backend());
  SoftSpokenRows(const SoftSpokenRows&) = delete;

  const std::vector<OffsetElement>& elements() const { return elements_; }
  i64 count() const { return std::ssize(elements_); }
  // The seeds of the next element: 2^bits of them. At the side that lacks one, leaf 0 is any block:
  // it enters no plane.
  void add_seeds(const WipedVector<crypto::Block>& leaves);

  // Columns made at once: their rows (128 KB) stay in the second-level cache, and a key schedule is
  // read once for all of them.
  static constexpr i64 kSlice = 8192;
  // Fills all rows with the next `blocks` * 128 columns, at most a slice. element(i, u) is called
  // when the rows of element i stand; u is the XOR of all its seeds' rows.
  template <class Each>
  void expand(i64 blocks, Each&& each) {
    const crypto::Aes128* seeds = seeds_.data();
    for (i64 i = 0; i < count(); ++i) {
      expand_element(i, seeds, blocks);
      seeds += i64{1} << elements_[i].bits;
      each(i, static_cast<const crypto::Block*>(totals_.data()));
    }
    position_ += static_cast<u64>(blocks);
  }

  // Row r; rows are stride() blocks apart.
  crypto::Block* row(i64 r) { return rows_.data() + r * stride_; }
  i64 stride() const { return stride_; }
  // Columns [128 * first, 128 * blocks) as blocks.
  void transpose(i64 first, i64 blocks, crypto::Block* out);

 private:
  void expand_element(i64 i, const crypto::Aes128* seeds, i64 blocks);

  std::vector<OffsetElement> elements_;
  crypto::AesBackend backend_;
  i64 stride_;
  std::vector<crypto::Aes128> seeds_;
  u64 position_ = 0;  // in blocks of 128 columns
  WipedVector<crypto::Block> scratch_;
  WipedVector<crypto::Block> totals_;
  WipedVector<crypto::Block> rows_;
};

// out = a ^ b, and row ^= bit * other without a branch, for `blocks` blocks.
void xor_blocks(const crypto::Block* a, const crypto::Block* b, i64 blocks, crypto::Block* out);
void xor_selected(u8 bit, const crypto::Block* other, i64 blocks, crypto::Block* row);

}  // namespace privml::ot
