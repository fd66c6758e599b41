// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/matrix_product.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

i64 products_of(const MatrixShape& shape) { return shape.rows * shape.inner * shape.columns; }

// Whether single products are taken: also if every entry has one use only.
bool is_small(const MatrixShape& shape) {
  return products_of(shape) < kLeastProducts || (shape.rows == 1 && shape.columns == 1);
}

bool is_turned(const MatrixShape& shape) { return shape.rows > shape.columns; }

MatrixShape transposed(const MatrixShape& shape) {
  return {shape.columns, shape.inner, shape.rows};
}

// A part of every product of a batch.
struct Part {
  i64 row, place, column;  // its first
  MatrixShape shape;
};

std::vector<Part> parts_of(const MatrixShape& shape) {
  std::vector<Part> parts;
  in_parts(shape.rows, kMostRows, [&](i64 row, i64 rows) {
    in_parts(shape.columns, kMostColumns, [&](i64 column, i64 columns) {
      in_parts(shape.inner, kMostEntries / columns, [&](i64 place, i64 inner) {
        parts.push_back({row, place, column, {rows, inner, columns}});
      });
    });
  });
  return parts;
}

// Calls use(part, first, count) for all parts of n products, so many at once as are opened
// together.
template <class Use>
void for_each_part(const MatrixShape& shape, i64 n, Use&& use) {
  for (const Part& part : parts_of(shape)) {
    const i64 opened = part.shape.inner * (part.shape.rows + part.shape.columns);
    in_parts(n, std::max<i64>(1, kOpenedAtOnce / opened),
             [&](i64 first, i64 count) { use(part, first, count); });
  }
}

// Where the entries of matrices stand, or those of the transposes of what is stored.
struct Places {
  Places(i64 rows, i64 columns, bool turned)
      : down(turned ? 1 : columns), across(turned ? rows : 1), size(rows * columns) {}
  i64 operator()(i64 matrix, i64 row, i64 column) const {
    return matrix * size + row * down + column * across;
  }
  i64 down, across, size;
};

// Products of matrices that have at most as many rows as columns; the arguments may hold
// transposes.
template <class R>
class MatrixProduct {
 public:
  using Word = typename R::Word;

  MatrixProduct(Side<R> side, WordView<R> left, WordView<R> right, const MatrixShape& shape,
                bool turned, WordSpan<R> out)
      : side_(side),
        left_(left),
        right_(right),
        out_(out),
        at_left_(shape.rows, shape.inner, turned),
        at_right_(shape.inner, shape.columns, turned),
        at_out_(shape.rows, shape.columns, turned) {}

  void add(const Part& part, i64 first, i64 count) {
    side_.call([&](Session<R>& session) { run(session, part, first, count); },
               [&](CostMeter& meter) {
                 const auto [rows, inner, columns] = part.shape;
                 meter.demand.matrices[part.shape] += count;
                 cost_open<R>(meter, count * inner * (rows + columns), R::k);
               });
  }

