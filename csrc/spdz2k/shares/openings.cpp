// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/openings.h"

#include "base/error.h"
#include "base/wipe.h"

namespace privml::spdz2k {
namespace {

template <class W>
ShareSpan<W> append(Shares<W>& group, i64 n) {
  const i64 before = group.size();
  group.resize(before + n);
  return group.part(before, n);
}

template <class W>
void wipe_all(Shares<W>& group) {
  for (auto* words : {&group.value, &group.mac}) {
    words->resize(words->capacity());  // what was pending before the last check, too
    privml::wipe(words->data(), words->size() * sizeof(W));
    words->clear();
  }
}

}  // namespace

template <class R>
WordSpan<R> Openings<R>::add(int bits, i64 n) {
  expect(bits >= 1 && bits <= R::k, "open: bits must be in 1..k");
  return append(words_[bits], n);
}

template <class R>
BitSpan<R> Openings<R>::add_bits(i64 n) {
  return append(bits_, n);
}

template <class R>
i64 Openings<R>::pending() const {
  i64 total = bits_.size();
  for (const auto& [bits, group] : words_) total += group.size();
  return total;
}

template <class R>
std::map<int, i64> Openings<R>::groups() const {
  std::map<int, i64> sizes;
  if (bits_.size() > 0) sizes[kBitGroup] = bits_.size();
  for (const auto& [bits, group] : words_) {
    if (group.size() > 0) sizes[bits] = group.size();
  }
  return sizes;
}

template <class R>
void Openings<R>::clear() {
  bits_.resize(0);
  for (auto& [bits, group] : words_) group.resize(0);
}

template <class R>
void Openings<R>::wipe() {
  wipe_all(bits_);
  for (auto& [bits, group] : words_) wipe_all(group);
}

#define PRIVML_INSTANTIATE(R) template class Openings<R>;
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
