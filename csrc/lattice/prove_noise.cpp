// SPDX-License-Identifier: Apache-2.0
// Noise over ten million results of each form of lattice-based products beside the bound that
// parameters are chosen by: a table, and an exit status of 1 if the noise exceeds it.
#include <cstdio>

#include "lattice/testing/noise.h"

namespace {

using namespace privml;
using namespace privml::lattice;
using namespace privml::lattice::testing;

constexpr i64 kResults = 10'000'000;

bool report(const char* form, const ProductBounds& bounds, const ColumnChoice& choice,
            const NoiseSum& noise) {
  const auto [deviation, room] = bound_of(choice);
  std::printf("%-8s %6lld %6llu %5d %4d %4d %10lld %10.2f %10.2f %10.1f %8.1f %9.1f\n", form,
              static_cast<long long>(bounds.inner), static_cast<unsigned long long>(bounds.weight),
              bounds.ring_bits, choice.set.log_q, choice.upload_bits,
              static_cast<long long>(noise.count), noise.deviation(), deviation, noise.largest,
              room, choice.log2_failure);
  std::fflush(stdout);
  return noise.deviation() <= deviation && noise.largest < room;
}

}  // namespace

int main() {
  std::printf("noise in last places of c1; weights and messages of the largest absolute values\n");
  std::printf("%-8s %6s %6s %5s %4s %4s %10s %10s %10s %10s %8s %9s\n", "form", "inner", "weight",
              "ring", "q", "up", "results", "deviation", "its bound", "largest", "room",
              "log2 fail");
  bool holds = true;
  for (const auto& [inner, weight_bits, ring_bits] :
       {std::array{25, 8, 32}, {150, 8, 32}, {768, 12, 44}, {576, 16, 45}}) {
    const ProductBounds bounds{inner, largest_weight(weight_bits, true), ring_bits};
    const ColumnChoice choice = choose_columns(bounds, Noise::tail).value();
    NoiseSum noise;
    for (u64 seed = 1; noise.count < kResults; ++seed)
      measure_columns(choice, bounds, 96, seed, noise);
    holds = report("columns", bounds, choice, noise) && holds;
  }
  for (const size_t number : {1, 4, 7, 11}) {
    const SwitchingSet& set = kSwitchingSets[number];
    ProductBounds bounds{128, largest_weight(8, true), 54};
    while (!choose_packed(bounds, set.levels, set)) --bounds.ring_bits;
    const PackedChoice choice = choose_packed(bounds, set.levels, set).value();
    NoiseSum noise;
    for (u64 seed = 1; noise.count < kResults; ++seed)
      measure_packed(choice, bounds, set, 64, seed, noise);
    holds = report("packed", bounds, choice.columns, noise) && holds;
  }
  return holds ? 0 : 1;
}
