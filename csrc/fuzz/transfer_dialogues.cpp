// SPDX-License-Identifier: Apache-2.0
// Base transfers, every provider of correlated OT in both roles, whole set-ups of sessions, and the
// transfers made from correlations.
#include <sodium.h>

#include <array>

#include "base/buffer.h"
#include "base/error.h"
#include "fuzz/targets.h"
#include "ot/base_ot.h"
#include "ot/derive.h"
#include "ot/setup.h"
#include "ot/silent.h"
#include "ot/softspoken.h"

namespace privml::fuzz {
namespace {

constexpr i64 kExtension = 256;
constexpr crypto::Block kDelta{0x9216d5d98979fb1b, 0xd1310ba698dfb5ac};  // lowest bit 1
constexpr crypto::Block kSeed{0x243f6a8885a308d3, 0x13198a2e03707344};

// Both directions in step, as a session has them: each party sends in one and chooses in the other.
void extend_both_ways(net::Channel& channel, ot::Rcot& sender, ot::Rcot& receiver, i64 count) {
  AlignedVector<crypto::Block> q(count), t(count);
  for (int s = 0; s <= sender.messages(); ++s) {
    const bool sending = ot::extension_role(s) == ot::OtRole::sender;
    (sending ? sender : receiver).step(s, (sending ? q : t).data(), count);
  }
  channel.flush();
}

Dialogue softspoken_dialogue(int k, bool malicious) {
  return Dialogue([k, malicious](net::Channel& channel, int rank) {
    crypto::Prg prg({7, 8});
    std::vector<std::array<crypto::Block, 2>> pairs(128);
    std::vector<crypto::Block> chosen(128);
    const WipedVector<u8> choices = ot::softspoken_base_choices(kDelta, k);
    for (size_t i = 0; i < 128; ++i) {
      pairs[i] = {prg.next_block(), prg.next_block()};
      chosen[i] = pairs[i][choices[i]];
    }
    const ot::SoftSpokenSecurity security{malicious, {1, 2, 3}};
    const crypto::Block root{5, static_cast<u64>(rank)};
    auto receiver = ot::make_softspoken_receiver(channel, k, root, pairs, security);
    auto sender = ot::make_softspoken_sender(channel, k, kDelta, chosen, security);
    for (int extension = 0; extension < 2; ++extension)
      extend_both_ways(channel, *sender, *receiver, kExtension);
  });
}

// Parameters far too small to be secure.
Dialogue silent_dialogue(bool malicious) {
  return Dialogue([malicious](net::Channel& channel, int rank) {
    const ot::SilentParameters parameters{{500, 24, 6}, 13, 1, malicious};
    const i64 spent = parameters.spent();
    const auto bases = [&](bool sending) {
      crypto::Prg prg({3, 4});
      WipedVector<crypto::Block> blocks(spent);
      prg.fill_blocks(blocks.data(), spent);
      for (crypto::Block& block : blocks) {
        const u8 choice = crypto::low_bit(block);
        block.lo &= ~u64{1};
        if (!sending) block ^= crypto::select(choice, kDelta);
      }
      return blocks;
    };
    const ot::SilentKeys keys{{3, 1}, {4, 1}};
    const u64 number = static_cast<u64>(rank);
    auto sender = ot::make_silent_sender(channel, parameters, keys, kDelta,
                                         crypto::Prg({number, 6}), bases(true));
    auto receiver =
        ot::make_silent_receiver(channel, parameters, keys, crypto::Prg({number, 7}), bases(false));
    for (int iteration = 0; iteration < 2; ++iteration)
      extend_both_ways(channel, *sender, *receiver, parameters.usable());
  });
}

Dialogue session_dialogue(const ot::OtConfig& config, i64 count) {
  return Dialogue([config, count](net::Channel& channel, int rank) {
    const auto resources = ot::make_party_resources(channel, rank, config);
    ot::reserve(resources->party(), count, count);
    channel.flush();
  });
}

// `body` on correlations that take no messages.
Dialogue on_ideal(void (*body)(ot::Party&)) {
  return Dialogue([body](net::Channel& channel, int rank) {
    const auto resources =
        ot::make_party_resources(channel, rank, {"ideal", 0, "semi_honest", kSeed});
    body(resources->party());
    channel.flush();
  });
}

constexpr i64 kTransfers = 21;

void additive(ot::Party& party) {
  constexpr i64 length = 3;
  const std::vector<u8> choices(kTransfers, 1);
  std::vector<u64> x(kTransfers * length, 5), r(kTransfers * length);
  AlignedVector<crypto::Block> blocks(kTransfers);
  for (const int sender : {0, 1}) {
    if (party.rank == sender) {
      ot::choose_send(party, blocks.data(), kTransfers);
      ot::additive_send(party, blocks.data(), x, length, 37, r);
    } else {
      ot::choose_receive(party, choices, blocks.data());
      ot::additive_receive(party, blocks.data(), choices, length, 37, r);
    }
  }
}

void one_of_many(ot::Party& party) {
  constexpr int m = 4, width = 13;
  const std::vector<u8> choices(kTransfers, 9);
  std::vector<u64> messages(kTransfers << m, 77), out(kTransfers);
  AlignedVector<crypto::Block> blocks(kTransfers * m);
  for (const int sender : {0, 1}) {
    if (party.rank == sender) {
      ot::choose_send(party, blocks.data(), kTransfers * m);
      ot::one_of_n_send(party, blocks.data(), m, width, messages);
    } else {
      ot::choose_digits_receive(party, choices, m, blocks.data());
      ot::one_of_n_receive(party, blocks.data(), choices, m, width, out);
    }
  }
}

void one_of_rows(ot::Party& party) {
  constexpr int m = 3, width = 4;
  const std::vector<u8> choices(kTransfers, 6);
  const std::vector<u32> rows(kTransfers, 0x87654321);
  std::vector<u8> out(kTransfers);
  AlignedVector<crypto::Block> blocks(kTransfers * m);
  for (const int sender : {0, 1}) {
    if (party.rank == sender) {
      ot::choose_send(party, blocks.data(), kTransfers * m);
      ot::one_of_n_send_rows(party, blocks.data(), m, width, rows);
    } else {
      ot::choose_digits_receive(party, choices, m, blocks.data());
      ot::one_of_n_receive_rows(party, blocks.data(), choices, m, width, out);
    }
  }
}

}  // namespace

std::span<const Dialogue> base_transfers() {
  static const std::array made{Dialogue([](net::Channel& channel, int rank) {
    expect(sodium_init() >= 0, "libsodium could not be initialised");
    crypto::Prg prg({9, static_cast<u64>(rank)});
    ot::BaseOtReceiver receiver({1}, 1 - rank, {0, 1, 1});
    receiver.write_request(channel, prg);
    ot::base_ot_send(channel, {1}, rank, 3, prg);
    receiver.read_reply(channel);
  })};
  return made;
}

std::span<const Dialogue> softspoken() {
  static const std::array made{softspoken_dialogue(2, true), softspoken_dialogue(4, true),
                               softspoken_dialogue(3, false), softspoken_dialogue(1, true)};
  return made;
}

std::span<const Dialogue> silent() {
  static const std::array made{silent_dialogue(true), silent_dialogue(false)};
  return made;
}

std::span<const Dialogue> sessions() {
  static const std::array made{
      session_dialogue({"softspoken", 4, "malicious", kSeed}, 300),
      session_dialogue({"softspoken", 2, "semi_honest", kSeed}, 300),
      session_dialogue({"softspoken", 4, "semi_honest", kSeed, kDelta}, 0),
      session_dialogue({"silent", 0, "malicious", kSeed}, 0),
  };
  return made;
}

std::span<const Dialogue> transfers() {
  static const std::array made{on_ideal(additive), on_ideal(one_of_many), on_ideal(one_of_rows)};
  return made;
}

}  // namespace privml::fuzz
