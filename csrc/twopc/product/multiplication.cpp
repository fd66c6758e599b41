// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/multiplication.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ot/derive.h"
#include "twopc/compare/wrap.h"
#include "twopc/product/dense.h"
#include "twopc/product/private_product.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

void check(int m, int n, int ell, bool bounded) {
  expect(m >= 1 && n >= 1 && ell <= 64 && std::max(m, n) <= ell && ell <= m + n - (bounded ? 1 : 0),
         "multiply: needs max(m, n) <= ell <= m + n, less for bounded factors, and ell <= 64");
}

void check_format(FactorFormat format) {
  expect(!format.nonnegative || !format.negative, "multiply: nonnegative and negative");
  expect(!format.bounded ||
             (format.is_signed && format.bits >= 2 && !format.nonnegative && !format.negative),
         "multiply: a bounded factor is signed, and nothing else is known of it");
}

// Where the carry of x' = x'_0 + x'_1 is needed, and how it is found.
enum class WrapKind { none, general, known_msb };

WrapKind wrap_kind(FactorFormat f, int ell) {
  if (f.bits >= ell) return WrapKind::none;
  if (f.nonnegative || f.negative || f.bounded) return WrapKind::known_msb;
  return WrapKind::general;
}

struct Side {
  int bits;
  bool is_signed;
  bool negative;
  bool bounded;
  WrapKind kind;
};

Side side_of(FactorFormat f, int ell) {
  return {f.bits, f.is_signed, f.negative, f.bounded, wrap_kind(f, ell)};
}

// x' = x + 2^(m-1), or 2^(m-2) if that is enough, is the unsigned number whose product the
// shares make; the offset is taken out at the end.
u64 offset(const Side& side) {
  return side.is_signed ? u64{1} << (side.bits - (side.bounded ? 2 : 1)) : 0;
}

Words shifted(std::span<const u64> x, const Side& side, bool add) {
  Words out(x.begin(), x.end());
  const u64 plus = add ? offset(side) : 0;
  for (u64& word : out) word = (word + plus) & low_mask(side.bits);
  return out;
}

// The offset of a signed number flips its most significant bit.
u8 known_msb(const Side& side) {
  return side.bounded ? 0 : (side.is_signed ? 1 : 0) ^ (side.negative ? 1 : 0);
}

// Whether the wrap is there before the product's messages.
bool comes_first(const Side& side) { return side.kind == WrapKind::general; }

bool alike(const Side& x, const Side& y) {
  return x.kind == y.kind && x.bits == y.bits && x.is_signed == y.is_signed;
}

void wrap_of(ot::Party& party, const Side& side, std::span<const u64> x, std::span<u8> w) {
  if (side.kind == WrapKind::general) wrap(party, x, side.bits, w);
}

void cost_wrap_of(ot::CostMeter& meter, const Side& side, i64 n) {
  if (side.kind == WrapKind::general) cost_wrap(meter, n, side.bits);
}

