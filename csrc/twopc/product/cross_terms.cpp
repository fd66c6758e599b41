// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/cross_terms.h"

#include <algorithm>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/derive.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/product/dense.h"
#include "twopc/product/slot_product.h"
#include "twopc/product/vector_products.h"

namespace privml::twopc {
namespace {

constexpr i64 kChunkElements = i64{1} << 16;
constexpr i64 kPieceCots = i64{1} << 17;  // correlations at work at once: 2 MB per direction

void check(KnownFormat left, KnownFormat right, int ell) {
  expect(left.bits >= 1 && left.bits <= 64 && right.bits >= 1 && right.bits <= 64 && ell >= 1 &&
             ell <= 64,
         "cross_term: widths must lie in 1..64");
}

// The elementwise product as one direction of transfers: `bits` of each choice operand.
struct Direction {
  int bits;
  bool is_signed;
  int ell;
};

Direction direction(KnownFormat choice, int ell) {
  return {std::min(choice.bits, ell), choice.is_signed && choice.bits <= ell, ell};
}

// Adds sign * share * 2^bit, the sign of the top bit of a two's complement operand being negative.
void accumulate(std::span<u64> out, std::span<const u64> share, const Direction& d, int bit) {
  if (d.is_signed && bit == d.bits - 1) {
    for (size_t i = 0; i < out.size(); ++i) out[i] -= share[i] << bit;
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] += share[i] << bit;
  }
}

// Elements of a piece, and of a chunk of pieces, whose correlations are reserved together.
i64 piece_elements(const Direction& d, i64 chunk_factor) {
  return std::max<i64>(kPieceCots * chunk_factor / d.bits, 1);
}
i64 chunk_elements(const Direction& d, i64 chunk_factor) {
  return std::max(kChunkElements * chunk_factor, piece_elements(d, chunk_factor));
}

// The correlations of one piece and the choices that this party imposed on them, bit plane by bit
// plane.
struct Piece {
  i64 first = 0, count = 0;
  AlignedVector<u8> choices;
  WipedVector<crypto::Block> t, q;
};

// One chunk: x are this party's choice operands, y its correlations; either may be empty. Shares
// of products in which it chooses are added to `received`, the others to `sent`, which may be the
// same words.
struct Chunk {
  std::span<const u64> x, y;
  Direction d;
  std::span<u64> received, sent;
};

void write_choices(ot::Party& party, const Chunk& chunk, Piece& piece) {
  if (chunk.x.empty()) return;
  const i64 n = piece.count;
  piece.choices.resize(n * chunk.d.bits);
  piece.t.resize(n * chunk.d.bits);
  for (int bit = 0; bit < chunk.d.bits; ++bit)
    for (i64 k = 0; k < n; ++k)
      piece.choices[bit * n + k] = static_cast<u8>((chunk.x[piece.first + k] >> bit) & 1);
  ot::choose_receive(party, piece.choices, piece.t.data());
}

void read_choices(ot::Party& party, const Chunk& chunk, Piece& piece) {
  if (chunk.y.empty()) return;
  piece.q.resize(piece.count * chunk.d.bits);
  ot::choose_send(party, piece.q.data(), std::ssize(piece.q));
}

void write_stream(ot::Party& party, const Chunk& chunk, const Piece& piece,
                  AlignedVector<u64>& share) {
  if (chunk.y.empty()) return;
  const i64 n = piece.count;
  share.resize(n);
  for (int bit = 0; bit < chunk.d.bits; ++bit) {
    ot::additive_send(party, piece.q.data() + bit * n, chunk.y.subspan(piece.first, n), 1,
                      chunk.d.ell - bit, share);
    accumulate(chunk.sent.subspan(piece.first, n), share, chunk.d, bit);
  }
}

void read_stream(ot::Party& party, const Chunk& chunk, const Piece& piece,
                 AlignedVector<u64>& share) {
  if (chunk.x.empty()) return;
  const i64 n = piece.count;
  share.resize(n);
  for (int bit = 0; bit < chunk.d.bits; ++bit) {
    const std::span<const u8> plane{piece.choices.data() + bit * n, static_cast<size_t>(n)};
    ot::additive_receive(party, piece.t.data() + bit * n, plane, 1, chunk.d.ell - bit, share);
    accumulate(chunk.received.subspan(piece.first, n), share, chunk.d, bit);
  }
}

void call(const std::function<void()>& function) {
  if (function) function();
}

// The next piece's choices travel with this piece's stream. A companion draws correlations of its
// first messages before the choices do.
void run_chunk(ot::Party& party, const Chunk& chunk, const Companion& companion) {
  const i64 n = std::ssize(chunk.sent), step = piece_elements(chunk.d, party.chunk_factor);
  const i64 cots = n * chunk.d.bits;
  ot::reserve(party, chunk.y.empty() ? 0 : cots, chunk.x.empty() ? 0 : cots);
  std::ranges::fill(chunk.sent, 0);
  std::ranges::fill(chunk.received, 0);
  AlignedVector<u64> share;
  Piece current, next;
  current.count = std::min(step, n);
  call(companion.write_first);
  write_choices(party, chunk, current);
  call(companion.read_first);
  read_choices(party, chunk, current);
  while (current.count > 0) {
    next.first = current.first + current.count;
    next.count = std::min(step, n - next.first);
    write_stream(party, chunk, current, share);
    write_choices(party, chunk, next);
    if (next.count == 0) call(companion.write_last);
    read_stream(party, chunk, current, share);
    read_choices(party, chunk, next);
    if (next.count == 0) call(companion.read_last);
    std::swap(current, next);
  }
  for (u64& word : chunk.sent) word &= low_mask(chunk.d.ell);
  for (u64& word : chunk.received) word &= low_mask(chunk.d.ell);
}

void run(ot::Party& party, std::span<const u64> x, std::span<const u64> y, const Direction& d,
         std::span<u64> out, const Companion& companion) {
  const i64 n = std::ssize(out), step = chunk_elements(d, party.chunk_factor);
  for (i64 first = 0; first < n; first += step) {
    const i64 count = std::min(step, n - first);
    const std::span<u64> part = out.subspan(first, count);
    run_chunk(party,
              {x.empty() ? x : x.subspan(first, count), y.empty() ? y : y.subspan(first, count), d,
               part, part},
              companion);
  }
}

i64 stream_bytes(i64 count, const Direction& d) {
  i64 bytes = 0;
  for (int bit = 0; bit < d.bits; ++bit) bytes += packed_bytes(count, d.ell - bit);
  return bytes;
}

// Mirrors run(); senders[r]: party r sends streams, so the other one sends choices.
void cost(ot::CostMeter& meter, std::array<bool, 2> senders, i64 n, const Direction& d,
          CompanionFlights flights) {
  const auto draw = [&](i64 count) {
    for (int sender : {0, 1})
      if (senders[sender]) meter.draw(sender, count * d.bits);
    return packed_bytes(count * d.bits, 1);
  };
  const i64 chunk = chunk_elements(d, meter.chunk_factor);
  const i64 step = piece_elements(d, meter.chunk_factor);
  for (i64 first = 0; first < n; first += chunk) {
    const i64 size = std::min(chunk, n - first);
    meter.reserve(senders[0] ? size * d.bits : 0, senders[1] ? size * d.bits : 0);
    i64 current = std::min(step, size);
    const i64 choices = draw(current);
    cost_flight(meter, Flight{senders[1] ? choices : 0, senders[0] ? choices : 0} + flights.first);
    for (i64 done = current; current > 0;) {
      const i64 next = std::min(step, size - done), stream = stream_bytes(current, d),
                more = draw(next);
      const Flight streams{(senders[0] ? stream : 0) + (senders[1] ? more : 0),
                           (senders[1] ? stream : 0) + (senders[0] ? more : 0)};
      cost_flight(meter, next == 0 ? streams + flights.last : streams);
      done += next;
      current = next;
    }
  }
}

// Products by ciphertexts of what the chooser knows of each with what the other party does. The
// companion's last messages leave with the answers.
void run_slots(ot::Party& party, const SlotShape& shape, std::span<const u64> chosen,
               std::span<const u64> carried, std::span<u64> out, const Companion& companion) {
  const auto cots = ot::count_correlations(
      party, [&](ot::CostMeter& meter) { cost_slot_products(meter, shape, std::ssize(out)); });
  ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
  SlotProducts products(party, shape, std::ssize(out));
  call(companion.write_first);
  products.write_factors(chosen);
  call(companion.read_first);
  products.write_answers(carried);
  call(companion.write_last);
  products.write_carries();
  call(companion.read_last);
  products.write_wraps();
  products.read(out);
}

void cost_slots(ot::CostMeter& meter, const SlotShape& shape, i64 n, CompanionFlights flights) {
  const auto cots =
      ot::count_correlations(meter, [&](ot::CostMeter& m) { cost_slot_products(m, shape, n); });
  meter.reserve(cots[0], cots[1]);
  const SlotFlights products = cost_slot_products(meter, shape, n);
  cost_flight(meter, products.factors + flights.first);
  cost_flight(meter, products.answers + flights.last);
  cost_flight(meter, products.carries);
  cost_flight(meter, products.wraps);
}

// Whether ciphertexts make n products for less than transfers with choices of so many bits: what
// both send, their work, and an exchange more over a slow link.
template <class Planner>
bool slots_pay(const Planner& planner, const SlotShape& shape, i64 n, int choice_bits) {
  if (!planner.ciphertexts || n == 0 || !plan_slots(shape, n)) return false;
  const int ell = shape.ring_bits, bits = std::min(choice_bits, ell);
  const ComparisonPrices prices = comparison_prices(planner, n);
  const double correlation = prices.correlation + kComputingBits;
  const double streams = bits * (correlation + 1 + ell) - bits * (bits - 1) / 2.;
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  const SlotFlights f = cost_slot_products(meter, shape, n);
  const Flight all = f.factors + f.answers + f.carries + f.wraps;
  const double count = static_cast<double>(n);
  const double sent = 8 * static_cast<double>(all.from_party0 + all.from_party1) +
                      correlation * static_cast<double>(meter.cots[0] + meter.cots[1]) +
                      static_cast<double>(slot_work(shape, n));
  return sent + prices.level * count < streams * count;
}

// Of x_0 * y_1 + x_1 * y_0 for n pairs: first those that party 1 chooses.
SlotShape slot_shape(KnownFormat left, KnownFormat right, int ell) {
  return {right.bits, left.bits, ell, 0};
}

template <class Planner>
bool terms_by_slots(const Planner& planner, i64 n, KnownFormat left, KnownFormat right, int ell) {
  if (left.is_signed || right.is_signed) return false;
  return slots_pay(planner, slot_shape(left, right, ell), 2 * n, std::min(left.bits, right.bits));
}

// The side whose bits are the choices, of operands that meet elementwise.
bool choose_left(KnownFormat left, KnownFormat right, int ell, ChoiceSide side) {
  if (side != ChoiceSide::automatic) return side == ChoiceSide::left;
  return cross_term_bits(1, 1, left.bits, ell) <= cross_term_bits(1, 1, right.bits, ell);
}

}  // namespace

