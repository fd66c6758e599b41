// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/bit_chains.h"

#include "base/multiversion.h"
#include "base/pack.h"
#include "ot/derive.h"

namespace privml::twopc {
namespace {

// Places among the planes of a chain's masks.
constexpr int kA = 0, kB = 1, kProduct = 2, kMiddle = 3;
int last_place(ChainShape shape, int j) { return kMiddle + (shape.middle ? 2 : 0) + 4 * j; }
int plane_count(ChainShape shape) { return last_place(shape, shape.last); }
// Opened planes of a product.
int opened_count(ChainShape shape) { return 2 + (shape.middle ? 1 : 0) + shape.last; }
// Factors of the triple whose common one is a.
int triple_width(ChainShape shape) { return opened_count(shape) - 1; }

std::vector<int> product_widths(std::span<const ChainShape> shapes) {
  std::vector<int> widths;
  for (const ChainShape& shape : shapes) widths.push_back(2 * shape.last);
  return widths;
}

i64 opened_planes(std::span<const ChainShape> shapes) {
  i64 planes = 0;
  for (const ChainShape& shape : shapes) planes += opened_count(shape);
  return planes;
}

PRIVML_TARGET_CLONES
void take_bit(const u8* __restrict strings, int place, i64 n, u8* __restrict out) {
  for (i64 i = 0; i < n; ++i) out[i] = strings[i] >> place & 1;
}

PRIVML_TARGET_CLONES
void mask_plane(const u8* __restrict x, const u8* __restrict mask, i64 n, u8* __restrict out) {
  for (i64 i = 0; i < n; ++i) out[i] = x[i] ^ mask[i];
}

// The triple a (b, u, w, ...), cut into planes.
void draw_masks(ot::Party& party, ChainShape shape, i64 n, AlignedVector<u8>& planes) {
  AlignedVector<u8> b(n), c(n);
  planes.resize(plane_count(shape) * n);
  const auto plane = [&](int place) { return planes.data() + place * n; };
  ot::bit_triples(party, n, triple_width(shape), std::span(planes).first(n), b, c);
  int bit = 0;
  const auto take = [&](int factor, int product) {
    take_bit(b.data(), bit, n, plane(factor));
    take_bit(c.data(), bit++, n, plane(product));
  };
  take(kB, kProduct);
  if (shape.middle) take(kMiddle, kMiddle + 1);
  for (int j = 0; j < shape.last; ++j) take(last_place(shape, j), last_place(shape, j) + 1);
}

// b times w and aw.
PlaneProduct mask_product(ChainShape shape, i64 n, AlignedVector<u8>& planes) {
  const auto plane = [&](int place) { return planes.data() + place * n; };
  PlaneProduct product{plane(kB), {}};
  for (int j = 0; j < shape.last; ++j) {
    const int w = last_place(shape, j);
    product.factors.push_back({plane(w), plane(w + 2), false});
    product.factors.push_back({plane(w + 1), plane(w + 3), false});
  }
  return product;
}

struct Opened {
  const u8* first;
  const u8* second;
};

// (a ^ d)(u ^ f) with u, au at `masks`.
PRIVML_TARGET_CLONES
void combine_middle(const u8* __restrict d, const u8* __restrict f, const u8* __restrict a,
                    const u8* __restrict masks, u8 first, i64 n, u8* __restrict out) {
  const u8* const u = masks;
  const u8* const au = masks + n;
  for (i64 i = 0; i < n; ++i) {
    out[i] ^= au[i] ^ (a[i] & f[i]) ^ (d[i] & (u[i] ^ (f[i] & first)));
  }
}

// (a ^ d)(b ^ e)(w ^ g) with a, b, ab at `masks` and w, aw, bw, abw at `last`.
PRIVML_TARGET_CLONES
void combine_last(Opened opened, const u8* __restrict g, const u8* __restrict masks,
                  const u8* __restrict last, u8 keep, u8 first, i64 n, u8* __restrict out) {
  const u8 *const a = masks, *const b = masks + n, *const ab = masks + 2 * n;
  const u8 *const w = last, *const aw = last + n, *const bw = last + 2 * n,
                  *const abw = last + 3 * n;
  for (i64 i = 0; i < n; ++i) {
    const u8 d = opened.first[i], e = opened.second[i];
    const u8 without = ab[i] ^ (d & b[i]) ^ (e & (a[i] ^ (d & first)));
    const u8 with = abw[i] ^ (d & bw[i]) ^ (e & (aw[i] ^ (d & w[i])));
    out[i] = (out[i] & keep) ^ with ^ (g[i] & without);
  }
}

}  // namespace

void write_chain_masks(ot::Party& party, std::vector<ChainShape> shapes, i64 n, ChainMasks& masks) {
  masks.n = n;
  masks.shapes = std::move(shapes);
  if (masks.shapes.empty()) return;
  masks.planes.resize(masks.shapes.size());
  std::vector<PlaneProduct> products;
  for (size_t k = 0; k < masks.shapes.size(); ++k) {
    draw_masks(party, masks.shapes[k], n, masks.planes[k]);
    products.push_back(mask_product(masks.shapes[k], n, masks.planes[k]));
  }
  write_products(party, std::move(products), n, masks.products);
}

void read_chain_masks(ot::Party& party, ChainMasks& masks) {
  if (!masks.shapes.empty()) read_products(party, masks.products);
}

i64 chain_masks_bytes(std::span<const ChainShape> shapes, i64 n) {
  return products_bytes(product_widths(shapes), n);
}

void cost_draw_chain_masks(ot::CostMeter& meter, std::span<const ChainShape> shapes, i64 n) {
  if (shapes.empty()) return;
  ot::cost_bit_triples(meter, std::ssize(shapes) * n);
  cost_draw_products(meter, product_widths(shapes), n);
}

void write_chains(ot::Party& party, const ChainMasks& masks, size_t begin,
                  std::vector<PlaneChain> chains, PendingChains& pending) {
  const i64 n = masks.n;
  const auto shapes = std::span(masks.shapes).subspan(begin, chains.size());
  pending.begin = begin;
  pending.opened.resize(opened_planes(shapes) * n);
  u8* plane = pending.opened.data();
  for (size_t k = 0; k < chains.size(); ++k) {
    const PlaneChain& chain = chains[k];
    const auto write = [&](const u8* factor, int place) {
      mask_plane(factor, masks.planes[begin + k].data() + place * n, n, plane);
      plane += n;
    };
    write(chain.first, kA);
    write(chain.second, kB);
    if (shapes[k].middle) write(chain.middle, kMiddle);
    for (int j = 0; j < shapes[k].last; ++j) write(chain.last[j].plane, last_place(shapes[k], j));
  }
  pending.chains = std::move(chains);
  write_bits(party, pending.opened);
}

void read_chains(ot::Party& party, const ChainMasks& masks, PendingChains& pending) {
  read_bits_xor(party, pending.opened);
  const i64 n = masks.n;
  const u8 first = party.rank == 0 ? 1 : 0;
  const u8* plane = pending.opened.data();
  for (size_t k = 0; k < pending.chains.size(); ++k) {
    const PlaneChain& chain = pending.chains[k];
    const ChainShape shape = masks.shapes[pending.begin + k];
    const u8* const own = masks.planes[pending.begin + k].data();
    const Opened opened{plane, plane + n};
    plane += 2 * n;
    if (shape.middle) {
      combine_middle(opened.first, plane, own, own + kMiddle * n, first, n, chain.middle_out);
      plane += n;
    }
    for (int j = 0; j < shape.last; ++j, plane += n) {
      const Factor& factor = chain.last[j];
      combine_last(opened, plane, own, own + last_place(shape, j) * n, factor.accumulate ? 1 : 0,
                   first, n, factor.out);
    }
  }
}

i64 chains_bytes(std::span<const ChainShape> shapes, i64 n) {
  return packed_bytes(opened_planes(shapes) * n, 1);
}

}  // namespace privml::twopc
