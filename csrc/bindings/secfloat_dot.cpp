// SPDX-License-Identifier: Apache-2.0
// Python names of the steps of fused dot products.
#include "bindings/secfloat.h"
#include "secfloat/clear_dot.h"

namespace privml::bindings {

void define_float_dot(py::module_& m) {
  m.def(
      "clear_align",
      [](const py::array& x, const py::array& shifts, int p, int q, int guard) {
        const FloatFormat f{p, q};
        expect_word_format(f);
        expect(guard >= 0 && q + guard <= 31, "align: guard bits out of range");
        expect(shape_of(x) == shape_of(shifts), "x and shifts: shapes differ");
        const auto in = view<u64>(x, "x"), shift = view<u64>(shifts, "shifts");
        Result<u64> out(shape_of(x));
        {
          const py::gil_scoped_release without_interpreter;
          for (i64 i = 0; i < size(in); ++i) {
            const auto distance = static_cast<i64>(shift[i] & low_mask(f.exponent_bits()));
            out.span[i] =
                static_cast<u64>(clear_float_align(value_from_word(in[i], f), distance, f, guard));
          }
        }
        return out.array;
      },
      "x"_a, "shifts"_a, "p"_a, "q"_a, "guard"_a,
      "signed integers x 2^(q + guard - exponent - shift), towards zero");
  m.def(
      "clear_from_sum",
      [](const py::array& sums, const py::array& exponents, int p, int q, int bits, int fraction) {
        const FloatFormat f{p, q};
        expect_word_format(f);
        expect(bits >= 2 && bits <= 64, "from_sum: bits must lie in 2..64");
        expect(shape_of(sums) == shape_of(exponents), "sums and exponents: shapes differ");
        const auto in = view<u64>(sums, "sums"), exponent = view<u64>(exponents, "exponents");
        Result<u64> out(shape_of(sums));
        {
          const py::gil_scoped_release without_interpreter;
          for (i64 i = 0; i < size(in); ++i) {
            out.span[i] = word_from_value(
                clear_float_from_sum(to_signed(in[i], bits),
                                     to_signed(exponent[i], f.exponent_bits()), f, fraction),
                f);
          }
        }
        return out.array;
      },
      "sums"_a, "exponents"_a, "p"_a, "q"_a, "bits"_a, "fraction"_a,
      "sums 2^(exponent - fraction) to the nearest float");
}

}  // namespace privml::bindings
