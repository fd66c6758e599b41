// SPDX-License-Identifier: Apache-2.0
// Semi-honest computations: fixed point, its functions, floating point. A peer who deviates may
// spoil their results; it must not break what computes them.
#include <array>
#include <string>

#include "functions/fixed/exponential.h"
#include "functions/fixed/logarithm.h"
#include "functions/fixed/reciprocal.h"
#include "functions/fixed/reciprocal_square_root.h"
#include "functions/fixed/sine.h"
#include "functions/fixed/smooth.h"
#include "functions/float/addition.h"
#include "functions/float/comparison.h"
#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/exponential.h"
#include "functions/float/logarithm.h"
#include "functions/float/multiplication.h"
#include "functions/float/sine.h"
#include "functions/float/tangent.h"
#include "fuzz/targets.h"
#include "ot/setup.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/relu.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/lattice_convolution.h"
#include "twopc/product/lattice_matmul.h"
#include "twopc/product/matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/product/packed_matmul.h"
#include "twopc/product/wide_matmul.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/session/open.h"
#include "twopc/width/conversion.h"
#include "twopc/width/division.h"
#include "twopc/width/extension.h"
#include "twopc/width/truncation.h"

namespace privml::fuzz {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

constexpr i64 kCount = 9;
constexpr Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};

// What a party of rank `rank` holds: any words of `bits` bits.
Words words_at(int rank, i64 count, int bits) {
  Words words(static_cast<size_t>(count));
  Prg prg({static_cast<u64>(rank), static_cast<u64>(bits)});
  for (u64& word : words) word = prg.next_block().lo & low_mask(bits);
  return words;
}

Dialogue on_ideal(std::function<void(Party&)> body) {
  return Dialogue([body = std::move(body)](Channel& channel, int rank) {
    const auto resources = make_party_resources(channel, rank, {"ideal", 0, "semi_honest", kSeed});
    body(resources->party());
    channel.flush();
  });
}

template <class Body>
Dialogue on_words(int bits, Body body) {
  return on_ideal([bits, body](Party& party) {
    const Words x = words_at(party.rank, kCount, bits);
    Words out(kCount);
    body(party, x, out);
  });
}

template <class Body>
Dialogue to_bits(int bits, Body body) {
  return on_ideal([bits, body](Party& party) {
    const Words x = words_at(party.rank, kCount, bits);
    Bits out(kCount);
    body(party, x, out);
  });
}

using Function = void (*)(Party&, std::span<const u64>, FixedFormat, FixedFormat, std::span<u64>);

Dialogue of_function(Function function) {
  return on_words(32, [function](Party& p, const Words& x, Words& out) {
    function(p, x, {32, 12}, {32, 12}, out);
  });
}

FloatVector floats_at(int rank, u64 number) {
  FloatVector a(kCount);
  Prg prg({static_cast<u64>(rank), number});
  for (i64 i = 0; i < kCount; ++i) {
    const Block block = prg.next_block();
    a.zero[i] = block.hi & 1;
    a.sign[i] = block.hi >> 1 & 1;
    a.exponent[i] = block.hi >> 2 & low_mask(kFloat32.exponent_bits());
    a.mantissa[i] = block.lo & low_mask(kFloat32.mantissa_bits());
  }
  return a;
}

template <class Body>
Dialogue on_floats(Body body) {
  return on_ideal([body](Party& party) {
    FloatVector out(kCount);
    body(party, floats_at(party.rank, 1), floats_at(party.rank, 2), out);
  });
}

Dialogue binary(void (*protocol)(Party&, FloatView, FloatView, FloatFormat, FloatSpan)) {
  return on_floats([protocol](Party& p, const FloatVector& a, const FloatVector& b,
                              FloatVector& out) { protocol(p, a, b, kFloat32, out); });
}

Dialogue unary(void (*protocol)(Party&, FloatView, FloatSpan)) {
  return on_floats([protocol](Party& p, const FloatVector& a, const FloatVector&,
                              FloatVector& out) { protocol(p, a, out); });
}

}  // namespace

