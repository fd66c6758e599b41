// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/packed_product.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parallel.h"
#include "twopc/product/agreement.h"
#include "twopc/product/last_bit.h"

namespace privml::twopc {
namespace {

using lattice::Digest;
using lattice::SwitchingSet;

// Outputs whose answers leave while others are computed: of several messages, and of a single one,
// whose ciphertexts are cut into digits anew for each of these ranges.
constexpr i64 kOutputsAtOnce = 96, kOutputsOfOneAtOnce = 384;
// Ciphertexts and messages that are held together.
constexpr i64 kCiphertextsAtOnce = 1024, kMessagesAtOnce = 16;

i64 rows_of(const PackedProduct& product) { return product.shape.rows * product.shape.positions; }
i64 results_of(const PackedProduct& product) {
  return product.shape.outputs * product.shape.count();
}

// Bytes of the answers to so many outputs of one message.
i64 answers_bytes(const PackedProduct& product, i64 outputs) {
  return ceil_div(outputs, product.choice.gap()) * lattice::packed_answer_bytes(product.choice);
}

// Whether a product needs new keys.
bool begins(i64 products) { return products % lattice::kMostPackedProducts == 0; }

// Public halves that both parties' nonces decide, and the client's keys at the owner.
void make_keys(ot::Party& party, PackingKeys& keys) {
  const lattice::SwitchingSet& set = keys.set;
  const std::array<u8, 4> label{static_cast<u8>(set.levels), static_cast<u8>(set.kept),
                                static_cast<u8>(set.digit_bits), static_cast<u8>(set.digits)};
  keys.digest = agree(party, {keys.owner, {lattice::kPackedSet}, {}, label});
  keys.prg = std::make_unique<crypto::Prg>(party.prg.next_block());
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

crypto::Block tag_of(const PackingKeys& keys, const PackedProduct& product, i64 number) {
  const auto& [choice, shape, messages] = product;
  std::vector<i64> label{choice.levels, shape.rows, shape.groups, messages,
                         static_cast<i64>(shape.largest)};
  for (const auto& [row, shift] : shape.terms) label.insert(label.end(), {row, shift});
  label.insert(label.end(), shape.places.begin(), shape.places.end());
  const Bytes bytes{reinterpret_cast<const u8*>(label.data()), label.size() * sizeof(i64)};
  const Digest digest = lattice::digest_of(
      {keys.owner, choice.columns, {shape.outputs, shape.inner()}, bytes}, keys.digest, {});
  return lattice::tag_of(digest, number, shape.positions);
}

// Calls part(first, count) for the messages that the owner evaluates together.
template <class Part>
void in_parts(const PackedProduct& product, Part&& part) {
  const i64 polynomials = ceil_div(product.shape.rows, product.choice.gap());
  const i64 most = std::clamp(kCiphertextsAtOnce / polynomials, i64{1}, kMessagesAtOnce);
  for (i64 first = 0; first < product.messages; first += most)
    part(first, std::min(most, product.messages - first));
}

// Calls answer(message, first, outputs) for some messages' answers in the order in which they are
// sent.
template <class Answer>
void in_answers(const PackedProduct& product, i64 first_message, i64 messages, Answer&& answer) {
  const i64 gap = product.choice.gap(), outputs = product.shape.outputs;
  for (i64 first = 0; first < outputs; first += gap)
    for (i64 i = first_message; i < first_message + messages; ++i)
      answer(i, first, std::min(gap, outputs - first));
}

void compute_as_client(ot::Party& party, PackingKeys& keys, const PackedProduct& product,
                       std::span<const u64> messages, std::span<u64> share) {
  const auto& [choice, shape, count] = product;
  // Used up before anything is sent: after a failure the same public halves would serve another
  // message under the same key.
  const i64 number = keys.products++;
  const crypto::Block tag = tag_of(keys, product, number);
  party.channel.write({reinterpret_cast<const u8*>(&tag), sizeof tag});
  std::vector<u8> wire(lattice::packed_upload_bytes(choice, shape));
  const i64 rows = rows_of(product), results = results_of(product), places = shape.count();
  for (i64 i = 0; i < count; ++i) {
    lattice::write_packed(*keys.key, keys.digest, choice, shape, {number, i},
                          messages.subspan(i * rows, rows), wire);
    party.channel.write(wire);
  }
  wire.resize(lattice::packed_answer_bytes(choice));
  in_parts(product, [&](i64 first_message, i64 of_part) {
    in_answers(product, first_message, of_part, [&](i64 message, i64 first, i64 outputs) {
      party.channel.read(wire);
      lattice::read_packed(*keys.key, choice, shape, wire,
                           share.subspan(message * results + first * places, outputs * places));
    });
  });
}

void compute_as_owner(ot::Party& party, PackingKeys& keys, const PackedProduct& product,
                      std::span<const u64> weights, std::span<u64> share) {
  const auto& [choice, shape, messages] = product;
  const i64 number = keys.products++;
  crypto::Block tag;
  party.channel.read({reinterpret_cast<u8*>(&tag), sizeof tag});
  if (!(tag == tag_of(keys, product, number)))
    throw ProtocolError("lattice: the peer's ciphertexts belong to another product");
  // All of them before the first answer, for the client sends all before it reads.
  const i64 each = lattice::packed_upload_bytes(choice, shape);
  std::vector<u8> uploads(messages * each);
  party.channel.read(uploads);
  const i64 gap = choice.gap(), inner = shape.inner(), places = shape.count();
  const i64 results = results_of(product);
  struct Range {
    i64 first, count;  // outputs
    crypto::Prg prg;   // its own, so that threads do not change what is drawn
    std::vector<u8> answers;
    WipedVector<u64> share;
  };
  in_parts(product, [&](i64 first_message, i64 of_part) {
    const lattice::PackedEvaluator evaluator(
        *keys.switching, choice, shape, {number, first_message},
        Bytes(uploads).subspan(first_message * each, of_part * each));
    const i64 most = of_part == 1 ? kOutputsOfOneAtOnce : kOutputsAtOnce;
    const i64 at_once = std::max(most / gap, i64{1}) * gap;
    const i64 ranges = ceil_div(shape.outputs, at_once);
    for (i64 begin = 0; begin < ranges; begin += keys.threads) {
      std::vector<Range> together;
      for (i64 r = begin; r < std::min(begin + keys.threads, ranges); ++r) {
        const i64 first = r * at_once, count = std::min(at_once, shape.outputs - first);
        together.push_back({first, count, crypto::Prg(keys.prg->next_block()),
                            std::vector<u8>(of_part * answers_bytes(product, count)),
                            WipedVector<u64>(of_part * count * places)});
      }
      in_parallel(std::ssize(together), 1, keys.threads, [&](i64 from, i64 several) {
        for (Range& range : std::span(together).subspan(from, several))
          evaluator.answer({weights.subspan(range.first * inner, range.count * inner), range.first,
                            range.count, shape.largest},
                           range.prg, range.answers, range.share);
      });
      for (const Range& range : together) {
        party.channel.write(range.answers);
        auto next = range.share.begin();
        const i64 end = range.first + range.count;
        for (i64 of = range.first; of < end; of += gap)
          for (i64 i = first_message; i < first_message + of_part; ++i) {
            const i64 size = std::min(gap, end - of) * places;
            std::copy_n(next, size, share.begin() + i * results + of * places);
            next += size;
          }
      }
      party.channel.flush();
    }
  });
}

}  // namespace

void packed_product(ot::Party& party, PackingKeys& keys, const PackedProduct& product,
                    std::span<const u64> weights, std::span<const u64> messages,
                    std::span<u64> out) {
  const auto& [choice, shape, count] = product;
  const bool owns = party.rank == keys.owner;
  expect(keys.set.levels >= choice.levels, "lattice: the keys have too few levels");
  expect(std::ssize(weights) == (owns ? shape.outputs * shape.inner() : 0) &&
             std::ssize(messages) == (owns ? 0 : count * rows_of(product)) &&
             std::ssize(out) == count * results_of(product),
         "lattice: an operand does not match the shape");
  if (begins(keys.products)) make_keys(party, keys);
  WipedVector<u64> share(out.size());
  if (owns) {
    compute_as_owner(party, keys, product, weights, share);
  } else {
    compute_as_client(party, keys, product, messages, share);
  }
  drop_last_bit(party, share, choice.columns.ring_bits(), out);
}

void cost_packed_product(ot::CostMeter& meter, const KeysCost& keys, const PackedProduct& product) {
  const auto [up, down] = packed_bytes_of(product);
  i64 first = 0;
  if (begins(keys.products)) {
    meter.exchange(kAgreementBytes, kAgreementBytes);
    first = lattice::switching_bytes(keys.set);
  }
  meter.message(1 - keys.owner, first + static_cast<i64>(sizeof(crypto::Block)) + up);
  meter.message(keys.owner, down);
  cost_drop_last_bit(meter, product.messages * results_of(product),
                     product.choice.columns.ring_bits());
}

std::array<i64, 2> packed_bytes_of(const PackedProduct& product) {
  return {product.messages * lattice::packed_upload_bytes(product.choice, product.shape),
          product.messages * answers_bytes(product, product.shape.outputs)};
}

}  // namespace privml::twopc
