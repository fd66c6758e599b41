// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/masks.h"

#include "base/error.h"

namespace privml::spdz2k {

template <class R>
void generate_masks(Authentication<R>& authentication, int owner, WordSpan<R> r,
                    std::span<u64> clear) {
  using Word = typename R::Word;
  expect(owner == 0 || owner == 1, "masks: the owner is party 0 or party 1");
  Session<R>& session = authentication.session();
  const bool mine = session.rank == owner;
  expect(std::ssize(clear) == (mine ? r.size() : 0), "masks: clear values for the owner alone");
  for (i64 first = 0; first < r.size(); first += kMaskBatch) {
    const WordSpan<R> part = r.part(first, std::min(kMaskBatch, r.size() - first));
    if (mine) {
      session.prg.fill_bytes(bytes_of(part.value));
      authentication.template authenticate<Word>(part.value, part.mac, {});
      for (i64 i = 0; i < part.size(); ++i) {
        clear[first + i] = static_cast<u64>(low_bits(part.value[i], R::k));
      }
    } else {
      std::fill(part.value.begin(), part.value.end(), Word{0});
      authentication.template authenticate<Word>({}, {}, part.mac);
    }
  }
}

template <class R>
void generate_randoms(Authentication<R>& authentication, WordSpan<R> r) {
  using Word = typename R::Word;
  WipedVector<Word> theirs(std::min(kMaskBatch, r.size()));
  for (i64 first = 0; first < r.size(); first += kMaskBatch) {
    const WordSpan<R> part = r.part(first, std::min(kMaskBatch, r.size() - first));
    authentication.session().prg.fill_bytes(bytes_of(part.value));
    authentication.template authenticate<Word>(
        part.value, part.mac, std::span(theirs).first(static_cast<size_t>(part.size())));
    for (i64 i = 0; i < part.size(); ++i) part.mac[i] += theirs[i];
  }
}

template <class R>
void cost_masks(ot::CostMeter& meter, int owner, i64 n, SilentVoleMeter* voles) {
  for (i64 first = 0; first < n; first += kMaskBatch) {
    std::array<i64, 2> counts{};
    counts[owner] = std::min(kMaskBatch, n - first);
    cost_authenticate<R>(meter, counts, kNarrowBits<R>, false, voles);
  }
}

template <class R>
void cost_randoms(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles) {
  for (i64 first = 0; first < n; first += kMaskBatch) {
    const i64 count = std::min(kMaskBatch, n - first);
    cost_authenticate<R>(meter, {count, count}, kNarrowBits<R>, false, voles);
  }
}

#define PRIVML_INSTANTIATE(R)                                                            \
  template void generate_masks<R>(Authentication<R>&, int, WordSpan<R>, std::span<u64>); \
  template void generate_randoms<R>(Authentication<R>&, WordSpan<R>);                    \
  template void cost_masks<R>(ot::CostMeter&, int, i64, SilentVoleMeter*);               \
  template void cost_randoms<R>(ot::CostMeter&, i64, SilentVoleMeter*);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
