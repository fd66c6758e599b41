// SPDX-License-Identifier: Apache-2.0
// The noise of results of lattice-based products as it comes out, for tests and make prove.
//
// Method  messages stand 2^(dropped - 1) times higher in a ring that is wider by as many bits, with
//         ciphertexts and roundings as before: the bits of shares below the result are then noise
//         in units of the last place of c1. Weights are the most negative that their format allows,
//         and messages all ones, so that means of roundings add up.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "lattice/columns.h"
#include "lattice/packed.h"

namespace privml::lattice::testing {

struct NoiseSum {
  i64 count = 0;
  double sum = 0, squares = 0, largest = 0;
  void add(double noise) {
    ++count;
    sum += noise;
    squares += noise * noise;
    largest = std::max(largest, std::abs(noise));
  }
  double deviation() const { return std::sqrt(squares / static_cast<double>(count)); }
};

// What the bound takes the noise for: the deviation of a Gaussian with its tail; and the room.
struct NoiseBound {
  double deviation, room;
};

inline NoiseBound bound_of(const ColumnChoice& choice) {
  const double room = std::exp2(choice.dropped - 2);
  return {room / std::sqrt(2 * std::log(2.) * (1 - choice.log2_failure)), room};
}

// A choice whose shares show the noise that `choice` hides.
inline ColumnChoice showing_noise(ColumnChoice choice) {
  choice.dropped = 1;
  return choice;
}

// Adds the noises of shares whose sums are twice the result, which is `expected` times
// 2^(hidden - 1), and noise plus one: the 3/2 that are added, and half a unit that is rounded away
// on average.
inline void add_noises(const ColumnChoice& shown, int hidden, std::span<const u64> one,
                       std::span<const u64> other, std::span<const u64> expected, NoiseSum& sum) {
  for (size_t i = 0; i < one.size(); ++i) {
    const u64 noise = one[i] + other[i] - (expected[i] << hidden) - 1;
    sum.add(static_cast<double>(to_signed(noise, shown.share_bits())));
  }
}

inline Digest session_of(u64 seed) {
  Digest digest{};
  for (int i = 0; i < 8; ++i) digest[i] = static_cast<u8>(seed >> (8 * i));
  return digest;
}

// Of full polynomials.
inline void measure_columns(const ColumnChoice& choice, const ProductBounds& bounds, i64 outputs,
                            u64 seed, NoiseSum& sum) {
  const ColumnChoice shown = showing_noise(choice);
  const i64 n = choice.set.n;
  const u64 message = low_mask(choice.ring_bits()) << (choice.dropped - 1);
  const std::vector<u64> row(n, message), weights(outputs * bounds.inner, u64{0} - bounds.weight);
  crypto::Prg client({seed, 1}), owner({seed, 2});
  KeyOwner key(choice.set, session_of(seed), client);
  std::vector<u8> p0(key_bytes(choice.set)), upload(upload_bytes(shown, n));
  key.write_key(p0);
  const crypto::Block blinding = owner.next_block();
  Evaluator evaluator(shown, {outputs, bounds.inner}, n, blinding, p0);
  for (i64 k = 0; k < bounds.inner; ++k) {
    key.encrypt(k, 1, shown, row, upload);
    evaluator.read_ciphertext(k, upload);
  }
  const i64 half = halves_bytes(shown, 1);
  std::vector<u8> c1(outputs * half);
  std::vector<u64> theirs(outputs * n), mine(n);
  const WeightRows rows{weights, 0, outputs, bounds.weight};
  HalvesMaker(shown, session_of(seed), bounds.inner, blinding).write(rows, c1);
  evaluator.answer(rows, theirs);
  const std::vector<u64> expected(n, static_cast<u64>(bounds.inner) * bounds.weight);
  for (i64 j = 0; j < outputs; ++j) {
    key.shares_of(1, shown, Bytes(c1).subspan(j * half, half), mine);
    add_noises(shown, choice.dropped, mine, std::span(theirs).subspan(j * n, n), expected, sum);
  }
}

// Of one full answer for each message.
inline void measure_packed(const PackedChoice& choice, const ProductBounds& bounds,
                           const SwitchingSet& set, i64 messages, u64 seed, NoiseSum& sum) {
  PackedChoice shown = choice;
  shown.columns = showing_noise(choice.columns);
  const i64 gap = choice.gap(), rows = choice.columns.set.n / gap;
  const PackedShape shape = matrix_product(rows, bounds.inner, gap, bounds.weight);
  const u64 one = low_mask(choice.columns.ring_bits()) << (choice.columns.dropped - 1);
  const std::vector<u64> message(bounds.inner * rows, one);
  const std::vector<u64> weights(gap * bounds.inner, u64{0} - bounds.weight);
  crypto::Prg client({seed, 1}), owner({seed, 2});
  const Digest digest = session_of(seed);
  KeyOwner key(kPackedSet, digest, client);
  std::vector<u8> keys(switching_bytes(set)), upload(packed_upload_bytes(shown, shape));
  write_switching_keys(key, digest, set, keys);
  const SwitchingKeys switching(digest, set, keys);
  std::vector<u8> answer(packed_answer_bytes(shown));
  std::vector<u64> mine(gap * rows), theirs(gap * rows);
  const std::vector<u64> expected(gap * rows, static_cast<u64>(bounds.inner) * bounds.weight);
  for (i64 i = 0; i < messages; ++i) {
    write_packed(key, digest, shown, shape, {i, 0}, message, upload);
    const PackedEvaluator evaluator(switching, shown, shape, {i, 0}, upload);
    evaluator.answer({weights, 0, gap, bounds.weight}, owner, answer, theirs);
    read_packed(key, shown, shape, answer, mine);
    add_noises(shown.columns, choice.columns.dropped, mine, theirs, expected, sum);
  }
}

}  // namespace privml::lattice::testing
