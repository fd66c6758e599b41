// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/open.h"

#include <vector>

#include "base/error.h"
#include "base/pack.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

bool learns(int rank, int to) { return to == kBothParties || to == rank; }

void check(const ot::Party& party, std::size_t in, int bits, int to, std::size_t out) {
  expect(bits >= 1 && bits <= 64, "open: bits must be in 1..64");
  expect(to >= kBothParties && to <= 1, "open: the receiver is party 0, party 1 or both (-1)");
  expect(out == (learns(party.rank, to) ? in : 0), "open: out must be as long as x, or empty");
}

}  // namespace

void open_ring(ot::Party& party, std::span<const u64> x, int bits, int to, std::span<u64> out) {
  check(party, x.size(), bits, to, out.size());
  const i64 n = static_cast<i64>(x.size());
  std::vector<u8> wire;
  const auto each_piece = [&](const auto& body) {
    for (i64 begin = 0; begin < n; begin += kChunk) {
      const i64 count = std::min(kChunk, n - begin);
      wire.resize(packed_bytes(count, bits));
      body(begin, count);
    }
  };
  if (learns(1 - party.rank, to)) {
    each_piece([&](i64 begin, i64 count) {
      pack(x.data() + begin, count, bits, wire.data());
      party.channel.write(wire);
    });
  }
  if (!learns(party.rank, to)) return;
  each_piece([&](i64 begin, i64 count) {
    party.channel.read(wire);
    u64* theirs = out.data() + begin;
    unpack(wire.data(), count, bits, theirs);
    for (i64 i = 0; i < count; ++i) {
      theirs[i] = static_cast<u64>(to_signed(x[begin + i] + theirs[i], bits));
    }
  });
}

void cost_open_ring(ot::CostMeter& meter, i64 n, int bits, int to) {
  i64 bytes = 0;
  for (i64 begin = 0; begin < n; begin += kChunk) {
    bytes += packed_bytes(std::min(kChunk, n - begin), bits);
  }
  if (to == kBothParties) {
    meter.exchange(bytes, bytes);
  } else {
    meter.message(1 - to, bytes);
  }
}

// A bit shared by exclusive or is an element of Z_2.
void open_bits(ot::Party& party, std::span<const u8> x, int to, std::span<u8> out) {
  check(party, x.size(), 1, to, out.size());
  const std::vector<u64> words(x.begin(), x.end());
  std::vector<u64> opened(out.size());
  open_ring(party, words, 1, to, opened);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<u8>(opened[i] & 1);
}

void cost_open_bits(ot::CostMeter& meter, i64 n, int to) { cost_open_ring(meter, n, 1, to); }

}  // namespace privml::twopc
