// SPDX-License-Identifier: Apache-2.0
// Python names of products, convolution, tables and digits.
#include "bindings/operands.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/addition_formula.h"
#include "twopc/product/convolution.h"
#include "twopc/product/matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/product/product_division.h"
#include "twopc/product/row_product.h"
#include "twopc/product/square.h"

namespace privml::bindings {
namespace {

// (bits, signed, nonnegative, bounded)
using Factors = std::tuple<int, bool, bool, bool>;

twopc::FactorFormat factor_format(const Factors& f) {
  const auto [bits, is_signed, nonnegative, bounded] = f;
  return {bits, is_signed, nonnegative, false, bounded};
}

i64 out_count(const twopc::MatrixShape& shape) { return shape.rows * shape.columns; }
i64 out_count(const linear::ConvolutionShape& shape) { return shape.out_count(); }

// A product over lanes: protocol(party, left, right, shape, out) on each part.
template <class Shape, class Protocol, class Cost>
void run_product(TwoPartySession& session, const twopc::ProductDivision<Shape>& division,
                 std::span<const u64> left, std::span<const u64> right, std::span<u64> out,
                 Protocol&& protocol, Cost&& cost) {
  const auto& shapes = division.shapes;
  if (shapes.size() == 1) {
    session.run([&](ot::Party& party) { protocol(party, left, right, shapes[0], out); },
                [&](ot::CostMeter& meter) { cost(meter, shapes[0]); });
    return;
  }
  std::vector<twopc::LaneRange> parts;
  for (i64 i = 0; i < std::ssize(shapes); ++i) parts.push_back({i, 1});
  std::vector<std::vector<u64>> results(shapes.size());
  session.run_parts(
      parts,
      [&](ot::Party& party, twopc::LaneRange index) {
        const i64 i = index.begin;
        const twopc::LaneRange range = division.ranges[i];
        results[i].resize(static_cast<size_t>(out_count(shapes[i])));
        protocol(party, twopc::cut(left, division.left, range),
                 twopc::cut(right, division.right, range), shapes[i], results[i]);
      },
      [&](ot::CostMeter& meter, twopc::LaneRange index) { cost(meter, shapes[index.begin]); });
  if (session.metering()) return;
  for (size_t i = 0; i < results.size(); ++i) {
    twopc::put(results[i], division.out, division.ranges[i], out);
  }
}

void define_products(py::module_& m) {
  m.def(
      "multiply",
      [](TwoPartySession& session, const py::array& x, Factors x_format, const py::array& y,
         Factors y_format, int ell) {
        const auto a = view<u64>(x, "x");
        const auto b = view<u64>(y, "y");
        const twopc::FactorFormat fx = factor_format(x_format), fy = factor_format(y_format);
        expect(shape_of(x) == shape_of(y), "x and y: shapes differ");
        Result<u64> out(session, shape_of(x));
        session.run_divided(
            size(a),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::multiply(party, part(a, range), fx, part(b, range), fy, ell,
                              part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_multiply(meter, range.count, fx, fy, ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a, "ell"_a,
      "shared x shared; formats are (bits, signed, nonnegative, bounded: within 2^(bits-2)), "
      "max(m, n) <= ell <= m + n, less for bounded ones");
  m.def(
      "square",
      [](TwoPartySession& session, const py::array& x, Factors x_format, int ell) {
        const auto a = view<u64>(x, "x");
        const twopc::FactorFormat format = factor_format(x_format);
        Result<u64> out(session, shape_of(x));
        session.run_divided(
            size(a),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::square(party, part(a, range), format, ell, part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_square(meter, range.count, format, ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "ell"_a,
      "squares; the format as in multiply, m <= ell <= 2 m, less for a bounded one");
  m.def(
      "multiply_rows",
      [](TwoPartySession& session, const py::array& x, Factors x_format, const py::array& y,
         int y_bits, int ell) {
        const auto a = view<u64>(x, "x");
        const auto b = view<u64>(y, "y");
        expect(size(b) == 0 ? size(a) == 0 : size(a) % size(b) == 0,
               "x must have rows of one length, as many as y has numbers");
        const i64 length = size(b) == 0 ? 0 : size(a) / size(b);
        const twopc::FactorFormat format = factor_format(x_format);
        Result<u64> out(session, shape_of(x));
        session.run_divided(
            size(b),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::multiply_rows(party, part(a, range, length), format, part(b, range), y_bits,
                                   ell, part(out.span, range, length));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_multiply_rows(meter, range.count, length, format, y_bits, ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "y"_a, "y_bits"_a, "ell"_a,
      "rows of x times one number each, known not to be negative; x's format as in multiply");
  // Values and factors that Python computed of this party's shares beforehand.
  using Factor = std::tuple<int, bool, bool, i64>;  // bits, signed, negative, constant
  m.def(
      "addition_formula",
      [](TwoPartySession& session, const py::array& x, std::pair<int, int> number,
         std::pair<int, bool> value, std::pair<int, int> ring, const py::array& entries,
         const py::array& factors, const std::vector<Factor>& terms) {
        const auto a = view<u64>(x, "x");
        const auto tables = view<u64>(entries, "entries"), words = view<u64>(factors, "factors");
        twopc::AdditionFormula f{number.first, number.second, value.first, value.second,
                                 ring.first,   ring.second,   {}};
        const i64 n = size(a), count = static_cast<i64>(terms.size());
        expect(f.table_bits() >= 1 && f.table_bits() <= 8, "place_bits: the table has 1..8 bits");
        const i64 width = i64{1} << f.table_bits();
        expect(size(tables) == count * n * width,
               "entries: needs [terms, n, 2^(bits - place_bits)]");
        expect(size(words) == count * n, "factors: needs [terms, n]");
        Result<u64> out(session, shape_of(x));
        const auto formula_of = [&](twopc::LaneRange range) {
          twopc::AdditionFormula formula = f;
          for (i64 k = 0; k < count; ++k) {
            const auto [bits, is_signed, negative, constant] = terms[k];
            twopc::AdditionTerm term;
            term.values = [=](i64 instance, u64, std::span<u64> row) {
              const i64 place = k * n + range.begin + instance;
              std::ranges::copy(tables.subspan(place * width, width), row.begin());
            };
            if (bits > 0)
              term.factor = [=](i64 instance, u64) {
                return words[k * n + range.begin + instance];
              };
            term.factor_bits = bits;
            term.factor_signed = is_signed;
            term.negative = negative;
            term.constant = static_cast<u64>(constant);
            formula.terms.push_back(term);
          }
          return formula;
        };
        session.run_divided(
            n,
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::addition_formula(party, formula_of(range), part(a, range),
                                      part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_addition_formula(meter, range.count, formula_of(range));
            });
        return out.array;
      },
      "session"_a, "x"_a, "number"_a, "value"_a, "ring"_a, "entries"_a, "factors"_a, "terms"_a,
      "sum over the terms of f(u) (constant +- g(b)); number (bits, place_bits), value (bits, "
      "nonnegative), ring (bits, dropped), a term's factor (bits, signed, negative, constant)");
  m.def(
      "multiply_owned",
      [](TwoPartySession& session, int owner, const py::array& x, Factors x_format, const Words& y,
         std::pair<int, bool> y_format, int ell) {
        const auto a = view<u64>(x, "x");
        const auto b = view_if(y, "y");
        const twopc::FactorFormat fx = factor_format(x_format);
        const twopc::KnownFormat fy{y_format.first, y_format.second};
        check_length(b, {owner, fy.bits, fy.is_signed}, session.rank(), size(a), "y");
        Result<u64> out(session, shape_of(x));
        session.run_divided(
            size(a),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::multiply_owned(party, owner, part(a, range), fx, part(b, range), fy, ell,
                                    part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_multiply_owned(meter, owner, range.count, fx, fy, ell);
            });
        return out.array;
      },
      "session"_a, "owner"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a, "ell"_a,
      "shared x times y known to party `owner`; y_format is (bits, signed)");
  m.def(
      "cross_term",
      [](TwoPartySession& session, int left_holder, const py::array& mine,
         std::pair<int, bool> left, std::pair<int, bool> right, int ell) {
        const auto words = view<u64>(mine, "mine");
        const twopc::KnownFormat fl{left.first, left.second}, fr{right.first, right.second};
        Result<u64> out(session, shape_of(mine));
        session.run_divided(
            size(words),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::cross_term(party, left_holder, part(words, range), fl, fr, ell,
                                twopc::ChoiceSide::automatic, part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_cross_term(meter, left_holder, range.count, fl, fr, ell,
                                     twopc::ChoiceSide::automatic);
            });
        return out.array;
      },
      "session"_a, "left_holder"_a, "mine"_a, "left"_a, "right"_a, "ell"_a,
      "x of party left_holder times y of the other party; formats are (bits, signed)");
  m.def(
      "matmul",
      [](TwoPartySession& session, const Words& x, const Format& x_format, const Words& y,
         const Format& y_format, i64 rows, i64 inner, i64 columns, int ell) {
        const auto a = view_if(x, "x");
        const auto b = view_if(y, "y");
        const twopc::Operand fx = operand(x_format), fy = operand(y_format);
        const twopc::MatrixShape shape{rows, inner, columns};
        expect(rows >= 0 && inner >= 0 && columns >= 0, "matmul: negative dimension");
        check_length(a, fx, session.rank(), rows * inner, "x");
        check_length(b, fy, session.rank(), inner * columns, "y");
        Result<u64> out(session, {rows, columns});
        run_product(
            session, twopc::divide_matmul(fx, fy, shape, ell, session.lanes()), a, b, out.span,
            [&](ot::Party& party, std::span<const u64> left, std::span<const u64> right,
                const twopc::MatrixShape& s,
                std::span<u64> z) { twopc::matmul(party, fx, left, fy, right, s, ell, z); },
            [&](ot::CostMeter& meter, const twopc::MatrixShape& s) {
              twopc::cost_matmul(meter, fx, fy, s, ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a, "rows"_a, "inner"_a, "columns"_a,
      "ell"_a);
}

void define_convolution(py::module_& m) {
  m.def(
      "conv2d",
      [](TwoPartySession& session, const Words& x, const Format& x_format, const Words& w,
         const Format& w_format, std::array<i64, 4> x_shape, std::array<i64, 4> w_shape,
         std::array<i64, 2> stride, std::array<i64, 4> padding, std::array<i64, 2> dilation,
         i64 groups, int ell) {
        const auto in = view_if(x, "x");
        const auto kernel = view_if(w, "w");
        const twopc::Operand fx = operand(x_format), fw = operand(w_format);
        const linear::ConvolutionShape shape =
            convolution_shape(x_shape, w_shape, stride, padding, dilation, groups);
        check_length(in, fx, session.rank(), shape.in_count(), "x");
        check_length(kernel, fw, session.rank(), shape.kernel_count(), "w");
        Result<u64> out(session,
                        {shape.batch, shape.out_channels, shape.out_height(), shape.out_width()});
        run_product(
            session, twopc::divide_convolution(fx, fw, shape, ell, session.lanes()), in, kernel,
            out.span,
            [&](ot::Party& party, std::span<const u64> left, std::span<const u64> right,
                const linear::ConvolutionShape& s,
                std::span<u64> z) { twopc::convolution(party, fx, left, fw, right, s, ell, z); },
            [&](ot::CostMeter& meter, const linear::ConvolutionShape& s) {
              twopc::cost_convolution(meter, fx, fw, s, ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "w"_a, "w_format"_a, "x_shape"_a, "w_shape"_a, "stride"_a,
      "padding"_a, "dilation"_a, "groups"_a, "ell"_a,
      "x [n, c, h, w], w [o, c / groups, kh, kw]; padding is (top, bottom, left, right)");
}

void define_tables(py::module_& m) {
  const auto table_function = [&m](const char* name, auto protocol) {
    m.def(
        name,
        [protocol](TwoPartySession& session, const py::array& table, const py::array& index,
                   int index_bits, int width) {
          const auto entries = view<u64>(table, "table");
          const auto places = view<u64>(index, "index");
          Result<u64> out(session, shape_of(index));
          session.run_divided(
              size(places),
              [&](ot::Party& party, twopc::LaneRange range) {
                protocol(party, entries, part(places, range), index_bits, width,
                         part(out.span, range));
              },
              [&](ot::CostMeter& meter, twopc::LaneRange range) {
                twopc::cost_lookup(meter, range.count, index_bits, width);
              });
          return out.array;
        },
        "session"_a, "table"_a, "index"_a, "index_bits"_a, "width"_a);
  };
  table_function("lookup", &twopc::lookup);
  m.def(
      "transfer_one_of_n",
      [](TwoPartySession& session, int sender, const py::array& mine, int index_bits,
         int width) -> py::object {
        expect(index_bits >= 1 && index_bits <= 8, "transfer_one_of_n: index_bits must be in 1..8");
        const bool sends = sender == session.rank();
        const auto messages = sends ? view<u64>(mine, "mine") : std::span<const u64>{};
        const auto choices = sends ? std::span<const u8>{} : view<u8>(mine, "mine");
        const i64 count = sends ? size(messages) >> index_bits : size(choices);
        Result<u64> out(session, sends ? Shape{0} : shape_of(mine));
        session.run(
            [&](ot::Party& party) {
              if (sends) {
                twopc::transfer_one_of_n_send(party, messages, index_bits, width);
              } else {
                twopc::transfer_one_of_n_receive(party, choices, index_bits, width, out.span);
              }
            },
            [&](ot::CostMeter& meter) {
              twopc::cost_transfer_one_of_n(meter, sender, count, index_bits, width);
            });
        return sends ? py::none() : py::object(out.array);
      },
      "session"_a, "sender"_a, "mine"_a, "index_bits"_a, "width"_a,
      "mine: messages [count * 2^index_bits] at the sender, uint8 choices [count] at the other");
}

void define_digits(py::module_& m) {
  m.def(
      "digits",
      [](TwoPartySession& session, const py::array& x, int ell, int digit_bits) {
        const auto in = view<u64>(x, "x");
        expect(ell >= 1 && ell <= 64 && digit_bits >= 1 && digit_bits <= 64,
               "digits: widths must be in 1..64");
        Shape shape = shape_of(x);
        shape.insert(shape.begin(), twopc::digit_count(ell, digit_bits));
        Result<u64> out(session, shape);
        session.run(
            [&](ot::Party& party) { twopc::digits(party, in, ell, digit_bits, out.span); },
            [&](ot::CostMeter& meter) { twopc::cost_digits(meter, size(in), ell, digit_bits); });
        return out.array;
      },
      "session"_a, "x"_a, "ell"_a, "digit_bits"_a, "[digits, ...], least significant first");
  m.def(
      "most_significant_nonzero_bit",
      [](TwoPartySession& session, const py::array& x, int ell) {
        const auto in = view<u64>(x, "x");
        expect(ell >= 1 && ell <= 64, "most_significant_nonzero_bit: ell must be in 1..64");
        Shape shape = shape_of(x);
        shape.push_back(ell);
        Result<u8> out(session, shape);
        session.run(
            [&](ot::Party& party) {
              twopc::most_significant_nonzero_bit(party, in, ell, out.span);
            },
            [&](ot::CostMeter& meter) {
              twopc::cost_most_significant_nonzero_bit(meter, size(in), ell);
            });
        return out.array;
      },
      "session"_a, "x"_a, "ell"_a, "one-hot bits [..., ell]");
}

}  // namespace

void define_product_family(py::module_& m) {
  define_products(m);
  define_convolution(m);
  define_tables(m);
  define_digits(m);
}

}  // namespace privml::bindings
