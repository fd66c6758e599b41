// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/matrix_triple.h"

#include <algorithm>

#include "base/error.h"
#include "spdz2k/preprocessing/matrix_batch.h"
#include "spdz2k/preprocessing/sacrifice.h"
#include "spdz2k/shares/chunks.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kEntriesAtOnce = i64{1} << 17;  // of A, B and C in a batch

i64 entries_of(const MatrixShape& shape) {
  const auto [rows, inner, columns] = shape;
  return rows * inner + (inner + rows) * (columns + 1);
}

}  // namespace

i64 matrices_at_once(const MatrixShape& shape) {
  return std::max<i64>(1, kEntriesAtOnce / entries_of(shape));
}

template <class R>
void generate_matrix_triples(Authentication<R>& authentication, const MatrixShape& shape, i64 n,
                             WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) {
  const auto [rows, inner, columns] = shape;
  expect(rows > 0 && inner > 0 && columns > 0, "matrix triples: a shape without entries");
  expect(a.size() == n * rows * inner && b.size() == n * inner * columns &&
             c.size() == n * rows * columns,
         "matrix triples: the arrays are not of this shape");
  in_parts(n, matrices_at_once(shape), [&](i64 first, i64 count) {
    MatrixBatch<R> batch(authentication, shape, count);
    batch.run();
    batch.write(a.part(first * rows * inner, count * rows * inner),
                b.part(first * inner * columns, count * inner * columns),
                c.part(first * rows * columns, count * rows * columns));
  });
}

template <class R>
void cost_matrix_triples(ot::CostMeter& meter, const MatrixShape& shape, i64 n,
                         SilentVoleMeter* voles) {
  in_parts(n, matrices_at_once(shape), [&](i64, i64 count) {
    const MatrixLayout at(shape, count);
    const i64 products = key_product_bytes(kFactorShape<R>, kNarrowBits<R>, at.width);
    in_parts(at.factors, kKeysReserved, [&](i64, i64 reserved) {
      meter.reserve(reserved * R::k, reserved * R::k);
      in_parts(reserved, kKeysAtOnce, [&](i64, i64 keys) {
        const std::vector<TreeShape> shapes(keys, kFactorShape<R>);
        cost_seed_trees(meter, shapes);
        meter.exchange(keys * products, keys * products);
      });
    });
    in_parts(at.lines, at.lines_by_pool(), [&](i64, i64 lines) {
      const i64 entries = lines * at.width;
      cost_authenticate<R>(meter, {entries, entries}, kWideBits<R>, true, voles);
    });
    in_parts(at.factors + at.sums * at.width, kMacsAtOnce, [&](i64, i64 entries) {
      cost_authenticate<R>(meter, {entries, entries}, kWideBits<R>, false, voles);
    });
    meter.exchange(wide_bytes<R>(at.lines), wide_bytes<R>(at.lines));
    cost_open_zeros<R>(meter, at.sums);
    cost_check_residuals<R>(meter);
  });
}

#define PRIVML_INSTANTIATE(R)                                                           \
  template void generate_matrix_triples<R>(Authentication<R>&, const MatrixShape&, i64, \
                                           WordSpan<R>, WordSpan<R>, WordSpan<R>);      \
  template void cost_matrix_triples<R>(ot::CostMeter&, const MatrixShape&, i64, SilentVoleMeter*);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
