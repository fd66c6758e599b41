// SPDX-License-Identifier: Apache-2.0
// Arguments and results of the three-party kernels: words are int64, bits and small numbers uint8,
// keys 32 bytes; arrays are C-contiguous and never copied, results are fresh.
#pragma once

#include <cstring>

#include "base/wipe.h"
#include "bindings/arrays.h"

namespace privml::bindings {

// 32 bytes of anything with a buffer: bytes, or a uint8 array that its owner wipes.
struct Key {
  u32 words[8];
  Key(const py::buffer& bytes, const char* name) {
    const py::buffer_info info = bytes.request();
    if (info.itemsize != 1 || info.size != sizeof words || (info.ndim == 1 && info.strides[0] != 1))
      throw InvalidArgument(std::string(name) + ": a key has 32 bytes");
    std::memcpy(words, info.ptr, sizeof words);
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() { wipe(words, sizeof words); }
};

template <class T>
py::array_t<T> fresh(i64 count) {
  expect(count >= 0, "count must not be negative");
  return py::array_t<T>(count);
}

inline u64* data(py::array_t<i64>& out) { return reinterpret_cast<u64*>(out.mutable_data()); }

inline void same_size(i64 size, i64 count, const char* name) {
  if (size != count)
    throw InvalidArgument(std::string(name) + ": " + std::to_string(size) + " values, not " +
                          std::to_string(count));
}

inline const u8* list(const py::array& array, i64 bytes, const char* name) {
  const auto values = view<u8>(array, name);
  same_size(std::ssize(values), bytes, name);
  return values.data();
}

inline const u64* operand(const py::array& array, i64 count, const char* name) {
  const auto values = view<u64>(array, name);
  same_size(std::ssize(values), count, name);
  return values.data();
}

// Runs a kernel without the interpreter's lock.
template <class Work>
void unlocked(const Work& work) {
  py::gil_scoped_release unlock;
  work();
}

}  // namespace privml::bindings
