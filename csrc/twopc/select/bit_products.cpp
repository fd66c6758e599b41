// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/bit_products.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/pack.h"
#include "ot/derive.h"

namespace privml::twopc {
namespace {

constexpr int kMaxWidth = 8;
constexpr i64 kPiece = i64{1} << 14;  // bits packed at once

PRIVML_TARGET_CLONES
void mask_plane(const u8* __restrict x, const u8* __restrict strings, int shift, i64 n,
                u8* __restrict out) {
  for (i64 i = 0; i < n; ++i) out[i] = x[i] ^ (strings[i] >> shift & 1);
}

// (a ^ d)(b ^ e) with a, b, c = ab shared and d, e open: c ^ a e ^ d b, and d e at one party.
PRIVML_TARGET_CLONES
void combine_plane(const u8* __restrict d, const u8* __restrict e, const u8* __restrict a,
                   const u8* __restrict b, const u8* __restrict c, int shift, u8 keep, u8 first,
                   i64 n, u8* __restrict out) {
  for (i64 i = 0; i < n; ++i) {
    const u8 factor = (b[i] >> shift & 1) ^ (e[i] & first);
    out[i] = (out[i] & keep) ^ (c[i] >> shift & 1) ^ (a[i] & e[i]) ^ (d[i] & factor);
  }
}

std::vector<int> widths_of(const std::vector<PlaneProduct>& products) {
  std::vector<int> widths;
  for (const PlaneProduct& product : products) {
    widths.push_back(static_cast<int>(product.factors.size()));
  }
  return widths;
}

i64 plane_count(std::span<const int> widths) {
  i64 planes = 0;
  for (int width : widths) planes += 1 + width;
  return planes;
}

// Triples are drawn width by width: calls draw(width, number of products of this width).
template <class Draw>
void for_each_width(std::span<const int> widths, Draw&& draw) {
  for (int width = 1; width <= kMaxWidth; ++width) {
    const i64 count = std::count(widths.begin(), widths.end(), width);
    if (count > 0) draw(width, count);
  }
}

}  // namespace

void write_products(ot::Party& party, std::vector<PlaneProduct> products, i64 n,
                    PendingProducts& pending) {
  // Products of one width stand together, as their triples do.
  std::stable_sort(products.begin(), products.end(), [](const auto& x, const auto& y) {
    return x.factors.size() < y.factors.size();
  });
  const std::vector<int> widths = widths_of(products);
  const i64 triples = std::ssize(products) * n;
  pending.n = n;
  pending.a.resize(triples);
  pending.b.resize(triples);
  pending.c.resize(triples);
  pending.opened.resize(plane_count(widths) * n);
  i64 drawn = 0;
  for_each_width(widths, [&](int width, i64 count) {
    const auto part = [&](AlignedVector<u8>& v) {
      return std::span<u8>(v).subspan(drawn, count * n);
    };
    ot::bit_triples(party, count * n, width, part(pending.a), part(pending.b), part(pending.c));
    drawn += count * n;
  });
  u8* plane = pending.opened.data();
  for (i64 k = 0; k < std::ssize(products); ++k, plane += n) {
    mask_plane(products[k].common, pending.a.data() + k * n, 0, n, plane);
    for (std::size_t j = 0; j < products[k].factors.size(); ++j) {
      plane += n;
      mask_plane(products[k].factors[j].plane, pending.b.data() + k * n, static_cast<int>(j), n,
                 plane);
    }
  }
  pending.products = std::move(products);
  write_bits(party, pending.opened);
}

void read_products(ot::Party& party, PendingProducts& pending) {
  read_bits_xor(party, pending.opened);
  const i64 n = pending.n;
  const u8 first = party.rank == 0 ? 1 : 0;
  const u8* plane = pending.opened.data();
  for (i64 k = 0; k < std::ssize(pending.products); ++k) {
    const PlaneProduct& product = pending.products[k];
    const u8* const d = plane;
    plane += n;
    for (std::size_t j = 0; j < product.factors.size(); ++j, plane += n) {
      const Factor& factor = product.factors[j];
      combine_plane(d, plane, pending.a.data() + k * n, pending.b.data() + k * n,
                    pending.c.data() + k * n, static_cast<int>(j), factor.accumulate ? 1 : 0, first,
                    n, factor.out);
    }
  }
}

void multiply_planes(ot::Party& party, std::vector<PlaneProduct> products, i64 n) {
  PendingProducts pending;
  write_products(party, std::move(products), n, pending);
  read_products(party, pending);
}

i64 products_bytes(std::span<const int> widths, i64 n) {
  return packed_bytes(plane_count(widths) * n, 1);
}

void cost_draw_products(ot::CostMeter& meter, std::span<const int> widths, i64 n) {
  for_each_width(widths, [&](int, i64 count) { ot::cost_bit_triples(meter, count * n); });
}

void cost_multiply_planes(ot::CostMeter& meter, std::span<const int> widths, i64 n) {
  cost_draw_products(meter, widths, n);
  meter.exchange(products_bytes(widths, n), products_bytes(widths, n));
}

void write_bits(ot::Party& party, std::span<const u8> bits) {
  std::vector<u8> packed(packed_bytes(kPiece, 1));
  for (i64 begin = 0; begin < std::ssize(bits); begin += kPiece) {
    const i64 count = std::min(kPiece, std::ssize(bits) - begin);
    pack(bits.data() + begin, count, 1, packed.data());
    party.channel.write({packed.data(), static_cast<std::size_t>(packed_bytes(count, 1))});
  }
}

void read_bits_xor(ot::Party& party, std::span<u8> bits) {
  std::vector<u8> packed(packed_bytes(kPiece, 1)), theirs(kPiece);
  for (i64 begin = 0; begin < std::ssize(bits); begin += kPiece) {
    const i64 count = std::min(kPiece, std::ssize(bits) - begin);
    party.channel.read({packed.data(), static_cast<std::size_t>(packed_bytes(count, 1))});
    unpack(packed.data(), count, 1, theirs.data());
    u8* const mine = bits.data() + begin;
    for (i64 i = 0; i < count; ++i) mine[i] ^= theirs[i];
  }
}

}  // namespace privml::twopc
