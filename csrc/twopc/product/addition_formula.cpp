// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/addition_formula.h"

#include <algorithm>
#include <bit>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/derive.h"
#include "twopc/product/slot_product.h"
#include "twopc/session/chunk.h"
#include "twopc/session/flight.h"
#include "twopc/width/signed_wrap.h"

namespace privml::twopc {
namespace {

constexpr i64 kChunkEntries = i64{1} << 18;
constexpr int kMostTableBits = 8;

using Words = AlignedVector<u64>;
using i128 = __int128;

int factor_bits(const AdditionFormula& f) {
  int bits = 0;
  for (const AdditionTerm& term : f.terms) bits += term.factor_bits;
  return bits;
}

// Terms whose values travel in one word.
i64 group_size(const AdditionFormula& f) { return 64 / f.value_bits; }
i64 group_count(const AdditionFormula& f) { return ceil_div(std::ssize(f.terms), group_size(f)); }
i64 terms_of(const AdditionFormula& f, i64 group) {
  return std::min(group_size(f), std::ssize(f.terms) - group * group_size(f));
}

i64 choices_each(const AdditionFormula& f) {
  return group_count(f) * f.table_bits() + (f.by_ciphertexts ? 0 : factor_bits(f));
}

i64 chunk_limit(const AdditionFormula& f) {
  return std::clamp(kChunkEntries >> f.table_bits(), i64{1} << 12, kChunk);
}

// Bits of the messages for bit j of a factor, and by how much its share is shifted.
int stream_width(const AdditionFormula& f, int j) { return f.ring_bits - std::max(j, f.dropped); }
int stream_shift(const AdditionFormula& f, int j) { return std::max(j - f.dropped, 0); }

u128 ring_mask(int bits) { return bits == 128 ? ~u128{0} : (u128{1} << bits) - 1; }

// The low 64 bits of a word of the ring without its `drop` last ones.
u64 rounded(u128 word, int ring_bits, int drop) {
  const u128 half = drop > 0 ? u128{1} << (drop - 1) : 0;
  return static_cast<u64>(((word & ring_mask(ring_bits)) + half) >> drop);
}

// Of products by ciphertexts: c + g, or c - g.
int whole_factor_bits(const AdditionTerm& term) {
  const u64 largest = term.constant + (term.negative ? 0 : low_mask(term.factor_bits));
  return std::bit_width(largest);
}
// Whether these lie in 0..2^63, as all g of factor_bits bits allow.
bool is_nonnegative(const AdditionTerm& term) {
  const u64 most = u64{1} << 63, largest = low_mask(term.factor_bits);
  return term.constant <= most && largest < most && (!term.negative || largest <= term.constant);
}
SlotShape slot_shape(const AdditionFormula& f) {
  return {whole_factor_bits(f.terms[0]), f.value_bits, f.ring_bits, f.dropped};
}

// One chunk at one party: `part` says which instances it tabulates and in which it chooses.
struct Run {
  ot::Party& party;
  const AdditionFormula& f;
  std::span<const u64> x;
  i64 first;  // place of x[0] in the whole input
  Halves part;
  std::vector<u8> places = {};   // h of the chosen instances
  Words factors = {};            // g_i(b) of the chosen instances, term by term
  std::vector<u8> choices = {};  // bits of `places`, group by group, then planes of the factors
  WipedVector<crypto::Block> t = {}, q = {};
  Words values = {};              // shares of f_i(u), term by term
  AlignedVector<u128> wide = {};  // the same in the ring

