// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/ciphertext_product.h"

#include <algorithm>

#include "base/error.h"
#include "twopc/product/agreement.h"
#include "twopc/product/last_bit.h"

namespace privml::twopc {
namespace {

// Of one thread: halves and ciphertexts that leave while others are computed.
constexpr i64 kHalvesAtOnce = 192, kCiphertextsAtOnce = 16;

// Whether a batch needs new halves.
bool begins(i64 batch) { return batch % lattice::kMostBatches == 0; }

// Calls part(first, count) for `at_once` of `all` at a time.
template <class Part>
void in_parts(i64 all, i64 at_once, Part&& part) {
  for (i64 first = 0; first < all; first += at_once) part(first, std::min(at_once, all - first));
}

void compute_as_client(ot::Party& party, ProductHalves& halves, i64 columns,
                       std::span<const u64> message, std::span<u64> share) {
  const lattice::ColumnChoice& choice = halves.product.choice;
  const auto [outputs, inner] = halves.product.shape;
  const crypto::Block tag = lattice::tag_of(halves.digest, halves.batches, columns);
  party.channel.write({reinterpret_cast<const u8*>(&tag), sizeof tag});
  lattice::KeyOwner key(choice.set, halves.digest, party.prg);
  std::vector<u8> wire(lattice::key_bytes(choice.set));
  key.write_key(wire);
  party.channel.write(wire);
  in_parts(inner, kCiphertextsAtOnce * halves.threads, [&](i64 first, i64 rows) {
    wire.resize(rows * lattice::upload_bytes(choice, columns));
    key.encrypt(first, rows, choice, message.subspan(first * columns, rows * columns), wire,
                halves.threads);
    party.channel.write(wire);
  });
  party.channel.flush();
  if (begins(halves.batches)) {
    halves.c1.resize(lattice::halves_bytes(choice, outputs));
    party.channel.read(halves.c1);
  }
  key.shares_of(outputs, choice, halves.c1, share, halves.threads);
}

void write_halves(ot::Party& party, ProductHalves& halves, std::span<const u64> weights) {
  const CiphertextProduct& product = halves.product;
  halves.blinding = party.prg.next_block();
  const lattice::HalvesMaker maker(product.choice, halves.digest, product.shape.inner,
                                   halves.blinding);
  const auto [outputs, inner] = product.shape;
  std::vector<u8> wire;
  in_parts(outputs, kHalvesAtOnce * halves.threads, [&](i64 first, i64 rows) {
    wire.resize(lattice::halves_bytes(product.choice, rows));
    maker.write({weights.subspan(first * inner, rows * inner), first, rows, product.largest}, wire,
                halves.threads);
    party.channel.write(wire);
    party.channel.flush();
  });
}

void compute_as_owner(ot::Party& party, const ProductHalves& halves, i64 columns,
                      std::span<const u64> weights, std::span<u64> share) {
  const lattice::ColumnChoice& choice = halves.product.choice;
  crypto::Block tag;
  party.channel.read({reinterpret_cast<u8*>(&tag), sizeof tag});
  if (!(tag == lattice::tag_of(halves.digest, halves.batches, columns)))
    throw ProtocolError("lattice: the peer's ciphertexts belong to another batch");
  std::vector<u8> wire(lattice::key_bytes(choice.set));
  party.channel.read(wire);
  lattice::Evaluator evaluator(choice, halves.product.shape, columns, halves.blinding, wire);
  wire.resize(lattice::upload_bytes(choice, columns));
  for (i64 k = 0; k < halves.product.shape.inner; ++k) {
    party.channel.read(wire);
    evaluator.read_ciphertext(k, wire);
  }
  evaluator.answer({weights, 0, halves.product.shape.outputs, halves.product.largest}, share,
                   halves.threads);
}

}  // namespace

void ciphertext_product(ot::Party& party, ProductHalves& halves, i64 columns,
                        std::span<const u64> weights, std::span<const u64> message,
                        std::span<u64> out) {
  const CiphertextProduct& product = halves.product;
  const auto [outputs, inner] = product.shape;
  const bool owns = party.rank == product.owner;
  expect(product.owner == 0 || product.owner == 1, "ciphertext product: the owner is 0 or 1");
  expect(outputs >= 1 && inner >= 1 && columns >= 1 && columns <= product.choice.set.n,
         "ciphertext product: the shape does not fit the polynomials");
  expect(std::ssize(weights) == (owns ? outputs * inner : 0) &&
             std::ssize(message) == (owns ? 0 : inner * columns) &&
             std::ssize(out) == outputs * columns,
         "ciphertext product: an operand does not match the shape");
  if (begins(halves.batches)) {
    halves.digest = agree(party, {product.owner, product.choice, product.shape, halves.label});
    if (owns) write_halves(party, halves, weights);
  }
  if (owns) {
    compute_as_owner(party, halves, columns, weights, out);
  } else {
    compute_as_client(party, halves, columns, message, out);
  }
  ++halves.batches;
  drop_last_bit(party, out, product.choice.ring_bits(), out);
}

void cost_ciphertext_product(ot::CostMeter& meter, const CiphertextProduct& product, i64 batch,
                             i64 columns) {
  std::array<i64, 2> from{};  // by rank, of what crosses
  from[1 - product.owner] = batch_bytes(product, columns);
  if (begins(batch)) {
    meter.exchange(kAgreementBytes, kAgreementBytes);
    from[product.owner] = beginning_bytes(product)[1] - kAgreementBytes;
  }
  meter.exchange(from[0], from[1]);
  cost_drop_last_bit(meter, product.shape.outputs * columns, product.choice.ring_bits());
}

std::array<i64, 2> beginning_bytes(const CiphertextProduct& product) {
  return {kAgreementBytes,
          kAgreementBytes + lattice::halves_bytes(product.choice, product.shape.outputs)};
}

i64 batch_bytes(const CiphertextProduct& product, i64 columns) {
  return static_cast<i64>(sizeof(crypto::Block)) + lattice::key_bytes(product.choice.set) +
         product.shape.inner * lattice::upload_bytes(product.choice, columns);
}

}  // namespace privml::twopc
