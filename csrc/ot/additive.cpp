// SPDX-License-Identifier: Apache-2.0
// Correlated OT over Z_{2^width}: with pads s0 = H(q) and s1 = H(q ^ delta) the sender keeps r = s0
// and sends y = x - s0 + s1; the receiver knows s_choice and has choice * y - s_choice (Asharov,
// Lindell, Schneider, Zohner, CCS 2013, section 5.4).
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/buffer.h"
#include "base/error.h"
#include "base/pack.h"
#include "ot/derive.h"

namespace privml::ot {
namespace {

constexpr i64 kWorkspaceBlocks = 1024;  // pads of one piece of the message: 16 KiB

// How a correlation's pad is cut into ring elements: lanes of 32 or 64 bits.
struct PadShape {
  i64 length;
  int width;
  i64 blocks;  // hash output per correlation
  bool narrow() const { return width <= 32; }
};

PadShape pad_shape(i64 length, int width) {
  const i64 lanes = width <= 32 ? 4 : 2;
  return {length, width, length == 1 ? 1 : ceil_div(length, lanes)};
}

// Correlations per piece of the message, whose pieces are whole bytes.
i64 piece_size(const PadShape& shape, i64 pads_per_correlation) {
  const int misalignment = std::countr_zero(static_cast<u64>(shape.length * shape.width) | 8);
  const i64 step = i64{8} >> misalignment;
  const i64 fitting = kWorkspaceBlocks / (shape.blocks * pads_per_correlation);
  return std::max(step, fitting / step * step);
}

// Buffers of one piece, filled anew for each.
struct Workspace {
  Workspace(const PadShape& shape, i64 pads, i64 piece)
      : keys(pads * piece),
        pads(pads * piece * shape.blocks),
        elements(piece * shape.length),
        packed(packed_bytes(piece * shape.length, shape.width)) {}
  WipedVector<crypto::Block> keys;  // q and q ^ delta
  AlignedVector<crypto::Block> pads;
  AlignedVector<u64> elements;
  AlignedVector<u8> packed;
};

template <class Lane>
Lane lane(const crypto::Block* pad, i64 j) {
  Lane value;
  std::memcpy(&value, reinterpret_cast<const u8*>(pad) + j * sizeof(Lane), sizeof(Lane));
  return value;
}

template <class Lane>
void mask_messages(const crypto::Block* pad0, const crypto::Block* pad1, const u64* x, i64 length,
                   u64 mask, u64* r, u64* y) {
  for (i64 j = 0; j < length; ++j) {
    const u64 s0 = lane<Lane>(pad0, j);
    r[j] = s0 & mask;
    y[j] = (x[j] - s0 + lane<Lane>(pad1, j)) & mask;
  }
}

template <class Lane>
void unmask_message(const crypto::Block* pad, const u64* y, u64 choice, i64 length, u64 mask,
                    u64* out) {
  const u64 chosen = u64{0} - (choice & 1);
  for (i64 j = 0; j < length; ++j) out[j] = ((y[j] & chosen) - lane<Lane>(pad, j)) & mask;
}

void check_shape(i64 length, int width) {
  expect(length >= 1, "additive OT: length must be positive");
  expect(1 <= width && width <= 64, "additive OT: width must be in 1..64");
}

}  // namespace

void additive_send(Party& party, const crypto::Block* q, std::span<const u64> x, i64 length,
                   int width, std::span<u64> r) {
  check_shape(length, width);
  expect(x.size() == r.size() && std::ssize(x) % length == 0,
         "additive_send: x and r must both have count * length elements");
  const i64 count = std::ssize(x) / length;
  const PadShape shape = pad_shape(length, width);
  const i64 piece = std::min(count, piece_size(shape, 2));
  const crypto::Block delta = party.sender.delta();
  const u64 mask = low_mask(width);
  const auto mask_one = shape.narrow() ? mask_messages<u32> : mask_messages<u64>;
  Workspace work(shape, 2, piece);
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    crypto::Block* keys = work.keys.data();
    for (i64 i = 0; i < n; ++i) {
      keys[i] = q[begin + i];
      keys[n + i] = q[begin + i] ^ delta;
    }
    party.hash.expand(keys, 2 * n, shape.blocks, work.pads.data());
    const crypto::Block* pad0 = work.pads.data();
    const crypto::Block* pad1 = pad0 + n * shape.blocks;
    const u64* in = x.data() + begin * length;
    u64* kept = r.data() + begin * length;
    u64* y = work.elements.data();
    if (length == 1) {
      for (i64 i = 0; i < n; ++i) {
        kept[i] = pad0[i].lo & mask;
        y[i] = (in[i] - pad0[i].lo + pad1[i].lo) & mask;
      }
    } else {
      for (i64 i = 0; i < n; ++i) {
        mask_one(pad0 + i * shape.blocks, pad1 + i * shape.blocks, in + i * length, length, mask,
                 kept + i * length, y + i * length);
      }
    }
    pack(y, n * length, width, work.packed.data());
    party.channel.write({work.packed.data(), static_cast<size_t>(packed_bytes(n * length, width))});
  }
}

void additive_receive(Party& party, const crypto::Block* t, std::span<const u8> choices, i64 length,
                      int width, std::span<u64> out) {
  check_shape(length, width);
  const i64 count = std::ssize(choices);
  expect(std::ssize(out) == count * length,
         "additive_receive: out must have one element per choice and position");
  const PadShape shape = pad_shape(length, width);
  const i64 piece = std::min(count, piece_size(shape, 1));
  const u64 mask = low_mask(width);
  const auto unmask_one = shape.narrow() ? unmask_message<u32> : unmask_message<u64>;
  Workspace work(shape, 1, piece);
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    const crypto::Block* pad = work.pads.data();
    party.hash.expand(t + begin, n, shape.blocks, work.pads.data());
    party.channel.read({work.packed.data(), static_cast<size_t>(packed_bytes(n * length, width))});
    unpack(work.packed.data(), n * length, width, work.elements.data());
    const u64* y = work.elements.data();
    u64* result = out.data() + begin * length;
    if (length == 1) {
      for (i64 i = 0; i < n; ++i) {
        const u64 chosen = u64{0} - (choices[begin + i] & 1);
        result[i] = ((y[i] & chosen) - pad[i].lo) & mask;
      }
    } else {
      for (i64 i = 0; i < n; ++i) {
        unmask_one(pad + i * shape.blocks, y + i * length, choices[begin + i], length, mask,
                   result + i * length);
      }
    }
  }
}

void cost_additive(CostMeter& meter, int sender, i64 count, i64 length, int width) {
  meter.message(sender, packed_bytes(count * length, width));
}

}  // namespace privml::ot
