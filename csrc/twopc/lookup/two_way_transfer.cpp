// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/two_way_transfer.h"

#include "base/buffer.h"
#include "ot/derive.h"

namespace privml::twopc {

void two_way_transfer(ot::Party& party, std::span<const u64> messages, std::span<const u8> choices,
                      int m, int width, std::span<u64> out) {
  WipedVector<crypto::Block> t(choices.size() * m), q((messages.size() >> m) * m);
  ot::choose_digits_receive(party, choices, m, t.data());
  ot::choose_send(party, q.data(), std::ssize(q));
  ot::one_of_n_send(party, q.data(), m, width, messages);
  ot::one_of_n_receive(party, t.data(), choices, m, width, out);
}

void cost_two_way_transfer(ot::CostMeter& meter, std::array<i64, 2> sent, int m, int width) {
  for (int r : {0, 1}) meter.draw(r, sent[r] * m);
  meter.exchange(packed_bytes(sent[1] * m, 1), packed_bytes(sent[0] * m, 1));
  meter.exchange(packed_bytes(sent[0] << m, width), packed_bytes(sent[1] << m, width));
}

}  // namespace privml::twopc
