// SPDX-License-Identifier: Apache-2.0
// Semi-honest computations: fixed point, its functions, floating point. A peer that deviates may
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
#include "twopc/product/slot_product.h"
#include "twopc/product/wide_matmul.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/session/flight.h"
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
constexpr crypto::Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};

// What a party of rank `rank` holds: any words of `bits` bits.
Words words_at(int rank, i64 count, int bits) {
  Words words(static_cast<size_t>(count));
  crypto::Prg prg({static_cast<u64>(rank), static_cast<u64>(bits)});
  for (u64& word : words) word = prg.next_block().lo & low_mask(bits);
  return words;
}

Dialogue on_ideal(std::function<void(ot::Party&)> body) {
  return Dialogue([body = std::move(body)](net::Channel& channel, int rank) {
    const auto resources =
        ot::make_party_resources(channel, rank, {"ideal", 0, "semi_honest", kSeed});
    body(resources->party());
    channel.flush();
  });
}

template <class Body>
Dialogue on_words(int bits, Body body) {
  return on_ideal([bits, body](ot::Party& party) {
    const Words x = words_at(party.rank, kCount, bits);
    Words out(kCount);
    body(party, x, out);
  });
}

template <class Body>
Dialogue to_bits(int bits, Body body) {
  return on_ideal([bits, body](ot::Party& party) {
    const Words x = words_at(party.rank, kCount, bits);
    Bits out(kCount);
    body(party, x, out);
  });
}

Dialogue of_function(fixed::FixedFunction function) {
  return on_words(32, [function](ot::Party& p, const Words& x, Words& out) {
    fixed::evaluate_function(p, function, x, {32, 12}, {32, 12}, out);
  });
}

floating::FloatVector floats_at(int rank, u64 number) {
  floating::FloatVector a(kCount);
  crypto::Prg prg({static_cast<u64>(rank), number});
  for (i64 i = 0; i < kCount; ++i) {
    const crypto::Block block = prg.next_block();
    a.zero[i] = block.hi & 1;
    a.sign[i] = block.hi >> 1 & 1;
    a.exponent[i] = block.hi >> 2 & low_mask(floating::kFloat32.exponent_bits());
    a.mantissa[i] = block.lo & low_mask(floating::kFloat32.mantissa_bits());
  }
  return a;
}

template <class Body>
Dialogue on_floats(Body body) {
  return on_ideal([body](ot::Party& party) {
    floating::FloatVector out(kCount);
    body(party, floats_at(party.rank, 1), floats_at(party.rank, 2), out);
  });
}

Dialogue binary(const floating::FloatBinary& operation) {
  return on_floats([operation](ot::Party& p, const floating::FloatVector& a,
                               const floating::FloatVector& b,
                               floating::FloatVector& out) { operation.run(p, a, b, out); });
}

Dialogue unary(floating::FunctionSteps steps) {
  const floating::FloatUnary operation = floating::float32_function(steps);
  return on_floats([operation](ot::Party& p, const floating::FloatVector& a,
                               const floating::FloatVector&,
                               floating::FloatVector& out) { operation.run(p, a, out); });
}

}  // namespace

// Ciphertexts and answers to them; with weights the party of rank 0 answers.
std::span<const Dialogue> lattice_products() {
  static const std::array made{
      on_words(32,
               [](ot::Party& p, const Words& x, Words& r) {
                 const Words w(p.rank == 0 ? 9 : 0, 3);
                 const twopc::OwnedWeights weights{{0, 8, true}, w};
                 twopc::ProductHalves halves = twopc::matmul_halves(weights, 3, 3, 32);
                 twopc::lattice_matmul(p, halves, {twopc::kShared, 32}, x, weights, 3, r);
                 twopc::prepared_matmul(p, twopc::prepare_matmul(p, halves, weights, 3),
                                        {twopc::kShared, 32}, x, weights, r);
               }),
      on_words(44,
               [](ot::Party& p, const Words& x, Words& r) {
                 const Words w(p.rank == 0 ? 9 : 0, 3);
                 twopc::PackingKeys keys{0, lattice::kSwitchingSets[1]};
                 twopc::packed_matmul(p, keys, {twopc::kShared, 44}, x, {0, 12, true}, w, {3, 3, 3},
                                      44, r);
               }),
      on_words(32,
               [](ot::Party& p, const Words& x, Words& r) {
                 const twopc::ConvolutionTask task{{1, 1, 3, 3, 1, 2, 2}, {0, 8, true}, 32};
                 const Words w(p.rank == 0 ? 4 : 0, 3);
                 const twopc::KernelUse use{task, w, {}};
                 twopc::PackingKeys keys{0, lattice::kSwitchingSets[3]};
                 const auto out = std::span(r).first(4);
                 twopc::lattice_convolution(p, keys, {twopc::kShared, 32}, x, use, out);
                 twopc::prepared_convolution(p, twopc::prepare_convolution(p, keys, use),
                                             {twopc::kShared, 32}, x, use, out);
               }),
      on_words(32,
               [](ot::Party& p, const Words& x, Words& r) {
                 twopc::WideSession session;
                 const twopc::WideProduct product{
                     1, {3, 3, 3}, {twopc::kShared, 32}, {twopc::kShared, 32}, 32};
                 for (int i = 0; i < 2; ++i) twopc::wide_matmul(p, session, product, x, x, r);
               }),
      on_words(30,
               [](ot::Party& p, const Words& x, Words& r) {
                 const twopc::Halves part = twopc::halves(p.rank, kCount);
                 for (int i = 0; i < 2; ++i) {  // with new keys, and with the same again
                   twopc::SlotProducts products(p, {30, 30, 60, 10}, kCount);
                   products.write_factors(std::span(x).first(part.receive_count));
                   products.write_answers(std::span(x).first(part.send_count));
                   products.write_carries();
                   products.write_wraps();
                   products.read(r);
                 }
               }),
  };
  return made;
}

