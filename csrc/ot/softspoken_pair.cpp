// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken_pair.h"

#include <sodium.h>

#include <cstring>
#include <string_view>

#include "base/wipe.h"
#include "crypto/hash.h"

namespace privml::ot {
namespace {

constexpr i64 kBaseOts = kSoftSpokenRows;
// The first direction's extension: the base OTs of the other, rounded up to the granularity.
constexpr i64 kExtension = 256;
// The first direction is named by the rank of its correlations' sender.
constexpr int kFirstSender = 1;

using Choices = std::array<u8, kBaseOts / 8>;

std::array<u8, 32> derive(std::string_view label, u8 direction, const SessionId& session) {
  std::array<u8, 32> out;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(label.data()), label.size());
  crypto_generichash_update(&state, &direction, 1);
  crypto_generichash_update(&state, session.data(), session.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

SoftSpokenSecurity security_of(bool malicious, int sender, const SessionId& session) {
  return {malicious, derive("privml softspoken", static_cast<u8>(sender), session)};
}

crypto::CorrelationRobustHash hash_of(const SessionId& session) {
  const auto bytes = derive("privml softspoken base keys", 1 - kFirstSender, session);
  crypto::Block key;
  std::memcpy(&key, bytes.data(), sizeof(key));
  return crypto::CorrelationRobustHash(key);
}

crypto::Block fresh_offset(crypto::Prg& prg) {
  crypto::Block delta = prg.next_block();
  delta.lo |= 1;
  return delta;
}

}  // namespace

SoftSpokenPair::SoftSpokenPair(int rank, SoftSpokenSettings settings, const SessionId& setup,
                               crypto::Prg& prg)
    : rank_(rank), settings_(settings), setup_(setup), prg_(prg), delta_(fresh_offset(prg)) {
  if (rank_ == kFirstSender) {
    base_receiver_.emplace(setup_, kFirstSender, softspoken_base_choices(delta_, settings_.k));
  }
}

void SoftSpokenPair::write_request(net::Channel& channel) {
  if (base_receiver_) base_receiver_->write_request(channel, prg_);
}

RcotPair SoftSpokenPair::finish(net::Channel& channel, const SessionId& session) {
  return rank_ == kFirstSender ? finish_first(channel, session) : finish_second(channel, session);
}

// Sender of the first direction's correlations.
RcotPair SoftSpokenPair::finish_first(net::Channel& channel, const SessionId& session) {
  const auto [k, malicious] = settings_;
  const WipedVector<crypto::Block> chosen = base_receiver_->read_reply(channel);
  auto sender = make_softspoken_sender(channel, k, delta_, chosen,
                                       security_of(malicious, kFirstSender, session));
  WipedVector<crypto::Block> q(kExtension);
  sender->step(1, q.data(), kExtension);
  Choices differences;
  channel.read(differences);

  WipedVector<std::array<crypto::Block, 2>> keys(kBaseOts);
  for (i64 i = 0; i < kBaseOts; ++i) {
    const u8 difference = differences[i / 8] >> (i % 8) & 1;
    for (u8 choice : {u8{0}, u8{1}})
      keys[i][choice] = q[i] ^ crypto::select(choice ^ difference, delta_);
  }
  hash_of(session).hash(keys[0].data(), keys[0].data(), 2 * kBaseOts);
  auto receiver = make_softspoken_receiver(channel, k, prg_.next_block(), keys,
                                           security_of(malicious, 1 - kFirstSender, session));
  channel.flush();
  return {std::move(sender), std::move(receiver)};
}

// Receiver of the first direction's correlations.
RcotPair SoftSpokenPair::finish_second(net::Channel& channel, const SessionId& session) {
  const auto [k, malicious] = settings_;
  const auto pairs = base_ot_send(channel, setup_, kFirstSender, kBaseOts, prg_);
  auto receiver = make_softspoken_receiver(channel, k, prg_.next_block(), pairs,
                                           security_of(malicious, kFirstSender, session));
  WipedVector<crypto::Block> t(kExtension);
  receiver->step(0, t.data(), kExtension);
  const WipedVector<u8> choices = softspoken_base_choices(delta_, k);
  Choices differences{};
  for (i64 i = 0; i < kBaseOts; ++i) {
    differences[i / 8] |= static_cast<u8>((choices[i] ^ crypto::low_bit(t[i])) << (i % 8));
  }
  channel.write(differences);

  hash_of(session).hash(t.data(), t.data(), kBaseOts);
  auto sender =
      make_softspoken_sender(channel, k, delta_, std::span<const crypto::Block>(t).first(kBaseOts),
                             security_of(malicious, 1 - kFirstSender, session));
  return {std::move(sender), std::move(receiver)};
}

void cost_softspoken_pair(CostMeter& meter, SoftSpokenSettings settings, i64 beside) {
  const auto [k, malicious] = settings;
  const i64 seeds = softspoken_seed_bytes(k, malicious);
  const i64 extension = softspoken_cost(k, malicious).message_bytes(0, kExtension);
  std::array<i64, 2> sent{beside, beside};
  sent[kFirstSender] += kBaseOts * kBaseOtRequestBytes;
  meter.exchange(sent[0], sent[1]);
  meter.message(1 - kFirstSender, kBaseOts * kBaseOtReplyBytes + seeds + extension +
                                      static_cast<i64>(sizeof(Choices)));
  meter.message(kFirstSender, seeds);
}

}  // namespace privml::ot
