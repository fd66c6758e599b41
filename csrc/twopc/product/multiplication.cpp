// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/multiplication.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ot/derive.h"
#include "twopc/compare/wrap.h"
#include "twopc/product/dense.h"
#include "twopc/select/multiplex.h"
#include "twopc/session/chunk.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

void check(int m, int n, int ell) {
  expect(m >= 1 && n >= 1 && ell <= 64 && std::max(m, n) <= ell && ell <= m + n,
         "multiply: needs max(m, n) <= ell <= m + n and ell <= 64");
}

void check_msbs(FactorFormat format, std::span<const u8> msbs, size_t count) {
  expect(!format.nonnegative || !format.negative, "multiply: nonnegative and negative");
  expect(msbs.size() == (format.shared_msb ? count : 0),
         "multiply: shared most significant bits are passed where the format has them");
}

std::span<const u8> part(std::span<const u8> bits, i64 begin, i64 n) {
  return bits.empty() ? bits : bits.subspan(begin, n);
}

// x' = x + 2^(m-1) is the unsigned number whose product the shares make; the offset is taken out at
// the end.
u64 offset(int bits, bool is_signed) { return is_signed ? u64{1} << (bits - 1) : 0; }

Words shifted(std::span<const u64> x, int bits, bool is_signed, bool add) {
  Words out(x.begin(), x.end());
  const u64 plus = add ? offset(bits, is_signed) : 0;
  for (u64& word : out) word = (word + plus) & low_mask(bits);
  return out;
}

// Where the carry of x' = x'_0 + x'_1 is needed, and how it is found.
enum class WrapKind { none, general, known_msb, shared_msb };

WrapKind wrap_kind(FactorFormat f, int ell) {
  if (f.bits >= ell) return WrapKind::none;
  if (f.nonnegative || f.negative) return WrapKind::known_msb;
  return f.shared_msb ? WrapKind::shared_msb : WrapKind::general;
}

struct Side {
  int bits;
  bool is_signed;
  bool negative;
  WrapKind kind;
};

Side side_of(FactorFormat f, int ell) {
  return {f.bits, f.is_signed, f.negative, wrap_kind(f, ell)};
}

// The offset of a signed number flips its most significant bit.
u8 known_msb(const Side& side) { return (side.is_signed ? 1 : 0) ^ (side.negative ? 1 : 0); }

Bits flipped_msb(const Party& party, const Side& side, std::span<const u8> msb) {
  Bits out(msb.begin(), msb.end());
  if (side.is_signed && party.rank == 0)
    for (u8& bit : out) bit ^= 1;
  return out;
}

bool alike(const Side& x, const Side& y) {
  return x.kind == y.kind && x.bits == y.bits && x.is_signed == y.is_signed &&
         (x.kind != WrapKind::known_msb || x.negative == y.negative);
}

void wrap_of(Party& party, const Side& side, std::span<const u64> x, std::span<const u8> msb,
             std::span<u8> w) {
  if (side.kind == WrapKind::general) wrap(party, x, side.bits, w);
  if (side.kind == WrapKind::known_msb) wrap_known_msb(party, x, side.bits, known_msb(side), w);
  if (side.kind == WrapKind::shared_msb)
    wrap_shared_msb(party, x, side.bits, flipped_msb(party, side, msb), w);
}

