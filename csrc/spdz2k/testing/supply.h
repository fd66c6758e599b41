// SPDX-License-Identifier: Apache-2.0
// For tests: both parties with sessions under fresh keys and the supplies that make correlations.
#pragma once

#include "spdz2k/preprocessing/preprocessing.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/generation.h"

namespace privml::spdz2k::testing {

template <class R>
using SupplyBody = std::function<void(Session<R>&, PreprocessingSupply<R>&)>;

struct SupplyRecord {
  Both<Traffic> supply, body;  // of making the supply, and after
  Both<Ledger> ledger;
  Both<Demand> stock;
};

// Fresh keys and correlations; nothing ideal.
template <class R>
SupplyRecord run_supply(const OtConfig& ot, const SupplyBody<R>& body) {
  auto [first, second] = make_memory_channels();
  Both<std::unique_ptr<Channel>> channels{std::move(first), std::move(second)};
  SupplyRecord record;
  privml::testing::run_pair(
      [&](int rank) {
        Channel& channel = *channels[rank];
        const auto resources = make_party_resources(channel, rank, ot);
        Party& party = resources->party();
        const auto session = make_session<R>(party);
        const auto since = [&](const Traffic& before) {
          channel.flush();
          const Traffic now = channel.traffic();
          return Traffic{now.sent - before.sent, now.received - before.received,
                         now.depth - before.depth};
        };
        const Traffic before = channel.traffic();
        PreprocessingSupply<R> supply(*session, &party, ot.provider == "silent");
        record.supply[rank] = since(before);
        const Traffic after = channel.traffic();
        body(*session, supply);
        record.body[rank] = since(after);
        record.ledger[rank] = party.ledger;
        record.stock[rank] = supply.stock();
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return record;
}

// Shares revealed to both.
template <class R>
Words values_of(Session<R>& session, WordView<R> shares) {
  Words out(shares.size());
  reveal<R>(session, shares, R::k, kBothParties, out);
  return out;
}
template <class R>
Bits bits_of(Session<R>& session, BitView<R> shares) {
  Bits out(shares.size());
  reveal_bits<R>(session, shares, kBothParties, out);
  return out;
}

}  // namespace privml::spdz2k::testing
