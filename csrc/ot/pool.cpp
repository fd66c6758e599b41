// SPDX-License-Identifier: Apache-2.0
#include "ot/pool.h"

#include <algorithm>

#include "base/error.h"
#include "base/wipe.h"
#include "ot/schedule.h"

namespace privml::ot {

CotPool::CotPool(std::unique_ptr<Rcot> source) : source_(std::move(source)) {
  expect(source_ != nullptr, "CotPool: needs a source of correlations");
}

void CotPool::make_room(i64 count) {
  const i64 stock = available();
  if (last_ + count <= capacity()) return;
  if (stock + count <= capacity()) {
    std::copy(store_.begin() + first_, store_.begin() + last_, store_.begin());
    std::fill(store_.begin() + std::max(first_, stock), store_.begin() + last_, crypto::kZeroBlock);
  } else {
    WipedVector<crypto::Block> larger(stock + count);
    std::copy(store_.begin() + first_, store_.begin() + last_, larger.begin());
    store_ = std::move(larger);
  }
  first_ = 0;
  last_ = stock;
}

void CotPool::step(int s, i64 count) {
  make_room(count);
  source_->step(s, store_.data() + last_, count);
}

void CotPool::deposit(i64 count) {
  expect(last_ + count <= capacity(), "CotPool::deposit: more than there is room for");
  last_ += count;
}

void CotPool::take(crypto::Block* out, i64 count) {
  expect(count >= 0 && count <= available(),
         "CotPool::take: fewer correlations in stock than asked for; call reserve() first");
  // Wiped in pieces, while they are still in the nearest cache.
  constexpr i64 kPiece = 256;
  for (i64 done = 0; done < count; done += kPiece) {
    crypto::Block* stock = store_.data() + first_ + done;
    const i64 n = std::min(kPiece, count - done);
    std::copy(stock, stock + n, out + done);
    std::fill(stock, stock + n, crypto::kZeroBlock);
  }
  first_ += count;
  if (first_ == last_) first_ = last_ = 0;
}

void CotPool::add(crypto::Block* in, i64 count) {
  expect(count >= 0, "CotPool::add: the count must not be negative");
  make_room(count);
  std::copy(in, in + count, store_.data() + last_);
  wipe(in, count * sizeof(crypto::Block));
  last_ += count;
}

void extend_both(CotPool& sender, CotPool& receiver, i64 send, i64 receive) {
  for_each_extension(send, receive, sender.tile(), [&](i64 to_send, i64 to_receive) {
    for (int s = 0; s <= sender.messages(); ++s) {
      const bool sending = extension_role(s) == OtRole::sender;
      const i64 count = sending ? to_send : to_receive;
      if (count > 0) (sending ? sender : receiver).step(s, count);
    }
    sender.deposit(to_send);
    receiver.deposit(to_receive);
  });
}

void extend_into(CotPool& pool, crypto::Block* out, i64 count) {
  for_each_extension(count, 0, pool.tile(), [&](i64 n, i64) {
    for (int s = 0; s <= pool.messages(); ++s) {
      if (extension_role(s) == pool.role()) pool.step_into(s, out, n);
    }
    out += n;
  });
}

}  // namespace privml::ot
