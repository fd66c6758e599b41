// SPDX-License-Identifier: Apache-2.0
#include "functions/float/pair_table.h"

#include <algorithm>

#include "twopc/lookup/two_way_transfer.h"
#include "twopc/session/flight.h"

namespace privml {
namespace {

// Entries of one party's digit against all digits of the other, packed: word k of row d holds those
// from k * 64 / width on. A row is picked by a scan of all, since digits are secret.
struct PackedRows {
  i64 size, words;
  std::vector<u64> rows;

  PackedRows(int m, int width, bool first, PairEntry entry)
      : size(i64{1} << m), words(ceil_div(size * width, 64)), rows(size * words) {
    for (int mine = 0; mine < size; ++mine) {
      for (int theirs = 0; theirs < size; ++theirs) {
        const u64 value = first ? entry(mine, theirs) : entry(theirs, mine);
        rows[mine * words + theirs * width / 64] |= value << (theirs * width % 64);
      }
    }
  }
  void pick(int digit, u64* row) const {
    std::fill_n(row, words, u64{0});
    for (i64 d = 0; d < size; ++d) {
      const u64 mask = u64{0} - static_cast<u64>(d == digit);
      for (i64 k = 0; k < words; ++k) row[k] |= rows[d * words + k] & mask;
    }
  }
};

void run_pair_table(Party& party, std::span<const u8> digits, int m, int width, PairEntry entry,
                    std::span<u64> out) {
  const i64 size = i64{1} << m;
  const Halves part = halves(party.rank, std::ssize(digits));
  const PackedRows packed(m, width, party.rank == 0, entry);
  std::vector<u64> row(packed.words);
  const auto mask = out.subspan(part.send_begin, part.send_count);
  party.prg.fill_ring(mask, width);
  AlignedVector<u64> messages(part.send_count << m);
  for (i64 i = 0; i < part.send_count; ++i) {
    packed.pick(digits[part.send_begin + i], row.data());
    for (i64 j = 0; j < size; ++j) {
      const u64 value = row[j * width / 64] >> (j * width % 64) & low_mask(width);
      messages[(i << m) + j] = value ^ mask[i];
    }
  }
  two_way_transfer(party, messages, digits.subspan(part.receive_begin, part.receive_count), m,
                   width, out.subspan(part.receive_begin, part.receive_count));
}

}  // namespace

RingShares pair_table(Evaluator& evaluator, const BitShares& digits, int m, int width,
                      PairEntry entry) {
  RingShares out = evaluator.ring(digits.count);
  const i64 first = first_half(digits.count);
  evaluator.call([&](Party& party) { run_pair_table(party, digits, m, width, entry, out.values); },
                 [&](CostMeter& meter) {
                   cost_two_way_transfer(meter, {first, digits.count - first}, m, width);
                 });
  return out;
}

}  // namespace privml
