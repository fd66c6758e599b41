// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/two_way_transfer.h"

#include <vector>

#include "base/buffer.h"
#include "ot/derive.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

void two_way_transfer(ot::Party& party, std::span<const u64> messages, std::span<const u8> choices,
                      int m, int width, std::span<u64> out) {
  const TwoWayTransfer transfers[] = {{messages, choices, m, width, out}};
  two_way_transfers(party, transfers);
}

void cost_two_way_transfer(ot::CostMeter& meter, std::array<i64, 2> sent, int m, int width) {
  const TwoWayShape shapes[] = {{sent, m, width}};
  cost_two_way_transfers(meter, shapes);
}

void two_way_transfers(ot::Party& party, std::span<const TwoWayTransfer> transfers,
                       const std::function<void()>& beside) {
  std::vector<WipedVector<crypto::Block>> t(transfers.size()), q(transfers.size());
  for (size_t i = 0; i < transfers.size(); ++i) {
    const TwoWayTransfer& one = transfers[i];
    t[i].resize(one.choices.size() * one.m);
    ot::choose_digits_receive(party, one.choices, one.m, t[i].data());
  }
  if (beside) beside();
  for (size_t i = 0; i < transfers.size(); ++i) {
    const TwoWayTransfer& one = transfers[i];
    q[i].resize((one.messages.size() >> one.m) * one.m);
    ot::choose_send(party, q[i].data(), std::ssize(q[i]));
  }
  for (size_t i = 0; i < transfers.size(); ++i) {
    const TwoWayTransfer& one = transfers[i];
    ot::one_of_n_send(party, q[i].data(), one.m, one.width, one.messages);
  }
  if (beside) beside();
  for (size_t i = 0; i < transfers.size(); ++i) {
    const TwoWayTransfer& one = transfers[i];
    ot::one_of_n_receive(party, t[i].data(), one.choices, one.m, one.width, one.out);
  }
}

void cost_two_way_transfers(ot::CostMeter& meter, std::span<const TwoWayShape> shapes,
                            const std::function<Flight()>& next) {
  Flight choices, messages;
  for (const auto& [sent, m, width] : shapes) {
    for (int r : {0, 1}) meter.draw(r, sent[r] * m);
    choices = choices + Flight{packed_bytes(sent[1] * m, 1), packed_bytes(sent[0] * m, 1)};
    messages =
        messages + Flight{packed_bytes(sent[0] << m, width), packed_bytes(sent[1] << m, width)};
  }
  cost_flight(meter, next ? choices + next() : choices);
  cost_flight(meter, next ? messages + next() : messages);
}

}  // namespace privml::twopc