i64 cross_term_bits(i64 choices, i64 elements, int choice_bits, int ell) {
  const i64 bits = std::min(choice_bits, ell);
  return choices * bits * kCorrelationBits + elements * (bits * ell - bits * (bits - 1) / 2);
}

ChoiceSide choose_side(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell) {
  const i64 elements = shape.rows * shape.inner * shape.columns;
  const i64 by_left = cross_term_bits(shape.rows * shape.inner, elements, left.bits, ell);
  const i64 by_right = cross_term_bits(shape.inner * shape.columns, elements, right.bits, ell);
  return by_left <= by_right ? ChoiceSide::left : ChoiceSide::right;
}

void cross_term(ot::Party& party, int left_holder, std::span<const u64> mine, KnownFormat left,
                KnownFormat right, int ell, ChoiceSide side, std::span<u64> out,
                const Companion& companion) {
  check(left, right, ell);
  expect(mine.size() == out.size(), "cross_term: operand and output lengths differ");
  const bool by_left = choose_left(left, right, ell, side);
  const bool is_left = party.rank == left_holder;
  const Direction d = direction(by_left ? left : right, ell);
  if (is_left == by_left) {
    run(party, mine, {}, d, out, companion);
  } else {
    run(party, {}, ring_elements(mine, is_left ? left : right, ell), d, out, companion);
  }
}

