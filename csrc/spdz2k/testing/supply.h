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
  Both<net::Traffic> supply, body;  // of making the supply, and after
  Both<ot::Ledger> ledger;
  Both<Demand> stock;
};

// Fresh keys and correlations; nothing ideal.
template <class R>
SupplyRecord run_supply(const ot::OtConfig& ot, const SupplyBody<R>& body) {
  auto [first, second] = net::make_memory_channels();
  Both<std::unique_ptr<net::Channel>> channels{std::move(first), std::move(second)};
  SupplyRecord record;
  ot::testing::run_pair(
      [&](int rank) {
        net::Channel& channel = *channels[rank];
        const auto resources = ot::make_party_resources(channel, rank, ot);
        ot::Party& party = resources->party();
        const auto session = make_session<R>(party);
        const auto since = [&](const net::Traffic& before) {
          channel.flush();
          const net::Traffic now = channel.traffic();
          return net::Traffic{now.sent - before.sent, now.received - before.received,
                              now.depth - before.depth};
        };
        const net::Traffic before = channel.traffic();
        PreprocessingSupply<R> supply(*session, &party, ot.provider == "silent");
        record.supply[rank] = since(before);
        const net::Traffic after = channel.traffic();
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
