// SPDX-License-Identifier: Apache-2.0
#include "ot/setup.h"

#include <sodium.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "ot/base_ot.h"
#include "ot/ideal.h"
#include "ot/silent_bootstrap.h"
#include "ot/softspoken.h"
#include "ot/stored.h"

namespace privml {
namespace {

constexpr i64 kBaseOts = 128;
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

Digest exchange_digests(Channel& channel, const Digest& mine) {
  Digest theirs;
  channel.write(mine);
  channel.read(theirs);
  return theirs;
}

// Random bytes that neither party could choose.
Digest toss_coins(Channel& channel, int rank, Prg& prg) {
  constexpr std::string_view kCommitment = "privml coin toss commitment";
  Digest mine;
  prg.fill_bytes(mine);
  const u8 peer = static_cast<u8>(1 - rank);
  const Digest commitment =
      exchange_digests(channel, digest(kCommitment, static_cast<u8>(rank), mine, {}));
  const Digest theirs = exchange_digests(channel, mine);
  if (digest(kCommitment, peer, theirs, {}) != commitment) {
    throw SecurityAbort("coin toss: the peer's nonce does not match its commitment");
  }
  return digest("privml session", 0, rank == 0 ? mine : theirs, rank == 0 ? theirs : mine);
}

Block first_block(const Digest& bytes) {
  Block block;
  std::memcpy(&block, bytes.data(), sizeof(block));
  return block;
}

Block tagged(Block seed, u64 tag) { return Prg({seed.lo, seed.hi ^ tag}).next_block(); }

// Set-up for correlations of an earlier session (stored.h).
std::unique_ptr<PartyResources> stored_resources(Channel& channel, int rank, const OtConfig& config,
                                                 Prg prg) {
  const Digest session = toss_coins(channel, rank, prg);
  return std::make_unique<PartyResources>(
      channel, rank, CotPool(make_stored_rcot(OtRole::sender, *config.stored_offset)),
      CotPool(make_stored_rcot(OtRole::receiver, kZeroBlock)), prg,
      first_block(digest("privml hash key", 0, session, {})),
      rcot_cost(config).bits_per_correlation());
}

// Of a session that draws on other correlations than transfers (provider "none"): randomness and
// counters alone.
std::unique_ptr<PartyResources> bare_resources(Channel& channel, int rank, Prg prg) {
  const auto none = [](OtRole role) { return CotPool(make_stored_rcot(role, Block{1, 0})); };
  const Block key = prg.next_block();
  return std::make_unique<PartyResources>(channel, rank, none(OtRole::sender),
                                          none(OtRole::receiver), prg, key, 0);
}

std::unique_ptr<PartyResources> ideal_resources(Channel& channel, int rank, Block seed, Prg prg) {
  // One seed per direction, named by the sender's rank.
  const std::array<Block, 2> shared{tagged(seed, 4), tagged(seed, 5)};
  return std::make_unique<PartyResources>(
      channel, rank, CotPool(make_ideal_rcot(OtRole::sender, shared[rank])),
      CotPool(make_ideal_rcot(OtRole::receiver, shared[1 - rank])), prg, tagged(seed, 6), 0);
}

Block fresh_offset(Prg& prg) {
  Block delta = prg.next_block();
  delta.lo |= 1;
  return delta;
}

RcotPair softspoken_pair(Channel& channel, int rank, int k, bool malicious, const Digest& session,
                         Prg& prg) {
  const Secret<Block> delta = fresh_offset(prg);
  const int peer = 1 - rank;
  // One context per direction, named by the rank of the correlated OTs' sender.
  const auto security = [&](int sender) {
    return SoftSpokenSecurity{malicious,
                              digest("privml softspoken", static_cast<u8>(sender), session, {})};
  };
  // The sender of a correlated OT is the receiver of its base OTs; both directions go in step.
  BaseOtReceiver base_receiver(session, peer, softspoken_base_choices(delta, k));
  base_receiver.write_request(channel, prg);
  const auto key_pairs = base_ot_send(channel, session, rank, kBaseOts, prg);
  auto receiver = make_softspoken_receiver(channel, k, prg.next_block(), key_pairs, security(peer));
  const auto keys = base_receiver.read_reply(channel);
  auto sender = make_softspoken_sender(channel, k, delta, keys, security(rank));
  return {std::move(sender), std::move(receiver)};
}

// Silent OT starts from few transfers, so the degree with the fewest bytes serves it best.
constexpr int kSilentBaseDegree = 8;

std::unique_ptr<PartyResources> resources_of(Channel& channel, int rank, const OtConfig& config,
                                             Prg prg) {
  const Digest session = toss_coins(channel, rank, prg);
  const auto key = [&](std::string_view label) {
    return first_block(digest(label, 0, session, {}));
  };
  const bool silent = config.provider == "silent", malicious = is_malicious(config);
  RcotPair pair = softspoken_pair(channel, rank, silent ? kSilentBaseDegree : config.k, malicious,
                                  session, prg);
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

PartyResources::PartyResources(Channel& channel, int rank, CotPool sender, CotPool receiver,
                               Prg prg, Block hash_key, double correlation_bits)
    : sender_(std::move(sender)),
      receiver_(std::move(receiver)),
      prg_(prg),
      hash_(hash_key),
      party_{rank, channel, sender_, receiver_, prg_, hash_, correlation_bits, ledger_} {}

std::unique_ptr<PartyResources> make_party_resources(Channel& channel, int rank,
                                                     const OtConfig& config) {
  expect(rank == 0 || rank == 1, "rank must be 0 or 1");
  rcot_cost(config);
  const bool stored = config.stored_offset.has_value();
  const bool ideal = !stored && config.provider == "ideal";
  expect(!ideal || config.test_seed,
         "the ideal OT provider is insecure and needs a test seed; use \"softspoken\"");
  expect(sodium_init() >= 0, "libsodium could not be initialised");
  const auto start = std::chrono::steady_clock::now();
  const Traffic before = channel.traffic();
  const Prg prg(config.test_seed ? tagged(*config.test_seed, 1 + static_cast<u64>(rank))
                                 : os_random_block());
  const bool none = config.provider == "none";
  auto resources = none     ? bare_resources(channel, rank, prg)
                   : stored ? stored_resources(channel, rank, config, prg)
                   : ideal  ? ideal_resources(channel, rank, *config.test_seed, prg)
                            : resources_of(channel, rank, config, prg);
  const Traffic after = channel.traffic();
  PhaseCount& book = resources->party().ledger.phases[static_cast<int>(Phase::setup)];
  book.sent = after.sent - before.sent;
  book.received = after.received - before.received;
  book.depth = after.depth - before.depth;
  book.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return resources;
}

void cost_party_resources(CostMeter& meter) {
  if (meter.rcot.provider == "ideal") return;
  constexpr i64 kNonce = sizeof(Digest);
  meter.exchange(kNonce, kNonce);  // commitments
  meter.exchange(kNonce, kNonce);  // openings
  constexpr i64 kRequest = kBaseOts * kBaseOtRequestBytes;
  const bool silent = meter.rcot.provider == "silent";
  const bool malicious = meter.rcot.malicious;
  const int k = silent ? kSilentBaseDegree : meter.rcot.k;
  const i64 reply = kBaseOts * kBaseOtReplyBytes + softspoken_seed_bytes(k, malicious);
  meter.exchange(kRequest, kRequest);
  meter.exchange(reply, reply);
  if (silent) cost_silent_bootstrap(meter, softspoken_cost(k, malicious), malicious);
}

}  // namespace privml
