// SPDX-License-Identifier: Apache-2.0
#include "ot/pads.h"

#include <algorithm>

#include "ot/field.h"

namespace privml::ot {
namespace {

// Bit positions of the row whose entry has value `value` in the digit that starts at bit
// `first_bit`.
void mark_entries(TransferShape shape, int first_bit, int digit_bits, u64 value,
                  crypto::Block* mask) {
  for (u64 j = 0; j < static_cast<u64>(shape.messages()); ++j) {
    if ((j >> first_bit & low_mask(digit_bits)) != value) continue;
    for (i64 bit = j * shape.width; bit < static_cast<i64>(j + 1) * shape.width; ++bit) {
      crypto::Block& block = mask[bit / 128];
      (bit % 128 < 64 ? block.lo : block.hi) |= u64{1} << (bit % 64);
    }
  }
}

template <int M>
void digit_keys_send(const BlockVector* q, crypto::Block offset, i64 n, BlockVector* keys) {
  const BlockVector delta{offset.lo, offset.hi};
  const BlockVector delta_x = times_x(delta);
  const BlockVector delta_x1 = delta ^ delta_x;
  for (i64 i = 0; i < n; ++i) {
    for (int b = 0; b + 1 < M; b += 2) {
      const BlockVector key = q[b] ^ times_x(q[b + 1]);
      keys[0] = key;
      keys[1] = key ^ delta;
      keys[2] = key ^ delta_x;
      keys[3] = key ^ delta_x1;
      keys += 4;
    }
    if constexpr (M % 2 == 1) {
      keys[0] = q[M - 1];
      keys[1] = q[M - 1] ^ delta;
      keys += 2;
    }
    q += M;
  }
}

template <int M>
void digit_keys_receive(const BlockVector* t, i64 n, BlockVector* keys) {
  for (i64 i = 0; i < n; ++i) {
    for (int b = 0; b + 1 < M; b += 2) *keys++ = t[b] ^ times_x(t[b + 1]);
    if constexpr (M % 2 == 1) *keys++ = t[M - 1];
    t += M;
  }
}

// rows[i] = XOR over keys of hashes[i * Keys + key] & masks[key].
template <int Keys>
void fold_masked(const BlockVector* hashes, const BlockVector* masks, i64 n, BlockVector* rows) {
  for (i64 i = 0; i < n; ++i, hashes += Keys) {
    BlockVector row = hashes[0] & masks[0];
    for (int key = 1; key < Keys; ++key) row ^= hashes[key] & masks[key];
    rows[i] = row;
  }
}

template <int Keys>
void fold_plain(const BlockVector* hashes, i64 n, BlockVector* rows) {
  for (i64 i = 0; i < n; ++i, hashes += Keys) {
    BlockVector row = hashes[0];
    for (int key = 1; key < Keys; ++key) row ^= hashes[key];
    rows[i] = row;
  }
}

template <int M>
void fold_short_send(const crypto::Block* hashes, const crypto::Block* masks, i64 n,
                     crypto::Block* rows) {
  fold_masked<4 * (M / 2) + 2 * (M % 2)>(as_vectors(hashes), as_vectors(masks), n,
                                         as_vectors(rows));
}

template <int M>
void fold_short_receive(const crypto::Block* hashes, i64 n, crypto::Block* rows) {
  fold_plain<(M + 1) / 2>(as_vectors(hashes), n, as_vectors(rows));
}

// XOR over b of x^b * correlations[b].
crypto::Block combine(const crypto::Block* correlations, int m) {
  crypto::Block key = correlations[m - 1];
  for (int b = m - 2; b >= 0; --b) key = times_x(key) ^ correlations[b];
  return key;
}

// Calls f with m as a compile-time constant.
template <class F>
void with_constant(int m, F&& f) {
  switch (m) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    case 8:
      return f.template operator()<8>();
  }
}

}  // namespace

bool TransferShape::combined() const {
  // Rows of one or two messages need not be whole bytes; there the number of hash calls is the
  // same.
  if (fits_word()) return false;
  if (m < 3) return true;
  return messages() + 1 < (digit_keys() + digits()) * row_blocks();
}

