// SPDX-License-Identifier: Apache-2.0
// Python names of the actively secure protocols on arrays of shares.
#include "bindings/active_values.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/matrix_product.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/online/truncation.h"

namespace privml::bindings {
namespace {

using spdz2k::CostMeter;
using spdz2k::Session;
using spdz2k::Side;

// out = protocol(side, out, operands...) on arrays that the operands' loads have made, on a meter
// on empty ones; `Out` says which kind of share it is.
template <class Out, class Protocol, class... In>
py::tuple mapped(ActiveSession& session, ShareResult out, const Protocol& protocol,
                 const In&... operands) {
  session.run(
      [&]<class R>(spdz2k::Session<R>& s) {
        auto share = Out::template fresh<R>(out.size());
        [&](const auto&... loaded) {
          protocol(spdz2k::Side<R>(s), Out::template span<R>(share), loaded...);
        }(operands.template load<R>()...);
        out.store(spdz2k::ShareView<std::remove_cvref_t<decltype(share.value[0])>>(share));
      },
      [&]<class R>(spdz2k::CostMeter& meter) {
        auto share = Out::template fresh<R>(0);
        protocol(spdz2k::Side<R>(meter, out.size()), Out::template span<R>(share),
                 std::remove_cvref_t<decltype(operands.template load<R>())>{}...);
      });
  return out.tuple();
}

struct ToNumbers {
  template <class R>
  static spdz2k::WordShares<R> fresh(i64 n) {
    return spdz2k::WordShares<R>(n);
  }
  template <class R>
  static spdz2k::WordSpan<R> span(spdz2k::WordShares<R>& share) {
    return share;
  }
};

struct ToBits {
  template <class R>
  static spdz2k::BitShares<R> fresh(i64 n) {
    return spdz2k::BitShares<R>(n);
  }
  template <class R>
  static spdz2k::BitSpan<R> span(spdz2k::BitShares<R>& share) {
    return share;
  }
};

void expect_alike(const ShareArrays& a, const ShareArrays& b) {
  expect(a.shape == b.shape, "a and b: shapes differ");
}

py::tuple multiply(ActiveSession& session, const Components& a, const Components& b) {
  const Numbers x(session, a, "a"), y(session, b, "b");
  expect_alike(x, y);
  return mapped<ToNumbers>(
      session, number_result(session, x.shape),
      []<class R>(spdz2k::Side<R> side, auto out, const auto& left, const auto& right) {
        spdz2k::multiply<R>(side, left, right, out);
      },
      x, y);
}

py::tuple matmul(ActiveSession& session, const Components& a, const Components& b) {
  const Numbers x(session, a, "a"), y(session, b, "b");
  const std::size_t dims = x.shape.size();
  expect(dims >= 2 && y.shape.size() == dims, "matmul: a and b are matrices, or batches of them");
  const spdz2k::MatrixShape shape{x.shape[dims - 2], x.shape[dims - 1], y.shape[dims - 1]};
  Shape out(x.shape.begin(), x.shape.end() - 2), other(y.shape.begin(), y.shape.end() - 2);
  expect(y.shape[dims - 2] == shape.inner && out == other, "matmul: shapes of a and b do not fit");
  i64 n = 1;
  for (const auto size : out) n *= size;
  out.push_back(shape.rows);
  out.push_back(shape.columns);
  return mapped<ToNumbers>(
      session, number_result(session, out),
      [&]<class R>(spdz2k::Side<R> side, auto to, const auto& left, const auto& right) {
        spdz2k::multiply_matrices<R>(side, left, right, shape, n, to);
      },
      x, y);
}

py::tuple bit_and(ActiveSession& session, const Components& a, const Components& b) {
  const Bits x(a, "a"), y(b, "b");
  expect_alike(x, y);
  return mapped<ToBits>(
      session, bit_result(session, x.shape),
      []<class R>(spdz2k::Side<R> side, auto out, const auto& left, const auto& right) {
        spdz2k::and_bits<R>(side, left, right, out);
      },
      x, y);
}

py::tuple bits_to_ring(ActiveSession& session, const Components& a) {
  const Bits x(a, "a");
  return mapped<ToNumbers>(
      session, number_result(session, x.shape),
      []<class R>(spdz2k::Side<R> side, auto out, const auto& in) {
        spdz2k::bits_to_ring<R>(side, in, out);
      },
      x);
}

py::tuple less_than_zero(ActiveSession& session, const Components& a, int bits) {
  const Numbers x(session, a, "a");
  return mapped<ToBits>(
      session, bit_result(session, x.shape),
      [&]<class R>(spdz2k::Side<R> side, auto out, const auto& in) {
        spdz2k::most_significant_bit<R>(side, in, bits, out);
      },
      x);
}

py::tuple equal_zero(ActiveSession& session, const Components& a, int bits) {
  const Numbers x(session, a, "a");
  return mapped<ToBits>(
      session, bit_result(session, x.shape),
      [&]<class R>(spdz2k::Side<R> side, auto out, const auto& in) {
        spdz2k::equal_zero_bits<R>(side, in, bits, out);
      },
      x);
}

spdz2k::TruncationKind kind_of(const std::string& name) {
  using enum spdz2k::TruncationKind;
  if (name == "probable") return probable;
  if (name == "exact_low") return exact_low;
  if (name == "exact_high") return exact_high;
  if (name == "exact") return exact;
  if (name == "exact_bounded") return exact_bounded;
  if (name == "bounded") return bounded;
  throw InvalidArgument("truncate: no kind " + name);
}

py::tuple truncate(ActiveSession& session, const Components& a, int bits, int shift,
                   const std::string& kind, bool is_signed) {
  const Numbers x(session, a, "a");
  const spdz2k::Truncation how{bits, shift, kind_of(kind), is_signed};
  return mapped<ToNumbers>(
      session, number_result(session, x.shape),
      [&]<class R>(spdz2k::Side<R> side, auto out, const auto& in) {
        spdz2k::truncate<R>(side, in, how, out);
      },
      x);
}

}  // namespace

void define_active_protocols(py::module_& m) {
  m.def("multiply", &multiply, "session"_a, "a"_a, "b"_a, "Elementwise products mod 2^k.");
  m.def("matmul", &matmul, "session"_a, "a"_a, "b"_a,
        "Products mod 2^k of matrices, or of batches of them with the same leading dimensions.");
  m.def("bit_and", &bit_and, "session"_a, "a"_a, "b"_a);
  m.def("bits_to_ring", &bits_to_ring, "session"_a, "a"_a, "Shared bits as numbers.");
  m.def("less_than_zero", &less_than_zero, "session"_a, "a"_a, "bits"_a,
        "The highest of `bits` bits, as a shared bit.");
  m.def("equal_zero", &equal_zero, "session"_a, "a"_a, "bits"_a,
        "Whether the lowest `bits` bits are zero, as a shared bit.");
  m.def("truncate", &truncate, "session"_a, "a"_a, "bits"_a, "shift"_a, "kind"_a = "exact",
        "is_signed"_a = true,
        "floor(x / 2^shift) of numbers of `bits` bits, up to the error of the kind: probable, "
        "exact_low, exact_high, exact, bounded or exact_bounded.");
}

}  // namespace privml::bindings
