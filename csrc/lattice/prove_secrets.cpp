// SPDX-License-Identifier: Apache-2.0
// Lattice-based products of secrets that Valgrind takes for undefined memory: it reports every
// branch and every address that depends on one. `prove_secrets leak` makes such a branch, which
// must be found.
//
// Method  A. Langley, ctgrind (2010). Seeds of generators, messages and weights are secret; what is
//         sent is not, nor whether a secret polynomial is drawn again (lattice/sample.h), for which
//         secrets.supp stands.
#include <valgrind/memcheck.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "lattice/columns.h"
#include "lattice/packed.h"
#include "lattice/slot_product.h"
#include "lattice/wide_product.h"

namespace {

using namespace privml;
using namespace privml::lattice;

template <class T>
void hide(T& values) {
  VALGRIND_MAKE_MEM_UNDEFINED(values.data(), values.size() * sizeof(values[0]));
}
template <class T>
void publish(T& values) {
  VALGRIND_MAKE_MEM_DEFINED(values.data(), values.size() * sizeof(values[0]));
}

crypto::Block hidden_block(u64 number) {
  std::array<crypto::Block, 1> block{crypto::Block{number, 0}};
  hide(block);
  return block[0];
}

struct Factors {
  std::vector<u64> message, weights;
  Factors(i64 messages, i64 count, u64 weight) : message(messages, 5), weights(count, weight) {
    hide(message);
    hide(weights);
  }
};

void columns() {
  constexpr i64 kInner = 5, kOutputs = 3, kColumns = 40;
  for (const auto& [weight_bits, ring_bits] : {std::array{8, 32}, {16, 49}}) {
    const u64 largest = largest_weight(weight_bits, true);
    const ColumnChoice choice = choose_columns({kInner, largest, ring_bits}, Noise::tail).value();
    const Factors factors(kInner * kColumns, kOutputs * kInner, 3);
    crypto::Prg client(hidden_block(1));
    const Digest digest{};
    KeyOwner key(choice.set, digest, client);
    std::vector<u8> p0(key_bytes(choice.set)), upload(upload_bytes(choice, kColumns));
    key.write_key(p0);
    publish(p0);
    const crypto::Block blinding = hidden_block(3);
    Evaluator evaluator(choice, {kOutputs, kInner}, kColumns, blinding, p0);
    for (i64 k = 0; k < kInner; ++k) {
      const auto row = std::span(factors.message).subspan(k * kColumns, kColumns);
      key.encrypt(k, 1, choice, row, upload);
      publish(upload);
      evaluator.read_ciphertext(k, upload);
    }
    const i64 half = halves_bytes(choice, 1);
    std::vector<u8> c1(kOutputs * half);
    std::vector<u64> share(kOutputs * kColumns), mine(kColumns);
    const WeightRows rows{factors.weights, 0, kOutputs, largest};
    HalvesMaker(choice, digest, kInner, blinding).write(rows, c1);
    evaluator.answer(rows, share);
    publish(c1);
    key.shares_of(1, choice, Bytes(c1).first(half), mine);
  }
}

void packed() {
  constexpr i64 kRows = 3, kOutputs = 5;
  const SwitchingSet& set = kSwitchingSets[4];
  for (const i64 inner : {i64{6}, i64{300}}) {  // by products of words, and by transforms
    const PackedChoice choice = choose_packed({inner, 128, 32}, 2, set).value();
    const PackedShape shape = matrix_product(kRows, inner, kOutputs, 128);
    const Factors factors(kRows * inner, kOutputs * inner, 3);
    crypto::Prg client(hidden_block(4)), owner(hidden_block(5));
    const Digest digest{};
    KeyOwner key(kPackedSet, digest, client);
    std::vector<u8> keys(switching_bytes(set)), upload(packed_upload_bytes(choice, shape));
    write_switching_keys(key, digest, set, keys);
    publish(keys);
    const SwitchingKeys switching(digest, set, keys);
    write_packed(key, digest, choice, shape, {0, 0}, factors.message, upload);
    publish(upload);
    const PackedEvaluator evaluator(switching, choice, shape, {0, 0}, upload);
    const i64 gap = choice.gap();
    std::vector<u8> answer(packed_answer_bytes(choice));
    std::vector<u64> share(gap * kRows), mine(gap * kRows);
    const auto weights = std::span(factors.weights).first(gap * inner);
    evaluator.answer({weights, 0, gap, 128}, owner, answer, share);
    publish(answer);
    read_packed(key, choice, shape, answer, mine);
  }
}

void wide(int upload_levels) {
  const WideSet& set = kWideSets[2];
  const WideShape shape{set.ring.n, 1, 3, 5, 4, 2, 1, upload_levels};
  const double squares = 10 * std::exp2(22 + 2 * upload_levels);
  const WideBounds bounds{
      32, squares, 1, shape.levels - upload_levels, {0b11}, squares * upload_levels};
  const WideChoice choice = choose_wide(set, bounds).value();
  const Factors factors(shape.rows * shape.inner, shape.inner * shape.columns, 3);
  crypto::Prg client(hidden_block(6)), evaluators(hidden_block(7));
  const Digest digest{};
  WideKeyOwner owner(set, digest, client);
  std::vector<u8> key(wide_key_bytes(set)), level(wide_switching_bytes(set));
  owner.write_key(key);
  publish(key);
  WideKeys keys(set, digest, key);
  for (const int number : {0, 1}) {
    owner.write_switching(number, level);
    publish(level);
    keys.add_level(number, level);
  }
  std::vector<u8> upload(wide_upload_bytes(choice, shape)), answer(wide_answer_bytes(choice));
  owner.write_upload(choice, shape, 0, factors.message, upload);
  publish(upload);
  WideEvaluator evaluator(keys, choice, shape, 0, evaluators);
  TorusVector sums(shape.rows * shape.columns), mine(sums.size());
  while (evaluator.parts_read() < shape.parts()) evaluator.read_part(upload);
  for (i64 i = 0; i < shape.answers(); ++i) {
    evaluator.answer(i, {row_major(factors.weights, shape.inner, shape.columns), {32, true}},
                     answer, sums);
    publish(answer);
    owner.add_answers(choice, shape, i, answer, mine);
  }
  std::vector<u64> high(sums.size());
  std::vector<u8> last(sums.size());
  round_shares(choice.ring_bits, true, sums, high, last);
  round_shares(choice.ring_bits, false, mine, high, last);
}

void slots() {
  const WideChoice choice = choose_slots(kSlotSets[0], 0);
  const i64 n = choice.set.ring.n;
  const Factors factors(n, n, 3);
  crypto::Prg client(hidden_block(8)), evaluators(hidden_block(9));
  const Digest digest{};
  SlotKeyOwner owner(choice, digest, client);
  std::vector<u8> key(slot_key_bytes(choice)), upload(slot_upload_bytes(choice));
  owner.write_key(key);
  publish(key);
  SlotEvaluator evaluator(choice, digest, key, evaluators);
  owner.write_upload(0, factors.message, upload);
  publish(upload);
  std::vector<u8> answer(slot_answer_bytes(choice));
  const TorusVector theirs = evaluator.answer(0, upload, factors.weights, answer);
  publish(answer);
  const u64 prime = owner.slots().prime();
  WipedVector<u64> mine = slot_shares(owner.read_answer(answer), prime, true);
  slot_shares(theirs, prime, false);
  for (u64& share : mine) share >>= 1;
  owner.slots().values(mine);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "leak") == 0) {
    std::vector<u64> secret(1, 5);
    hide(secret);
    std::puts(secret[0] > 3 ? "more" : "less");
    return 0;
  }
  columns();
  packed();
  wide(0);
  wide(1);
  slots();
  std::puts("no branch and no address depends on a secret");
}
