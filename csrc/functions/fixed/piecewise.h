// SPDX-License-Identifier: Apache-2.0
// A function of a shared number as polynomials on cells of equal length: the high bits of the
// number choose the coefficients, the low bits are the place u within the cell.
//
// Functionality  x in Z_{2^(index_bits + place_bits)}, read unsigned; with c_i the coefficients of
//                its cell (powers of u / 2^place_bits, scale `scale`), Horner's rule with every
//                partial sum but the last rounded to `scale`: out = the value in Z_{2^ring_bits} at
//                scale `scale + place_bits` (`scale` for degree 0).
// Method         one comparison gives the cell and u in a larger ring (split.h); one lookup all
//                coefficients as XOR-shared words; the first product takes them as they are
//                (line_lookup.h), further ones are mixed-width products of a number of known sign.
// Leakage        none beyond length and shape. Assumption: correlated OT, correlation-robust hash.
// Cost           the sum of those protocols; degree 1: depth that of a comparison, a lookup and the
//                opening of its words.
// Source         table-driven polynomials after Tang (ACM TOMS 1989); lookups and products of SiRNN
//                (Rathee et al., S&P 2021), sections III-E and IV.
#pragma once

#include <functional>
#include <vector>

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/line_lookup.h"
#include "functions/fixed/series.h"

namespace privml::fixed {

// Of functions made of one polynomial: bits of the coefficients below the last place, and the
// polynomials are off by at most 2^-kPolynomialPrecision units.
inline constexpr int kCoefficientGuard = 2;
inline constexpr int kPolynomialPrecision = 2;

struct PiecewiseShape {
  int index_bits = 1;  // 1..10
  int place_bits = 0;  // 0 for degree 0
  int degree = 0;
  int scale = 0;
  int ring_bits = 64;
};

constexpr int result_scale(const PiecewiseShape& shape) { return shape.scale + shape.place_bits; }

struct Piecewise {
  PiecewiseShape shape;
  std::vector<std::vector<u64>> coefficients;  // [power][cell], two's complement
  std::vector<twopc::WordFormat> formats;      // of each power's coefficients
  std::vector<int> partial_bits;  // [i]: partial sum i has a magnitude below 2^(partial_bits - 2)
  // Plans are priced by protocols that share no flights, so that a shared one changes no function.
  bool apart = false;
};

// value(cell, place) is the function, at scale 56, at `place` (scale 48, 0..1) of a cell. If the
// result would exceed `largest` (at result_scale) by rounding, the cell is lowered.
Piecewise make_piecewise(const PiecewiseShape& shape, const std::function<i64(i64, u64)>& value,
                         i64 largest = INT64_MAX);

// With these coefficients, as make_piecewise makes them: [power][cell].
Piecewise piecewise_of(const PiecewiseShape& shape, std::vector<std::vector<u64>> coefficients);

// `vectors`: of line_of(f), degree 1 or more.
functions::RingShares piecewise(functions::Evaluator& evaluator, const Piecewise& f,
                                const functions::RingShares& x,
                                twopc::RandomOneHots* vectors = nullptr);
LineLookup line_of(const Piecewise& f);

// The same of |x| for a signed x in Z_{2^bits}, index_bits + place_bits < bits, and a function of
// degree 1 or more that is continuous: a negative x at the border of two cells is taken as the end
// of the first. folded_lookup.h names the other results.
struct FoldedPiecewise {
  functions::RingShares sum, high, positive;
  functions::BitShares nonnegative;
};
FoldedPiecewise folded_piecewise(functions::Evaluator& evaluator, const Piecewise& f, int bits,
                                 const functions::RingShares& x);

// At place u of a cell: a word of which the low ring_bits count. Or of whole numbers.
u64 clear_piecewise(const Piecewise& f, u64 cell, u64 u);
void clear_piecewise(const Piecewise& f, std::span<const u64> x, std::span<u64> out);

// The degree and the cells with which `series` is off by at most 2^-precision, with the fewest bits
// on the wire. The number has `bits` bits, of which the low `fraction` are behind the point of the
// series' argument, below `selectors` more that choose between functions; scale and ring: those of
// the result without place_bits. choose_piecewise throws InvalidArgument if nothing fits 64
// bits.
struct PiecewiseTask {
  Series series;
  int bits;
  int fraction;
  int precision;
  int scale;
  int ring_bits;
  int selectors = 0;
  // Whether the roundings of coefficients and partial sums, too, must stay below 2^-precision
  // together: these then get more bits, by the degree.
  bool bounded = false;
};
bool has_piecewise(const PiecewiseTask& task);
PiecewiseShape choose_piecewise(const PiecewiseTask& task);
// Bits on the wire of one element by the estimate that choose_piecewise goes by: those of a
// protocol with coefficients of about the right widths.
i64 estimated_bits(const PiecewiseTask& task, const PiecewiseShape& shape);

}  // namespace privml::fixed
