// SPDX-License-Identifier: Apache-2.0
#include "ot/party.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "ot/schedule.h"

namespace privml {

void reserve(Party& party, i64 as_sender, i64 as_receiver) {
  expect(as_sender >= 0 && as_receiver >= 0, "reserve: counts must not be negative");
  CotPool& sender = party.sender;
  CotPool& receiver = party.receiver;
  const i64 send = missing_correlations(as_sender, sender.available(), sender.granularity());
  const i64 receive =
      missing_correlations(as_receiver, receiver.available(), receiver.granularity());
  if (send == 0 && receive == 0) return;

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const Traffic before = party.channel.traffic();
  sender.make_room(send);
  receiver.make_room(receive);
  extend_both(sender, receiver, send, receive);
  const Traffic after = party.channel.traffic();
  PhaseCount& book = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  book.sent += after.sent - before.sent;
  book.received += after.received - before.received;
  book.depth += after.depth - before.depth;
  book.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

// What is in stock leaves first, so that the store need not hold it beside an extension's output.
void draw_as_sender(Party& party, Block* out, i64 count) {
  const i64 stocked = std::min(count, party.sender.available());
  party.sender.take(out, stocked);
  reserve(party, count - stocked, 0);
  party.sender.take(out + stocked, count - stocked);
  party.ledger.cots_as_sender += count;
}

void draw_as_receiver(Party& party, Block* out, i64 count) {
  const i64 stocked = std::min(count, party.receiver.available());
  party.receiver.take(out, stocked);
  reserve(party, 0, count - stocked);
  party.receiver.take(out + stocked, count - stocked);
  party.ledger.cots_as_receiver += count;
}

}  // namespace privml
