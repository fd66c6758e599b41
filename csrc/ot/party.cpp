// SPDX-License-Identifier: Apache-2.0
#include "ot/party.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "ot/refill.h"
#include "ot/schedule.h"

namespace privml::ot {

namespace {

// Announces what is neither in stock nor announced.
void announce_missing(Party& party, i64 as_sender, i64 as_receiver) {
  const auto [send, receive] = party.refill->available();
  const i64 granularity = party.sender.granularity();
  const Refill::Counts missing{missing_correlations(as_sender, send, granularity),
                               missing_correlations(as_receiver, receive, granularity)};
  if (missing[0] == 0 && missing[1] == 0) return;
  const PhaseCount& phase = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  party.refill->announce(missing, {party.channel.traffic().depth, phase.depth});
}

void reserve_from_refill(Party& party, i64 as_sender, i64 as_receiver) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  announce_missing(party, as_sender, as_receiver);
  // The peer may need what is still queued to get to where it announces the same.
  party.channel.flush();
  PhaseCount& phase = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  const PathClock now{party.channel.traffic().depth, phase.depth};
  const PathClock then = std::max(now, party.refill->wait_for({as_sender, as_receiver}));
  party.channel.set_depth(then.depth);
  phase.depth = then.preprocess;
  phase.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `make`, which makes correlations, and books it.
template <class Make>
void preprocess(Party& party, Make&& make) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const net::Traffic before = party.channel.traffic();
  make();
  const net::Traffic after = party.channel.traffic();
  PhaseCount& phase = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  phase.sent += after.sent - before.sent;
  phase.received += after.received - before.received;
  phase.depth += after.depth - before.depth;
  phase.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

// What is in stock leaves first, so that the store need not hold it beside an extension's output.
void draw(Party& party, CotPool& pool, crypto::Block* out, i64 count) {
  const bool sending = pool.role() == OtRole::sender;
  const auto reserve_here = [&](i64 n) { sending ? reserve(party, n, 0) : reserve(party, 0, n); };
  if (party.refill) {
    reserve_here(count);
    party.refill->take(pool.role(), out, count);
    return;
  }
  const i64 stocked = std::min(count, pool.available());
  pool.take(out, stocked);
  out += stocked;
  count -= stocked;
  // Extensions that are wanted whole do not pass through the store.
  const i64 whole = count % pool.granularity() == 0 ? count : count / pool.tile() * pool.tile();
  if (whole > 0) preprocess(party, [&] { extend_into(pool, out, whole); });
  reserve_here(count - whole);
  pool.take(out + whole, count - whole);
}

}  // namespace

void announce(Party& party, i64 as_sender, i64 as_receiver) {
  expect(as_sender >= 0 && as_receiver >= 0, "announce: counts must not be negative");
  party.refill ? announce_missing(party, as_sender, as_receiver)
               : reserve(party, as_sender, as_receiver);
}

void reserve(Party& party, i64 as_sender, i64 as_receiver) {
  expect(as_sender >= 0 && as_receiver >= 0, "reserve: counts must not be negative");
  if (as_sender == 0 && as_receiver == 0) return;
  if (party.refill) return reserve_from_refill(party, as_sender, as_receiver);
  CotPool& sender = party.sender;
  CotPool& receiver = party.receiver;
  const i64 send = missing_correlations(as_sender, sender.available(), sender.granularity());
  const i64 receive =
      missing_correlations(as_receiver, receiver.available(), receiver.granularity());
  if (send == 0 && receive == 0) return;

  preprocess(party, [&] {
    sender.make_room(send);
    receiver.make_room(receive);
    extend_both(sender, receiver, send, receive);
  });
}

void draw_as_sender(Party& party, crypto::Block* out, i64 count) {
  draw(party, party.sender, out, count);
  party.ledger.cots_as_sender += count;
}

void draw_as_receiver(Party& party, crypto::Block* out, i64 count) {
  draw(party, party.receiver, out, count);
  party.ledger.cots_as_receiver += count;
}

}  // namespace privml::ot
