// SPDX-License-Identifier: Apache-2.0
// Python names of arithmetic mod 2^128 (submodule linear): a number is a pair of arrays, its low
// and its high words.
#include "linear/wide.h"

#include "bindings/arrays.h"

namespace privml::bindings {
namespace {

using Pair = std::pair<py::array, py::array>;

struct Wide {
  std::span<const u64> low, high;
  Wide(const Pair& pair, const char* name)
      : low(view<u64>(pair.first, name)), high(view<u64>(pair.second, name)) {
    if (shape_of(pair.first) != shape_of(pair.second))
      throw InvalidArgument(std::string(name) + ": low and high words have different shapes");
  }
  linear::WideView all() const { return {low.data(), high.data()}; }
  linear::WideView from(i64 first) const { return {low.data() + first, high.data() + first}; }
  i64 size() const { return std::ssize(low); }
};

struct WideResult {
  Result<u64> low, high;
  explicit WideResult(const Shape& shape) : low(shape), high(shape) {}
  linear::WideOutput all() { return from(0); }
  linear::WideOutput from(i64 first) { return {low.span.data() + first, high.span.data() + first}; }
  py::tuple arrays() const { return py::make_tuple(low.array, high.array); }
};

auto elementwise(void (*function)(linear::WideView, linear::WideView, i64, linear::WideOutput)) {
  return [function](const Pair& a, const Pair& b) {
    const Wide x(a, "a"), y(b, "b");
    expect(shape_of(a.first) == shape_of(b.first), "a and b: shapes differ");
    WideResult out(shape_of(a.first));
    {
      const py::gil_scoped_release unlock;
      function(x.all(), y.all(), x.size(), out.all());
    }
    return out.arrays();
  };
}

py::tuple negate(const Pair& a) {
  const Wide x(a, "a");
  WideResult out(shape_of(a.first));
  {
    const py::gil_scoped_release unlock;
    linear::negate_wide(x.all(), x.size(), out.all());
  }
  return out.arrays();
}

py::tuple multiply(const Pair& a, const py::array& factors) {
  const Wide x(a, "a");
  const auto f = view<u64>(factors, "factors");
  expect(factors.ndim() == 0 || shape_of(factors) == shape_of(a.first),
         "factors: one for all or one for each");
  WideResult out(shape_of(a.first));
  {
    const py::gil_scoped_release unlock;
    if (factors.ndim() == 0) {
      linear::multiply_wide(x.all(), f[0], x.size(), out.all());
    } else {
      linear::multiply_wide(x.all(), f.data(), x.size(), out.all());
    }
  }
  return out.arrays();
}

py::tuple sum(const Pair& a) {
  const Wide x(a, "a");
  expect(a.first.ndim() == 3, "sum: needs three dimensions");
  const i64 outer = a.first.shape(0), count = a.first.shape(1), inner = a.first.shape(2);
  WideResult out(Shape{outer, inner});
  {
    const py::gil_scoped_release unlock;
    linear::sum_wide(x.all(), outer, count, inner, out.all());
  }
  return out.arrays();
}

py::tuple matmul(const Pair& a, const py::array& b, bool left) {
  const Wide x(a, "a");
  const auto y = view<u64>(b, "b");
  expect(a.first.ndim() == 3 && b.ndim() == 3 && a.first.shape(0) == b.shape(0),
         "matmul: needs two batches of matrices");
  // Of a product from the left, the transposed one is computed.
  const int along = left ? 1 : 2, across = 3 - along;
  const i64 inner = a.first.shape(along), rows = a.first.shape(across), columns = b.shape(along);
  expect(b.shape(across) == inner, "matmul: shapes do not fit");
  WideResult out(left ? Shape{b.shape(0), columns, rows} : Shape{b.shape(0), rows, columns});
  const linear::Strides a_at = left ? linear::Strides{1, rows} : linear::Strides{inner, 1};
  const linear::Strides b_at = left ? linear::Strides{1, inner} : linear::Strides{columns, 1};
  const linear::Strides out_at = left ? linear::Strides{1, rows} : linear::Strides{columns, 1};
  {
    const py::gil_scoped_release unlock;
    for (i64 i = 0; i < b.shape(0); ++i)
      linear::wide_product(x.from(i * rows * inner), a_at, y.data() + i * inner * columns, b_at,
                           rows, inner, columns, out.from(i * rows * columns), out_at);
  }
  return out.arrays();
}

}  // namespace

void define_wide_numbers(py::module_& m) {
  m.def("wide_add", elementwise(linear::add_wide), "a"_a, "b"_a,
        "a + b mod 2^128 for pairs (low words, high words) of arrays of one shape");
  m.def("wide_subtract", elementwise(linear::subtract_wide), "a"_a, "b"_a);
  m.def("wide_negate", negate, "a"_a);
  m.def("wide_multiply", multiply, "a"_a, "factors"_a,
        "times words from 0 to 2^64 - 1: an array of the same shape, or one without dimensions");
  m.def("wide_sum", sum, "a"_a, "over the middle one of three dimensions");
  m.def("wide_matmul", matmul, "a"_a, "b"_a, "left"_a = false,
        "[n, r, k] @ [n, k, c], or b @ a if `left`, with b of words");
}

}  // namespace privml::bindings
