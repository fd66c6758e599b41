// SPDX-License-Identifier: Apache-2.0
// Python names of the comparison family: bits, signs, widths, maxima, opening.
#include "bindings/elementwise.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/relu.h"
#include "twopc/compare/wrap.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/session/open.h"
#include "twopc/width/bounded.h"
#include "twopc/width/conversion.h"
#include "twopc/width/division.h"
#include "twopc/width/extension.h"
#include "twopc/width/rectified_maximum.h"
#include "twopc/width/signed_wrap.h"
#include "twopc/width/truncate_by_sign.h"
#include "twopc/width/truncation.h"

namespace privml::bindings {
namespace {

void define_bits(py::module_& m) {
  m.def("and_bits", binary<u8, u8>(&twopc::and_bits, &twopc::cost_and_bits), "session"_a, "a"_a,
        "b"_a);
  m.def("or_bits", binary<u8, u8>(&twopc::or_bits, &twopc::cost_and_bits), "session"_a, "a"_a,
        "b"_a);
  m.def("bits_to_ring", unary<u8, u64, int>(&twopc::bits_to_ring, &twopc::cost_bits_to_ring),
        "session"_a, "bits"_a, "width"_a);
  m.def(
      "multiplex",
      [](TwoPartySession& session, const py::array& bits, const py::array& values, int width) {
        const auto b = view<u8>(bits, "bits");
        const auto v = view<u64>(values, "values");
        Result<u64> out(session, shape_of(values));
        expect(b.size() == v.size(), "multiplex: bits and values must be equally many");
        session.run_divided(
            size(b),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::multiplex(party, part(b, range), part(v, range), width, part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_multiplex(meter, range.count, width);
            });
        return out.array;
      },
      "session"_a, "bits"_a, "values"_a, "width"_a);
}

void define_comparisons(py::module_& m) {
  m.def("equal", unary<u64, u8, int>(&twopc::equal, &twopc::cost_equal), "session"_a, "x"_a,
        "bits"_a, "[x of party 0 = x of party 1]");
  m.def("equal_zero", unary<u64, u8, int>(&twopc::equal_zero, &twopc::cost_equal_zero), "session"_a,
        "x"_a, "bits"_a);
  m.def("millionaires", unary<u64, u8, int>(&twopc::millionaires, &twopc::cost_millionaires),
        "session"_a, "x"_a, "bits"_a, "[x of party 0 > x of party 1], unsigned");
  m.def("most_significant_bit",
        unary<u64, u8, int>(&twopc::most_significant_bit, &twopc::cost_most_significant_bit),
        "session"_a, "x"_a, "bits"_a);
  m.def("wrap", unary<u64, u8, int>(&twopc::wrap, &twopc::cost_wrap), "session"_a, "x"_a, "bits"_a);
  using ReluWithBits =
      void (*)(ot::Party&, std::span<const u64>, int, std::span<u64>, std::span<u8>);
  m.def("relu", unary_pair<u64, u64, u8, int>(ReluWithBits{&twopc::relu}, &twopc::cost_relu),
        "session"_a, "x"_a, "bits"_a, "(max(x, 0), [x >= 0])");
}

void define_widths(py::module_& m) {
  const auto shift = [&m](const char* name, auto protocol, auto cost) {
    m.def(name, unary<u64, u64, int, int>(protocol, cost), "session"_a, "x"_a, "bits"_a, "shift"_a);
  };
  shift("truncate_arithmetic", &twopc::truncate_arithmetic, &twopc::cost_truncate);
  shift("truncate_nonnegative", &twopc::truncate_nonnegative, &twopc::cost_truncate_nonnegative);
  shift("round_nonnegative", &twopc::round_nonnegative, &twopc::cost_truncate_nonnegative);
  shift("truncate_reduce", &twopc::truncate_reduce, &twopc::cost_truncate_reduce);
  m.def("truncate_rectified",
        unary<u64, u64, int, int, int>(&twopc::truncate_rectified, &twopc::cost_truncate_rectified),
        "session"_a, "x"_a, "bits"_a, "shift"_a, "out_bits"_a,
        "floor(max(x, 0) / 2^shift) in Z_2^out_bits");
  const auto extend = [&m](const char* name, auto protocol, auto cost) {
    m.def(name, unary<u64, u64, int, int>(protocol, cost), "session"_a, "x"_a, "bits"_a,
          "to_bits"_a);
  };
  extend("zero_extend", &twopc::zero_extend, &twopc::cost_extend);
  extend("sign_extend", &twopc::sign_extend, &twopc::cost_extend);
  extend("extend_nonnegative", &twopc::extend_nonnegative, &twopc::cost_extend_nonnegative);
}

// Numbers with -bound <= x < bound.
void define_bounded(py::module_& m) {
  m.def("signed_wrap",
        unary<u64, u64, int, u64, int>(&twopc::signed_wrap, &twopc::cost_signed_wrap), "session"_a,
        "x"_a, "bits"_a, "bound"_a, "width"_a,
        "MW(x) in Z_2^width: x0 + x1 - 2^bits MW(x) is the signed x, -bound <= x < bound");
  m.def("truncate_bounded",
        unary<u64, u64, int, u64, int>(&twopc::truncate_bounded, &twopc::cost_truncate_bounded),
        "session"_a, "x"_a, "bits"_a, "bound"_a, "shift"_a);
  m.def("round_bounded",
        unary<u64, u64, int, u64, int>(&twopc::round_bounded, &twopc::cost_truncate_bounded),
        "session"_a, "x"_a, "bits"_a, "bound"_a, "shift"_a);
  m.def("extend_bounded",
        unary<u64, u64, int, u64, int>(&twopc::extend_bounded, &twopc::cost_extend_bounded),
        "session"_a, "x"_a, "bits"_a, "bound"_a, "to_bits"_a);
  m.def("divide_bounded",
        unary<u64, u64, int, u64, u64>(&twopc::divide_bounded, &twopc::cost_divide_bounded),
        "session"_a, "x"_a, "bits"_a, "bound"_a, "divisor"_a, "floor(x / divisor)");
}

// x [..., window] with window >= 1: the leading dimensions, and the length of the last one.
std::pair<Shape, i64> windows_of(const py::array& x) {
  expect(x.ndim() >= 1 && x.shape(x.ndim() - 1) >= 1, "x: needs a last dimension of at least 1");
  Shape leading = shape_of(x);
  const i64 window = leading.back();
  leading.pop_back();
  return {leading, window};
}

// (session, x [..., n], bits) -> [...]
template <class Protocol, class Cost>
auto over_windows(Protocol protocol, Cost cost) {
  return [protocol, cost](TwoPartySession& session, const py::array& x, int bits) {
    const auto in = view<u64>(x, "x");
    const auto [leading, window] = windows_of(x);
    Result<u64> out(session, leading);
    session.run_divided(
        size(out.span),
        [&, w = window](ot::Party& party, twopc::LaneRange range) {
          protocol(party, part(in, range, w), w, bits, part(out.span, range));
        },
        [&, w = window](ot::CostMeter& meter, twopc::LaneRange range) {
          cost(meter, range.count, w, bits);
        });
    return out.array;
  };
}

void define_maxima(py::module_& m) {
  m.def("maximum", binary<u64, u64, int>(&twopc::maximum, &twopc::cost_maximum), "session"_a, "a"_a,
        "b"_a, "bits"_a);
  m.def("maximum_last", over_windows(&twopc::maximum_windows, &twopc::cost_maximum_windows),
        "session"_a, "x"_a, "bits"_a, "x [..., n] to its maxima [...]");
  m.def(
      "rectified_maximum_last",
      [](TwoPartySession& session, const py::array& x, int bits, int shift, int out_bits) {
        const auto in = view<u64>(x, "x");
        const auto [leading, window] = windows_of(x);
        Result<u64> out(session, leading);
        const twopc::RectifiedMaximum shape{window, bits, shift, out_bits};
        session.run_divided(
            size(out.span),
            [&](ot::Party& party, twopc::LaneRange range) {
              twopc::rectified_maximum(party, shape, part(in, range, shape.window),
                                       part(out.span, range));
            },
            [&](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_rectified_maximum(meter, range.count, shape);
            });
        return out.array;
      },
      "session"_a, "x"_a, "bits"_a, "shift"_a, "out_bits"_a,
      "floor(max(0, x [..., n]) / 2^shift) in Z_2^out_bits, of the largest along the last "
      "dimension");
  m.def(
      "maximum_last_one_hot",
      [](TwoPartySession& session, const py::array& x, int bits) {
        const auto in = view<u64>(x, "x");
        const auto [leading, window] = windows_of(x);
        Result<u64> out(session, leading);
        Result<u8> one_hot(session, shape_of(x));
        session.run_divided(
            size(out.span),
            [&, w = window](ot::Party& party, twopc::LaneRange range) {
              twopc::maximum_windows_one_hot(party, part(in, range, w), w, bits,
                                             part(out.span, range), part(one_hot.span, range, w));
            },
            [&, w = window](ot::CostMeter& meter, twopc::LaneRange range) {
              twopc::cost_maximum_windows_one_hot(meter, range.count, w, bits);
            });
        return py::make_tuple(out.array, one_hot.array);
      },
      "session"_a, "x"_a, "bits"_a, "(maxima [...], bits [..., n] at the first maximum)");
  m.def("argmax_last", over_windows(&twopc::argmax, &twopc::cost_argmax), "session"_a, "x"_a,
        "bits"_a, "x [..., n] to the place of the first maximum, in Z_2^bits");
}

void define_opening(py::module_& m) {
  m.def(
      "open_ring",
      [](TwoPartySession& session, const py::array& x, int bits, int to) -> py::object {
        const auto in = view<u64>(x, "x");
        const bool learns = to == twopc::kBothParties || to == session.rank();
        Result<u64> out(session, learns ? shape_of(x) : Shape{0});
        session.run(
            [&](ot::Party& party) { twopc::open_ring(party, in, bits, to, out.span); },
            [&](ot::CostMeter& meter) { twopc::cost_open_ring(meter, size(in), bits, to); });
        return learns ? py::object(out.array) : py::none();
      },
      "session"_a, "x"_a, "bits"_a, "to"_a = twopc::kBothParties,
      "the signed value at party `to` (-1: both), None elsewhere");
  m.def(
      "open_bits",
      [](TwoPartySession& session, const py::array& x, int to) -> py::object {
        const auto in = view<u8>(x, "x");
        const bool learns = to == twopc::kBothParties || to == session.rank();
        Result<u8> out(session, learns ? shape_of(x) : Shape{0});
        session.run([&](ot::Party& party) { twopc::open_bits(party, in, to, out.span); },
                    [&](ot::CostMeter& meter) { twopc::cost_open_bits(meter, size(in), to); });
        return learns ? py::object(out.array) : py::none();
      },
      "session"_a, "x"_a, "to"_a = twopc::kBothParties);
}

}  // namespace

void define_comparison_family(py::module_& m) {
  define_bits(m);
  define_comparisons(m);
  define_widths(m);
  define_bounded(m);
  define_maxima(m);
  define_opening(m);
}

}  // namespace privml::bindings
