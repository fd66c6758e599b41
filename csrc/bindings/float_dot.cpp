// SPDX-License-Identifier: Apache-2.0
// Python names of the steps of fused dot products, and of selections.
#include "bindings/float_session.h"
#include "bindings/float_words.h"
#include "functions/float/clear_conversion.h"
#include "functions/float/dot.h"
#include "functions/float/selection.h"

namespace privml::bindings {
namespace {

void define_clear_steps(py::module_& m) {
  m.def(
      "clear_align",
      [](const py::array& x, const py::array& shifts, int p, int q, int guard) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect(guard >= 0 && q + guard <= 31, "align: guard bits out of range");
        expect(shape_of(x) == shape_of(shifts), "x and shifts: shapes differ");
        const auto in = view<u64>(x, "x"), shift = view<u64>(shifts, "shifts");
        return each<u64>(shape_of(x), [&](i64 i) {
          const auto distance = static_cast<i64>(shift[i] & low_mask(f.exponent_bits()));
          return static_cast<u64>(
              floating::clear_float_align(floating::value_from_word(in[i], f), distance, f, guard));
        });
      },
      "x"_a, "shifts"_a, "p"_a, "q"_a, "guard"_a,
      "signed integers x 2^(q + guard - exponent - shift), towards zero");
  m.def(
      "clear_from_sum",
      [](const py::array& sums, const py::array& exponents, int p, int q, int bits, int fraction) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect(bits >= 2 && bits <= 64, "from_sum: bits must lie in 2..64");
        expect(shape_of(sums) == shape_of(exponents), "sums and exponents: shapes differ");
        const auto in = view<u64>(sums, "sums"), exponent = view<u64>(exponents, "exponents");
        return each<u64>(shape_of(sums), [&](i64 i) {
          const i64 own = to_signed(exponent[i], f.exponent_bits());
          return floating::word_from_value(
              floating::clear_float_from_sum(to_signed(in[i], bits), own, f, fraction), f);
        });
      },
      "sums"_a, "exponents"_a, "p"_a, "q"_a, "bits"_a, "fraction"_a,
      "sums 2^(exponent - fraction) to the nearest float");
}

void define_steps(py::module_& m) {
  m.def(
      "align",
      [](TwoPartySession& session, const py::array& x, const py::array& shifts, int p, int q,
         int guard, int bits) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect(shape_of(x) == shape_of(shifts), "x and shifts: shapes differ");
        return run_float(session, shape_of(x), floating::float_align(f, guard, bits), f,
                         view<u64>(x, "x"), view<u64>(shifts, "shifts"));
      },
      "session"_a, "x"_a, "shifts"_a, "p"_a, "q"_a, "guard"_a, "bits"_a,
      "clear_align() on shares, into a ring of `bits` bits");
  m.def(
      "from_sum",
      [](TwoPartySession& session, const py::array& sums, const py::array& exponents, int p, int q,
         int bits, int fraction) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect(shape_of(sums) == shape_of(exponents), "sums and exponents: shapes differ");
        return run_float(session, shape_of(sums), floating::float_from_sum(f, bits, fraction), f,
                         view<u64>(sums, "sums"), view<u64>(exponents, "exponents"));
      },
      "session"_a, "sums"_a, "exponents"_a, "p"_a, "q"_a, "bits"_a, "fraction"_a,
      "clear_from_sum() on shares");
  m.def(
      "select",
      [](TwoPartySession& session, const py::array& bits, const py::array& x, int p, int q) {
        const floating::FloatFormat f = floating::word_format(p, q);
        expect(shape_of(bits) == shape_of(x), "bits and x: shapes differ");
        return run_float(session, shape_of(x), floating::float_select(f), f, view<u8>(bits, "bits"),
                         view<u64>(x, "x"));
      },
      "session"_a, "bits"_a, "x"_a, "p"_a, "q"_a, "x where the XOR-shared bit is 1, else +0");
}

}  // namespace

void define_float_dot(py::module_& m) {
  define_clear_steps(m);
  define_steps(m);
}

}  // namespace privml::bindings
