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
constexpr int kExact = 53;        // bits of integers that doubles hold

struct Unfused {
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

// A panel of the width of the kernels, its words `stride` apart.
struct Panel {
  const u64* high;
  const u16* low;
  i64 stride;
};

// sums: rows x columns for each digit.
void add_panel(const ScalarKernels& kernels, const Digits& digits, const double* weights, i64 rows,
               i64 inner, Panel in, double* panels, std::span<i64> sums) {
  std::ranges::fill(sums, 0);
  const i64 each = std::ssize(sums) / digits.count;
  for (i64 k = 0; k < inner; k += digits.block) {
    const i64 depth = std::min(digits.block, inner - k);
    kernels.split(digits, in.high + k * in.stride, in.low + k * in.stride, in.stride, depth,
                  panels);
    for (i64 i = 0; i < rows; i += kernels.rows) {
      const i64 count = std::min(kernels.rows, rows - i);
      for (int digit = 0; digit < digits.count; ++digit)
        kernels.of[count](weights, panels + digit * depth * kernels.columns, depth,
                          sums.data() + digit * each + i * kernels.columns);
      weights += count * depth;
    }
  }
}

}  // namespace

const ScalarKernels& portable_scalars() {
  static constexpr ScalarKernels kernels =
      ScalarLoops<2, 4, Unfused>::kernels(std::make_integer_sequence<int, 2>{});
  return kernels;
}

void multiply_scalars(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, WordsView in,
                      i64 columns, int low_bits, WordsOutput out, Backend backend) {
  expect(std::ssize(weights) == rows * inner && in.size() == inner * columns &&
             out.size() == rows * columns,
         "lattice: the product's shapes do not fit");
  expect(low_bits >= 0 && low_bits <= kMostLowBits, "lattice: words have 64 to 80 bits");
  expect(largest <= kMostScalar && inner <= kMostInner, "lattice: weights are too large");
  const ScalarKernels& kernels = kernels_of(backend);
  const Digits digits = digits_for(largest, inner, low_bits);
  const WipedVector<double> packed = pack(weights, rows, inner, digits.block, kernels.rows);
  const i64 width = kernels.columns;
  WipedVector<double> panels(digits.count * std::min(digits.block, inner) * width);
  WipedVector<i64> sums(digits.count * rows * width);
  Words last(inner * width);  // the last columns, if they fill no panel
  for (i64 j = 0; j < columns; j += width) {
    const i64 count = std::min(width, columns - j);
    Panel panel{in.high.data() + j, in.low.data() + j, columns};
    if (count < width) {
      std::ranges::fill(last.high, 0);
      std::ranges::fill(last.low, 0);
      for (i64 k = 0; k < inner; ++k) {
        std::copy_n(panel.high + k * columns, count, last.high.data() + k * width);
        std::copy_n(panel.low + k * columns, count, last.low.data() + k * width);
      }
      panel = {last.high.data(), last.low.data(), width};
    }
    add_panel(kernels, digits, packed.data(), rows, inner, panel, panels.data(), sums);
    for (i64 i = 0; i < rows; ++i) {
      std::array<u64, 64> high;
      std::array<u16, 64> low;
      kernels.join(digits, sums.data() + i * width, rows * width, high.data(), low.data());
      std::copy_n(high.data(), count, out.high.data() + i * columns + j);
      std::copy_n(low.data(), count, out.low.data() + i * columns + j);
    }
  }
}

}  // namespace privml::lattice