 private:
  void run(Session<R>& session, const Part& part, i64 first, i64 count) {
    const auto [rows, inner, columns] = part.shape;
    const i64 in_left = rows * inner, in_right = inner * columns, in_out = rows * columns;
    WordShares<R> a(count * in_left), b(count * in_right), c(count * in_out);
    session.supply().matrix_triples(part.shape, count, a, b, c);
    const WordSpan<R> slots = begin_opening(session, R::k, count * (in_left + in_right));
    const WordSpan<R> lefts = slots.part(0, a.size()), rights = slots.part(a.size(), b.size());
    for (i64 i = 0; i < count; ++i) {
      gather(
          left_,
          [&](i64 row, i64 j) { return at_left_(first + i, part.row + row, part.place + j); }, rows,
          inner, lefts.part(i * in_left, in_left));
      gather(
          right_,
          [&](i64 j, i64 column) {
            return at_right_(first + i, part.place + j, part.column + column);
          },
          inner, columns, rights.part(i * in_right, in_right));
    }
    subtract(lefts, a, lefts);
    subtract(rights, b, rights);
    RecycledVector<u64> opened(slots.size());
    finish_opening(session, slots, R::k, opened);
    const std::span<const u64> d = std::span<const u64>(opened).first(a.size());
    const std::span<const u64> e = std::span<const u64>(opened).last(b.size());
    // (a + d) (b + e) = c + d (b + e) + a e, where the public e counts as a share of its own.
    add_public(session.rank, session.alpha(), b, e, b);
    for (i64 i = 0; i < count; ++i) {
      for (i64 row = 0; row < rows; ++row) {
        const i64 line = i * in_left + row * inner, sums = i * in_out + row * columns;
        for (i64 j = 0; j < inner; ++j) {
          const i64 other = i * in_right + j * columns;
          const Word factor = static_cast<Word>(d[line + j]);
          const auto add_line = [&](const auto& from, Word mask, Word* to) {
            for (i64 l = 0; l < columns; ++l) {
              to[l] = static_cast<Word>(to[l] + product(factor, from[other + l]) +
                                        product(mask, static_cast<Word>(e[other + l])));
            }
          };
          add_line(b.value, a.value[line + j], c.value.data() + sums);
          add_line(b.mac, a.mac[line + j], c.mac.data() + sums);
        }
        for (i64 l = 0; l < columns; ++l) {
          const i64 to = at_out_(first + i, part.row + row, part.column + l);
          out_.value[to] += c.value[sums + l];
          out_.mac[to] += c.mac[sums + l];
        }
      }
    }
  }

  template <class Place>
  static void gather(WordView<R> from, Place&& place, i64 rows, i64 columns, WordSpan<R> to) {
    for (i64 row = 0; row < rows; ++row) {
      for (i64 column = 0; column < columns; ++column) {
        const i64 at = place(row, column);
        to.value[row * columns + column] = from.value[at];
        to.mac[row * columns + column] = from.mac[at];
      }
    }
  }

  Side<R> side_;
  WordView<R> left_, right_;
  WordSpan<R> out_;
  Places at_left_, at_right_, at_out_;
};

// Product number (entry of the result) * inner + j, matrix after matrix.
template <class R>
void add_single_products(Side<R> side, WordView<R> a, WordView<R> b, const MatrixShape& shape,
                         i64 n, WordSpan<R> out) {
  const auto [rows, inner, columns] = shape;
  in_parts(n * products_of(shape), kProducts, [&](i64 first, i64 count) {
    WordShares<R> x = side.words(count), y = side.words(count);
    for (i64 i = 0; i < x.size(); ++i) {
      const i64 entry = (first + i) / inner, j = (first + i) % inner;
      const i64 left = entry / columns * inner + j;
      const i64 right = (entry / (rows * columns) * inner + j) * columns + entry % columns;
      x.value[i] = a.value[left], x.mac[i] = a.mac[left];
      y.value[i] = b.value[right], y.mac[i] = b.mac[right];
    }
    multiply<R>(side.of(count), x, y, x);
    for (i64 i = 0; i < x.size(); ++i) {
      out.value[(first + i) / inner] += x.value[i];
      out.mac[(first + i) / inner] += x.mac[i];
    }
  });
}

}  // namespace

template <class R>
void multiply_matrices(Side<R> side, WordView<R> a, WordView<R> b, MatrixShape shape, i64 n,
                       WordSpan<R> out) {
  const auto [rows, inner, columns] = shape;
  side.expect_lengths(n >= 0 && rows >= 0 && inner >= 0 && columns >= 0 &&
                          a.size() == n * rows * inner && b.size() == n * inner * columns &&
                          out.size() == n * rows * columns,
                      "multiply_matrices: the arrays are not of these shapes");
  std::fill(out.value.begin(), out.value.end(), 0);
  std::fill(out.mac.begin(), out.mac.end(), 0);
  if (is_small(shape)) return add_single_products<R>(side, a, b, shape, n, out);
  const bool turned = is_turned(shape);
  const MatrixShape flat = turned ? transposed(shape) : shape;
  MatrixProduct<R> products(side, turned ? b : a, turned ? a : b, flat, turned, out);
  for_each_part(flat, n,
                [&](const Part& part, i64 first, i64 count) { products.add(part, first, count); });
}

#define PRIVML_INSTANTIATE(R)                                                             \
  template void multiply_matrices<R>(Side<R>, WordView<R>, WordView<R>, MatrixShape, i64, \
                                     WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
