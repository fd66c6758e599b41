// SPDX-License-Identifier: Apache-2.0
// Speed of lattice-based products on one thread, in processor time of that thread: the least of
// several runs. Arguments: inner outputs (default 768 96).
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "lattice/packed.h"
#include "lattice/scalar_product.h"

namespace privml::lattice {
namespace {

constexpr i64 kN = 4096;
constexpr int kLowBits = 8;

constexpr std::pair<Backend, const char*> kBackends[] = {
    {Backend::portable, "portable"}, {Backend::avx2, "avx2"}, {Backend::avx512, "avx512"}};

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Microseconds of one call.
double microseconds(int calls, const std::function<void()>& work) {
  double best = 1e9;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const double start = now();
    for (int call = 0; call < calls; ++call) work();
    best = std::min(best, (now() - start) / calls);
  }
  return best * 1e6;
}

void transforms(Backend backend, const char* name) {
  const NegacyclicRing ring(kN, kLowBits, backend);
  crypto::Prg prg({1, 2});
  Words a(kN), out(kN);
  sample_uniform(prg, kLowBits, a.output());
  sample_uniform(prg, kLowBits, out.output());
  Small small(kN);
  sample_ternary(prg, small);
  const Transformed x = ring.transform(a.view()), y = ring.transform(small);
  std::printf("%-9s transform of words, two primes  %8.1f us\n", name,
              microseconds(20, [&] { ring.transform(a.view()); }));
  std::printf("%-9s product and inverse transforms  %8.1f us\n", name,
              microseconds(20, [&] { ring.add_product(x, y, out.output()); }));
}

void samples() {
  crypto::Prg prg({1, 2});
  Words a(kN);
  Small small(kN);
  std::printf("uniform words                        %8.1f us\n",
              microseconds(50, [&] { sample_uniform(prg, kLowBits, a.output()); }));
  std::printf("ternary                              %8.1f us\n",
              microseconds(50, [&] { sample_ternary(prg, small); }));
  std::printf("error                                %8.1f us\n",
              microseconds(50, [&] { sample_error(prg, small); }));
}

void products(i64 inner, i64 outputs, int weight_bits, int ring_bits) {
  const u64 largest = largest_weight(weight_bits, true);
  const ColumnChoice choice = choose_columns({inner, largest, ring_bits}, Noise::tail).value();
  crypto::Prg prg({3, 4});
  std::vector<u64> weights(outputs * inner), message(kN);
  prg.fill_ring(weights, 64);
  prg.fill_ring(message, ring_bits);
  for (u64& w : weights) w = static_cast<u64>(to_signed(w, weight_bits));
  const Digest digest{};
  KeyOwner key(choice.set, digest, prg);
  std::vector<u8> p0(key_bytes(choice.set)), upload(upload_bytes(choice, kN));
  key.write_key(p0);
  Evaluator evaluator(choice, {outputs, inner}, kN, {5, 6}, p0);
  std::printf("weights of %d bits, ring of %d, words of %d\n", weight_bits, ring_bits,
              choice.set.log_q);
  std::printf("encrypt                              %8.1f us\n",
              microseconds(5, [&] { key.encrypt(0, 1, choice, message, upload); }));
  std::printf("read a ciphertext                    %8.1f us\n",
              microseconds(5, [&] { evaluator.read_ciphertext(0, upload); }));
  for (i64 k = 0; k < inner; ++k) evaluator.read_ciphertext(k, upload);
  Words in(inner * kN), out(outputs * kN);
  sample_uniform(prg, choice.set.low_bits(), in.output());
  double product = 0;
  for (const auto& [backend, name] : kBackends) {
    if (!backend_supported(backend)) continue;
    product = microseconds(1, [&] {
      multiply_scalars(weights, outputs, inner, largest, in.view(), kN, choice.set.low_bits(),
                       out.output(), backend);
    });
    std::printf("%-9s scalars times words         %8.2f 10^9 products a second\n", name,
                1e-3 * static_cast<double>(outputs * inner * kN) / product);
  }
  const WeightRows rows{weights, 0, outputs, largest};
  std::vector<u8> c1(halves_bytes(choice, outputs));
  std::vector<u64> share(outputs * kN);
  const HalvesMaker maker(choice, digest, inner, {5, 6});
  const double halves = microseconds(1, [&] { maker.write(rows, c1); });
  const double answer = microseconds(1, [&] { evaluator.answer(rows, share); });
  std::printf("c1 of an answer without the product  %8.1f us\n",
              (halves - product) / static_cast<double>(outputs));
  std::printf("c0 of an answer without the product  %8.1f us\n",
              (answer - product) / static_cast<double>(outputs));
  const Bytes half = Bytes(c1).first(halves_bytes(choice, 1));
  std::printf("c1 times the key                     %8.1f us\n",
              microseconds(5, [&] { key.shares_of(1, choice, half, std::span(share).first(kN)); }));
}

// One message, all that the owner of the weights computes.
void packed(i64 rows, i64 inner, i64 outputs, int ring_bits, const SwitchingSet& set) {
  const u64 largest = largest_weight(ring_bits > 30 ? 12 : 9, true);
  int levels = set.levels;
  while (rows << levels > kN || !choose_packed({inner, largest, ring_bits}, levels, set)) --levels;
  const PackedChoice choice = choose_packed({inner, largest, ring_bits}, levels, set).value();
  crypto::Prg prg({3, 4});
  std::vector<u64> weights(outputs * inner), message(rows * inner);
  prg.fill_ring(weights, 64);
  prg.fill_ring(message, ring_bits);
  for (u64& w : weights) w = static_cast<u64>(to_signed(w, 9));
  const Digest digest{};
  KeyOwner key(kPackedSet, digest, prg);
  const PackedShape shape = matrix_product(rows, inner, outputs, largest);
  std::vector<u8> keys(switching_bytes(set)), upload(packed_upload_bytes(choice, shape));
  write_switching_keys(key, digest, set, keys);
  write_packed(key, digest, choice, shape, {}, message, upload);
  const SwitchingKeys switching(digest, set, keys);
  std::vector<u8> answers(ceil_div(outputs, choice.gap()) * packed_answer_bytes(choice));
  std::vector<u64> share(outputs * rows);
  const double took = microseconds(1, [&] {
    const PackedEvaluator evaluator(switching, choice, shape, {}, upload);
    evaluator.answer({weights, 0, outputs, largest}, prg, answers, share);
  });
  const i64 switched = switched_digits(set, levels, outputs);
  std::printf("packed, %3ld rows, gap %3ld, keys %7ld  %8.1f us, %6ld digits switched\n",
              static_cast<long>(rows), static_cast<long>(choice.gap()),
              static_cast<long>(switching_bytes(set)), took, static_cast<long>(switched));
}

}  // namespace
}  // namespace privml::lattice

int main(int argc, char** argv) {
  using namespace privml::lattice;
  const privml::i64 inner = argc > 1 ? std::atoll(argv[1]) : 768;
  const privml::i64 outputs = argc > 2 ? std::atoll(argv[2]) : 96;
  for (const auto& [backend, name] : kBackends)
    if (backend_supported(backend)) transforms(backend, name);
  samples();
  products(inner, outputs, 12, 44);
  products(inner, outputs, 16, 44);
  products(inner, outputs, 8, 32);
  for (const SwitchingSet& set : kSwitchingSets) {
    if (set.digits * set.digit_bits == 64) packed(128, inner, outputs, 44, set);
    packed(1, 16, 128, 24, set);
  }
}
