// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/bit_less_than.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/online/bits.h"

namespace privml::spdz2k {
namespace {

// What the bits of c at two positions, c0 the lower, make of the bits r0, r1 and their product m:
//   less     [c < r] = (1-c1) r1 + (1-c0)(1-c1) r0 + (1-c0) m
//   greater  [c > r] = (c0 or c1) + (c0+c1) r1 + c0(1-c1) r0 + c0 m
//   equal    [c = r] = (1-c0)(1-c1) + (1-c0) r1 + (1-c1) r0 + m        all mod 2
struct Factors {
  u64 one, r0, r1, m;
};

template <Order order>
constexpr Factors order_factors(u64 c0, u64 c1) {
  if constexpr (order == Order::less) return {0, (1 ^ c0) & (1 ^ c1), 1 ^ c1, 1 ^ c0};
  return {c0 | c1, c0 & (1 ^ c1), c0 ^ c1, c0};
}

constexpr Factors equal_factors(u64 c0, u64 c1) { return {(1 ^ c0) & (1 ^ c1), 1 ^ c1, 1 ^ c0, 1}; }

template <class W>
W masked(u64 bit, W word) {
  return static_cast<W>(-static_cast<W>(bit)) & word;
}

// A node's planes; `ordered` is also the product of the two bits before the first level is done.
template <class R>
struct Node {
  BitSpan<R> ordered, equal;
};

// The first level of two positions: node.ordered holds the product.
template <class W, Order order>
void join_bits(const u64* c, int position, const W* r0, const W* r1, W one, i64 n, W* ordered,
               W* equal) {
  for (i64 i = 0; i < n; ++i) {
    const u64 c0 = c[i] >> position & 1, c1 = c[i] >> (position + 1) & 1;
    const Factors by_order = order_factors<order>(c0, c1), same = equal_factors(c0, c1);
    const W m = ordered[i];
    ordered[i] = static_cast<W>(masked(by_order.one, one) + masked(by_order.r0, r0[i]) +
                                masked(by_order.r1, r1[i]) + masked(by_order.m, m));
    equal[i] =
        static_cast<W>(masked(same.one, one) + masked(same.r0, r0[i]) + masked(same.r1, r1[i]) + m);
  }
}

// One position alone, the highest of an odd width.
template <class W, Order order>
void single_bit(const u64* c, int position, const W* r, W one, i64 n, W* ordered, W* equal) {
  for (i64 i = 0; i < n; ++i) {
    const u64 bit = c[i] >> position & 1;
    if constexpr (order == Order::less) {
      ordered[i] = masked(1 ^ bit, r[i]);
    } else {
      ordered[i] = masked(bit, static_cast<W>(one + r[i]));
    }
    equal[i] = static_cast<W>(r[i] + masked(1 ^ bit, one));
  }
}

template <class R>
class Tree {
 public:
  Tree(Side<R> side, const PublicComparison<R>& comparison)
      : side_(side),
        comparison_(comparison),
        one_{static_cast<typename R::BitWord>(side.rank() == 0), side.bit_alpha()},
        n_(side.count(comparison.c)) {
    expect(comparison.width >= 1 && comparison.width <= R::k, "comparison: width must be in 1..k");
    side.expect_lengths(comparison.bits.size() == n_ * comparison.width &&
                            comparison.result.size() == n_ &&
                            comparison.equal.size() == (comparison.with_equal ? n_ : 0),
                        "comparison: lengths differ");
    const i64 count = ceil_div(comparison.width, 2);
    ordered_ = side.bits(count * n_);
    equal_ = side.bits(count * n_);
    for (i64 j = 0; j < count; ++j) {
      nodes_.push_back({side.part(ordered_, j * n_, n_), side.part(equal_, j * n_, n_)});
    }
  }

  void add_first_gates(std::vector<AndGate<R>>& gates) const {
    for (int j = 0; j + 1 < comparison_.width; j += 2) {
      gates.push_back({plane(j), plane(j + 1), nodes_[j / 2].ordered});
    }
  }

  void finish_first_level() {
    if (side_.metering()) return;
    if (comparison_.order == Order::less) {
      join_all<Order::less>();
    } else {
      join_all<Order::greater>();
    }
  }

