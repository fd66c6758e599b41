// SPDX-License-Identifier: Apache-2.0
// The waist: random correlated oblivious transfer with a fixed offset.
//
// Functionality  for each i the sender gets q_i, the receiver gets c_i and t_i = q_i ^ c_i * delta,
//                c_i random.
// Encoding       lsb(delta) = 1, lsb(q_i) = 0, so c_i = lsb(t_i).
// Every derived transfer is a free function above this interface.
#pragma once

#include <memory>
#include <string>

#include "crypto/block.h"

namespace privml::ot {

enum class OtRole { sender, receiver };

// An extension is a sequence of one-way messages m_0, m_1, ...: even ones from the receiver to
// the sender, odd ones back. Both directions of a session go through it side by side and share its
// round trips.
class Rcot {
 public:
  virtual ~Rcot() = default;
  virtual OtRole role() const = 0;
  // The offset; only the sender may ask (the receiver gets InvalidArgument).
  virtual crypto::Block delta() const = 0;
  // Correlations come in multiples of this number.
  virtual i64 granularity() const = 0;
  // The largest count of one extension.
  virtual i64 tile() const = 0;
  // Messages of one extension.
  virtual int messages() const = 0;
  // Step s = 0 .. messages() of an extension of `count` fresh correlations (a multiple of
  // granularity(), at most tile()): reads m_{s-1} if s > 0, writes m_s if s < messages(). The
  // receiver takes the even steps and the sender the odd ones, all with the same `out` and `count`;
  // `out` is complete after a side's last step.
  virtual void step(int s, crypto::Block* out, i64 count) = 0;
};

// One party's ends of both directions of a session.
struct RcotPair {
  std::unique_ptr<Rcot> sender;
  std::unique_ptr<Rcot> receiver;
};

// Who takes step s of an extension.
constexpr OtRole extension_role(int s) { return s % 2 == 0 ? OtRole::receiver : OtRole::sender; }

// Bytes of an extension's messages; mirrors the provider exactly.
struct RcotCost {
  std::string provider;  // "ideal", "softspoken" or "silent"
  int k = 0;             // SoftSpoken's field degree
  i64 granularity = 1;
  i64 tile = 1;
  int messages = 0;
  bool malicious = false;  // SoftSpoken OT: with hiding columns and a proof; silent OT: checked
  i64 tree_bytes = 0;      // silent OT: of an iteration's trees
  // Bytes of message m for an extension of `count`.
  i64 message_bytes(int m, i64 count) const;
  // What a correlation costs on the wire, both ways, in a full extension.
  double bits_per_correlation() const;
};

}  // namespace privml::ot
