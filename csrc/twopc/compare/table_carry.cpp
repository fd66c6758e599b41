// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/table_carry.h"

#include <algorithm>

#include "ot/derive.h"

namespace privml::twopc {
namespace {

constexpr int kLargestDigit = 8, kWord = 64;

// Of about equal sizes; the last one tells `width` bits, each other one a bit and the pad of the
// next.
std::vector<CarryDigit> cut_into(int count, int bits, int width) {
  std::vector<CarryDigit> digits;
  for (int i = 0, offset = 0; i < count; ++i) {
    const int size = bits / count + (i < bits % count ? 1 : 0);
    digits.push_back({offset, size, width + count - 1 - i});
    offset += size;
  }
  return digits;
}

double wire_bits(const std::vector<CarryDigit>& digits, double correlation_bits) {
  double bits = 0;
  for (const CarryDigit& digit : digits)
    bits += digit.bits * (correlation_bits + kComputingBits + 1) +
            static_cast<double>(i64{digit.width()} << digit.bits);
  return bits;
}

bool fits(const std::vector<CarryDigit>& digits) {
  return std::ranges::all_of(digits, [](const CarryDigit& digit) {
    return digit.bits <= kLargestDigit && digit.width() <= kWord;
  });
}

}  // namespace

std::vector<CarryDigit> carry_digits(int bits, int width, double correlation_bits) {
  std::vector<CarryDigit> best;
  for (int count = 1; count <= bits; ++count) {
    std::vector<CarryDigit> digits = cut_into(count, bits, width);
    if (!fits(digits)) continue;
    if (best.empty() || wire_bits(digits, correlation_bits) < wire_bits(best, correlation_bits))
      best = std::move(digits);
  }
  return best;
}

bool prefers_table_carry(ComparisonPrices prices, int bits, int width) {
  if (!prices.slow()) return false;
  const std::vector<CarryDigit> digits = carry_digits(bits, width, prices.correlation);
  if (digits.empty()) return false;
  const ComparisonPlan plan = plan_comparison({bits}, prices);
  const double price = prices.correlation + kComputingBits;
  double compared = plan_bits(plan, {prices.correlation, 0, true});
  double messages = static_cast<double>(plan.levels.size());
  if (width > 1) {  // a conversion, whose bit is opened
    compared += price + width + 1;
    ++messages;
  }
  // At most half of what the messages are worth goes into bytes.
  return wire_bits(digits, prices.correlation) < compared + messages * prices.level / 2;
}

void begin_table_carry(ot::Party& party, std::span<const u64> x, int bits, int width,
                       TableCarry& state) {
  const Halves part = halves(party.rank, std::ssize(x));
  state.width = width;
  state.digits = carry_digits(bits, width, party.correlation_bits);
  state.numbers.resize(state.digits.size());
  state.chosen.resize(state.digits.size());
  for (size_t d = 0; d < state.digits.size(); ++d) {
    const CarryDigit& digit = state.digits[d];
    std::vector<u8>& numbers = state.numbers[d];
    for (u64 word : x)
      numbers.push_back(static_cast<u8>(word >> digit.offset & low_mask(digit.bits)));
    state.chosen[d].resize(part.receive_count * digit.bits);
    ot::choose_digits_receive(party,
                              std::span(numbers).subspan(part.receive_begin, part.receive_count),
                              digit.bits, state.chosen[d].data());
  }
}

namespace {

// out: this party's shares of the elements for which it sends.
void send_messages(ot::Party& party, const TableCarry& state, std::span<u64> out) {
  const std::vector<CarryDigit>& digits = state.digits;
  const i64 count = std::ssize(out),
            begin = halves(party.rank, std::ssize(state.numbers[0])).send_begin;
  const u64 ring = low_mask(state.width);
  std::vector<WipedVector<crypto::Block>> sent(digits.size());
  for (size_t d = 0; d < digits.size(); ++d) {
    sent[d].resize(count * digits[d].bits);
    ot::choose_send(party, sent[d].data(), std::ssize(sent[d]));
  }
  party.prg.fill_ring(out, state.width);
  std::vector<AlignedVector<u64>> flips(digits.size()), pads(2 * digits.size());
  for (size_t d = 1; d < digits.size(); ++d) {
    flips[d].resize(count);
    party.prg.fill_ring(flips[d], 1);
    for (size_t carry : {0, 1}) {
      pads[2 * d + carry].resize(count);
      party.prg.fill_ring(pads[2 * d + carry], digits[d].value);
    }
  }
  const auto tell = [&](size_t d, i64 i, u64 carry) {
    if (d + 1 == digits.size()) return (carry - out[i]) & ring;
    const u64 flipped = carry ^ flips[d + 1][i];
    const u64 first = pads[2 * d + 2][i], second = pads[2 * d + 3][i];
    return flipped | (first ^ ((first ^ second) & (u64{0} - flipped))) << 1;
  };
  for (size_t d = 0; d < digits.size(); ++d) {
    const CarryDigit& digit = digits[d];
    const u64 size = u64{1} << digit.bits;
    AlignedVector<u64> messages(count * size);
    for (i64 i = 0; i < count; ++i) {
      const u64 own = state.numbers[d][begin + i];
      for (u64 j = 0; j < size; ++j) {
        u64& message = messages[i * size + j];
        if (d == 0) {
          message = tell(d, i, (own + j) >> digit.bits);
          continue;
        }
        message = 0;
        for (u64 flipped : {0, 1}) {
          const u64 carry = flipped ^ flips[d][i];
          const u64 told = tell(d, i, (own + j + carry) >> digit.bits) ^ pads[2 * d + flipped][i];
          message |= told << (flipped == 0 ? 0 : digit.value);
        }
      }
    }
    ot::one_of_n_send(party, sent[d].data(), digit.bits, digit.width(), messages);
  }
}

// out: this party's shares of the elements for which it chooses.
void receive_messages(ot::Party& party, const TableCarry& state, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(state.numbers[0]));
  AlignedVector<u64> found(out.size());
  for (size_t d = 0; d < state.digits.size(); ++d) {
    const CarryDigit& digit = state.digits[d];
    ot::one_of_n_receive(
        party, state.chosen[d].data(),
        std::span(state.numbers[d]).subspan(part.receive_begin, part.receive_count), digit.bits,
        digit.width(), found);
    for (size_t i = 0; i < out.size(); ++i) {
      if (d == 0) {
        out[i] = found[i];
        continue;
      }
      const u64 flipped = out[i] & 1, pad = out[i] >> 1;
      const u64 second = u64{0} - flipped;
      const u64 told = (found[i] & ~second) | (found[i] >> digit.value & second);
      out[i] = (told & low_mask(digit.value)) ^ pad;
    }
  }
}

}  // namespace

void send_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(out));
  send_messages(party, state, out.subspan(part.send_begin, part.send_count));
}

void receive_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(out));
  receive_messages(party, state, out.subspan(part.receive_begin, part.receive_count));
}

void finish_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out) {
  send_table_carry(party, state, out);
  receive_table_carry(party, state, out);
}

void cost_table_carry(ot::CostMeter& meter, i64 n, int bits, int width, Flight beside,
                      Flight beside_messages) {
  const i64 half = first_half(n);
  Flight choices = beside, messages = beside_messages;
  for (const CarryDigit& digit : carry_digits(bits, width, meter.correlation_bits)) {
    meter.draw(0, half * digit.bits);
    meter.draw(1, (n - half) * digit.bits);
    choices = choices +
              Flight{packed_bytes((n - half) * digit.bits, 1), packed_bytes(half * digit.bits, 1)};
    messages = messages + Flight{packed_bytes(half << digit.bits, digit.width()),
                                 packed_bytes((n - half) << digit.bits, digit.width())};
  }
  cost_flight(meter, choices);
  cost_flight(meter, messages);
}

}  // namespace privml::twopc
