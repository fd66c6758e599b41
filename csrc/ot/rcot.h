// SPDX-License-Identifier: Apache-2.0
// The waist: random correlated oblivious transfer with a fixed offset.
//
// Functionality  for each i the sender gets q_i, the receiver gets c_i and t_i = q_i ^ c_i * delta,
//                c_i random.
// Encoding       lsb(delta) = 1, lsb(q_i) = 0, so c_i = lsb(t_i).
// Every derived transfer is a free function above this interface.
#pragma once

#include <string>

#include "crypto/block.h"

namespace privml {

enum class OtRole { sender, receiver };

class Rcot {
 public:
  virtual ~Rcot() = default;
  virtual OtRole role() const = 0;
  // The offset; only the sender may ask (the receiver gets InvalidArgument).
  virtual Block delta() const = 0;
  // Correlations come in multiples of this number.
  virtual i64 granularity() const = 0;
  // The largest count per extend() call, so that two directions can be interleaved.
  virtual i64 tile() const = 0;
  // Writes `count` fresh correlations (a multiple of granularity(), at most tile()).
  // Receiver: writes its message to the channel. Sender: reads it.
  virtual void extend(Block* out, i64 count) = 0;
};

// Bytes that the receiver sends for one extend() of `count`; mirrors the provider exactly.
struct RcotCost {
  std::string provider;  // "ideal" or "softspoken"
  int k = 0;             // SoftSpoken's field degree
  i64 granularity = 1;
  i64 tile = 1;
  i64 extension_bytes(i64 count) const;
};

}  // namespace privml
