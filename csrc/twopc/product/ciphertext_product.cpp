// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/ciphertext_product.h"

#include <algorithm>

#include "base/error.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using lattice::Digest;

constexpr i64 kHello = 2 * sizeof(Digest);  // a digest of the product, and a nonce
constexpr i64 kAnswersAtOnce = 96;          // leave while others are computed

void check(const Party& party, const CiphertextProduct& product, std::span<const u64> weights,
           std::span<const u64> message, std::span<u64> out) {
  const auto& [outputs, inner, columns] = product.shape;
  const bool owns = party.rank == product.owner;
  expect(product.owner == 0 || product.owner == 1, "ciphertext product: the owner is 0 or 1");
  expect(outputs >= 1 && inner >= 1 && columns >= 1 && columns <= product.choice.set.n,
         "ciphertext product: the shape does not fit the polynomials");
  expect(std::ssize(weights) == (owns ? outputs * inner : 0) &&
             std::ssize(message) == (owns ? 0 : inner * columns) &&
             std::ssize(out) == outputs * columns,
         "ciphertext product: an operand does not match the shape");
}

// A digest that both parties' nonces decide; after it both are known to compute the same product.
Digest agree(Party& party, const CiphertextProduct& product) {
  const lattice::Transcript transcript{product.owner, product.choice, product.shape, product.label};
  const Digest mine = lattice::digest_of(transcript);
  Digest nonce, theirs, their_nonce;
  party.prg.fill_bytes(nonce);
  party.channel.write(mine);
  party.channel.write(nonce);
  party.channel.read(theirs);
  party.channel.read(their_nonce);
  if (mine != theirs) throw ProtocolError("lattice: the peer computes another product");
  const bool owns = party.rank == product.owner;
  return lattice::digest_of(transcript, owns ? nonce : their_nonce, owns ? their_nonce : nonce);
}

void compute_as_client(Party& party, const CiphertextProduct& product, const Digest& digest,
                       std::span<const u64> message, std::span<u64> share) {
  const auto& [outputs, inner, columns] = product.shape;
  const Block tag = lattice::tag_of(digest);
  party.channel.write({reinterpret_cast<const u8*>(&tag), sizeof tag});
  lattice::KeyOwner key(product.choice, digest, party.prg);
  std::vector<u8> wire(lattice::key_bytes(product.choice));
  key.write_key(wire);
  party.channel.write(wire);
  wire.resize(lattice::upload_bytes(product.choice, 1, columns));
  for (i64 k = 0; k < inner; ++k) {
    key.encrypt(k, message.subspan(k * columns, columns), wire);
    party.channel.write(wire);
  }
  wire.resize(lattice::answer_bytes(product.choice, columns));
  for (i64 j = 0; j < outputs; ++j) {
    party.channel.read(wire);
    key.decrypt(wire, share.subspan(j * columns, columns));
  }
}

void compute_as_owner(Party& party, const CiphertextProduct& product, const Digest& digest,
                      std::span<const u64> weights, std::span<u64> share) {
  const auto& [outputs, inner, columns] = product.shape;
  Block tag;
  party.channel.read({reinterpret_cast<u8*>(&tag), sizeof tag});
  if (!(tag == lattice::tag_of(digest)))
    throw ProtocolError("lattice: the peer's ciphertexts belong to another flight");
  std::vector<u8> wire(lattice::key_bytes(product.choice));
  party.channel.read(wire);
  lattice::Evaluator evaluator(product.choice, digest, inner, columns, wire, party.prg);
  wire.resize(lattice::upload_bytes(product.choice, 1, columns));
  for (i64 k = 0; k < inner; ++k) {
    party.channel.read(wire);
    evaluator.read_ciphertext(k, wire);
  }
  for (i64 j = 0; j < outputs; j += kAnswersAtOnce) {
    const i64 count = std::min(kAnswersAtOnce, outputs - j);
    wire.resize(count * lattice::answer_bytes(product.choice, columns));
    evaluator.answer(weights.subspan(j * inner, count * inner), count, product.largest, wire,
                     share.subspan(j * columns, count * columns));
    party.channel.write(wire);
    party.channel.flush();
  }
}

}  // namespace

void ciphertext_product(Party& party, const CiphertextProduct& product,
                        std::span<const u64> weights, std::span<const u64> message,
                        std::span<u64> out) {
  check(party, product, weights, message, out);
  const Digest digest = agree(party, product);
  WipedVector<u64> share(out.size());
  if (party.rank == product.owner) {
    compute_as_owner(party, product, digest, weights, share);
  } else {
    compute_as_client(party, product, digest, message, share);
  }
  truncate_reduce(party, share, product.choice.answer_bits, product.choice.dropped, out);
}

void cost_ciphertext_product(CostMeter& meter, const CiphertextProduct& product) {
  const auto [up, down] = ciphertext_bytes(product);
  meter.exchange(kHello, kHello);
  meter.message(1 - product.owner, up - kHello);
  meter.message(product.owner, down - kHello);
  cost_truncate_reduce(meter, product.shape.outputs * product.shape.columns,
                       product.choice.answer_bits, product.choice.dropped);
}

std::array<i64, 2> ciphertext_bytes(const CiphertextProduct& product) {
  const auto& [outputs, inner, columns] = product.shape;
  return {kHello + static_cast<i64>(sizeof(Block)) + lattice::key_bytes(product.choice) +
              lattice::upload_bytes(product.choice, inner, columns),
          kHello + outputs * lattice::answer_bytes(product.choice, columns)};
}

}  // namespace privml
