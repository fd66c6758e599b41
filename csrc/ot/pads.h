// SPDX-License-Identifier: Apache-2.0
// Pads of 1-of-2^m transfers. An instance's m correlations are combined into keys that differ by
// multiples j * delta in GF(2^128), so that the receiver can compute only those of its choice. Two
// ways, decided by the number of hash calls:
//   digits    the choice is read as digits of two bits; each digit value has one pad as long as the
//             whole row of 2^m messages, of which the entries with that digit are used; a message's
//             pad is the XOR over the digits. Few keys, for short rows.
//   combined  one key and one hash for each of the 2^m messages. For long rows.
// Every bit of a hash output masks at most one message bit.
#pragma once

#include "base/buffer.h"
#include "crypto/hash.h"

namespace privml::ot {

struct TransferShape {
  int m;
  int width;
  i64 messages() const { return i64{1} << m; }
  i64 row_bits() const { return messages() * width; }
  i64 row_blocks() const { return ceil_div(row_bits(), 128); }
  int digits() const { return (m + 1) / 2; }
  int digit_keys() const { return 4 * (m / 2) + 2 * (m % 2); }
  bool fits_word() const { return row_bits() <= 64; }
  bool combined() const;
};

// Row pads by digits: rows[i * row_blocks + r] is block r of instance i's pad for its row.
class DigitPads {
 public:
  DigitPads(TransferShape shape, crypto::Block delta, i64 max_instances);
  // The sender's pads of `n` <= max_instances instances from q[0, n * m), valid in the whole row.
  void send(const crypto::CorrelationRobustHash& hash, const crypto::Block* q, i64 n,
            crypto::Block* rows);
  // The receiver's: valid at the chosen entry, noise elsewhere.
  void receive(const crypto::CorrelationRobustHash& hash, const crypto::Block* t, i64 n,
               crypto::Block* rows);

 private:
  TransferShape shape_;
  Secret<crypto::Block> delta_;
  AlignedVector<crypto::Block> masks_;  // per key: the row's bits that its hash covers
  WipedVector<crypto::Block> keys_;
  AlignedVector<crypto::Block> hashes_;
};

// The pad of message j of instance i is the low word of pads[i * 2^m + j] (sender) or pads[i]
// (receiver, for its choice). multiples[j] = j * delta.
WipedVector<crypto::Block> offset_multiples(crypto::Block delta, int m);
void combined_pads_send(const crypto::CorrelationRobustHash& hash, const crypto::Block* q, i64 n,
                        int m, const crypto::Block* multiples, crypto::Block* pads);
void combined_pads_receive(const crypto::CorrelationRobustHash& hash, const crypto::Block* t, i64 n,
                           int m, crypto::Block* pads);

}  // namespace privml::ot
