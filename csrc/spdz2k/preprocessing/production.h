// SPDX-License-Identifier: Apache-2.0
// Plans which batches of correlations are made for a demand, and their costs. Both parties compute
// the same plan from the same numbers.
#pragma once

#include <compare>
#include <vector>

#include "spdz2k/preprocessing/edabits.h"
#include "spdz2k/shares/cost.h"

namespace privml::spdz2k {

// Each kind is made only from kinds further down.
enum class Kind {
  edabits,
  bit_triples,
  bits,
  squares,
  triples,
  matrix_triples,
  masks,
  randoms,
};

// `width` of edabits, or the owner's rank of masks; else 0. `shape` of matrix triples.
struct Item {
  Kind kind;
  int width = 0;
  MatrixShape shape{};
  friend auto operator<=>(const Item&, const Item&) = default;
};

i64& count_of(Demand& demand, Item item);
i64 count_of(const Demand& demand, Item item);
// Everything that `demand` has numbers of, in the order of kinds; all but edabits
// and matrix triples always.
std::vector<Item> items_of(const Demand& demand);

// A batch of one kind.
struct Step {
  Item item;
  i64 n = 0;
  EdabitMethod method = EdabitMethod::summed;
  friend bool operator==(const Step&, const Step&) = default;
};

// The cheaper way in bytes to make edabits of `width`; correlation_bits as in Party, `voles` if
// a SilentVole makes the products with the MAC keys.
template <class R>
EdabitMethod cheaper_edabits(double correlation_bits, int width, bool voles = false);

// The batches that bring `stock` to `wanted`, in order: what a batch draws is made before it.
template <class R>
std::vector<Step> plan_production(double correlation_bits, const Demand& stock,
                                  const Demand& wanted, bool voles = false);

// Whether these batches take fewer bytes with a SilentVole, its set-up included.
template <class R>
bool voles_pay(double correlation_bits, const Demand& stock, const Demand& wanted);

// Books the set-up of a SilentVole, which makes the products of all batches that follow.
template <class R>
void begin_voles(CostMeter& meter);
// One batch's messages, correlated OTs and draws.
template <class R>
void cost_step(CostMeter& meter, const Step& step);
// What one batch takes from the stock and adds to it.
template <class R>
void book_step(const Step& step, Demand& stock);

}  // namespace privml::spdz2k
