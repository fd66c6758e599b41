// SPDX-License-Identifier: Apache-2.0
#include "ot/silent_bootstrap.h"

#include "ot/schedule.h"

namespace privml::ot {
namespace {

struct Drawn {
  WipedVector<crypto::Block> sender, receiver;
};

// At least `wanted` of both directions, by one extension.
Drawn draw_both(const RcotPair& pair, i64 wanted) {
  const i64 count = missing_correlations(wanted, 0, pair.sender->granularity());
  Drawn drawn{WipedVector<crypto::Block>(count), WipedVector<crypto::Block>(count)};
  for (int s = 0; s <= pair.sender->messages(); ++s) {
    const bool sending = extension_role(s) == OtRole::sender;
    (sending ? pair.sender : pair.receiver)
        ->step(s, (sending ? drawn.sender : drawn.receiver).data(), count);
  }
  return drawn;
}

RcotPair make_pair(net::Channel& channel, const SilentParameters& parameters,
                   const SilentKeys& keys, crypto::Block delta, crypto::Prg& prg, Drawn bases) {
  auto sender = make_silent_sender(channel, parameters, keys, delta, crypto::Prg(prg.next_block()),
                                   std::move(bases.sender));
  auto receiver = make_silent_receiver(channel, parameters, keys, crypto::Prg(prg.next_block()),
                                       std::move(bases.receiver));
  return {std::move(sender), std::move(receiver)};
}

}  // namespace

RcotPair silent_bootstrap(net::Channel& channel, RcotPair base, const SilentKeys& keys,
                          bool malicious, crypto::Prg& prg) {
  const SilentParameters small = silent_setup_parameters(malicious);
  const SilentParameters large = silent_main_parameters(malicious);
  const Secret<crypto::Block> delta = base.sender->delta();
  Drawn first = draw_both(base, small.spent());
  RcotPair once = make_pair(channel, small, keys, delta, prg, std::move(first));
  Drawn second = draw_both(once, small.usable());
  RcotPair pair = make_pair(channel, large, keys, delta, prg, std::move(second));
  return pair;
}

void cost_silent_bootstrap(CostMeter& meter, const RcotCost& base, bool malicious) {
  const SilentParameters small = silent_setup_parameters(malicious);
  const i64 drawn = missing_correlations(small.spent(), 0, base.granularity);
  meter.extend_both(base, drawn, drawn);
  meter.extend_both(silent_cost(small), small.usable(), small.usable());
}

}  // namespace privml::ot
