// SPDX-License-Identifier: Apache-2.0
#include "threepc/pieces.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace privml::threepc {
namespace {

constexpr i64 kLeast = 128;  // elements per thread at least
constexpr u64 kTop = u64{1} << 63;

// The arithmetic shift, as instruction sets that lack one compute it.
[[gnu::always_inline]] inline u64 shifted(u64 value, int bits) {
  return ((value + kTop) >> bits) - (kTop >> bits);
}

PRIVML_TARGET_CLONES
void sums_loop(const PieceTable& table, const u64* index, const u64* place, const u64* hot,
               u64 total, i64 count, i64 begin, i64 end, u64* __restrict out) {
  const int pieces = table.pieces, degree = table.rows - 1, powers = table.powers;
  const u64 mask = static_cast<u64>(pieces) - 1;
  u64 rows[kMostCoefficients][kMostPieces];
  u64 turned[2 * kMostPieces];  // turned[i] = hot[-i mod pieces]
  for (i64 e = begin; e < end; ++e) {
    const u64* given = hot + e * (pieces - 1);
    u64 rest = total;
    for (int i = 1; i < pieces; ++i) {
      rest -= given[i - 1];
      turned[pieces - i] = turned[2 * pieces - i] = given[i - 1];
    }
    turned[0] = turned[pieces] = rest;
    const u64* weights = turned + (-index[e] & mask);
    for (int i = 0; i <= degree; ++i) std::copy_n(table.coefficients + i * pieces, pieces, rows[i]);
    const u64 at = place[e];
    for (int first = 0; first < degree; ++first) {
      for (int i = degree - 1; i >= first; --i) {
        const u64* higher = rows[i + 1];
        u64* row = rows[i];
        for (int k = 0; k < pieces; ++k) row[k] += shifted(higher[k] * at, powers);
      }
    }
    for (int i = 0; i <= degree; ++i) {
      const int dropped = table.dropped + i;
      const u64 half = u64{1} << (dropped - 1);
      u64 sum = 0;
      for (int k = 0; k < pieces; ++k) sum += shifted(rows[i][k] + half, dropped) * weights[k];
      out[i * count + e] = i % 2 == 0 ? sum : -sum;
    }
  }
}

}  // namespace

void piece_sums(const PieceTable& table, const u64* index, const u64* place, const u64* hot,
                u64 total, i64 count, u64* out, int threads) {
  expect(table.rows >= 1 && table.rows <= kMostCoefficients, "rows must be 1 to 12");
  expect(
      table.pieces >= 1 && table.pieces <= kMostPieces && (table.pieces & (table.pieces - 1)) == 0,
      "pieces must be a power of two up to 64");
  expect(table.powers >= 0 && table.powers < 64, "powers must be 0 to 63");
  expect(table.dropped >= 1 && table.dropped + table.rows <= 64, "dropped must be 1 to 64 - rows");
  expect(threads >= 1, "threads must be at least 1");
  in_parallel(count, 1, static_cast<int>(std::min<i64>(threads, count / kLeast)),
              [&](i64 first, i64 number) {
                sums_loop(table, index, place, hot, total, count, first, first + number, out);
              });
}

}  // namespace privml::threepc
