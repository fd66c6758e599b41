// SPDX-License-Identifier: Apache-2.0
#include "ot/base_ot.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/wipe.h"

namespace privml::ot {
namespace {

static_assert(crypto_core_ristretto255_BYTES == sizeof(GroupPoint));
static_assert(crypto_core_ristretto255_SCALARBYTES == sizeof(GroupScalar));

// Instances in one flight: few, for a party waits for the peer's first one.
constexpr i64 kFlight = 8;

struct Instance {
  const SessionId& session;
  int sender_rank;
  i64 index;
};

// BLAKE2b over a label of fixed length, the instance and further fixed-length inputs.
class Transcript {
 public:
  Transcript(std::string_view label, const Instance& instance, size_t digest_bytes) {
    crypto_generichash_init(&state_, nullptr, 0, digest_bytes);
    add({reinterpret_cast<const u8*>(label.data()), label.size()});
    add(instance.session);
    std::array<u8, 9> place{};
    place[0] = static_cast<u8>(instance.sender_rank);
    std::memcpy(place.data() + 1, &instance.index, sizeof(instance.index));
    add(place);
  }
  ~Transcript() { wipe(&state_, sizeof(state_)); }
  void add(Bytes bytes) { crypto_generichash_update(&state_, bytes.data(), bytes.size()); }
  void finish(MutableBytes digest) {
    crypto_generichash_final(&state_, digest.data(), digest.size());
  }

 private:
  crypto_generichash_state state_;
};

[[noreturn]] void refuse(const char* what) {
  throw ProtocolError(std::string("base OT: the peer sent ") + what +
                      "; check that it runs this program and version");
}

GroupPoint uniform_point(const std::array<u8, 64>& uniform) {
  GroupPoint point;
  crypto_core_ristretto255_from_hash(point.data(), uniform.data());
  return point;
}

// H_side(point): a group element whose logarithm nobody knows.
GroupPoint hash_to_group(const Instance& instance, u8 side, Bytes point) {
  Transcript transcript("privml base OT point", instance, 64);
  transcript.add({&side, 1});
  transcript.add(point);
  std::array<u8, 64> uniform;
  transcript.finish(uniform);
  return uniform_point(uniform);
}

crypto::Block derive_key(const Instance& instance, Bytes request, Bytes reply, u8 side,
                         const GroupPoint& shared) {
  Transcript transcript("privml base OT key", instance, 16);
  transcript.add(request);
  transcript.add(reply);
  transcript.add({&side, 1});
  transcript.add(shared);
  crypto::Block key;
  transcript.finish({reinterpret_cast<u8*>(&key), sizeof(key)});
  return key;
}

GroupScalar random_scalar(crypto::Prg& prg) {
  std::array<u8, 64> wide;
  prg.fill_bytes(wide);
  GroupScalar scalar;
  crypto_core_ristretto255_scalar_reduce(scalar.data(), wide.data());
  wipe(wide.data(), wide.size());
  return scalar;
}

// first if choice is 0, second if it is 1, without a branch.
GroupPoint select_point(u8 choice, const GroupPoint& first, const GroupPoint& second) {
  const u8 mask = static_cast<u8>(-(choice & 1));
  GroupPoint out;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<u8>(first[i] ^ ((first[i] ^ second[i]) & mask));
  }
  return out;
}

}  // namespace

BaseOtReceiver::BaseOtReceiver(const SessionId& session, int sender_rank, WipedVector<u8> choices)
    : session_(session), sender_rank_(sender_rank), choices_(std::move(choices)) {}

void BaseOtReceiver::write_request(net::Channel& channel, crypto::Prg& prg) {
  const i64 count = std::ssize(choices_);
  exponents_.resize(count);
  request_.resize(count * kBaseOtRequestBytes);
  for (i64 i = 0; i < count; ++i) {
    const Instance instance{session_, sender_rank_, i};
    const u8 choice = choices_[i] & 1;
    exponents_[i] = random_scalar(prg);
    GroupPoint key_share, chosen;
    crypto_scalarmult_ristretto255_base(key_share.data(), exponents_[i].data());
    std::array<u8, 64> uniform;
    prg.fill_bytes(uniform);
    const GroupPoint other = uniform_point(uniform);
    const GroupPoint offset = hash_to_group(instance, choice, other);
    crypto_core_ristretto255_sub(chosen.data(), key_share.data(), offset.data());
    const GroupPoint first = select_point(choice, chosen, other);
    const GroupPoint second = select_point(choice, other, chosen);
    u8* place = request_.data() + i * kBaseOtRequestBytes;
    std::copy(first.begin(), first.end(), place);
    std::copy(second.begin(), second.end(), place + first.size());
    channel.write({place, kBaseOtRequestBytes});
    if ((i + 1) % kFlight == 0) channel.flush();
  }
}

WipedVector<crypto::Block> BaseOtReceiver::read_reply(net::Channel& channel) {
  const i64 count = std::ssize(choices_);
  expect(std::ssize(exponents_) == count, "BaseOtReceiver: write_request() comes first");
  WipedVector<crypto::Block> keys(count);
  for (i64 i = 0; i < count; ++i) {
    GroupPoint point, shared;
    channel.read(point);
    if (crypto_scalarmult_ristretto255(shared.data(), exponents_[i].data(), point.data()) != 0) {
      refuse("an invalid group element");
    }
    const Bytes request = Bytes(request_).subspan(i * kBaseOtRequestBytes, kBaseOtRequestBytes);
    keys[i] = derive_key({session_, sender_rank_, i}, request, point, choices_[i] & 1, shared);
    wipe(shared.data(), shared.size());
  }
  return keys;
}

WipedVector<std::array<crypto::Block, 2>> base_ot_send(net::Channel& channel,
                                                       const SessionId& session, int sender_rank,
                                                       i64 count, crypto::Prg& prg) {
  std::vector<u8> request(count * kBaseOtRequestBytes);
  WipedVector<std::array<crypto::Block, 2>> keys(count);
  for (i64 i = 0; i < count; ++i) {
    const MutableBytes rest = MutableBytes(request).subspan(i * kBaseOtRequestBytes);
    if (i % kFlight == 0) {
      channel.read(rest.first(std::min(rest.size(), size_t{kFlight * kBaseOtRequestBytes})));
    }
    const Instance instance{session, sender_rank, i};
    const Bytes points = rest.first(kBaseOtRequestBytes);
    GroupPoint answer;
    GroupScalar exponent = random_scalar(prg);
    crypto_scalarmult_ristretto255_base(answer.data(), exponent.data());
    for (u8 side : {u8{0}, u8{1}}) {
      const GroupPoint offset = hash_to_group(instance, side, points.subspan(32 * (1 - side), 32));
      GroupPoint sum, shared;
      if (crypto_core_ristretto255_add(sum.data(), points.data() + 32 * side, offset.data()) != 0 ||
          crypto_scalarmult_ristretto255(shared.data(), exponent.data(), sum.data()) != 0) {
        refuse("an invalid group element");
      }
      keys[i][side] = derive_key(instance, points, answer, side, shared);
      wipe(shared.data(), shared.size());
    }
    wipe(exponent.data(), exponent.size());
    channel.write(answer);
  }
  return keys;
}

}  // namespace privml::ot