void cost_wrap_of(CostMeter& meter, const Side& side, i64 n) {
  if (side.kind == WrapKind::general) cost_wrap(meter, n, side.bits);
  if (side.kind == WrapKind::known_msb) cost_wrap_known_msb(meter, n);
  if (side.kind == WrapKind::shared_msb) cost_wrap_shared_msb(meter, n);
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

// Both wraps; in one batch where they are of one kind and width.
Wraps wraps(Party& party, const Side& fx, const Words& x, const Side& fy, const Words& y,
            FactorMsbs msbs) {
  const i64 n = std::ssize(x);
  Wraps w{Bits(n), Bits(n)};
  if (!alike(fx, fy)) {
    wrap_of(party, fx, x, msbs.x, w.x);
    wrap_of(party, fy, y, msbs.y, w.y);
  } else if (fx.kind != WrapKind::none) {
    Bits both(2 * n);
    wrap_of(party, fx, joined(x, y), joined(msbs.x, msbs.y), both);
    w.x.assign(both.begin(), both.begin() + n);
    w.y.assign(both.begin() + n, both.end());
  }
  return w;
}

void cost_wraps(CostMeter& meter, const Side& fx, const Side& fy, i64 n) {
  if (!alike(fx, fy)) {
    cost_wrap_of(meter, fx, n);
    cost_wrap_of(meter, fy, n);
  } else {
    cost_wrap_of(meter, fx, 2 * n);
  }
}

// out -= 2^bits * (w ? value : 0), for both operands' wraps; a wrap of x is worth 2^m * y modulo
// 2^(ell - m).
void subtract_wraps(Party& party, const Side& fx, const Words& x, const Side& fy, const Words& y,
                    const Wraps& w, int ell, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const int room_x = ell - fx.bits, room_y = ell - fy.bits;
  if (room_x == room_y && room_x > 0) {
    Words product(2 * n);
    Bits bits(w.x);
    bits.insert(bits.end(), w.y.begin(), w.y.end());
    multiplex(party, bits, joined(y, x), room_x, product);
    for (i64 k = 0; k < n; ++k) out[k] -= (product[k] << fx.bits) + (product[n + k] << fy.bits);
    return;
  }
  const auto one = [&](const Bits& bits, const Words& value, int room, int shift) {
    if (room <= 0) return;
    Words product(n);
    multiplex(party, bits, value, room, product);
    for (i64 k = 0; k < n; ++k) out[k] -= product[k] << shift;
  };
  one(w.x, y, room_x, fx.bits);
  one(w.y, x, room_y, fy.bits);
}

void cost_subtract_wraps(CostMeter& meter, const Side& fx, const Side& fy, i64 n, int ell) {
  const int room_x = ell - fx.bits, room_y = ell - fy.bits;
  if (room_x == room_y && room_x > 0) {
    cost_multiplex(meter, 2 * n, room_x);
    return;
  }
  if (room_x > 0) cost_multiplex(meter, n, room_x);
  if (room_y > 0) cost_multiplex(meter, n, room_y);
}

// The product of (x' - a)(y' - b) from that of x' y': -b x' - a y' + a b, shares read as integers
// with their wraps, which count for 2^(m+n-1) each and so only at ell = m + n.
void remove_offsets(const Party& party, const Side& fx, const Words& x, const Side& fy,
                    const Words& y, const Wraps& w, int ell, std::span<u64> out) {
  const u64 a = offset(fx.bits, fx.is_signed), b = offset(fy.bits, fy.is_signed);
  const u64 constant = party.rank == 0 ? a * b : 0;
  const u64 wrap_x = fx.bits < ell && fx.bits < 64 ? b << fx.bits : 0;
  const u64 wrap_y = fy.bits < ell && fy.bits < 64 ? a << fy.bits : 0;
  for (i64 k = 0; k < std::ssize(x); ++k) {
    out[k] += constant - b * x[k] - a * y[k] + wrap_x * w.x[k] + wrap_y * w.y[k];
    out[k] &= low_mask(ell);
  }
}

void multiply_chunk(Party& party, std::span<const u64> x_in, FactorFormat x_format,
                    std::span<const u64> y_in, FactorFormat y_format, int ell, std::span<u64> out,
                    FactorMsbs msbs) {
  const Side fx = side_of(x_format, ell), fy = side_of(y_format, ell);
  const bool first = party.rank == 0;
  const Words x = shifted(x_in, fx.bits, fx.is_signed, first),
              y = shifted(y_in, fy.bits, fy.is_signed, first);
  cross_terms(party, x, y, {fx.bits, false}, {fy.bits, false}, ell, out);
  const Wraps w = wraps(party, fx, x, fy, y, msbs);
  subtract_wraps(party, fx, x, fy, y, w, ell, out);
  for (i64 k = 0; k < std::ssize(x); ++k) out[k] += x[k] * y[k];
  remove_offsets(party, fx, x, fy, y, w, ell, out);
}

void cost_multiply_chunk(CostMeter& meter, i64 n, FactorFormat x_format, FactorFormat y_format,
                         int ell) {
  const Side fx = side_of(x_format, ell), fy = side_of(y_format, ell);
  cost_cross_terms(meter, n, {fx.bits, false}, {fy.bits, false}, ell);
  cost_wraps(meter, fx, fy, n);
  cost_subtract_wraps(meter, fx, fy, n, ell);
}

// out -= 2^bits * w * y, y known to `owner`: w_o y + (1 - 2 w_o) y w_other, the second by one
// transfer.
void subtract_owned_wrap(Party& party, int owner, const Bits& w, const Words& y, int bits, int room,
                         std::span<u64> out) {
  const i64 n = std::ssize(w);
  WipedVector<Block> cots(n);
  Words share(n);
  if (party.rank == owner) {
    Words correlation(n);
    for (i64 k = 0; k < n; ++k) correlation[k] = w[k] * (u64{0} - 2 * y[k]) + y[k];
    choose_send(party, cots.data(), n);
    additive_send(party, cots.data(), correlation, 1, room, share);
    for (i64 k = 0; k < n; ++k) share[k] += w[k] * y[k];
  } else {
    choose_receive(party, w, cots.data());
    additive_receive(party, cots.data(), w, 1, room, share);
  }
  for (i64 k = 0; k < n; ++k) out[k] -= share[k] << bits;
}

void multiply_owned_chunk(Party& party, int owner, std::span<const u64> x_in, FactorFormat x_format,
                          std::span<const u64> y_in, KnownFormat y_format, int ell,
                          std::span<u64> out) {
  const Side fx = side_of(x_format, ell);
  const bool owns = party.rank == owner;
  const i64 n = std::ssize(x_in);
  const Words x = shifted(x_in, fx.bits, fx.is_signed, party.rank == 0);
  const Words y = owns ? ring_elements(y_in, y_format, ell) : Words{};
  cross_term(party, 1 - owner, owns ? y_in : std::span<const u64>(x), {fx.bits, false}, y_format,
             ell, ChoiceSide::automatic, out);
  if (fx.kind != WrapKind::none) {
    Bits w(n);
    wrap_of(party, fx, x, {}, w);
    subtract_owned_wrap(party, owner, w, y, fx.bits, ell - fx.bits, out);
  }
  const u64 a = offset(fx.bits, fx.is_signed);
  if (owns)
    for (i64 k = 0; k < n; ++k) out[k] += (x[k] - a) * y[k];
  for (u64& value : out) value &= low_mask(ell);
}

void cost_multiply_owned_chunk(CostMeter& meter, int owner, i64 n, FactorFormat x_format,
                               KnownFormat y_format, int ell) {
  const Side fx = side_of(x_format, ell);
  cost_cross_term(meter, 1 - owner, n, {fx.bits, false}, y_format, ell, ChoiceSide::automatic);
  if (fx.kind == WrapKind::none) return;
  cost_wrap_of(meter, fx, n);
  cost_choose(meter, owner, n);
  cost_additive(meter, owner, n, 1, ell - fx.bits);
}

}  // namespace

