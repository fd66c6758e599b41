// SPDX-License-Identifier: Apache-2.0
// For tests: a session in which one bit of one of a party's messages is flipped on its way.
#pragma once

#include "base/error.h"
#include "net/testing/tampering.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {

// How a party's run ended: normally, by SecurityAbort, by ProtocolError, by PeerDisconnected. Any
// other exception passes through.
enum class Ending { completed, aborted, malformed, disconnected };

struct TamperedRun {
  std::array<Ending, 2> ending{};
  bool flipped = false;
  std::vector<i64> message_bytes;  // of the messages that `tampered` wrote
  bool detected() const {
    return std::any_of(ending.begin(), ending.end(),
                       [](Ending e) { return e == Ending::aborted || e == Ending::malformed; });
  }
};

// Runs body(rank, channel) at both parties, flipping what `flip` says in the messages of party
// `tampered`. A party that fails closes its channel.
inline TamperedRun run_tampered_pair(int tampered, std::optional<net::testing::Flip> flip,
                                     const std::function<void(int, net::Channel&)>& body) {
  auto [first, second] = net::make_memory_channels();
  std::array<std::unique_ptr<net::Channel>, 2> channels{std::move(first), std::move(second)};
  auto wrapped =
      std::make_unique<net::testing::TamperingChannel>(std::move(channels[tampered]), flip);
  const net::testing::TamperingChannel& observed = *wrapped;
  channels[tampered] = std::move(wrapped);
  TamperedRun run;
  run_pair(
      [&](int rank) {
        const auto end = [&](Ending ending) {
          run.ending[rank] = ending;
          channels[rank]->close();
        };
        try {
          body(rank, *channels[rank]);
          channels[rank]->flush();
        } catch (const SecurityAbort&) {
          end(Ending::aborted);
        } catch (const ProtocolError&) {
          end(Ending::malformed);
        } catch (const PeerDisconnected&) {
          end(Ending::disconnected);
        }
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  run.flipped = observed.flipped();
  run.message_bytes = observed.message_bytes();
  return run;
}

// The same for body(party) after the set-up with `config`.
inline TamperedRun run_tampered(const OtConfig& config, int tampered,
                                std::optional<net::testing::Flip> flip,
                                const std::function<void(Party&)>& body) {
  return run_tampered_pair(tampered, flip, [&](int rank, net::Channel& channel) {
    const auto resources = make_party_resources(channel, rank, config);
    body(resources->party());
  });
}

}  // namespace privml::ot::testing
