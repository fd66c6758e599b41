// SPDX-License-Identifier: Apache-2.0
// Vectors whose storage is aligned to cache lines and not touched on resize; a wiped one zeroes
// what it gives back, for keys and other long-lived secrets.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "base/wipe.h"

namespace privml {

constexpr std::size_t kCacheLine = 64;

template <class T, bool wiped>
struct AlignedAllocator {
  using value_type = T;
  template <class U>
  struct rebind {
    using other = AlignedAllocator<U, wiped>;
  };

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U, wiped>&) {}

  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{kCacheLine}));
  }
  void deallocate(T* p, std::size_t n) {
    if constexpr (wiped) wipe(p, n * sizeof(T));
    ::operator delete(p, std::align_val_t{kCacheLine});
  }

  // Without arguments: default initialisation, which leaves numbers as they are.
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T, false>>;

template <class T>
using WipedVector = std::vector<T, AlignedAllocator<T, true>>;

}  // namespace privml