  // Of two nodes the upper one becomes both; whether the lowest is equal only matters if asked for.
  void add_gates(std::vector<AndGate<R>>& gates) {
    std::vector<Node<R>> joined;
    for (std::size_t j = 0; j + 1 < nodes_.size(); j += 2) {
      const Node<R>&low = nodes_[j], &high = nodes_[j + 1];
      gates.push_back({high.equal, low.ordered, high.ordered, true});
      if (j > 0 || comparison_.with_equal) {
        gates.push_back({high.equal, low.equal, high.equal});
      }
      joined.push_back(high);
    }
    if (nodes_.size() % 2 == 1) joined.push_back(nodes_.back());
    nodes_ = std::move(joined);
  }

  bool done() const { return nodes_.size() == 1; }

  void finish() {
    for_each_share([](auto x) { return x; }, comparison_.result, nodes_[0].ordered);
    if (comparison_.with_equal) {
      for_each_share([](auto x) { return x; }, comparison_.equal, nodes_[0].equal);
    }
  }

 private:
  using BitWord = typename R::BitWord;

  BitView<R> plane(int j) const { return side_.part(comparison_.bits, j * n_, n_); }

  template <Order order>
  void join_all() {
    const u64* c = comparison_.c.data();
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      const int position = static_cast<int>(2 * j);
      const BitView<R> r0 = plane(position);
      const Node<R>& node = nodes_[j];
      if (position + 1 < comparison_.width) {
        const BitView<R> r1 = plane(position + 1);
        join_bits<BitWord, order>(c, position, r0.value.data(), r1.value.data(), one_[0], n_,
                                  node.ordered.value.data(), node.equal.value.data());
        join_bits<BitWord, order>(c, position, r0.mac.data(), r1.mac.data(), one_[1], n_,
                                  node.ordered.mac.data(), node.equal.mac.data());
      } else {
        single_bit<BitWord, order>(c, position, r0.value.data(), one_[0], n_,
                                   node.ordered.value.data(), node.equal.value.data());
        single_bit<BitWord, order>(c, position, r0.mac.data(), one_[1], n_, node.ordered.mac.data(),
                                   node.equal.mac.data());
      }
    }
  }

  Side<R> side_;
  PublicComparison<R> comparison_;
  std::array<BitWord, 2> one_;  // this party's share and MAC share of 1
  i64 n_;
  BitShares<R> ordered_, equal_;
  std::vector<Node<R>> nodes_;  // from the lowest positions up
};

}  // namespace

template <class R>
void compare_public(Side<R> side, std::span<const PublicComparison<R>> comparisons) {
  std::vector<Tree<R>> trees;
  trees.reserve(comparisons.size());
  for (const auto& comparison : comparisons) trees.emplace_back(side, comparison);
  std::vector<AndGate<R>> gates;
  for (const Tree<R>& tree : trees) tree.add_first_gates(gates);
  and_gates<R>(side, gates);
  for (Tree<R>& tree : trees) tree.finish_first_level();
  for (;;) {
    gates.clear();
    for (Tree<R>& tree : trees) {
      if (!tree.done()) tree.add_gates(gates);
    }
    if (gates.empty()) break;
    and_gates<R>(side, gates);
  }
  for (Tree<R>& tree : trees) tree.finish();
}

template <class R>
void bit_less_than(Side<R> side, std::span<const u64> c, BitView<R> bits, int width,
                   BitSpan<R> out) {
  const PublicComparison<R> comparison{c, bits, width, Order::less, out};
  compare_public<R>(side, {&comparison, 1});
}

template <class R>
void bit_greater_than(Side<R> side, std::span<const u64> c, BitView<R> bits, int width,
                      BitSpan<R> out) {
  const PublicComparison<R> comparison{c, bits, width, Order::greater, out};
  compare_public<R>(side, {&comparison, 1});
}

#define PRIVML_INSTANTIATE(R)                                                                 \
  template void compare_public<R>(Side<R>, std::span<const PublicComparison<R>>);             \
  template void bit_less_than<R>(Side<R>, std::span<const u64>, BitView<R>, int, BitSpan<R>); \
  template void bit_greater_than<R>(Side<R>, std::span<const u64>, BitView<R>, int, BitSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
