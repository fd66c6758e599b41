// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/vole/seed_trees.h"

#include "base/error.h"
#include "ot/derive.h"
#include "spdz2k/vole/proven_tree.h"

namespace privml::spdz2k {
namespace {

i64 total_bits(std::span<const TreeShape> shapes) {
  i64 bits = 0;
  for (const TreeShape& shape : shapes) bits += shape.bits();
  return bits;
}

// The vector's side: seeds of every digit, whose sums and proofs go to the peer.
WipedVector<crypto::Block> send_trees(ot::Party& party, const TreeShape& shape,
                                      const crypto::Block* pads0, const crypto::Block* pads1) {
  WipedVector<crypto::Block> seeds;
  for (int d = 0; d < shape.digits; ++d) {
    const int first = d * shape.width;
    const auto leaves = send_proven_tree(party, shape.width, pads0 + first, pads1 + first);
    seeds.insert(seeds.end(), leaves.begin(), leaves.end());
  }
  return seeds;
}

u64 digit_of(const TreeShape& shape, std::span<const u8> key, int d) {
  u64 digit = 0;
  for (int i = 0; i < shape.width; ++i) digit |= u64{key[d * shape.width + i]} << i;
  return digit;
}

// The key's side. All trees are read before any is checked.
WipedVector<crypto::Block> receive_trees(ot::Party& party, const TreeShape& shape,
                                         std::span<const u8> key, const crypto::Block* pads,
                                         bool& valid) {
  WipedVector<crypto::Block> seeds;
  for (int d = 0; d < shape.digits; ++d) {
    const auto leaves = receive_proven_tree(party, shape.width, digit_of(shape, key, d),
                                            pads + d * shape.width, valid);
    seeds.insert(seeds.end(), leaves.begin(), leaves.end());
  }
  return seeds;
}

}  // namespace

SeedStreams::SeedStreams(TreeShape shape, bool key_side, std::span<const crypto::Block> seeds)
    : shape_(shape), key_side_(key_side) {
  expect(std::ssize(seeds) == i64{shape.digits} * shape.leaves(), "seed trees: wrong number");
  streams_.reserve(seeds.size());
  for (const crypto::Block& seed : seeds) streams_.emplace_back(seed);
}

void SeedStreams::read(int digit, i64 blocks, crypto::Block* out) const {
  const crypto::Aes128* stream = streams_.data() + i64{digit} * shape_.leaves();
  for (int y = 0; y < shape_.leaves(); ++y, out += blocks) {
    if (key_side_ && y == 0) {
      std::fill(out, out + blocks, crypto::kZeroBlock);
    } else {
      stream[y].encrypt_counter({position_, 0}, out, blocks);
    }
  }
}

std::vector<SeedPair> make_seed_trees(ot::Party& party, std::span<const TreeShape> shapes,
                                      std::span<const u8> key) {
  const i64 bits = total_bits(shapes);
  expect(std::ssize(key) == bits, "seed trees: the key has the shapes' bits");
  ot::reserve(party, bits, bits);
  // Level l of a tree decides bit width - 1 - l; the sum on the other side is asked for.
  std::vector<u8> choices(bits);
  i64 first = 0;
  for (const TreeShape& shape : shapes) {
    for (int i = 0; i < shape.bits(); ++i) {
      const int digit = i / shape.width, level = i % shape.width;
      choices[first + i] = key[first + digit * shape.width + shape.width - 1 - level] ^ 1;
    }
    first += shape.bits();
  }
  WipedVector<crypto::Block> t(bits), q(bits), shifted(bits);
  ot::choose_receive(party, choices, t.data());
  ot::choose_send(party, q.data(), bits);
  wipe(choices.data(), choices.size());
  const crypto::Block delta = party.sender.delta();
  for (i64 i = 0; i < bits; ++i) shifted[i] = q[i] ^ delta;
  party.hash.hash(q.data(), q.data(), bits);
  party.hash.hash(shifted.data(), shifted.data(), bits);
  party.hash.hash(t.data(), t.data(), bits);

  std::vector<WipedVector<crypto::Block>> sent, received;
  first = 0;
  for (const TreeShape& shape : shapes) {
    sent.push_back(send_trees(party, shape, q.data() + first, shifted.data() + first));
    first += shape.bits();
  }
  first = 0;
  bool valid = true;
  std::vector<SeedPair> pairs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TreeShape& shape = shapes[i];
    received.push_back(
        receive_trees(party, shape, key.subspan(first, shape.bits()), t.data() + first, valid));
    first += shape.bits();
    pairs.push_back({SeedStreams(shape, true, received[i]), SeedStreams(shape, false, sent[i])});
  }
  if (!valid) throw SecurityAbort("seed trees: the peer's trees do not match their proof");
  return pairs;
}

void cost_seed_trees(ot::CostMeter& meter, std::span<const TreeShape> shapes) {
  const i64 bits = total_bits(shapes);
  meter.reserve(bits, bits);
  meter.draw(0, bits);
  meter.draw(1, bits);
  meter.exchange(packed_bytes(bits, 1), packed_bytes(bits, 1));
  i64 bytes = 0;
  for (const TreeShape& shape : shapes) bytes += shape.digits * proven_tree_bytes(shape.width);
  meter.exchange(bytes, bytes);
}

}  // namespace privml::spdz2k