void cost_cross_term(ot::CostMeter& meter, int left_holder, i64 count, KnownFormat left,
                     KnownFormat right, int ell, ChoiceSide side, CompanionFlights flights) {
  const bool by_left = choose_left(left, right, ell, side);
  const int sender = by_left ? 1 - left_holder : left_holder;
  cost(meter, {sender == 0, sender == 1}, count, direction(by_left ? left : right, ell), flights);
}

void cross_terms(ot::Party& party, std::span<const u64> x, std::span<const u64> y, KnownFormat left,
                 KnownFormat right, int ell, std::span<u64> out, const Companion& companion) {
  check(left, right, ell);
  expect(x.size() == out.size() && y.size() == out.size(), "cross_terms: lengths differ");
  if (terms_by_slots(party, std::ssize(x), left, right, ell)) {
    const i64 n = std::ssize(x);
    WipedVector<u64> terms(2 * n), chosen(n), carried(n);
    for (i64 k = 0; k < n; ++k) {
      chosen[k] = y[k] & low_mask(right.bits);
      carried[k] = x[k] & low_mask(left.bits);
    }
    run_slots(party, slot_shape(left, right, ell), chosen, carried, terms, companion);
    for (i64 k = 0; k < n; ++k) out[k] = (terms[k] + terms[n + k]) & low_mask(ell);
    return;
  }
  if (choose_left(left, right, ell, ChoiceSide::automatic)) {
    run(party, x, ring_elements(y, right, ell), direction(left, ell), out, companion);
  } else {
    run(party, y, ring_elements(x, left, ell), direction(right, ell), out, companion);
  }
}

