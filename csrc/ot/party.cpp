// SPDX-License-Identifier: Apache-2.0
#include "ot/party.h"

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
  for_each_extension(send, receive, sender.tile(), [&](i64 to_send, i64 to_receive) {
    for (int s = 0; s <= sender.messages(); ++s) {
      const bool sending = extension_role(s) == OtRole::sender;
      const i64 count = sending ? to_send : to_receive;
      if (count > 0) (sending ? sender : receiver).step(s, count);
    }
    sender.deposit(to_send);
    receiver.deposit(to_receive);
  });
  const Traffic after = party.channel.traffic();
  PhaseCount& book = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  book.sent += after.sent - before.sent;
  book.received += after.received - before.received;
  book.depth += after.depth - before.depth;
  book.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

void draw_as_sender(Party& party, Block* out, i64 count) {
  reserve(party, count, 0);
  party.sender.take(out, count);
  party.ledger.cots_as_sender += count;
}

void draw_as_receiver(Party& party, Block* out, i64 count) {
  reserve(party, 0, count);
  party.receiver.take(out, count);
  party.ledger.cots_as_receiver += count;
}

}  // namespace privml
