// SPDX-License-Identifier: Apache-2.0
// Python's bytes as views, and views as bytes of Python's own.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "base/types.h"

namespace privml::bindings {

inline Bytes view_of(const pybind11::bytes& data) {
  const std::string_view view = data;
  return {reinterpret_cast<const u8*>(view.data()), view.size()};
}

inline pybind11::bytes bytes_of(Bytes data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace privml::bindings
