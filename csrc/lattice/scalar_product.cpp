// SPDX-License-Identifier: Apache-2.0
#include "lattice/scalar_product.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "lattice/scalar_loops.h"

namespace privml::lattice {
namespace {

constexpr i64 kInnerBlock = 128;  // rows of a panel: two digits' fill a first cache
constexpr i64 kLeastBlock = 32;   // what is worth a sum of its own
constexpr i64 kPanelsAtOnce = 8;  // of neighbouring columns: a row's words are read together
constexpr i64 kRowsSplit = 4;     // whose words, in all these panels, stay in a first cache
constexpr i64 kRowsAhead = 16;    // whose words are on their way from memory meanwhile
constexpr int kExact = 53;        // bits of integers that doubles hold

struct Unfused : ShortWords<2> {
  using Reals = Lanes<2>::Reals;
  static Reals multiply_add(Reals x, Reals y, Reals z) { return x * y + z; }
};

const ScalarKernels& kernels_of(Backend backend) {
  expect(backend_supported(backend), "this processor does not support the backend");
#if defined(__x86_64__)
  if (backend == Backend::avx512) return avx512_scalars();
  if (backend == Backend::avx2) return avx2_scalars();
#endif
  return portable_scalars();
}

// A digit is at most 2^(bits - 1), a product 2^(bits - 1) * largest.
Digits digits_for(u64 largest, i64 inner, int low_bits) {
  const int weight_bits = std::bit_width(std::max<u64>(largest, 1) - 1);  // log2, rounded up
  for (const int count : {2, 3}) {
    const int bits = static_cast<int>(ceil_div(64 + low_bits, count));
    const int room = kExact - (bits - 1) - weight_bits;
    const i64 block = room < 0 ? 0 : std::min(kInnerBlock, i64{1} << std::min(room, 16));
    if (block >= std::min(kLeastBlock, inner)) return {count, bits, low_bits, block};
  }
  throw InvalidArgument("lattice: weights are too large");
}

// For each block of the inner dimension, the weights of kernels.rows rows side by side.
WipedVector<double> pack(std::span<const u64> weights, i64 rows, i64 inner, i64 block, i64 height) {
  WipedVector<double> out(rows * inner);
  double* next = out.data();
  for (i64 k0 = 0; k0 < inner; k0 += block)
    for (i64 i0 = 0; i0 < rows; i0 += height)
      for (i64 k = k0; k < std::min(k0 + block, inner); ++k)
        for (i64 i = i0; i < std::min(i0 + height, rows); ++i)
          *next++ = static_cast<double>(static_cast<i64>(weights[i * inner + k]));
  return out;
}

// Words whose rows are `stride` apart.
struct LyingWords {
  const u64* high;
  const u16* low;
  i64 stride;
};

// What is common to the panels of a product.
struct Product {
  const ScalarKernels& kernels;
  const Digits& digits;
  std::span<const double> weights;  // packed
  i64 rows, inner;
};

// Asks for the words of rows [first, first + rows) in `count` panels, which are far apart in
// memory.
void prefetch(LyingWords in, i64 first, i64 rows, i64 width) {
  constexpr int kSecondCache = 2;
  constexpr i64 kHigh = kCacheLine / sizeof(u64), kLow = kCacheLine / sizeof(u16);
  for (i64 k = first; k < first + rows; ++k) {
    for (i64 j = 0; j < width; j += kHigh)
      __builtin_prefetch(in.high + k * in.stride + j, 0, kSecondCache);
    for (i64 j = 0; j < width; j += kLow)
      __builtin_prefetch(in.low + k * in.stride + j, 0, kSecondCache);
  }
}

// The digits of `depth` rows, which `rows` rows in memory begin with: for each of `count`
// neighbouring panels one digit after another.
void split(const Product& product, LyingWords in, i64 rows, i64 depth, i64 count, double* panels) {
  const ScalarKernels& kernels = product.kernels;
  const Digits& digits = product.digits;
  const i64 each = depth * kernels.columns, width = count * kernels.columns;
  for (i64 k = 0; k < depth; k += kRowsSplit) {
    const i64 next = k + kRowsAhead;
    if (next < rows) prefetch(in, next, std::min(kRowsSplit, rows - next), width);
    for (i64 p = 0; p < count; ++p) {
      const i64 at = k * in.stride + p * kernels.columns;
      kernels.split(digits, in.high + at, in.low + at, in.stride, std::min(kRowsSplit, depth - k),
                    panels + p * digits.count * each + k * kernels.columns, each);
    }
  }
}

// sums: for each of `count` panels and each digit, rows x the kernels' columns.
void add_panels(const Product& product, LyingWords in, i64 count, double* panels, i64* sums) {
  const auto& [kernels, digits, weights, rows, inner] = product;
  const i64 width = kernels.columns;
  std::fill_n(sums, count * digits.count * rows * width, 0);
  const double* block = weights.data();
  for (i64 k = 0; k < inner; k += digits.block) {
    const i64 depth = std::min(digits.block, inner - k);
    split(product, {in.high + k * in.stride, in.low + k * in.stride, in.stride}, inner - k, depth,
          count, panels);
    // One panel after another stays in a first cache, where the weights pass by.
    for (i64 panel = 0; panel < count * digits.count; ++panel)
      for (i64 i = 0; i < rows; i += kernels.rows)
        kernels.of[std::min(kernels.rows, rows - i)](block + i * depth,
                                                     panels + panel * depth * width, depth,
                                                     sums + (panel * rows + i) * width);
    block += rows * depth;
  }
}

}  // namespace

const ScalarKernels& portable_scalars() {
  static constexpr ScalarKernels kernels =
      ScalarLoops<2, 4, Unfused>::kernels(std::make_integer_sequence<int, 2>{});
  return kernels;
}

ScalarWeights::ScalarWeights(std::span<const u64> weights, i64 rows, i64 inner, u64 largest,
                             int low_bits, Backend backend)
    : kernels_(kernels_of(backend)), rows_(rows), inner_(inner) {
  expect(std::ssize(weights) == rows * inner, "lattice: the product's shapes do not fit");
  expect(low_bits >= 0 && low_bits <= kMostLowBits, "lattice: words have 64 to 80 bits");
  expect(largest <= kMostScalar && inner <= kMostInner, "lattice: weights are too large");
  digits_ = digits_for(largest, inner, low_bits);
  packed_ = pack(weights, rows, inner, digits_.block, kernels_.rows);
}

void ScalarWeights::multiply(WordsView in, i64 columns, WordsOutput out, i64 stride) const {
  const i64 rows = rows_, inner = inner_;
  expect(in.size() == inner * columns && stride >= columns &&
             (rows == 0 || out.size() == (rows - 1) * stride + columns),
         "lattice: the product's shapes do not fit");
  const ScalarKernels& kernels = kernels_;
  const Digits& digits = digits_;
  const Product product{kernels, digits, packed_, rows, inner};
  const i64 width = kernels.columns, whole = columns / width;
  const i64 most = std::clamp(whole, i64{1}, kPanelsAtOnce);
  WipedVector<double> panels(most * digits.count * std::min(digits.block, inner) * width);
  WipedVector<i64> sums(most * digits.count * rows * width);
  const auto join = [&](i64 panel, i64 row, u64* high, u16* low) {
    kernels.join(digits, sums.data() + (panel * digits.count * rows + row) * width, rows * width,
                 high, low);
  };
  for (i64 p = 0; p < whole; p += most) {
    const i64 count = std::min(most, whole - p), j = p * width;
    add_panels(product, {in.high.data() + j, in.low.data() + j, columns}, count, panels.data(),
               sums.data());
    for (i64 i = 0; i < rows; ++i)
      for (i64 panel = 0; panel < count; ++panel) {
        const i64 at = i * stride + j + panel * width;
        join(panel, i, out.high.data() + at, out.low.data() + at);
      }
  }
  const i64 j = whole * width, rest = columns - j;
  if (rest == 0) return;
  Words last(inner * width);  // the last columns, which fill no panel
  std::ranges::fill(last.high, 0);
  std::ranges::fill(last.low, 0);
  for (i64 k = 0; k < inner; ++k) {
    std::copy_n(in.high.data() + k * columns + j, rest, last.high.data() + k * width);
    std::copy_n(in.low.data() + k * columns + j, rest, last.low.data() + k * width);
  }
  add_panels(product, {last.high.data(), last.low.data(), width}, 1, panels.data(), sums.data());
  for (i64 i = 0; i < rows; ++i) {
    std::array<u64, kMostScalarColumns> high;
    std::array<u16, kMostScalarColumns> low;
    join(0, i, high.data(), low.data());
    std::copy_n(high.data(), rest, out.high.data() + i * stride + j);
    std::copy_n(low.data(), rest, out.low.data() + i * stride + j);
  }
}

void multiply_scalars(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, WordsView in,
                      i64 columns, int low_bits, WordsOutput out, Backend backend) {
  expect(out.size() == rows * columns, "lattice: the product's shapes do not fit");
  ScalarWeights(weights, rows, inner, largest, low_bits, backend)
      .multiply(in, columns, out, columns);
}

}  // namespace privml::lattice
