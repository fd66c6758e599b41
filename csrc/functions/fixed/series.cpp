// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/series.h"

#include <array>

namespace privml::fixed {
namespace {

using i128 = __int128;

constexpr u64 kCoefficients[] = {
#include "functions/fixed/tables/series.inc"
};
constexpr u64 kErrors[] = {
#include "functions/fixed/tables/series_errors.inc"
};
constexpr u64 kInterpolation[] = {
#include "functions/fixed/tables/interpolation.inc"
};

constexpr int kTerms = 16, kCoefficientScale = 60, kMatrixScale = 44;

// The domain is [0, 2^domain) in pieces of length 2^-fineness, which start at piece `first`.
struct Pieces {
  int domain, fineness, first;
};
constexpr std::array<Pieces, 11> kPieces{{{3, 1, 0},
                                          {3, 1, 16},
                                          {5, 0, 32},
                                          {5, 0, 64},
                                          {0, 3, 96},
                                          {0, 3, 104},
                                          {0, 3, 112},
                                          {5, 0, 120},
                                          {0, 3, 152},
                                          {5, 0, 160},
                                          {3, 2, 192}}};
static_assert(std::size(kCoefficients) == 224 * kTerms);

constexpr int matrix_offset(int degree) {
  int offset = 0;
  for (int d = 1; d < degree; ++d) offset += (d + 1) * (d + 2);
  return offset;
}
static_assert(std::size(kInterpolation) == matrix_offset(kLargestDegree + 1));

}  // namespace

i64 series_value(Series series, u64 t) {
  if (series == Series::tanh_tail) return 2 * series_value(Series::sigmoid_tail, 2 * t);
  const Pieces pieces = kPieces[static_cast<int>(series)];
  if (t >> (kPlaceScale + pieces.domain) != 0) return 0;
  const int length = kPlaceScale - pieces.fineness;  // 2^length is a piece
  const u64* c = kCoefficients + (pieces.first + (t >> length)) * kTerms;
  // v in [-1, 1) at scale length - 1.
  const i64 v = static_cast<i64>(t & low_mask(length)) - (i64{1} << (length - 1));
  i64 sum = static_cast<i64>(c[0]);
  for (int i = 1; i < kTerms; ++i)
    sum = static_cast<i64>((i128{sum} * v) >> (length - 1)) + static_cast<i64>(c[i]);
  const int drop = kCoefficientScale - kValueScale;
  return (sum + (1 << (drop - 1))) >> drop;
}

int series_error(Series series, int degree) {
  if (series == Series::tanh_tail)  // intervals twice as long, values twice as large
    return series_error(Series::sigmoid_tail, degree) + 16 * (degree + 2);
  return static_cast<int>(
      static_cast<i64>(kErrors[static_cast<int>(series) * kLargestDegree + degree - 1]));
}

u64 fitting_place(int degree, int place) { return kInterpolation[matrix_offset(degree) + place]; }

void fit_polynomial(int degree, const i64* values, i64* coefficients) {
  const u64* row = kInterpolation + matrix_offset(degree) + degree + 1;
  for (int i = 0; i <= degree; ++i, row += degree + 1) {
    i128 sum = i128{1} << (kMatrixScale - 1);
    for (int j = 0; j <= degree; ++j) sum += i128{values[j]} * static_cast<i64>(row[j]);
    coefficients[i] = static_cast<i64>(sum >> kMatrixScale);
  }
}

}  // namespace privml::fixed
