// SPDX-License-Identifier: Apache-2.0
#include "threepc/comparison.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/wipe.h"

namespace privml::threepc {
namespace {

// Bytes of every plane that are computed at a time.
constexpr i64 kTile = 64;

struct alignas(kTile) Tile {
  u64 words[kTile / sizeof(u64)];

  Tile& operator^=(const Tile& other) { return *this = *this ^ other; }
  Tile& operator|=(const Tile& other) { return *this = *this | other; }
  friend Tile operator^(Tile a, const Tile& b) {
    for (int i = 0; i < 8; ++i) a.words[i] ^= b.words[i];
    return a;
  }
  friend Tile operator&(Tile a, const Tile& b) {
    for (int i = 0; i < 8; ++i) a.words[i] &= b.words[i];
    return a;
  }
  friend Tile operator|(Tile a, const Tile& b) {
    for (int i = 0; i < 8; ++i) a.words[i] |= b.words[i];
    return a;
  }
};

constexpr int kTable = 1 << kLargestBlock;
constexpr int kSubsets = 1 << kLargestNode;

inline Tile load(const u8* from, i64 count) {
  Tile tile{};
  std::memcpy(&tile, from, count);
  return tile;
}

inline void store(u8* to, const Tile& tile, i64 count) { std::memcpy(to, &tile, count); }

// A share of 1 in every place.
inline Tile public_one(int party) {
  Tile tile{};
  if (party == 0)
    for (u64& word : tile.words) word = ~u64{0};
  return tile;
}

bool several_bits(int chosen) { return (chosen & (chosen - 1)) != 0; }

// Products of masks of one node: with g of block 1, 2, ... and any p before it; then of several p.
int node_products(int size, bool whole) {
  int count = 0;
  for (int block = 1; block < size; ++block) count += (1 << block) - 1;
  const int factors = whole ? size : size - 1;
  return count + (1 << factors) - 1 - factors;
}

void check_sizes(std::span<const int> sizes, int most) {
  expect(!sizes.empty(), "a comparison needs at least one block");
  for (const int size : sizes) expect(size >= 1 && size <= most, "a block or node is too large");
}

// [number > v] for v = 0 .. 2^bits - 2.
PRIVML_TARGET_CLONES
void deal_table(const u8* r, int bits, i64 size, u8* out) {
  Tile table[kTable];
  for (i64 begin = 0; begin < size; begin += kTile) {
    const i64 count = std::min(kTile, size - begin);
    int entries = 0;
    for (int bit = 0; bit < bits; ++bit) {
      const Tile here = load(r + bit * size + begin, count);
      for (int v = 0; v < entries; ++v) table[entries + 1 + v] = table[v] & here;
      for (int v = 0; v < entries; ++v) table[v] |= here;
      table[entries] = here;
      entries = 2 * entries + 1;
    }
    for (int v = 0; v < entries; ++v) store(out + v * size + begin, table[v], count);
  }
  wipe(table, sizeof table);
}

// `g`, `p`: the node's first planes of the masks.
PRIVML_TARGET_CLONES
void deal_node(const u8* g, const u8* p, int node, bool whole, i64 size, u8* out) {
  const int factors = whole ? node : node - 1;
  Tile of_p[kSubsets];
  for (i64 begin = 0; begin < size; begin += kTile) {
    const i64 count = std::min(kTile, size - begin);
    for (int factor = 0; factor < factors; ++factor) {
      const Tile here = load(p + factor * size + begin, count);
      of_p[1 << factor] = here;
      for (int rest = 1; rest < 1 << factor; ++rest) of_p[(1 << factor) + rest] = here & of_p[rest];
    }
    u8* to = out + begin;
    for (int block = 1; block < node; ++block) {
      const Tile here = load(g + block * size + begin, count);
      for (int chosen = 1; chosen < 1 << block; ++chosen, to += size)
        store(to, of_p[chosen] & here, count);
    }
    for (int chosen = 3; chosen < 1 << factors; ++chosen) {
      if (!several_bits(chosen)) continue;
      store(to, of_p[chosen], count);
      to += size;
    }
  }
  wipe(of_p, sizeof of_p);
}

// One block of one row: g, and p unless it is null.
PRIVML_TARGET_CLONES
void compare_block(int party, int bits, const u8* m, i64 stride, const u8* table, i64 size, u8* g,
                   u8* p) {
  const Tile one = public_one(party);
  const int entries = 1 << bits;
  Tile above[kTable], from[kTable];  // [r > v], [r >= v]
  for (i64 begin = 0; begin < size; begin += kTile) {
    const i64 count = std::min(kTile, size - begin);
    from[0] = one;
    for (int v = 0; v + 1 < entries; ++v)
      above[v] = from[v + 1] = load(table + v * size + begin, count);
    above[entries - 1] = Tile{};
    for (int bit = 0, left = entries / 2; bit < bits; ++bit, left /= 2) {
      const Tile here = load(m + bit * stride + begin, count);
      for (int v = 0; v < left; ++v) {
        above[v] = above[2 * v] ^ ((above[2 * v] ^ above[2 * v + 1]) & here);
        from[v] = from[2 * v] ^ ((from[2 * v] ^ from[2 * v + 1]) & here);
      }
    }
    store(g + begin, above[0], count);
    if (p != nullptr) store(p + begin, above[0] ^ from[0], count);
  }
  wipe(above, sizeof above);
  wipe(from, sizeof from);
}

// Planes of a node: what was opened of g and p, and this party's parts of their masks.
struct Node {
  const u8 *open_g, *open_p, *mask_g, *mask_p, *products;
};

PRIVML_TARGET_CLONES
void join_node(int party, const Node& node, int blocks, bool whole, i64 size, u8* g, u8* p) {
  const Tile one = public_one(party);
  const int factors = whole ? blocks : blocks - 1;
  const int with_g = node_products(blocks, false) - ((1 << (blocks - 1)) - blocks);
  Tile open_p[kLargestNode], of_p[kSubsets], row[kSubsets];
  for (i64 begin = 0; begin < size; begin += kTile) {
    const i64 count = std::min(kTile, size - begin);
    const auto plane = [&](const u8* planes, int index) {
      return load(planes + index * size + begin, count);
    };
    of_p[0] = one;
    for (int factor = 0; factor < factors; ++factor) {
      open_p[factor] = plane(node.open_p, factor);
      of_p[1 << factor] = plane(node.mask_p, factor);
    }
    for (int chosen = 3, next = with_g; chosen < 1 << factors; ++chosen)
      if (several_bits(chosen)) of_p[chosen] = plane(node.products, next++);
    // row[S] is a share of the product of the masks in S and of what is joined; each step takes
    // the lowest factor of p away.
    const auto fold = [&](int number) {
      for (int factor = 0; factor < number; ++factor)
        for (int rest = 0; rest < 1 << (number - factor - 1); ++rest)
          row[rest] = row[2 * rest + 1] ^ (row[2 * rest] & open_p[factor]);
      return row[0];
    };
    Tile sum{};
    for (int block = 0, next = 0; block < blocks; ++block) {
      const Tile open = plane(node.open_g, block);
      row[0] = plane(node.mask_g, block) ^ (one & open);
      for (int chosen = 1; chosen < 1 << block; ++chosen)
        row[chosen] = plane(node.products, next++) ^ (of_p[chosen] & open);
      sum ^= fold(block);
    }
    store(g + begin, sum, count);
    if (!whole) continue;
    std::copy_n(of_p, 1 << blocks, row);
    store(p + begin, fold(blocks), count);
  }
  wipe(of_p, sizeof of_p);
  wipe(row, sizeof row);
}

}  // namespace

i64 table_planes(std::span<const int> blocks) {
  check_sizes(blocks, kLargestBlock);
  i64 planes = 1;
  for (const int bits : blocks) planes += (1 << bits) - 1;
  return planes;
}

i64 product_planes(std::span<const int> nodes) {
  check_sizes(nodes, kLargestNode);
  i64 planes = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    planes += node_products(nodes[i], i + 1 < nodes.size());
  return planes;
}

void deal_comparison(const ComparisonPlan& plan, const u8* r, const u8* masks, i64 several,
                     i64 size, u8* out) {
  check_sizes(plan.blocks, kLargestBlock);
  for (const std::vector<int>& nodes : plan.levels) check_sizes(nodes, kLargestNode);
  const int bits = std::accumulate(plan.blocks.begin(), plan.blocks.end(), 0);
  int low = bits;
  for (const int block : plan.blocks) {
    low -= block;
    deal_table(r + low * size, block, size, out);
    out += ((i64{1} << block) - 1) * size;
  }
  std::copy_n(r + bits * size, size, out);
  out += size;
  const i64 each = several * size;
  for (const std::vector<int>& nodes : plan.levels) {
    const i64 blocks = std::accumulate(nodes.begin(), nodes.end(), i64{0});
    i64 begin = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool whole = i + 1 < nodes.size();
      deal_node(masks + begin * each, masks + (blocks + begin) * each, nodes[i], whole, each, out);
      out += node_products(nodes[i], whole) * each;
      begin += nodes[i];
    }
    masks += (2 * blocks - 1) * each;
  }
}