template <class A, class B>
auto joined(const A& a, const B& b) {
  std::vector<std::remove_const_t<typename A::value_type>> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

struct Wraps {
  Bits x, y;
};

// Both wraps that come first; in one batch where they are of one kind and width.
Wraps early_wraps(ot::Party& party, const Side& fx, const Words& x, const Side& fy,
                  const Words& y) {
  const i64 n = std::ssize(x);
  Wraps w{Bits(n), Bits(n)};
  if (!alike(fx, fy)) {
    wrap_of(party, fx, x, w.x);
    wrap_of(party, fy, y, w.y);
  } else if (comes_first(fx)) {
    Bits both(2 * n);
    wrap_of(party, fx, joined(x, y), both);
    w.x.assign(both.begin(), both.begin() + n);
    w.y.assign(both.begin() + n, both.end());
  }
  return w;
}

void cost_early_wraps(ot::CostMeter& meter, const Side& fx, const Side& fy, i64 n) {
  if (!alike(fx, fy)) {
    cost_wrap_of(meter, fx, n);
    cost_wrap_of(meter, fy, n);
  } else {
    cost_wrap_of(meter, fx, 2 * n);
  }
}

// Wraps that follow from known bits: with msb = 0 m0 | m1, with msb = 1 m0 & m1.
struct KnownWraps {
  Bits flips;
  std::vector<Bits*> wraps;
  PrivateProduct pending;
};

void add_known(KnownWraps& known, Bits& factors, const Side& side, const Words& x, Bits& w) {
  if (side.kind != WrapKind::known_msb) return;
  const u8 flip = 1 ^ known_msb(side);
  for (const u64 word : x) factors.push_back(static_cast<u8>((word >> (side.bits - 1)) & 1) ^ flip);
  known.flips.push_back(flip);
  known.wraps.push_back(&w);
}

void read_known(ot::Party& party, KnownWraps& known) {
  Words products(known.pending.own.size());
  read_private_product(party, known.pending, products);
  for (size_t s = 0, at = 0; s < known.wraps.size(); ++s)
    for (u8& bit : *known.wraps[s])
      bit = static_cast<u8>(products[at++]) ^ (party.rank == 0 ? known.flips[s] : 0);
}

int count_known(const Side& fx, const Side& fy) {
  return (fx.kind == WrapKind::known_msb ? 1 : 0) + (fy.kind == WrapKind::known_msb ? 1 : 0);
}

// The values that a wrap selects, modulo 2^room, worth 2^bits each: a wrap of x is worth 2^m * y.
struct WrapProduct {
  const Bits& wraps;
  Words values;
  int room, bits;
  RandomSelection random = {};
  Bits difference = {};
};

void write_selections(ot::Party& party, std::vector<WrapProduct>& selections) {
  for (WrapProduct& s : selections) write_random_selection(party, s.values, 1, s.room, s.random);
}

// out -= 2^bits * (w ? value : 0)
void subtract_selected(const WrapProduct& s, std::span<u64> out) {
  Words product(s.values.size());
  select_values(s.random, s.values, s.difference, product);
  for (size_t k = 0; k < product.size(); ++k) out[k] -= product[k] << s.bits;
}

// The product of (x' - a)(y' - b) from that of x' y': -b x' - a y' + a b, shares read as integers
// with their wraps, which count for 2^(m+n-1) each (bounded: 2^(m+n-2)) and so only at the largest
// ell, where their exclusive or is their sum.
void remove_offsets(const ot::Party& party, const Side& fx, const Words& x, const Side& fy,
                    const Words& y, const Wraps& w, int ell, std::span<u64> out) {
  const u64 a = offset(fx), b = offset(fy);
  const u64 constant = party.rank == 0 ? a * b : 0;
  const u64 wrap_x = fx.bits < ell && fx.bits < 64 ? b << fx.bits : 0;
  const u64 wrap_y = fy.bits < ell && fy.bits < 64 ? a << fy.bits : 0;
  for (i64 k = 0; k < std::ssize(x); ++k) {
    out[k] += constant - b * x[k] - a * y[k] + wrap_x * w.x[k] + wrap_y * w.y[k];
    out[k] &= low_mask(ell);
  }
}

void multiply_chunk(ot::Party& party, std::span<const u64> x_in, FactorFormat x_format,
                    std::span<const u64> y_in, FactorFormat y_format, int ell, std::span<u64> out) {
  const Side fx = side_of(x_format, ell), fy = side_of(y_format, ell);
  const bool first = party.rank == 0;
  const Words x = shifted(x_in, fx, first), y = shifted(y_in, fy, first);
  Wraps w = early_wraps(party, fx, x, fy, y);
  KnownWraps known;
  Bits factors;
  add_known(known, factors, fx, x, w.x);
  add_known(known, factors, fy, y, w.y);
  std::vector<WrapProduct> selections;
  if (ell > fx.bits) selections.push_back({w.x, y, ell - fx.bits, fx.bits});
  if (ell > fy.bits) selections.push_back({w.y, x, ell - fy.bits, fy.bits});
  const Companion companion{[&] {
                              if (!factors.empty())
                                write_private_product(party, factors, 1, known.pending);
                              write_selections(party, selections);
                            },
                            [&] {
                              if (!factors.empty()) read_known(party, known);
                              for (WrapProduct& s : selections)
                                read_random_selection(party, s.random);
                            },
                            [&] {
                              for (WrapProduct& s : selections) {
                                s.difference.resize(s.wraps.size());
                                write_difference(party, s.wraps, s.random.bits, s.difference);
                              }
                            },
                            [&] {
                              for (WrapProduct& s : selections) read_bits_xor(party, s.difference);
                            }};
  cross_terms(party, x, y, {fx.bits, false}, {fy.bits, false}, ell, out, companion);
  for (const WrapProduct& s : selections) subtract_selected(s, out);
  for (i64 k = 0; k < std::ssize(x); ++k) out[k] += x[k] * y[k];
  remove_offsets(party, fx, x, fy, y, w, ell, out);
}

void cost_multiply_chunk(ot::CostMeter& meter, i64 n, FactorFormat x_format, FactorFormat y_format,
                         int ell) {
  const Side fx = side_of(x_format, ell), fy = side_of(y_format, ell);
  cost_early_wraps(meter, fx, fy, n);
  CompanionFlights flights;
  if (const i64 known = n * count_known(fx, fy); known > 0) {
    cost_draw_private_product(meter, known);
    flights.first = private_product_flight(known, 1);
  }
  for (const int bits : {fx.bits, fy.bits}) {
    if (ell <= bits) continue;
    cost_draw_random_selection(meter, n);
    flights.first = flights.first + random_selection_flight(n, 1, ell - bits);
    flights.last = flights.last + Flight{packed_bytes(n, 1), packed_bytes(n, 1)};
  }
  cost_cross_terms(meter, n, {fx.bits, false}, {fy.bits, false}, ell, flights);
}

// What stands between the flights of 2^bits * w * y, w the wrap of x and y known to `owner`: w_o y
// + (1 - 2 w_o) y w_other. A wrap that follows from a known bit is a product of bits that each
// party has of its own top bit, or one less that, and needs no flight: y a_o a_other.
struct OwnedWrap {
  bool known;
  u8 flip;  // the wrap is flip ^ the product
  Bits bits;
  WipedVector<crypto::Block> cots;
  Words carried;
};

OwnedWrap owned_wrap(ot::Party& party, const Side& fx, const Words& x) {
  const i64 n = std::ssize(x);
  OwnedWrap w{fx.kind == WrapKind::known_msb, 0, Bits(n), {}, Words(n, 0)};
  if (fx.kind == WrapKind::none) return w;
  w.cots.resize(n);
  if (!w.known) {
    wrap(party, x, fx.bits, w.bits);
    return w;
  }
  w.flip = 1 ^ known_msb(fx);
  for (i64 k = 0; k < n; ++k) w.bits[k] = static_cast<u8>(x[k] >> (fx.bits - 1) & 1) ^ w.flip;
  return w;
}

// The owner's messages in Z_{2^room}, and its share of w * y.
void send_owned_wrap(ot::Party& party, OwnedWrap& w, const Words& y, int room) {
  const i64 n = std::ssize(y);
  Words correlation(n);
  for (i64 k = 0; k < n; ++k) {
    const u64 own = w.bits[k] * y[k];
    correlation[k] = w.known ? (w.flip ? u64{0} - own : own) : y[k] - 2 * own;
  }
  ot::additive_send(party, w.cots.data(), correlation, 1, room, w.carried);
  for (i64 k = 0; k < n; ++k) w.carried[k] += (w.known ? w.flip : w.bits[k]) * y[k];
}

void multiply_owned_chunk(ot::Party& party, int owner, std::span<const u64> x_in,
                          FactorFormat x_format, std::span<const u64> y_in, KnownFormat y_format,
                          int ell, std::span<u64> out) {
  const Side fx = side_of(x_format, ell);
  const bool owns = party.rank == owner;
  const i64 n = std::ssize(x_in);
  const int room = ell - fx.bits;
  const Words x = shifted(x_in, fx, party.rank == 0);
  const Words y = owns ? ring_elements(y_in, y_format, ell) : Words{};
  OwnedWrap w = owned_wrap(party, fx, x);
  Companion companion;
  if (fx.kind != WrapKind::none && owns) {
    companion.read_first = [&] { ot::choose_send(party, w.cots.data(), n); };
    companion.write_last = [&] { send_owned_wrap(party, w, y, room); };
  } else if (fx.kind != WrapKind::none) {
    companion.write_first = [&] { ot::choose_receive(party, w.bits, w.cots.data()); };
    companion.read_last = [&] {
      ot::additive_receive(party, w.cots.data(), w.bits, 1, room, w.carried);
    };
  }
  cross_term(party, 1 - owner, owns ? y_in : std::span<const u64>(x), {fx.bits, false}, y_format,
             ell, ChoiceSide::automatic, out, companion);
  if (fx.kind != WrapKind::none)
    for (i64 k = 0; k < n; ++k) out[k] -= w.carried[k] << fx.bits;
  const u64 a = offset(fx);
  if (owns)
    for (i64 k = 0; k < n; ++k) out[k] += (x[k] - a) * y[k];
  for (u64& value : out) value &= low_mask(ell);
}

void cost_multiply_owned_chunk(ot::CostMeter& meter, int owner, i64 n, FactorFormat x_format,
                               KnownFormat y_format, int ell) {
  const Side fx = side_of(x_format, ell);
  CompanionFlights flights;
  cost_wrap_of(meter, fx, n);
  if (fx.kind != WrapKind::none) {
    meter.draw(owner, n);
    const i64 choices = packed_bytes(n, 1), stream = packed_bytes(n, ell - fx.bits);
    flights.first = owner == 0 ? Flight{0, choices} : Flight{choices, 0};
    flights.last = owner == 0 ? Flight{stream, 0} : Flight{0, stream};
  }
  cost_cross_term(meter, 1 - owner, n, {fx.bits, false}, y_format, ell, ChoiceSide::automatic,
                  flights);
}

}  // namespace