void cost_cross_terms(ot::CostMeter& meter, i64 count, KnownFormat left, KnownFormat right, int ell,
                      CompanionFlights flights) {
  if (terms_by_slots(meter, count, left, right, ell))
    return cost_slots(meter, slot_shape(left, right, ell), 2 * count, flights);
  const bool by_left = choose_left(left, right, ell, ChoiceSide::automatic);
  cost(meter, {true, true}, count, direction(by_left ? left : right, ell), flights);
}

// Product k of one direction runs beside product half + k of the other; of an odd number the last
// one runs beside a product of nothing.
void own_cross_terms(ot::Party& party, std::span<const u64> x, int bits, int ell,
                     std::span<u64> out, const Companion& companion) {
  check({bits, false}, {bits, false}, ell);
  expect(x.size() == out.size(), "own_cross_terms: operand and output lengths differ");
  if (x.empty()) return;
  const Halves part = halves(party.rank, std::ssize(x));
  if (const SlotShape shape{bits, bits, ell, 0}; slots_pay(party, shape, std::ssize(x), bits)) {
    WipedVector<u64> words(x.size());
    for (size_t k = 0; k < words.size(); ++k) words[k] = x[k] & low_mask(bits);
    return run_slots(party, shape, std::span(words).subspan(part.receive_begin, part.receive_count),
                     std::span(words).subspan(part.send_begin, part.send_count), out, companion);
  }
  const i64 half = first_half(std::ssize(x));
  std::vector<u64> chosen(half, 0), carried(half, 0), received(half), sent(half);
  for (i64 k = 0; k < part.receive_count; ++k) chosen[k] = x[part.receive_begin + k];
  for (i64 k = 0; k < part.send_count; ++k) carried[k] = x[part.send_begin + k] & low_mask(bits);
  run_chunk(party, {chosen, carried, direction({bits, false}, ell), received, sent}, companion);
  std::copy_n(received.begin(), part.receive_count, out.begin() + part.receive_begin);
  std::copy_n(sent.begin(), part.send_count, out.begin() + part.send_begin);
}