  i64 n() const { return std::ssize(x); }
};

// Bits of table places, group by group, then of the factors, or of this party's values if these
// are multiplied by ciphertexts.
void write_choices(Run& run) {
  const AdditionFormula& f = run.f;
  const i64 count = run.part.receive_count;
  run.places.resize(count);
  run.factors.resize(count * std::ssize(f.terms));
  run.choices.reserve(count * choices_each(f) + run.part.send_count);
  for (i64 i = 0; i < count; ++i) {
    const u64 own = run.x[run.part.receive_begin + i] & low_mask(f.bits);
    run.places[i] = static_cast<u8>(own >> f.place_bits);
    for (i64 k = 0; k < std::ssize(f.terms); ++k)
      if (f.terms[k].factor)
        run.factors[k * count + i] =
            f.terms[k].factor(run.first + run.part.receive_begin + i, own & low_mask(f.place_bits));
  }
  for (i64 group = 0; group < group_count(f); ++group)
    for (i64 i = 0; i < count; ++i)
      for (int bit = 0; bit < f.table_bits(); ++bit)
        run.choices.push_back(run.places[i] >> bit & 1);
  if (f.by_ciphertexts) {
    for (i64 i = 0; i < run.part.send_count; ++i)
      run.choices.push_back(run.values[run.part.send_begin + i] >> (f.value_bits - 1) & 1);
  } else {
    for (i64 k = 0; k < std::ssize(f.terms); ++k)
      for (int bit = 0; bit < f.terms[k].factor_bits; ++bit)
        for (i64 i = 0; i < count; ++i)
          run.choices.push_back(run.factors[k * count + i] >> bit & 1);
  }
  run.t.resize(std::ssize(run.choices));
  ot::choose_receive(run.party, run.choices, run.t.data());
}

void read_choices(Run& run) {
  const i64 others = run.f.by_ciphertexts ? run.part.receive_count : 0;
  run.q.resize(run.part.send_count * choices_each(run.f) + others);
  ot::choose_send(run.party, run.q.data(), std::ssize(run.q));
}

// This party's random shares of the values.
void draw_values(Run& run) {
  run.values.resize(run.n() * std::ssize(run.f.terms));
  for (i64 k = 0; k < std::ssize(run.f.terms); ++k)
    run.party.prg.fill_ring(
        std::span(run.values).subspan(k * run.n() + run.part.send_begin, run.part.send_count),
        run.f.value_bits);
}

// The rest of each value as the peer's message.
void write_tables(Run& run) {
  const AdditionFormula& f = run.f;
  const i64 count = run.part.send_count, entries = i64{1} << f.table_bits();
  Words messages(count * entries), table(entries);
  for (i64 group = 0; group < group_count(f); ++group) {
    std::ranges::fill(messages, 0);
    for (i64 slot = 0; slot < terms_of(f, group); ++slot) {
      const i64 k = group * group_size(f) + slot, shift = slot * f.value_bits;
      for (i64 i = 0; i < count; ++i) {
        const i64 instance = run.part.send_begin + i;
        f.terms[k].values(run.first + instance, run.x[instance] & low_mask(f.bits), table);
        const u64 own = run.values[k * run.n() + instance];
        for (i64 j = 0; j < entries; ++j)
          messages[i * entries + j] |= ((table[j] - own) & low_mask(f.value_bits)) << shift;
      }
    }
    ot::one_of_n_send(run.party, run.q.data() + group * count * f.table_bits(), f.table_bits(),
                      static_cast<int>(terms_of(f, group)) * f.value_bits, messages);
  }
}

void read_tables(Run& run) {
  const AdditionFormula& f = run.f;
  const i64 count = run.part.receive_count;
  Words received(count);
  for (i64 group = 0; group < group_count(f); ++group) {
    ot::one_of_n_receive(run.party, run.t.data() + group * count * f.table_bits(), run.places,
                         f.table_bits(), static_cast<int>(terms_of(f, group)) * f.value_bits,
                         received);
    for (i64 slot = 0; slot < terms_of(f, group); ++slot) {
      const i64 k = group * group_size(f) + slot, shift = slot * f.value_bits;
      for (i64 i = 0; i < count; ++i)
        run.values[k * run.n() + run.part.receive_begin + i] =
            received[i] >> shift & low_mask(f.value_bits);
    }
  }
}

u64 quarter(const AdditionFormula& f) { return u64{1} << (f.value_bits - 2); }

// Values that are not negative are offset, so that both kinds lie within a quarter of their ring.
void widen_values(Run& run) {
  const AdditionFormula& f = run.f;
  const u64 offset = f.nonnegative && run.party.rank == 0 ? quarter(f) : 0;
  const u64 mask = low_mask(f.value_bits);
  for (u64& value : run.values) value = (value - offset) & mask;
  Words wraps(run.values.size(), 0);
  const int more = f.ring_bits - f.value_bits;
  if (more > 0) signed_wrap(run.party, run.values, f.value_bits, quarter(f), more, wraps);
  run.wide.resize(run.values.size());
  for (size_t i = 0; i < run.values.size(); ++i)
    run.wide[i] = u128{run.values[i]} + offset - (u128{wraps[i]} << f.value_bits);
}

// Calls each(term, bit, plane) for every bit of every factor, in the order of the stream.
template <class Each>
void for_each_plane(const AdditionFormula& f, Each&& each) {
  i64 plane = 0;
  for (i64 k = 0; k < std::ssize(f.terms); ++k)
    for (int bit = 0; bit < f.terms[k].factor_bits; ++bit) each(k, bit, plane++);
}

void add_shares(const AdditionFormula& f, i64 k, int bit, std::span<const u64> share,
                std::span<u64> out) {
  const AdditionTerm& term = f.terms[k];
  const bool top = term.factor_signed && bit == term.factor_bits - 1;
  const u64 sign = top != term.negative ? u64{0} - 1 : 1;
  for (size_t i = 0; i < out.size(); ++i) out[i] += sign * (share[i] << stream_shift(f, bit));
}

void write_products(Run& run, std::span<u64> out) {
  const AdditionFormula& f = run.f;
  const i64 count = run.part.send_count, begin = run.part.send_begin;
  const crypto::Block* q = run.q.data() + group_count(f) * count * f.table_bits();
  Words correlation(count), share(count);
  for_each_plane(f, [&](i64 k, int bit, i64 plane) {
    const u128* values = run.wide.data() + k * run.n() + begin;
    for (i64 i = 0; i < count; ++i)
      correlation[i] = rounded(values[i], f.ring_bits, std::max(f.dropped - bit, 0));
    ot::additive_send(run.party, q + plane * count, correlation, 1, stream_width(f, bit), share);
    add_shares(f, k, bit, share, out.subspan(begin, count));
  });
}

void read_products(Run& run, std::span<u64> out) {
  const AdditionFormula& f = run.f;
  const i64 count = run.part.receive_count;
  const i64 first = group_count(f) * count * f.table_bits();
  Words share(count);
  for_each_plane(f, [&](i64 k, int bit, i64 plane) {
    const std::span<const u8> choices{run.choices.data() + first + plane * count,
                                      static_cast<size_t>(count)};
    ot::additive_receive(run.party, run.t.data() + first + plane * count, choices, 1,
                         stream_width(f, bit), share);
    add_shares(f, k, bit, share, out.subspan(run.part.receive_begin, count));
  });
}

// What each party has without the other: its share of f_i(u) times the constant, and the party that
// knows b times g_i(b), too.
void local_products(const Run& run, std::span<u64> out) {
  const AdditionFormula& f = run.f;
  AlignedVector<u128> sums(run.n(), 0);
  for (i64 k = 0; k < std::ssize(f.terms); ++k)
    for (i64 i = 0; i < run.n(); ++i) sums[i] += f.terms[k].constant * run.wide[k * run.n() + i];
  const i64 count = run.part.receive_count, begin = run.part.receive_begin;
  for (i64 k = 0; k < std::ssize(f.terms); ++k) {
    const AdditionTerm& term = f.terms[k];
    if (term.factor_bits == 0) continue;
    for (i64 i = 0; i < count; ++i) {
      const u64 word = run.factors[k * count + i] & low_mask(term.factor_bits);
      const i128 g = term.factor_signed ? i128{to_signed(word, term.factor_bits)} : i128{word};
      sums[begin + i] +=
          static_cast<u128>(term.negative ? -g : g) * run.wide[k * run.n() + begin + i];
    }
  }
  for (i64 i = 0; i < run.n(); ++i) out[i] = rounded(sums[i], f.ring_bits, f.dropped);
}

void multiply_by_transfers(Run& run, std::span<u64> out) {
  write_choices(run);
  read_choices(run);
  write_tables(run);
  read_tables(run);
  widen_values(run);
  local_products(run, out);
  write_products(run, out);
  read_products(run, out);
}

// With words r of the party that tabulates and z of the other one, which knows the factor: the
// value is z + r - 2^value_bits w, and w = m_z + (1 - m_z) m_r for their highest bits m. The factor
// times z - 2^value_bits m_z is local; with r it is a slot product, with (1 - m_z) m_r a transfer.
void multiply_by_ciphertexts(Run& run, std::span<u64> out) {
  const AdditionFormula& f = run.f;
  const AdditionTerm& term = f.terms[0];
  const Halves& part = run.part;
  const int width = stream_width(f, f.value_bits), shift = stream_shift(f, f.value_bits);
  SlotProducts products(run.party, slot_shape(f), run.n());
  write_choices(run);
  for (u64& factor : run.factors) {
    factor &= low_mask(term.factor_bits);
    factor = term.constant + (term.negative ? -factor : factor);
  }
  products.write_factors(run.factors);
  read_choices(run);
  write_tables(run);
  products.write_answers(std::span(run.values).subspan(part.send_begin, part.send_count));
  read_tables(run);
  products.write_carries();
  Words carrying(part.receive_count), kept(part.receive_count), carried(part.send_count),
      local(run.n(), 0);
  for (i64 i = 0; i < part.receive_count; ++i) {
    const u64 z = run.values[part.receive_begin + i], factor = run.factors[i];
    const u64 above = u64{0} - (z >> (f.value_bits - 1));
    carrying[i] = rounded(factor & ~above, f.ring_bits, std::max(f.dropped - f.value_bits, 0));
    const u128 own = u128{factor} * z - (u128{factor & above} << f.value_bits);
    local[part.receive_begin + i] = rounded(own, f.ring_bits, f.dropped);
  }
  ot::additive_send(run.party, run.q.data() + part.send_count * choices_each(f), carrying, 1, width,
                    kept);
  products.write_wraps();
  const i64 tables = part.receive_count * choices_each(f);
  ot::additive_receive(run.party, run.t.data() + tables,
                       std::span<const u8>(run.choices).subspan(tables), 1, width, carried);
  products.read(out);
  for (i64 i = 0; i < part.receive_count; ++i) out[part.receive_begin + i] -= kept[i] << shift;
  for (i64 i = 0; i < part.send_count; ++i) out[part.send_begin + i] -= carried[i] << shift;
  for (i64 i = 0; i < run.n(); ++i) out[i] += local[i];
}

void run_chunk(ot::Party& party, const AdditionFormula& f, i64 first, std::span<const u64> x,
               std::span<u64> out) {
  Run run{party, f, x, first, halves(party.rank, std::ssize(x))};
  draw_values(run);
  f.by_ciphertexts ? multiply_by_ciphertexts(run, out) : multiply_by_transfers(run, out);
  for (u64& word : out) word &= low_mask(f.ring_bits - f.dropped);
}

Flight table_flight(const AdditionFormula& f, i64 half, i64 rest) {
  Flight tables;
  for (i64 group = 0; group < group_count(f); ++group) {
    const int width = static_cast<int>(terms_of(f, group)) * f.value_bits;
    const int m = f.table_bits();
    tables = tables + Flight{packed_bytes(half << m, width), packed_bytes(rest << m, width)};
  }
  return tables;
}

void cost_by_transfers(ot::CostMeter& meter, i64 n, const AdditionFormula& f) {
  const i64 half = first_half(n), rest = n - half;
  cost_flight(meter,
              {packed_bytes(rest * choices_each(f), 1), packed_bytes(half * choices_each(f), 1)});
  cost_flight(meter, table_flight(f, half, rest));
  if (f.ring_bits > f.value_bits)
    cost_signed_wrap(meter, n * std::ssize(f.terms), f.value_bits, quarter(f),
                     f.ring_bits - f.value_bits);
  Flight products;
  for_each_plane(f, [&](i64, int bit, i64) {
    const int width = stream_width(f, bit);
    products = products + Flight{packed_bytes(half, width), packed_bytes(rest, width)};
  });
  cost_flight(meter, products);
}

void cost_by_ciphertexts(ot::CostMeter& meter, i64 n, const AdditionFormula& f) {
  const i64 half = first_half(n), rest = n - half;
  const SlotFlights products = cost_slot_products(meter, slot_shape(f), n);
  meter.draw(0, rest);
  meter.draw(1, half);
  const Flight choices{packed_bytes(rest * choices_each(f) + half, 1),
                       packed_bytes(half * choices_each(f) + rest, 1)};
  cost_flight(meter, choices + products.factors);
  cost_flight(meter, table_flight(f, half, rest) + products.answers);
  const int width = stream_width(f, f.value_bits);
  cost_flight(meter,
              products.carries + Flight{packed_bytes(rest, width), packed_bytes(half, width)});
  cost_flight(meter, products.wraps);
}

void cost_chunk(ot::CostMeter& meter, i64 n, const AdditionFormula& f) {
  const i64 half = first_half(n), rest = n - half;
  meter.draw(0, half * choices_each(f));
  meter.draw(1, rest * choices_each(f));
  f.by_ciphertexts ? cost_by_ciphertexts(meter, n, f) : cost_by_transfers(meter, n, f);
}

void check(const AdditionFormula& f) {
  expect(
      f.place_bits >= 0 && f.table_bits() >= 1 && f.table_bits() <= kMostTableBits && f.bits <= 64,
      "addition_formula: the table must have 1..8 bits, the number at most 64");
  expect(f.value_bits >= 3 && f.value_bits <= 64 && f.value_bits <= f.ring_bits &&
             f.ring_bits <= f.value_bits + 64,
         "addition_formula: need 3 <= value_bits <= ring_bits <= value_bits + 64");
  expect(f.dropped >= 0 && f.dropped < f.ring_bits && f.ring_bits - f.dropped <= 64,
         "addition_formula: ring_bits - dropped must lie in 1..64");
  expect(!f.terms.empty(), "addition_formula: a formula has terms");
  for (const AdditionTerm& term : f.terms)
    expect(term.factor_bits >= 0 && term.factor_bits <= f.ring_bits &&
               (term.factor_bits > 0) == static_cast<bool>(term.factor),
           "addition_formula: a factor has 1..ring_bits bits");
  expect(!f.by_ciphertexts || fits_ciphertexts(f),
         "addition_formula: no ciphertexts hold these numbers");
}

}  // namespace

void addition_formula(ot::Party& party, const AdditionFormula& formula, std::span<const u64> x,
                      std::span<u64> out) {
  check(formula);
  expect(x.size() == out.size(), "addition_formula: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, formula); },
      [&](i64 begin, i64 n) {
        run_chunk(party, formula, begin, x.subspan(begin, n), out.subspan(begin, n));
      },
      chunk_limit(formula));
}

void cost_addition_formula(ot::CostMeter& meter, i64 n, const AdditionFormula& formula) {
  check(formula);
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, formula); },
      chunk_limit(formula));
}

bool fits_ciphertexts(const AdditionFormula& f) {
  return std::ssize(f.terms) == 1 && f.nonnegative && f.terms[0].factor_bits > 0 &&
         !f.terms[0].factor_signed && f.ring_bits > f.value_bits && is_nonnegative(f.terms[0]) &&
         plan_slots(slot_shape(f), 1).has_value();
}

i64 work_of(const AdditionFormula& f, i64 n) {
  return f.by_ciphertexts ? slot_work(slot_shape(f), n) : 0;
}

double dropped_error(const AdditionFormula& formula) {
  if (formula.dropped == 0) return 0;
  // Those of slot products, of what is local, and of the transfer.
  if (formula.by_ciphertexts) return kSlotError + 1;
  double halves = 2;  // the local parts
  for (const AdditionTerm& term : formula.terms)
    halves += std::min(term.factor_bits, formula.dropped);
  return halves / 2;
}

}  // namespace privml::twopc