// The party of rank 0 reads what the other one has encrypted and answers.
std::span<const Dialogue> lattice_products() {
  static const std::array made{
      on_words(32,
               [](Party& p, const Words& x, Words& r) {
                 const Words w(p.rank == 0 ? 9 : 0, 3);
                 const OwnedWeights weights{{0, 8, true}, w};
                 ProductHalves halves = matmul_halves(weights, 3, 3, 32);
                 lattice_matmul(p, halves, {kShared, 32}, x, weights, 3, r);
                 prepared_matmul(p, prepare_matmul(p, halves, weights, 3), {kShared, 32}, x,
                                 weights, r);
               }),
      on_words(44,
               [](Party& p, const Words& x, Words& r) {
                 const Words w(p.rank == 0 ? 9 : 0, 3);
                 PackingKeys keys{0, lattice::kSwitchingSets[1]};
                 packed_matmul(p, keys, {kShared, 44}, x, {0, 12, true}, w, {3, 3, 3}, 44, r);
               }),
      on_words(32,
               [](Party& p, const Words& x, Words& r) {
                 const ConvolutionTask task{{1, 1, 3, 3, 1, 2, 2}, {0, 8, true}, 32};
                 const Words w(p.rank == 0 ? 4 : 0, 3);
                 const KernelUse use{task, w, {}};
                 PackingKeys keys{0, lattice::kSwitchingSets[3]};
                 const auto out = std::span(r).first(4);
                 lattice_convolution(p, keys, {kShared, 32}, x, use, out);
                 prepared_convolution(p, prepare_convolution(p, keys, use), {kShared, 32}, x, use,
                                      out);
               }),
      on_words(32,
               [](Party& p, const Words& x, Words& r) {
                 WideSession session;
                 const WideProduct product{1, {3, 3, 3}, {kShared, 32}, {kShared, 32}, 32};
                 for (int i = 0; i < 2; ++i) wide_matmul(p, session, product, x, x, r);
               }),
  };
  return made;
}

std::span<const Dialogue> fixed_point() {
  static const std::array made{
      to_bits(32, [](auto& p, auto& x, auto& r) { millionaires(p, x, 32, r); }),
      to_bits(32, [](auto& p, auto& x, auto& r) { equal_zero(p, x, 32, r); }),
      on_words(64, [](auto& p, auto& x, auto& r) { relu(p, x, 64, r); }),
      on_words(37, [](auto& p, auto& x, auto& r) { truncate_arithmetic(p, x, 37, 12, r); }),
      on_words(37, [](auto& p, auto& x, auto& r) { divide_power_of_two(p, x, 37, 12, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { divide_bounded(p, x, 32, 1000, 9, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { sign_extend(p, x, 32, 48, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { maximum(p, x, x, 32, r); }),
      on_words(32,
               [](Party& p, auto& x, auto& r) {
                 argmax(p, x, 3, 32, std::span(r).first(3));
                 multiply(p, x, {32}, x, {32}, 64, r);
               }),
      on_words(4,
               [](Party& p, auto& x, auto& r) {
                 Words table(16);
                 for (u64 i = 0; i < 16; ++i) table[i] = i * i;
                 lookup(p, table, x, 4, 12, r);
               }),
      on_words(48,
               [](Party& p, auto& x, auto& r) {
                 matmul(p, {kShared, 48}, x, {kShared, 48}, x, {3, 3, 3}, 48, r);
               }),
      on_words(32,
               [](Party& p, auto& x, auto& r) {
                 const Bits b(kCount, static_cast<u8>(p.rank));
                 Bits both(kCount);
                 Words opened(kCount);
                 and_bits(p, b, b, both);
                 bits_to_ring(p, both, 32, r);
                 multiplex(p, both, x, 32, r);
                 open_ring(p, r, 32, kBothParties, opened);
               }),
  };
  return made;
}

std::span<const Dialogue> functions() {
  static const std::array made{of_function(smooth<SmoothFunction::sigmoid>),
                               of_function(smooth<SmoothFunction::tanh>),
                               of_function(exp),
                               of_function(exp_negative),
                               of_function(reciprocal),
                               of_function(rsqrt),
                               of_function(sin),
                               of_function(smooth<SmoothFunction::gelu>),
                               of_function(log)};
  return made;
}

std::span<const Dialogue> floating_point() {
  static const std::array made{
      binary(float_add),
      binary(float_multiply),
      binary(float_divide),
      binary(float_maximum),
      unary(float_exp),
      unary(float_log2),
      unary(float_sin_pi),
      unary(float_tan_pi),
      on_floats([](Party& p, const FloatVector& a, const FloatVector& b, FloatVector& out) {
        Bits less(kCount);
        float_less_than(p, a, b, kFloat32, less);
        float_round_to_integer(p, a, kFloat32, out);
      }),
      on_floats([](Party& p, const FloatVector& a, const FloatVector&, FloatVector& out) {
        Words fixed(kCount);
        float_to_fixed(p, a, kFloat32, 32, 12, fixed);
        float_from_fixed(p, fixed, 32, 12, kFloat32, out);
      }),
  };
  return made;
}

}  // namespace privml::fuzz
