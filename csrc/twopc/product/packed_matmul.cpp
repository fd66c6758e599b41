// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/packed_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "lattice/scalar_product.h"
#include "twopc/product/agreement.h"
#include "twopc/product/dense.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using lattice::Digest;
using lattice::PackedChoice;
using lattice::SwitchingSet;

constexpr i64 kOutputsAtOnce = 96;  // leave while others are computed

i64 answers(const PackedChoice& choice, const MatrixShape& shape) {
  return ceil_div(shape.columns, choice.gap());
}

i64 bytes_of(const PackedChoice& choice, const MatrixShape& shape) {
  return lattice::packed_upload_bytes(choice, shape.rows, shape.inner) +
         answers(choice, shape) * lattice::packed_answer_bytes(choice, shape.rows);
}

// Whether a product needs new keys.
bool begins(i64 products) { return products % lattice::kMostPackedProducts == 0; }

PackedChoice choice_for(const MatrixShape& shape, Operand weights, int ell,
                        const SwitchingSet& set) {
  expect_fits(weights, ell);
  expect(weights.owner != kShared, "lattice: weights are owned by a party");
  const auto choice = packed_choice(shape, weights, ell, set);
  expect(choice.has_value(), "lattice: no parameters serve this product");
  return *choice;
}

// Public halves that both parties' nonces decide, and the client's keys at the owner.
void make_keys(Party& party, PackingKeys& keys) {
  const SwitchingSet& set = keys.set;
  const std::array<u8, 4> label{static_cast<u8>(set.levels), static_cast<u8>(set.kept),
                                static_cast<u8>(set.digit_bits), static_cast<u8>(set.digits)};
  keys.digest = agree(party, {keys.owner, {lattice::kPackedSet}, {}, label});
  keys.prg = std::make_unique<Prg>(party.prg.next_block());
  std::vector<u8> wire(lattice::switching_bytes(set));
  if (party.rank == keys.owner) {
    party.channel.read(wire);
    keys.switching = std::make_unique<lattice::SwitchingKeys>(keys.digest, set, wire);
  } else {
    keys.key = std::make_unique<lattice::KeyOwner>(lattice::kPackedSet, keys.digest, *keys.prg);
    lattice::write_switching_keys(*keys.key, keys.digest, set, wire);
    party.channel.write(wire);
  }
}

Block tag_of(const PackingKeys& keys, const PackedChoice& choice, const MatrixShape& shape,
             i64 number) {
  const u8 levels = static_cast<u8>(choice.levels);
  const Digest product = lattice::digest_of(
      {keys.owner, choice.columns, {shape.columns, shape.inner}, {&levels, 1}}, keys.digest, {});
  return lattice::tag_of(product, number, shape.rows);
}

// Shares of one answer to where they belong among rows x columns.
void place(std::span<const u64> answer, i64 first, i64 gap, const MatrixShape& shape,
           std::span<u64> share) {
  const i64 count = std::min(gap, shape.columns - first);
  for (i64 m = 0; m < shape.rows; ++m)
    std::copy_n(answer.data() + m * gap, count, share.data() + m * shape.columns + first);
}

void compute_as_client(Party& party, PackingKeys& keys, const PackedChoice& choice,
                       const MatrixShape& shape, std::span<const u64> message,
                       std::span<u64> share) {
  // Used up before anything is sent: after a failure the same public halves would serve another
  // message under the same key.
  const i64 number = keys.products++;
  const Block tag = tag_of(keys, choice, shape, number);
  party.channel.write({reinterpret_cast<const u8*>(&tag), sizeof tag});
  std::vector<u8> wire(lattice::packed_upload_bytes(choice, shape.rows, shape.inner));
  lattice::write_packed(*keys.key, keys.digest, choice, number, message, shape.rows, wire);
  party.channel.write(wire);
  wire.resize(lattice::packed_answer_bytes(choice, shape.rows));
  const i64 gap = choice.gap();
  WipedVector<u64> part(shape.rows * gap);
  for (i64 first = 0; first < shape.columns; first += gap) {
    party.channel.read(wire);
    lattice::read_packed(*keys.key, choice, shape.rows, wire, part);
    place(part, first, gap, shape, share);
  }
}

