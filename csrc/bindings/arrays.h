// SPDX-License-Identifier: Apache-2.0
// Views of numpy arrays: words are C-contiguous int64 or uint64, bits are C-contiguous uint8.
// Nothing is converted or copied; anything else raises ValueError naming the argument.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/types.h"

namespace privml::bindings {

namespace py = pybind11;
using namespace py::literals;

using Shape = std::vector<py::ssize_t>;

template <class T>
std::span<const T> view(const py::array& array, const char* name) {
  bool fits = false;
  if constexpr (sizeof(T) == 8) {
    fits = py::isinstance<py::array_t<i64>>(array) || py::isinstance<py::array_t<u64>>(array);
  } else {
    fits = py::isinstance<py::array_t<u8>>(array);
  }
  if (!fits || !(array.flags() & py::array::c_style)) {
    throw InvalidArgument(std::string(name) + ": needs a C-contiguous array of " +
                          (sizeof(T) == 8 ? "int64 or uint64" : "uint8"));
  }
  return {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.size())};
}

// The view of an operand that only its owner passes; the other party passes None.
inline std::span<const u64> view_if(const std::optional<py::array>& array, const char* name) {
  return array ? view<u64>(*array, name) : std::span<const u64>{};
}

inline Shape shape_of(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

// Zeros that take no memory until they are written.
template <class Element>
py::array_t<Element> untouched(const Shape& shape) {
  return py::module_::import("numpy").attr("zeros")(py::tuple(py::cast(shape)),
                                                    py::dtype::of<Element>());
}

// A fresh array of zeros with its view; words come out as int64, which is what torch shares memory
// with.
template <class T>
struct Result {
  using Element = std::conditional_t<sizeof(T) == 8, i64, u8>;
  explicit Result(const Shape& shape)
      : array(shape), span(reinterpret_cast<T*>(array.mutable_data()), array.size()) {
    std::fill(span.begin(), span.end(), T{0});
  }
  // On a meter, which leaves them as they are, they take no memory.
  template <class Session>
  Result(const Session& session, const Shape& shape)
      : array(session.metering() ? untouched<Element>(shape) : py::array_t<Element>(shape)),
        span(reinterpret_cast<T*>(array.mutable_data()), array.size()) {
    if (!session.metering()) std::fill(span.begin(), span.end(), T{0});
  }
  py::array_t<Element> array;
  std::span<T> span;
};

}  // namespace privml::bindings