void multiply(ot::Party& party, std::span<const u64> x, FactorFormat x_format,
              std::span<const u64> y, FactorFormat y_format, int ell, std::span<u64> out) {
  check(x_format.bits, y_format.bits, ell, x_format.bounded || y_format.bounded);
  expect(x.size() == y.size() && x.size() == out.size(), "multiply: lengths differ");
  check_format(x_format);
  check_format(y_format);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& m, i64 n) { cost_multiply_chunk(m, n, x_format, y_format, ell); },
      [&](i64 begin, i64 n) {
        multiply_chunk(party, x.subspan(begin, n), x_format, y.subspan(begin, n), y_format, ell,
                       out.subspan(begin, n));
      });
}

void cost_multiply(ot::CostMeter& meter, i64 count, FactorFormat x_format, FactorFormat y_format,
                   int ell) {
  cost_in_chunks(meter, count, [&](ot::CostMeter& m, i64 n) {
    cost_multiply_chunk(m, n, x_format, y_format, ell);
  });
}

void multiply_owned(ot::Party& party, int owner, std::span<const u64> x, FactorFormat x_format,
                    std::span<const u64> y, KnownFormat y_format, int ell, std::span<u64> out) {
  check(x_format.bits, y_format.bits, ell, false);
  check_format(x_format);
  expect(owner == 0 || owner == 1, "multiply_owned: owner must be 0 or 1");
  const bool owns = party.rank == owner;
  expect(x.size() == out.size() && (!owns || y.size() == x.size()),
         "multiply_owned: lengths differ");
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& m, i64 n) {
        cost_multiply_owned_chunk(m, owner, n, x_format, y_format, ell);
      },
      [&](i64 begin, i64 n) {
        multiply_owned_chunk(party, owner, x.subspan(begin, n), x_format,
                             owns ? y.subspan(begin, n) : std::span<const u64>{}, y_format, ell,
                             out.subspan(begin, n));
      });
}

void cost_multiply_owned(ot::CostMeter& meter, int owner, i64 count, FactorFormat x_format,
                         KnownFormat y_format, int ell) {
  cost_in_chunks(meter, count, [&](ot::CostMeter& m, i64 n) {
    cost_multiply_owned_chunk(m, owner, n, x_format, y_format, ell);
  });
}

}  // namespace privml::twopc
