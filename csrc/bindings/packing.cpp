// SPDX-License-Identifier: Apache-2.0
// Python names of gap-free bit packing: what engines written in Python put on the wire.
#include "base/pack.h"
#include "bindings/arrays.h"

namespace privml::bindings {
namespace {

template <class T>
py::array packed(const py::array& values, int width) {
  const auto in = view<T>(values, "values");
  const i64 count = std::ssize(in);
  expect(width >= 1 && width <= static_cast<int>(8 * sizeof(T)), "width out of range");
  Result<u8> out({static_cast<py::ssize_t>(packed_bytes(count, width))});
  {
    py::gil_scoped_release without_interpreter;
    pack(in.data(), count, width, out.span.data());
  }
  return std::move(out.array);
}

py::array packed_array(const py::array& values, int width) {
  return py::isinstance<py::array_t<u8>>(values) ? packed<u8>(values, width)
                                                 : packed<u64>(values, width);
}

template <class T>
py::array unpacked(const py::array& bytes, i64 count, int width) {
  const auto in = view<u8>(bytes, "bytes");
  expect(count >= 0 && width >= 1 && width <= static_cast<int>(8 * sizeof(T)),
         "count or width out of range");
  expect(std::ssize(in) == packed_bytes(count, width), "bytes: wrong length");
  Result<T> out({static_cast<py::ssize_t>(count)});
  {
    py::gil_scoped_release without_interpreter;
    unpack(in.data(), count, width, out.span.data());
  }
  return std::move(out.array);
}

}  // namespace

void define_packing(py::module_& m) {
  m.def("pack", &packed_array, "values"_a, "width"_a,
        "The low `width` bits of each element (int64 or uint8), without gaps, as a uint8 array.");
  m.def("unpack", &unpacked<u64>, "bytes"_a, "count"_a, "width"_a, "The int64 array of pack().");
  m.def("unpack_bytes", &unpacked<u8>, "bytes"_a, "count"_a, "width"_a,
        "The uint8 array of pack(), width at most 8.");
}

}  // namespace privml::bindings