DigitPads::DigitPads(TransferShape shape, crypto::Block delta, i64 max_instances)
    : shape_(shape),
      delta_(delta),
      masks_(shape.digit_keys() * shape.row_blocks()),
      keys_(max_instances * shape.digit_keys()),
      hashes_(max_instances * shape.digit_keys() * shape.row_blocks()) {
  std::fill(masks_.begin(), masks_.end(), crypto::kZeroBlock);
  crypto::Block* mask = masks_.data();
  for (int first = 0; first < shape.m; first += 2) {
    const int digit_bits = first + 1 < shape.m ? 2 : 1;
    for (u64 value = 0; value < u64{1} << digit_bits; ++value, mask += shape.row_blocks()) {
      mark_entries(shape, first, digit_bits, value, mask);
    }
  }
}

void DigitPads::send(const crypto::CorrelationRobustHash& hash, const crypto::Block* q, i64 n,
                     crypto::Block* rows) {
  const i64 keys = shape_.digit_keys(), blocks = shape_.row_blocks();
  with_constant(shape_.m, [&]<int M>() {
    digit_keys_send<M>(as_vectors(q), delta_, n, as_vectors(keys_.data()));
  });
  hash.expand(keys_.data(), n * keys, blocks, hashes_.data());
  if (blocks == 1) {
    return with_constant(
        shape_.m, [&]<int M>() { fold_short_send<M>(hashes_.data(), masks_.data(), n, rows); });
  }
  for (i64 i = 0; i < n; ++i) {
    for (i64 r = 0; r < blocks; ++r) {
      crypto::Block row{};
      for (i64 key = 0; key < keys; ++key) {
        row ^= hashes_[(i * keys + key) * blocks + r] & masks_[key * blocks + r];
      }
      rows[i * blocks + r] = row;
    }
  }
}

void DigitPads::receive(const crypto::CorrelationRobustHash& hash, const crypto::Block* t, i64 n,
                        crypto::Block* rows) {
  const i64 keys = shape_.digits(), blocks = shape_.row_blocks();
  with_constant(shape_.m, [&]<int M>() {
    digit_keys_receive<M>(as_vectors(t), n, as_vectors(keys_.data()));
  });
  hash.expand(keys_.data(), n * keys, blocks, hashes_.data());
  if (blocks == 1) {
    return with_constant(shape_.m,
                         [&]<int M>() { fold_short_receive<M>(hashes_.data(), n, rows); });
  }
  for (i64 i = 0; i < n; ++i) {
    for (i64 r = 0; r < blocks; ++r) {
      crypto::Block row{};
      for (i64 key = 0; key < keys; ++key) row ^= hashes_[(i * keys + key) * blocks + r];
      rows[i * blocks + r] = row;
    }
  }
}

WipedVector<crypto::Block> offset_multiples(crypto::Block delta, int m) {
  WipedVector<crypto::Block> multiples(i64{1} << m);
  crypto::Block power = delta;
  for (i64 have = 1; have < i64{1} << m; have *= 2, power = times_x(power)) {
    for (i64 j = 0; j < have; ++j) multiples[have + j] = multiples[j] ^ power;
  }
  return multiples;
}

void combined_pads_send(const crypto::CorrelationRobustHash& hash, const crypto::Block* q, i64 n,
                        int m, const crypto::Block* multiples, crypto::Block* pads) {
  const i64 messages = i64{1} << m;
  for (i64 i = 0; i < n; ++i) {
    const crypto::Block key = combine(q + i * m, m);
    for (i64 j = 0; j < messages; ++j) pads[i * messages + j] = key ^ multiples[j];
  }
  hash.hash(pads, pads, n * messages);
}

void combined_pads_receive(const crypto::CorrelationRobustHash& hash, const crypto::Block* t, i64 n,
                           int m, crypto::Block* pads) {
  for (i64 i = 0; i < n; ++i) pads[i] = combine(t + i * m, m);
  hash.hash(pads, pads, n);
}

}  // namespace privml::ot
