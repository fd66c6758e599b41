// SPDX-License-Identifier: Apache-2.0
// Correlations made ahead of time and handed out once.
#pragma once

#include <memory>

#include "base/buffer.h"
#include "ot/rcot.h"

namespace privml::ot {

class CotPool {
 public:
  explicit CotPool(std::unique_ptr<Rcot> source);

  OtRole role() const { return source_->role(); }
  crypto::Block delta() const { return source_->delta(); }
  i64 available() const { return last_ - first_; }
  i64 granularity() const { return source_->granularity(); }
  i64 tile() const { return source_->tile(); }
  // Correlations that the store has space for: the most that were ever in stock together.
  i64 capacity() const { return static_cast<i64>(store_.size()); }

  int messages() const { return source_->messages(); }
  // Space for `count` further correlations, so that step() moves nothing.
  void make_room(i64 count);
  // Step s of an extension of `count` (rcot.h) into the free space, then the new correlations into
  // stock; nothing else may touch the pool in between.
  void step(int s, i64 count);
  void deposit(i64 count);
  // The same step into `out` instead of the stock.
  void step_into(int s, crypto::Block* out, i64 count) { source_->step(s, out, count); }
  // Moves the next `count` correlations out; they can never be drawn again (the store is wiped
  // behind). Throws InvalidArgument when fewer are available: callers reserve first.
  void take(crypto::Block* out, i64 count);
  // Puts correlations that a pool of the same offset has given out with take() behind the stock and
  // wipes `in`. The peer's pool of this direction gets their other halves at the same place.
  void add(crypto::Block* in, i64 count);

 private:
  std::unique_ptr<Rcot> source_;
  WipedVector<crypto::Block> store_;  // its size is the capacity; [first_, last_) is in stock
  i64 first_ = 0;
  i64 last_ = 0;
};

// Extends both directions of a session side by side; this party's ends, of the same provider, with
// room made. Both parties call it with mirrored multiples of the granularity.
void extend_both(CotPool& sender, CotPool& receiver, i64 send, i64 receive);

// Extends one direction into `out`, past the stock; on the wire as extend_both() with none of the
// other direction. `count` is a multiple of the granularity.
void extend_into(CotPool& pool, crypto::Block* out, i64 count);

}  // namespace privml::ot
