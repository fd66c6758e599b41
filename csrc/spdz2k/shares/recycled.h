// SPDX-License-Identifier: Apache-2.0
// Large blocks of memory that a thread keeps for its next use: the shares of a batch live for
// milliseconds, and new pages from the operating system would cost more than the protocol. Blocks
// that a thread does not keep, and all of them when it ends, are wiped and returned to the system.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace privml::spdz2k {

// At least `bytes` bytes, aligned to a cache line, with any contents.
void* take_block(std::size_t bytes);
// `bytes` as they were asked for.
void give_back_block(void* block, std::size_t bytes);

// As AlignedAllocator of base/buffer.h: new elements are not initialised.
template <class T>
struct RecycledAllocator {
  using value_type = T;

  RecycledAllocator() = default;
  template <class U>
  RecycledAllocator(const RecycledAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(take_block(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { give_back_block(p, n * sizeof(T)); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }

  friend bool operator==(const RecycledAllocator&, const RecycledAllocator&) { return true; }
};

template <class T>
using RecycledVector = std::vector<T, RecycledAllocator<T>>;

}  // namespace privml::spdz2k