std::span<const Dialogue> fixed_point() {
  static const std::array made{
      to_bits(32, [](auto& p, auto& x, auto& r) { twopc::millionaires(p, x, 32, r); }),
      to_bits(32, [](auto& p, auto& x, auto& r) { twopc::equal_zero(p, x, 32, r); }),
      on_words(64, [](auto& p, auto& x, auto& r) { twopc::relu(p, x, 64, r); }),
      on_words(37, [](auto& p, auto& x, auto& r) { twopc::truncate_arithmetic(p, x, 37, 12, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { twopc::divide_bounded(p, x, 32, 1000, 9, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { twopc::sign_extend(p, x, 32, 48, r); }),
      on_words(32, [](auto& p, auto& x, auto& r) { twopc::maximum(p, x, x, 32, r); }),
      on_words(32,
               [](ot::Party& p, auto& x, auto& r) {
                 twopc::argmax(p, x, 3, 32, std::span(r).first(3));
                 twopc::multiply(p, x, {32}, x, {32}, 64, r);
               }),
      on_words(4,
               [](ot::Party& p, auto& x, auto& r) {
                 Words table(16);
                 for (u64 i = 0; i < 16; ++i) table[i] = i * i;
                 twopc::lookup(p, table, x, 4, 12, r);
               }),
      on_words(48,
               [](ot::Party& p, auto& x, auto& r) {
                 twopc::matmul(p, {twopc::kShared, 48}, x, {twopc::kShared, 48}, x, {3, 3, 3}, 48,
                               r);
               }),
      on_words(32,
               [](ot::Party& p, auto& x, auto& r) {
                 const Bits b(kCount, static_cast<u8>(p.rank));
                 Bits both(kCount);
                 Words opened(kCount);
                 twopc::and_bits(p, b, b, both);
                 twopc::bits_to_ring(p, both, 32, r);
                 twopc::multiplex(p, both, x, 32, r);
                 twopc::open_ring(p, r, 32, twopc::kBothParties, opened);
               }),
  };
  return made;
}

std::span<const Dialogue> functions() {
  static const std::array made{of_function(fixed::smooth<fixed::SmoothFunction::sigmoid>),
                               of_function(fixed::smooth<fixed::SmoothFunction::tanh>),
                               of_function(fixed::exp),
                               of_function(fixed::exp_negative),
                               of_function(fixed::reciprocal),
                               of_function(fixed::rsqrt),
                               of_function(fixed::sin),
                               of_function(fixed::smooth<fixed::SmoothFunction::gelu>),
                               of_function(fixed::log)};
  return made;
}

std::span<const Dialogue> floating_point() {
  static const std::array made{
      binary(floating::float_add(floating::kFloat32)),
      binary(floating::float_multiply(floating::kFloat32)),
      binary(floating::float_divide(floating::kFloat32)),
      binary(floating::float_maximum(floating::kFloat32)),
      unary(floating::exp_of),
      unary(floating::log2_of),
      unary(floating::sin_pi_of),
      unary(floating::tan_pi_of),
      on_floats([](ot::Party& p, const floating::FloatVector& a, const floating::FloatVector& b,
                   floating::FloatVector& out) {
        Bits less(kCount);
        floating::float_less_than(floating::kFloat32).run(p, a, b, less);
        floating::float_round_to_integer(floating::kFloat32).run(p, a, out);
      }),
      on_floats([](ot::Party& p, const floating::FloatVector& a, const floating::FloatVector&,
                   floating::FloatVector& out) {
        Words fixed(kCount);
        floating::float_to_fixed(floating::kFloat32, 32, 12).run(p, a, fixed);
        floating::float_from_fixed(32, 12, floating::kFloat32).run(p, fixed, out);
      }),
  };
  return made;
}

}  // namespace privml::fuzz