void multiply(Party& party, std::span<const u64> x, FactorFormat x_format, std::span<const u64> y,
              FactorFormat y_format, int ell, std::span<u64> out, FactorMsbs msbs) {
  check(x_format.bits, y_format.bits, ell);
  expect(x.size() == y.size() && x.size() == out.size(), "multiply: lengths differ");
  check_msbs(x_format, msbs.x, x.size());
  check_msbs(y_format, msbs.y, y.size());
  in_chunks(
      party, std::ssize(x),
      [&](CostMeter& m, i64 n) { cost_multiply_chunk(m, n, x_format, y_format, ell); },
      [&](i64 begin, i64 n) {
        multiply_chunk(party, x.subspan(begin, n), x_format, y.subspan(begin, n), y_format, ell,
                       out.subspan(begin, n), {part(msbs.x, begin, n), part(msbs.y, begin, n)});
      });
}

void cost_multiply(CostMeter& meter, i64 count, FactorFormat x_format, FactorFormat y_format,
                   int ell) {
  cost_in_chunks(meter, count,
                 [&](CostMeter& m, i64 n) { cost_multiply_chunk(m, n, x_format, y_format, ell); });
}

void multiply_owned(Party& party, int owner, std::span<const u64> x, FactorFormat x_format,
                    std::span<const u64> y, KnownFormat y_format, int ell, std::span<u64> out) {
  check(x_format.bits, y_format.bits, ell);
  expect(owner == 0 || owner == 1, "multiply_owned: owner must be 0 or 1");
  expect(!x_format.shared_msb, "multiply_owned: a shared most significant bit is not supported");
  const bool owns = party.rank == owner;
  expect(x.size() == out.size() && (!owns || y.size() == x.size()),
         "multiply_owned: lengths differ");
  in_chunks(
      party, std::ssize(x),
      [&](CostMeter& m, i64 n) { cost_multiply_owned_chunk(m, owner, n, x_format, y_format, ell); },
      [&](i64 begin, i64 n) {
        multiply_owned_chunk(party, owner, x.subspan(begin, n), x_format,
                             owns ? y.subspan(begin, n) : std::span<const u64>{}, y_format, ell,
                             out.subspan(begin, n));
      });
}

void cost_multiply_owned(CostMeter& meter, int owner, i64 count, FactorFormat x_format,
                         KnownFormat y_format, int ell) {
  cost_in_chunks(meter, count, [&](CostMeter& m, i64 n) {
    cost_multiply_owned_chunk(m, owner, n, x_format, y_format, ell);
  });
}

}  // namespace privml