void cost_own_cross_terms(ot::CostMeter& meter, i64 count, int bits, int ell,
                          CompanionFlights flights) {
  if (const SlotShape shape{bits, bits, ell, 0}; slots_pay(meter, shape, count, bits)) {
    cost_slots(meter, shape, count, flights);
  } else if (count > 0) {
    cost(meter, {true, true}, first_half(count), direction({bits, false}, ell), flights);
  }
}
namespace {

// x * y with choices on the right is the transpose of y^T * x^T with choices on the left.
struct Orientation {
  bool by_left;
  ProductBlock block;
  ProductFormat format;
};

Orientation orient(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                   ChoiceSide side) {
  if (side == ChoiceSide::automatic) side = choose_side(shape, left, right, ell);
  if (side == ChoiceSide::left)
    return {true, {shape.rows, shape.inner, shape.columns}, {left.bits, left.is_signed, ell}};
  return {false, {shape.columns, shape.inner, shape.rows}, {right.bits, right.is_signed, ell}};
}

// The operand as choices or correlations of the oriented product; empty stays empty.
std::vector<u64> prepared(std::span<const u64> words, bool is_left, const Orientation& o,
                          const MatrixShape& shape, KnownFormat format, int ell) {
  std::vector<u64> operand = ring_elements(words, format, is_left == o.by_left ? 64 : ell);
  if (o.by_left || words.empty()) return operand;
  return is_left ? transposed(operand, shape.rows, shape.inner)
                 : transposed(operand, shape.inner, shape.columns);
}

void run_matrix(ot::Party& party, const std::vector<u64>& left, const std::vector<u64>& right,
                const Orientation& o, const MatrixShape& shape, std::span<u64> out) {
  vector_products(party, {&o.block, 1}, o.format, o.by_left ? left : right,
                  o.by_left ? right : left, out);
  if (o.by_left) return;
  const std::vector<u64> turned = transposed(out, shape.columns, shape.rows);
  std::copy(turned.begin(), turned.end(), out.begin());
}

}  // namespace

void matrix_cross_term(ot::Party& party, int left_holder, std::span<const u64> mine,
                       const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                       ChoiceSide side, std::span<u64> out) {
  const bool is_left = party.rank == left_holder;
  const i64 size = is_left ? shape.rows * shape.inner : shape.inner * shape.columns;
  expect(std::ssize(mine) == size && std::ssize(out) == shape.rows * shape.columns,
         "matrix_cross_term: operand lengths must match the shape");
  const Orientation o = orient(shape, left, right, ell, side);
  const std::vector<u64> operand = prepared(mine, is_left, o, shape, is_left ? left : right, ell);
  if (is_left) {
    run_matrix(party, operand, {}, o, shape, out);
  } else {
    run_matrix(party, {}, operand, o, shape, out);
  }
}

void cost_matrix_cross_term(ot::CostMeter& meter, int left_holder, const MatrixShape& shape,
                            KnownFormat left, KnownFormat right, int ell, ChoiceSide side) {
  const Orientation o = orient(shape, left, right, ell, side);
  const int sender = o.by_left ? 1 - left_holder : left_holder;
  cost_vector_products(meter, {sender == 0, sender == 1}, {&o.block, 1}, o.format);
}

void matrix_cross_terms(ot::Party& party, std::span<const u64> x, std::span<const u64> y,
                        const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                        ChoiceSide side, std::span<u64> out) {
  expect(std::ssize(x) == shape.rows * shape.inner &&
             std::ssize(y) == shape.inner * shape.columns &&
             std::ssize(out) == shape.rows * shape.columns,
         "matrix_cross_terms: operand lengths must match the shape");
  const Orientation o = orient(shape, left, right, ell, side);
  run_matrix(party, prepared(x, true, o, shape, left, ell),
             prepared(y, false, o, shape, right, ell), o, shape, out);
}

void cost_matrix_cross_terms(ot::CostMeter& meter, const MatrixShape& shape, KnownFormat left,
                             KnownFormat right, int ell, ChoiceSide side) {
  const Orientation o = orient(shape, left, right, ell, side);
  cost_vector_products(meter, {true, true}, {&o.block, 1}, o.format);
}

}  // namespace privml::twopc