void compare_blocks(int party, std::span<const int> blocks, const u8* m, const u8* table,
                    i64 several, i64 size, u8* out) {
  expect(party == 0 || party == 1, "party must be 0 or 1");
  check_sizes(blocks, kLargestBlock);
  const i64 each = several * size, count = std::ssize(blocks);
  int low = std::accumulate(blocks.begin(), blocks.end(), 0);
  for (i64 block = 0; block < count; ++block) {
    low -= blocks[block];
    for (i64 row = 0; row < several; ++row) {
      u8* const g = out + block * each + row * size;
      compare_block(party, blocks[block], m + low * each + row * size, each, table, size, g,
                    block + 1 < count ? g + count * each : nullptr);
    }
    table += ((i64{1} << blocks[block]) - 1) * size;
  }
}

void join_blocks(int party, std::span<const int> nodes, const u8* opened, const u8* masks,
                 const u8* products, i64 size, u8* out) {
  expect(party == 0 || party == 1, "party must be 0 or 1");
  check_sizes(nodes, kLargestNode);
  const i64 blocks = std::accumulate(nodes.begin(), nodes.end(), i64{0}), count = std::ssize(nodes);
  i64 begin = 0;
  for (i64 i = 0; i < count; ++i) {
    const bool whole = i + 1 < count;
    const i64 g = begin * size, p = (blocks + begin) * size;
    join_node(party, {opened + g, opened + p, masks + g, masks + p, products}, nodes[i], whole,
              size, out + i * size, out + (count + i) * size);
    products += node_products(nodes[i], whole) * size;
    begin += nodes[i];
  }
}

}  // namespace privml::threepc
