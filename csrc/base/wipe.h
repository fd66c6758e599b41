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

}  // namespace privml
