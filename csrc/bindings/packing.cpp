// SPDX-License-Identifier: Apache-2.0
// Python names of gap-free bit packing: what engines written in Python put on the wire.
#include "base/pack.h"
#include "bindings/arrays.h"

namespace privml::bindings {
namespace {

py::array packed(const py::array& values, int width) {
  const i64 count = values.size();
  if (py::isinstance<py::array_t<u8>>(values)) {
    const auto in = view<u8>(values, "values");
    expect(width >= 1 && width <= 8, "width must lie in 1..8 for bytes");
    Result<u8> out({static_cast<py::ssize_t>(packed_bytes(count, width))});
    {
      py::gil_scoped_release without_interpreter;
      pack(in.data(), count, width, out.span.data());
    }
    return std::move(out.array);
  }
  const auto in = view<u64>(values, "values");
  expect(width >= 1 && width <= 64, "width must lie in 1..64");
  Result<u8> out({static_cast<py::ssize_t>(packed_bytes(count, width))});
  {
    py::gil_scoped_release without_interpreter;
    pack(in.data(), count, width, out.span.data());
  }
  return std::move(out.array);
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
  m.def("pack", &packed, "values"_a, "width"_a,
        "The low `width` bits of each element (int64 or uint8), without gaps, as a uint8 array.");
  m.def("unpack", &unpacked<u64>, "bytes"_a, "count"_a, "width"_a, "The int64 array of pack().");
  m.def("unpack_bytes", &unpacked<u8>, "bytes"_a, "count"_a, "width"_a,
        "The uint8 array of pack(), width at most 8.");
}

}  // namespace privml::bindings
