// SPDX-License-Identifier: Apache-2.0
// Erasing keys and shares from memory before it is given back.
#pragma once

#include <cstddef>
#include <cstring>

namespace privml {

// Zeroes `bytes` bytes; unlike memset, never removed as a dead store.
inline void wipe(void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  std::memset(memory, 0, bytes);
  __asm__ volatile("" : : "r"(memory) : "memory");
}

// A value that is zeroed where its life ends, every copy of it with its own.
template <class T>
class Secret {
 public:
  Secret(const T& value) : value_(value) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(&value_, sizeof(value_)); }
  operator const T&() const { return value_; }

 private:
  T value_;
};

}  // namespace privml