void compute_as_owner(Party& party, PackingKeys& keys, const PackedChoice& choice,
                      const MatrixShape& shape, const lattice::WeightRows& weights,
                      std::span<u64> share) {
  const i64 number = keys.products++;
  Block tag;
  party.channel.read({reinterpret_cast<u8*>(&tag), sizeof tag});
  if (!(tag == tag_of(keys, choice, shape, number)))
    throw ProtocolError("lattice: the peer's ciphertexts belong to another product");
  std::vector<u8> wire(lattice::packed_upload_bytes(choice, shape.rows, shape.inner));
  party.channel.read(wire);
  const lattice::PackedEvaluator evaluator(*keys.switching, choice, number, shape.rows, shape.inner,
                                           wire, *keys.prg);
  const i64 gap = choice.gap(), inner = shape.inner, each = shape.rows * gap;
  const i64 at_once = std::max(kOutputsAtOnce / gap, i64{1}) * gap;
  WipedVector<u64> parts;
  for (i64 first = 0; first < shape.columns; first += at_once) {
    const i64 count = std::min(at_once, shape.columns - first), groups = ceil_div(count, gap);
    wire.resize(groups * lattice::packed_answer_bytes(choice, shape.rows));
    parts.resize(groups * each);
    evaluator.answer(
        {weights.words.subspan(first * inner, count * inner), first, count, weights.largest}, wire,
        parts);
    party.channel.write(wire);
    party.channel.flush();
    for (i64 group = 0; group < groups; ++group)
      place(std::span(parts).subspan(group * each, each), first + group * gap, gap, shape, share);
  }
}

}  // namespace

std::optional<PackedChoice> packed_choice(const MatrixShape& shape, Operand weights, int ell,
                                          const SwitchingSet& set) {
  const u64 largest = lattice::largest_weight(weights.bits, weights.is_signed);
  const auto& [rows, inner, columns] = shape;
  if (rows < 1 || inner < 1 || columns < 1 || inner > lattice::kMostInner ||
      largest > lattice::kMostScalar)
    return std::nullopt;
  std::optional<PackedChoice> best;
  for (int level = 0; level <= set.levels && rows << level <= lattice::kPackedSet.n; ++level) {
    const auto choice = lattice::choose_packed({inner, largest, ell}, level, set);
    if (choice && (!best || bytes_of(*choice, shape) < bytes_of(*best, shape))) best = choice;
  }
  return best;
}

void packed_matmul(Party& party, PackingKeys& keys, Operand x_format, std::span<const u64> x,
                   Operand format, std::span<const u64> weights, const MatrixShape& shape, int ell,
                   std::span<u64> out) {
  const auto& [rows, inner, columns] = shape;
  const bool owns = party.rank == keys.owner, has_x = holds(party.rank, x_format);
  expect_fits(x_format, ell);
  expect(format.owner == keys.owner && x_format.owner != keys.owner,
         "lattice: the keys serve products with another party's weights");
  const PackedChoice choice = choice_for(shape, format, ell, keys.set);
  expect(std::ssize(x) == (has_x ? rows * inner : 0) &&
             std::ssize(weights) == (owns ? inner * columns : 0) &&
             std::ssize(out) == rows * columns,
         "lattice: an operand does not match the shape");
  if (begins(keys.products)) make_keys(party, keys);
  const std::vector<u64> elements = ring_elements(x, held_format(x_format), ell);
  WipedVector<u64> share(out.size());
  if (owns) {
    const std::vector<u64> words = ring_elements(weights, held_format(format), 64);
    const std::vector<u64> turned = transposed(words, inner, columns);
    const u64 largest = lattice::largest_weight(format.bits, format.is_signed);
    compute_as_owner(party, keys, choice, shape, {turned, 0, columns, largest}, share);
    truncate_reduce(party, share, choice.columns.answer_bits, choice.columns.dropped, out);
    if (has_x) add_product(elements, words, shape, ell, out);
    return;
  }
  compute_as_client(party, keys, choice, shape, elements, share);
  truncate_reduce(party, share, choice.columns.answer_bits, choice.columns.dropped, out);
}

void cost_packed_matmul(CostMeter& meter, const SwitchingSet& set, i64 products, Operand format,
                        const MatrixShape& shape, int ell) {
  const PackedChoice choice = choice_for(shape, format, ell, set);
  i64 up = static_cast<i64>(sizeof(Block)) +
           lattice::packed_upload_bytes(choice, shape.rows, shape.inner);
  if (begins(products)) {
    meter.exchange(kAgreementBytes, kAgreementBytes);
    up += lattice::switching_bytes(set);
  }
  meter.message(1 - format.owner, up);
  meter.message(format.owner,
                answers(choice, shape) * lattice::packed_answer_bytes(choice, shape.rows));
  cost_truncate_reduce(meter, shape.rows * shape.columns, choice.columns.answer_bits,
                       choice.columns.dropped);
}

}  // namespace privml
