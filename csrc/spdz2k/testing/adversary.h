// SPDX-License-Identifier: Apache-2.0
// For tests: a whole session, from the first transfer to the outputs, in which one party's messages
// are altered. Keys are drawn and correlations are made from malicious SoftSpoken OT.
#pragma once

#include "spdz2k/preprocessing/preprocessing.h"
#include "spdz2k/testing/altering_channel.h"
#include "spdz2k/testing/generation.h"
#include "spdz2k/testing/small_model.h"

namespace privml::spdz2k::testing {

// How a run ended at the honest party.
enum class Verdict { right, aborted, malformed, disconnected, wrong, crashed };

struct SessionOutcome {
  Verdict verdict = Verdict::crashed;
  std::string what;                // of an exception
  std::vector<std::string> parts;  // of each message of the dishonest party
  bool altered = false;
};

// Kinds that are made one after the other, so that messages can be told apart.
inline std::vector<std::pair<std::string, Demand>> kinds_of(const Demand& demand) {
  std::vector<std::pair<std::string, Demand>> kinds(7);
  const auto add = [&](std::size_t i, const char* name, auto member) {
    kinds[i].first = name;
    kinds[i].second.*member = demand.*member;
  };
  add(0, "making masks", &Demand::masks);
  kinds[0].second.randoms = 4096;  // of checks, too
  add(1, "making triples", &Demand::triples);
  add(2, "making triples of matrices", &Demand::matrices);
  add(3, "making squares", &Demand::squares);
  kinds[3].second.squares += demand.bits;
  add(4, "making random bits", &Demand::bits);
  add(5, "making triples of bits", &Demand::bit_triples);
  add(6, "making edabits", &Demand::edabits);
  return kinds;
}

// Messages of party `dishonest` are numbered from the first one of the transfers' set-up.
template <class R>
SessionOutcome run_altered(int dishonest, i64 message, Alteration alteration,
                           std::chrono::milliseconds deadline) {
  static const Demand demand = demand_of_model<R>();
  auto [first, second] = net::make_memory_channels();
  Both<std::unique_ptr<net::Channel>> channels{std::move(first), std::move(second)};
  auto wrapped =
      std::make_unique<AlteringChannel>(std::move(channels[dishonest]), message, alteration);
  AlteringChannel& altering = *wrapped;
  channels[dishonest] = std::move(wrapped);
  SessionOutcome outcome;
  const SmallModel model;
  const Both<Words> expected = model.outputs(R::k);
  const auto party = [&](int rank) {
    const auto begin = [&](const std::string& part) {
      if (rank == dishonest) altering.begin(part);
    };
    net::Channel& channel = *channels[rank];
    channel.set_deadline(deadline);
    begin("set-up of transfers");
    const auto resources = ot::make_party_resources(channel, rank, malicious_ot());
    begin("keys");
    const auto session = make_session<R>(resources->party());
    PreprocessingSupply<R> supply(*session, &resources->party());
    for (const auto& [name, kind] : kinds_of(demand)) {
      begin(name);
      supply.reserve(kind);
    }
    begin("refilling");
    supply.reserve(demand);
    const Both<Words> learned = run_model<R>(*session, model, begin);
    channel.flush();
    const bool right = learned[0] == expected[0] && (rank == 0 || learned[1] == expected[1]);
    return right ? Verdict::right : Verdict::wrong;
  };
  ot::testing::run_pair(
      [&](int rank) {
        Verdict verdict = Verdict::crashed;
        std::string what;
        try {
          verdict = party(rank);
        } catch (const SecurityAbort& error) {
          verdict = Verdict::aborted, what = error.what();
        } catch (const ProtocolError& error) {
          verdict = Verdict::malformed, what = error.what();
        } catch (const PeerDisconnected& error) {
          verdict = Verdict::disconnected, what = error.what();
        } catch (const std::exception& error) {
          what = error.what();
        }
        channels[rank]->close();
        if (rank == dishonest) return;
        outcome.verdict = verdict;
        outcome.what = what;
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  outcome.parts = altering.parts();
  outcome.altered = altering.altered();
  return outcome;
}

}  // namespace privml::spdz2k::testing
