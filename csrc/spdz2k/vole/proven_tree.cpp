// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/vole/proven_tree.h"

#include "ot/ggm.h"

namespace privml::spdz2k {
namespace {

template <class T>
void write_value(net::Channel& channel, const T& value) {
  channel.write({reinterpret_cast<const u8*>(&value), sizeof value});
}
template <class T>
T read_value(net::Channel& channel) {
  T value;
  channel.read({reinterpret_cast<u8*>(&value), sizeof value});
  return value;
}

}  // namespace

WipedVector<crypto::Block> send_proven_tree(ot::Party& party, int depth,
                                            const crypto::Block* left_pads,
                                            const crypto::Block* right_pads) {
  ot::GgmTree tree = ot::ggm_expand(party.prg.next_block(), depth);
  for (int level = 0; level < depth; ++level) {
    write_value(party.channel, tree.sums[level][0] ^ left_pads[level]);
    write_value(party.channel, tree.sums[level][1] ^ right_pads[level]);
  }
  const ot::GgmProof proof = ot::ggm_prove(tree.leaves);
  write_value(party.channel, proof.tag_sum);
  write_value(party.channel, proof.digest);
  return std::move(tree.leaves);
}

WipedVector<crypto::Block> receive_proven_tree(ot::Party& party, int depth, u64 hole,
                                               const crypto::Block* pads, bool& valid) {
  WipedVector<crypto::Block> sums(depth);
  for (int level = 0; level < depth; ++level) {
    const auto pair = read_value<std::array<crypto::Block, 2>>(party.channel);
    const u8 side = static_cast<u8>(hole >> (depth - 1 - level) & 1) ^ 1;
    sums[level] = pair[0] ^ crypto::select(side, pair[0] ^ pair[1]) ^ pads[level];
  }
  ot::GgmProof proof;
  proof.tag_sum = read_value<std::array<crypto::Block, 2>>(party.channel);
  proof.digest = read_value<std::array<u8, 32>>(party.channel);
  WipedVector<crypto::Block> leaves = ot::ggm_puncture(sums, hole);
  valid &= ot::ggm_verify(leaves, hole, proof);
  return leaves;
}

}  // namespace privml::spdz2k
