// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/production.h"

#include <algorithm>

#include "base/error.h"
#include "spdz2k/preprocessing/bit_triples.h"
#include "spdz2k/preprocessing/bucketing.h"
#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/matrix_triple.h"
#include "spdz2k/preprocessing/private_numbers.h"
#include "spdz2k/preprocessing/random_bit.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/vole/silent_vole.h"

namespace privml::spdz2k {
namespace {

constexpr i64 round_up(i64 n, i64 unit) { return ceil_div(n, unit) * unit; }

// Sizes of batches: small ones are expensive because checks have fixed costs.
struct BatchSizes {
  i64 unit, most;
};

BatchSizes batch_sizes(const Item& item) {
  switch (item.kind) {
    case Kind::edabits:
      return {64, kMostNumbers};
    case Kind::bit_triples:
      return {kFewestBuckets, kMostBitTriples};
    case Kind::bits:
    case Kind::squares:
    case Kind::triples:
      return {64, i64{1} << 14};
    case Kind::matrix_triples:
      return {1, matrices_at_once(item.shape)};
    case Kind::masks:
    case Kind::randoms:
      break;
  }
  return {256, i64{1} << 16};
}

template <class R>
Demand draws_of(const Step& step) {
  CostMeter meter;  // without the correlated OTs' own bytes
  cost_step<R>(meter, step);
  return meter.demand;
}

// Bytes of both parties, correlated OTs included.
double bytes_of(double correlation_bits, const ot::CostMeter& wire) {
  return static_cast<double>(wire.bytes[0] + wire.bytes[1]) +
         static_cast<double>(wire.cots[0] + wire.cots[1]) * correlation_bits / 8;
}

// The same for a whole batch, with everything that it draws. What iterations of silent VOLE take is
// left out.
template <class R>
double bytes_of(double correlation_bits, const Step& step, bool voles) {
  CostMeter meter;  // without the correlated OTs' own bytes
  if (voles) meter.voles = SilentVoleMeter{{i64{1} << 60, i64{1} << 60}};
  cost_step<R>(meter, step);
  double bytes = bytes_of(correlation_bits, meter);
  const Demand& drawn = meter.demand;
  for (const Item item : items_of(drawn)) {
    const i64 count = count_of(drawn, item);
    if (count == 0) continue;
    const i64 n = std::min(batch_sizes(item).most, i64{1} << 12);
    bytes += bytes_of<R>(correlation_bits, {item, n}, voles) * static_cast<double>(count) /
             static_cast<double>(n);
  }
  return bytes;
}

}  // namespace

i64& count_of(Demand& demand, Item item) {
  switch (item.kind) {
    case Kind::edabits:
      return demand.edabits[item.width];
    case Kind::bit_triples:
      return demand.bit_triples;
    case Kind::bits:
      return demand.bits;
    case Kind::squares:
      return demand.squares;
    case Kind::triples:
      return demand.triples;
    case Kind::matrix_triples:
      return demand.matrices[item.shape];
    case Kind::masks:
      return demand.masks[item.width];
    case Kind::randoms:
      break;
  }
  return demand.randoms;
}

i64 count_of(const Demand& demand, Item item) {
  if (item.kind == Kind::edabits && !demand.edabits.contains(item.width)) return 0;
  if (item.kind == Kind::matrix_triples && !demand.matrices.contains(item.shape)) return 0;
  return count_of(const_cast<Demand&>(demand), item);
}

std::vector<Item> items_of(const Demand& demand) {
  std::vector<Item> items;
  for (const auto& [width, count] : demand.edabits) items.push_back({Kind::edabits, width});
  for (const Kind kind : {Kind::bit_triples, Kind::bits, Kind::squares, Kind::triples}) {
    items.push_back({kind});
  }
  for (const auto& [shape, count] : demand.matrices) {
    items.push_back({Kind::matrix_triples, 0, shape});
  }
  for (const int owner : {0, 1}) items.push_back({Kind::masks, owner});
  items.push_back({Kind::randoms});
  return items;
}

template <class R>
EdabitMethod cheaper_edabits(double correlation_bits, int width, bool voles) {
  const auto bytes = [&](EdabitMethod method) {
    const Step step{{Kind::edabits, width}, kMostNumbers, method};
    return bytes_of<R>(correlation_bits, step, voles);
  };
  return bytes(EdabitMethod::summed) < bytes(EdabitMethod::composed) ? EdabitMethod::summed
                                                                     : EdabitMethod::composed;
}

template <class R>
std::vector<Step> plan_production(double correlation_bits, const Demand& stock,
                                  const Demand& wanted, bool voles) {
  Demand total = wanted;  // and what the batches draw
  std::vector<Step> steps;
  const auto missing = [&](Item item) {
    return std::max<i64>(count_of(total, item) - count_of(stock, item), 0);
  };
  const auto add = [&](const Step& step) {
    total += draws_of<R>(step);
    steps.push_back(step);
  };
  for (const Item item : items_of(wanted)) {
    const auto [unit, most] = batch_sizes(item);
    EdabitMethod method = EdabitMethod::summed;
    if (item.kind == Kind::edabits && missing(item) > 0) {
      method = cheaper_edabits<R>(correlation_bits, item.width, voles);
    }
    for (i64 left = round_up(missing(item), unit); left > 0; left -= std::min(left, most)) {
      add({item, std::min(left, most), method});
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

template <class R>
bool voles_pay(double correlation_bits, const Demand& stock, const Demand& wanted) {
  const auto bytes = [&](bool voles) {
    CostMeter meter;  // without the correlated OTs' own bytes
    if (voles) begin_voles<R>(meter);
    for (const Step& step : plan_production<R>(correlation_bits, stock, wanted, voles)) {
      cost_step<R>(meter, step);
    }
    return bytes_of(correlation_bits, meter);
  };
  return bytes(true) < bytes(false);
}

template <class R>
void begin_voles(CostMeter& meter) {
  cost_silent_vole_setup<R>(meter);
  meter.voles.emplace();
}

template <class R>
void cost_step(CostMeter& meter, const Step& step) {
  const auto [item, n, method] = step;
  SilentVoleMeter* voles = meter.voles ? &*meter.voles : nullptr;
  switch (item.kind) {
    case Kind::edabits:
      return cost_generate_edabits<R>(meter, method, item.width, n);
    case Kind::bit_triples:
      return cost_generate_bit_triples<R>(meter, n);
    case Kind::bits:
      meter.demand.squares += n;
      cost_bits_from_squares<R>(meter, n);
      return cost_check<R>(meter);
    case Kind::squares:
      return cost_squares<R>(meter, n, voles);
    case Kind::triples:
      return cost_triples<R>(meter, n, voles);
    case Kind::matrix_triples:
      return cost_matrix_triples<R>(meter, item.shape, n, voles);
    case Kind::masks:
      return cost_masks<R>(meter, item.width, n, voles);
    case Kind::randoms:
      return cost_randoms<R>(meter, n, voles);
  }
}

template <class R>
void book_step(const Step& step, Demand& stock) {
  const Demand drawn = draws_of<R>(step);
  for (const Item item : items_of(drawn)) {
    const i64 count = count_of(drawn, item);
    if (count == 0) continue;
    expect(count_of(stock, item) >= count, "production: a batch draws more than there is");
    count_of(stock, item) -= count;
  }
  count_of(stock, step.item) += step.n;
}

#define PRIVML_INSTANTIATE(R)                                                                \
  template EdabitMethod cheaper_edabits<R>(double, int, bool);                               \
  template std::vector<Step> plan_production<R>(double, const Demand&, const Demand&, bool); \
  template bool voles_pay<R>(double, const Demand&, const Demand&);                          \
  template void begin_voles<R>(CostMeter&);                                                  \
  template void cost_step<R>(CostMeter&, const Step&);                                       \
  template void book_step<R>(const Step&, Demand&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
