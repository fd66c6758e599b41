// SPDX-License-Identifier: Apache-2.0
// Authenticated shares as numpy arrays of int64: of a number the low (and in the ring of 64 bits
// the high) words of share and MAC, of a bit one word of share and one of MAC. Nothing depends on
// the bits of a word beyond its type.
#pragma once

#include "bindings/active_session.h"
#include "spdz2k/shares/shares.h"

namespace privml::bindings {

using Components = std::vector<py::array>;

// Views of arrays of one shape.
struct ShareArrays {
  std::vector<std::span<const u64>> words;
  Shape shape;

  ShareArrays(const Components& arrays, int components, const char* name) {
    if (std::ssize(arrays) != components)
      throw InvalidArgument(std::string(name) + ": a share has " + std::to_string(components) +
                            " arrays here");
    shape = shape_of(arrays[0]);
    for (const py::array& array : arrays) {
      if (shape_of(array) != shape)
        throw InvalidArgument(std::string(name) + ": its arrays have different shapes");
      words.push_back(view<u64>(array, name));
    }
  }
  i64 size() const { return std::ssize(words[0]); }
};

template <class W>
void load(std::span<const std::span<const u64>> words, std::span<W> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    W word = static_cast<W>(words[0][i]);
    if constexpr (sizeof(W) > sizeof(u64)) word |= W{words[1][i]} << 64;
    out[i] = word;
  }
}

template <class W>
void store(std::span<const W> from, std::span<const std::span<u64>> words) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    words[0][i] = static_cast<u64>(from[i]);
    if constexpr (sizeof(W) > sizeof(u64)) words[1][i] = static_cast<u64>(from[i] >> 64);
  }
}

struct Numbers : ShareArrays {
  Numbers(const ActiveSession& session, const Components& arrays, const char* name)
      : ShareArrays(arrays, session.components(), name) {}

  template <class R>
  spdz2k::WordShares<R> load() const {
    const std::size_t half = words.size() / 2;
    spdz2k::WordShares<R> out(size());
    const std::span<const std::span<const u64>> all(words);
    bindings::load<typename R::Word>(all.first(half), out.value);
    bindings::load<typename R::Word>(all.last(half), out.mac);
    return out;
  }
};

struct Bits : ShareArrays {
  Bits(const Components& arrays, const char* name) : ShareArrays(arrays, 2, name) {}

  template <class R>
  spdz2k::BitShares<R> load() const {
    spdz2k::BitShares<R> out(size());
    const std::span<const std::span<const u64>> all(words);
    bindings::load<typename R::BitWord>(all.first(1), out.value);
    bindings::load<typename R::BitWord>(all.last(1), out.mac);
    return out;
  }
};

// Fresh arrays of zeros, which a meter leaves as they are.
struct ShareResult {
  std::vector<Result<u64>> arrays;

  ShareResult(const ActiveSession& session, const Shape& shape, int components) {
    for (int i = 0; i < components; ++i) arrays.emplace_back(session, shape);
  }
  i64 size() const { return std::ssize(arrays[0].span); }
  template <class W>
  void store(spdz2k::ShareView<W> share) {
    std::vector<std::span<u64>> words;
    for (Result<u64>& array : arrays) words.push_back(array.span);
    const std::size_t half = words.size() / 2;
    const std::span<const std::span<u64>> all(words);
    bindings::store<W>(share.value, all.first(half));
    bindings::store<W>(share.mac, all.last(half));
  }
  py::tuple tuple() const {
    py::tuple out(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) out[i] = arrays[i].array;
    return out;
  }
};

inline ShareResult number_result(const ActiveSession& session, const Shape& shape) {
  return {session, shape, session.components()};
}
inline ShareResult bit_result(const ActiveSession& session, const Shape& shape) {
  return {session, shape, 2};
}

}  // namespace privml::bindings
