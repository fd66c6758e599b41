// SPDX-License-Identifier: Apache-2.0
// Local products of ring elements as functions of numpy arrays.
#include <array>

#include "base/parallel.h"
#include "bindings/arrays.h"
#include "linear/convolution.h"
#include "linear/product.h"

namespace privml::bindings {
namespace {

// Words of an array of any strides; those of one dimension count in words.
struct Strided {
  const u64* words;
  std::vector<i64> shape, strides;
};

Strided strided_view(const py::array& array, const char* name) {
  if (!py::isinstance<py::array_t<i64>>(array) && !py::isinstance<py::array_t<u64>>(array))
    throw InvalidArgument(std::string(name) + ": needs an array of int64 or uint64");
  Strided view{static_cast<const u64*>(array.data()), {}, {}};
  for (py::ssize_t d = 0; d < array.ndim(); ++d) {
    if (array.strides(d) % 8 != 0)
      throw InvalidArgument(std::string(name) + ": strides must be whole words");
    view.shape.push_back(array.shape(d));
    view.strides.push_back(array.strides(d) / 8);
  }
  return view;
}

// Where matrix `index` of a batch begins.
const u64* matrix(const Strided& view, i64 index) {
  i64 offset = 0;
  for (i64 d = std::ssize(view.shape) - 3; d >= 0; --d) {
    offset += index % view.shape[d] * view.strides[d];
    index /= view.shape[d];
  }
  return view.words + offset;
}

py::array matmul(const py::array& left, const py::array& right, int bits, int threads) {
  const Strided a = strided_view(left, "a"), b = strided_view(right, "b");
  const size_t depth = a.shape.size();
  expect(depth >= 2 && b.shape.size() == depth &&
             std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin()) &&
             a.shape[depth - 1] == b.shape[depth - 2],
         "matmul: shapes do not fit");
  Shape shape(a.shape.begin(), a.shape.end());
  shape[depth - 1] = b.shape[depth - 1];
  Result<u64> out(shape);
  const i64 rows = shape[depth - 2], columns = shape[depth - 1], inner = a.shape[depth - 1];
  const auto a_row = linear::strided(rows, a.strides[depth - 2]);
  const auto a_column = linear::strided(inner, a.strides[depth - 1]);
  const auto b_row = linear::strided(inner, b.strides[depth - 2]);
  const auto b_column = linear::strided(columns, b.strides[depth - 1]);
  const auto out_row = linear::strided(rows, columns), out_column = linear::strided(columns, 1);
  i64 batch = 1;
  for (size_t d = 0; d + 2 < depth; ++d) batch *= shape[d];
  // Threads share out the batch if it is large enough, the single products if it is not.
  const int over_batch = batch >= threads ? threads : 1, within = batch >= threads ? 1 : threads;
  {
    const py::gil_scoped_release without_interpreter;
    in_parallel(batch, 1, over_batch, [&](i64 first, i64 number) {
      for (i64 i = first; i < first + number; ++i)
        linear::add_product({matrix(a, i), a_row, a_column}, {matrix(b, i), b_row, b_column}, bits,
                            {out.span.data() + i * rows * columns, out_row, out_column}, within);
    });
  }
  return out.array;
}

py::array conv2d(const py::array& x, const py::array& w, std::array<i64, 2> stride,
                 std::array<i64, 2> padding, std::array<i64, 2> dilation, i64 groups, int bits,
                 int threads) {
  const auto in = view<u64>(x, "x"), kernel = view<u64>(w, "w");
  expect(x.ndim() == 4 && w.ndim() == 4, "conv2d: x and w need four dimensions");
  const linear::ConvolutionShape shape{x.shape(0), x.shape(1), x.shape(2),  x.shape(3),
                                       w.shape(0), w.shape(2), w.shape(3),  groups,
                                       stride[0],  stride[1],  padding[0],  padding[1],
                                       padding[0], padding[1], dilation[0], dilation[1]};
  linear::expect_valid(shape);
  expect(w.shape(1) * groups == x.shape(1), "conv2d: channels of x and w do not fit");
  Result<u64> out({shape.batch, shape.out_channels, shape.out_height(), shape.out_width()});
  {
    const py::gil_scoped_release without_interpreter;
    linear::add_convolution(in, kernel, shape, bits, out.span, threads);
  }
  return out.array;
}

}  // namespace

void define_linear(py::module_& m) {
  m.def("matmul", matmul, "a"_a, "b"_a, "bits"_a = 64, "threads"_a = 1,
        "[..., n, k] @ [..., k, m] mod 2^bits, equal leading dimensions, any strides");
  m.def("conv2d", conv2d, "x"_a, "w"_a, "stride"_a, "padding"_a, "dilation"_a, "groups"_a,
        "bits"_a = 64, "threads"_a = 1,
        "[n, c, h, w] with [o, c / groups, kh, kw] mod 2^bits, zero padding at both ends");
}

}  // namespace privml::bindings
