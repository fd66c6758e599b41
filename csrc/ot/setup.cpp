// SPDX-License-Identifier: Apache-2.0
#include "ot/setup.h"

#include <sodium.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "ot/ideal.h"
#include "ot/silent_bootstrap.h"
#include "ot/softspoken_pair.h"
#include "ot/stored.h"

namespace privml::ot {
namespace {

using Digest = std::array<u8, 32>;

Digest digest(std::string_view label, u8 rank, Bytes first, Bytes second) {
  crypto_generichash_state state;
  Digest out;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(label.data()), label.size());
  crypto_generichash_update(&state, &rank, 1);
  crypto_generichash_update(&state, first.data(), first.size());
  crypto_generichash_update(&state, second.data(), second.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

bool is_malicious(const OtConfig& config) { return config.security == "malicious"; }

// A toss of coins after its first exchange.
struct CoinToss {
  Digest nonce;
  std::array<Digest, 2> commitments;
};

Digest commitment_of(int rank, const Digest& nonce) {
  return digest("privml coin toss commitment", static_cast<u8>(rank), nonce, {});
}

CoinToss commit_to_coins(net::Channel& channel, int rank, crypto::Prg& prg) {
  CoinToss toss;
  prg.fill_bytes(toss.nonce);
  toss.commitments[rank] = commitment_of(rank, toss.nonce);
  channel.write(toss.commitments[rank]);
  channel.read(toss.commitments[1 - rank]);
  return toss;
}

// Random bytes that neither party could choose; its own nonce is sent already.
Digest read_coins(net::Channel& channel, int rank, const CoinToss& toss) {
  Digest theirs;
  channel.read(theirs);
  if (commitment_of(1 - rank, theirs) != toss.commitments[1 - rank]) {
    throw SecurityAbort("coin toss: the peer's nonce does not match its commitment");
  }
  return digest("privml session", 0, rank == 0 ? toss.nonce : theirs,
                rank == 0 ? theirs : toss.nonce);
}

Digest toss_coins(net::Channel& channel, int rank, crypto::Prg& prg) {
  const CoinToss toss = commit_to_coins(channel, rank, prg);
  channel.write(toss.nonce);
  return read_coins(channel, rank, toss);
}

crypto::Block first_block(const Digest& bytes) {
  crypto::Block block;
  std::memcpy(&block, bytes.data(), sizeof(block));
  return block;
}

crypto::Block tagged(crypto::Block seed, u64 tag) {
  return crypto::Prg({seed.lo, seed.hi ^ tag}).next_block();
}

// Set-up for correlations of an earlier session (stored.h).
std::unique_ptr<PartyResources> stored_resources(net::Channel& channel, int rank,
                                                 const OtConfig& config, crypto::Prg prg) {
  const Digest session = toss_coins(channel, rank, prg);
  return std::make_unique<PartyResources>(
      channel, rank, CotPool(make_stored_rcot(OtRole::sender, *config.stored_offset)),
      CotPool(make_stored_rcot(OtRole::receiver, crypto::kZeroBlock)), prg,
      first_block(digest("privml hash key", 0, session, {})),
      rcot_cost(config).bits_per_correlation());
}

// Of a session that draws on other correlations than transfers (provider "none"): randomness and
// counters alone.
std::unique_ptr<PartyResources> bare_resources(net::Channel& channel, int rank, crypto::Prg prg) {
  const auto none = [](OtRole role) {
    return CotPool(make_stored_rcot(role, crypto::Block{1, 0}));
  };
  const crypto::Block key = prg.next_block();
  return std::make_unique<PartyResources>(channel, rank, none(OtRole::sender),
                                          none(OtRole::receiver), prg, key, 0);
}

std::unique_ptr<PartyResources> ideal_resources(net::Channel& channel, int rank, crypto::Block seed,
                                                crypto::Prg prg) {
  // One seed per direction, named by the sender's rank.
  const std::array<crypto::Block, 2> shared{tagged(seed, 4), tagged(seed, 5)};
  return std::make_unique<PartyResources>(
      channel, rank, CotPool(make_ideal_rcot(OtRole::sender, shared[rank])),
      CotPool(make_ideal_rcot(OtRole::receiver, shared[1 - rank])), prg, tagged(seed, 6), 0);
}

// Silent OT starts from few transfers, so the degree with the fewest bytes serves it best.
constexpr int kSilentBaseDegree = 8;

std::unique_ptr<PartyResources> resources_of(net::Channel& channel, int rank,
                                             const OtConfig& config, crypto::Prg prg) {
  const bool silent = config.provider == "silent", malicious = is_malicious(config);
  const CoinToss toss = commit_to_coins(channel, rank, prg);
  const SoftSpokenSettings settings{silent ? kSilentBaseDegree : config.k, malicious};
  SoftSpokenPair transfers(
      rank, settings, digest("privml setup", 0, toss.commitments[0], toss.commitments[1]), prg);
  channel.write(toss.nonce);
  transfers.write_request(channel);
  const Digest session = read_coins(channel, rank, toss);
  RcotPair pair = transfers.finish(channel, session);
  // Party 1 is a message behind; from here on both clocks count alike.
  if (rank == 1) channel.set_depth(channel.traffic().depth + 1);
  const auto key = [&](std::string_view label) {
    return first_block(digest(label, 0, session, {}));
  };
  if (silent) {
    const SilentKeys keys{key("privml silent OT trees"), key("privml silent OT code")};
    pair = silent_bootstrap(channel, std::move(pair), keys, malicious, prg);
  }
  return std::make_unique<PartyResources>(
      channel, rank, CotPool(std::move(pair.sender)), CotPool(std::move(pair.receiver)), prg,
      key("privml hash key"), rcot_cost(config).bits_per_correlation());
}

}  // namespace

RcotCost rcot_cost(const OtConfig& config) {
  expect(config.security == "semi_honest" || is_malicious(config),
         "OT security must be \"semi_honest\" or \"malicious\"");
  if (config.provider == "ideal" || config.provider == "none") return ideal_cost();
  if (config.provider == "silent") return silent_cost(silent_main_parameters(is_malicious(config)));
  expect(config.provider == "softspoken",
         "OT provider must be \"softspoken\", \"silent\" or \"ideal\"");
  return softspoken_cost(config.k, is_malicious(config));
}

PartyResources::PartyResources(net::Channel& channel, int rank, CotPool sender, CotPool receiver,
                               crypto::Prg prg, crypto::Block hash_key, double correlation_bits)
    : sender_(std::move(sender)),
      receiver_(std::move(receiver)),
      prg_(prg),
      hash_(hash_key),
      party_{rank, channel, sender_, receiver_, prg_, hash_, correlation_bits, ledger_} {}

std::unique_ptr<PartyResources> make_party_resources(net::Channel& channel, int rank,
                                                     const OtConfig& config) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  rcot_cost(config);
  const bool stored = config.stored_offset.has_value();
  const bool ideal = !stored && config.provider == "ideal";
  expect(!ideal || config.test_seed,
         "the ideal OT provider is insecure and needs a test seed; use \"softspoken\"");
  expect(sodium_init() >= 0, "libsodium could not be initialised");
  const auto start = std::chrono::steady_clock::now();
  const net::Traffic before = channel.traffic();
  const crypto::Prg prg(config.test_seed ? tagged(*config.test_seed, 1 + static_cast<u64>(rank))
                                         : crypto::os_random_block());
  const bool none = config.provider == "none";
  auto resources = none     ? bare_resources(channel, rank, prg)
                   : stored ? stored_resources(channel, rank, config, prg)
                   : ideal  ? ideal_resources(channel, rank, *config.test_seed, prg)
                            : resources_of(channel, rank, config, prg);
  const net::Traffic after = channel.traffic();
  PhaseCount& phase = resources->party().ledger.phases[static_cast<int>(Phase::setup)];
  phase.sent = after.sent - before.sent;
  phase.received = after.received - before.received;
  phase.depth = after.depth - before.depth;
  phase.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return resources;
}

void cost_party_resources(CostMeter& meter) {
  if (meter.rcot.provider == "ideal") return;
  constexpr i64 kNonce = sizeof(Digest);
  meter.exchange(kNonce, kNonce);  // commitments
  const bool silent = meter.rcot.provider == "silent";
  const bool malicious = meter.rcot.malicious;
  const int k = silent ? kSilentBaseDegree : meter.rcot.k;
  cost_softspoken_pair(meter, {k, malicious}, kNonce);
  meter.depth[1] += 1;
  if (silent) cost_silent_bootstrap(meter, softspoken_cost(k, malicious), malicious);
}

}  // namespace privml::ot
