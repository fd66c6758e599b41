// SPDX-License-Identifier: Apache-2.0
// Python names of matrix products by lattice-based encryption, and of what is prepared for them. A
// half of a prepared product never becomes a Python object: it leaves the core sealed.
#include <tuple>

#include "bindings/bytes.h"
#include "bindings/elementwise.h"
#include "crypto/seal.h"
#include "twopc/product/ciphertext_product.h"
#include "twopc/product/lattice_matmul.h"

namespace privml::bindings {
namespace {

using Format = std::tuple<int, int, bool>;
using Words = std::optional<py::array>;
using lattice::Noise;

Operand operand(const Format& format) {
  const auto [owner, bits, is_signed] = format;
  return {owner, bits, is_signed};
}

Noise noise_of(const std::string& name) {
  expect(name == "tail" || name == "proved", "noise must be \"tail\" or \"proved\"");
  return name == "tail" ? Noise::tail : Noise::proved;
}

// Lengths are checked against the public shape here, since a meter has no values to check.
void check_length(std::span<const u64> words, const Operand& format, int rank, i64 expected,
                  const char* name) {
  if (size(words) != (holds(rank, format) ? expected : 0))
    throw InvalidArgument(std::string(name) + ": " + std::to_string(words.size()) +
                          " values, the shape needs " +
                          std::to_string(holds(rank, format) ? expected : 0));
}

py::object choice(i64 inner, int weight_bits, bool weight_signed, int ell,
                  const std::string& noise) {
  const auto found = lattice_choice(inner, {0, weight_bits, weight_signed}, ell, noise_of(noise));
  if (!found) return py::none();
  return py::dict("n"_a = found->set.n, "log_q"_a = found->set.log_q,
                  "dropped_bits"_a = found->dropped, "answer_bits"_a = found->answer_bits,
                  "log2_failure"_a = found->log2_failure, "gates"_a = found->set.security.gates,
                  "core_svp"_a = found->set.security.core_svp);
}

std::array<i64, 2> bytes(i64 rows, i64 inner, i64 columns, int weight_bits, bool weight_signed,
                         int ell, const std::string& noise) {
  const auto found = lattice_choice(inner, {0, weight_bits, weight_signed}, ell, noise_of(noise));
  expect(found.has_value(), "lattice: no parameters serve these weights and widths");
  std::array<i64, 2> sum{};
  for (i64 first = 0; first < rows; first += found->set.n) {
    const auto each =
        ciphertext_bytes({0, *found, {columns, inner, std::min(found->set.n, rows - first)}});
    for (const int way : {0, 1}) sum[way] += each[way];
  }
  return sum;
}

PreparedProduct prepare(TwoPartySession& session, const Words& weights, const Format& format,
                        const std::array<i64, 3>& sizes, int ell, const py::bytes& label,
                        const std::string& noise) {
  const auto words = view_if(weights, "weights");
  const Operand fw = operand(format);
  const MatrixShape shape{sizes[0], sizes[1], sizes[2]};
  const Noise kind = noise_of(noise);
  const Bytes name = view_of(label);
  expect(fw.owner == 0 || fw.owner == 1, "weights are owned by party 0 or 1");
  expect(shape.rows >= 1 && shape.inner >= 1 && shape.columns >= 1, "lattice: an empty product");
  check_length(words, fw, session.rank(), shape.inner * shape.columns, "weights");
  expect(lattice_choice(shape.inner, fw, ell, kind).has_value(),
         "lattice: no parameters serve these weights and widths");
  PreparedProduct prepared{fw.owner, shape, ell, {}, {}, {}};
  session.run(
      [&](Party& party) { prepared = prepare_matmul(party, fw, words, shape, ell, name, kind); },
      [&](CostMeter& meter) { cost_prepare_matmul(meter, fw, shape, ell, kind); });
  return prepared;
}

py::array online(TwoPartySession& session, PreparedProduct& prepared, const Words& x,
                 const Format& x_format, const Words& weights, const Format& format, i64 rows,
                 const std::optional<py::bytes>& digest) {
  const auto given = view_if(x, "x"), words = view_if(weights, "weights");
  const Operand fx = operand(x_format), fw = operand(format);
  const i64 inner = prepared.shape.inner, columns = prepared.shape.columns;
  expect_fits(fx, prepared.ell);
  expect(fw.owner == prepared.owner, "lattice: the product was prepared for another owner");
  expect(fx.owner != prepared.owner, "lattice: the weights' owner knows both operands");
  check_length(given, fx, session.rank(), rows * inner, "x");
  check_length(words, fw, session.rank(), inner * columns, "weights");
  if (session.rank() == prepared.owner && !session.metering()) {
    lattice::Digest now{};
    if (digest) {
      const Bytes told = view_of(*digest);
      expect(told.size() == now.size(), "digest: needs 32 bytes");
      std::ranges::copy(told, now.begin());
    } else {
      now = fingerprint(fw, words, inner, columns);
    }
    expect(now == prepared.weights,
           "lattice: the weights have changed since the product was prepared");
  }
  PreparedProduct taken = take_rows(prepared, rows);
  Result<u64> out(session, {rows, columns});
  session.run(
      [&](Party& party) {
        prepared_matmul(party, std::move(taken), fx, given, fw, words, out.span);
      },
      [&](CostMeter& meter) { cost_prepared_matmul(meter, taken.owner, rows, inner, taken.ell); });
  return out.array;
}

}  // namespace

void define_lattice_products(py::module_& m) {
  py::class_<PreparedProduct>(
      m, "PreparedProduct",
      "A party's half of shares of r @ weights, for random rows r; each row serves once.")
      .def_property_readonly("rows", [](const PreparedProduct& p) { return p.shape.rows; })
      .def_property_readonly("inner", [](const PreparedProduct& p) { return p.shape.inner; })
      .def_property_readonly("columns", [](const PreparedProduct& p) { return p.shape.columns; })
      .def_readonly("ell", &PreparedProduct::ell)
      .def_readonly("owner", &PreparedProduct::owner)
      .def_property_readonly(
          "weights", [](const PreparedProduct& p) { return bytes_of(p.weights); },
          "The weights' fingerprint at their owner, else zeros.")
      .def_property_readonly(
          "sealed_bytes",
          [](const PreparedProduct& p) { return stored_bytes(p) + Seal::kOverhead; },
          "Of what `seal` gives: by shape and side alone.")
      .def("take", &take_rows, "rows"_a, "The first rows, which are gone here.")
      .def(
          "seal",
          [](PreparedProduct& p, const Seal& seal, const py::bytes& context) {
            const PreparedProduct all = take_rows(p, p.shape.rows);
            return bytes_of(seal.seal(to_bytes(all), view_of(context)));
          },
          "seal"_a, "context"_a, "All rows, which are gone here.")
      .def_static(
          "open",
          [](const Seal& seal, const py::bytes& sealed,
             const py::bytes& context) -> std::optional<PreparedProduct> {
            const Bytes in = view_of(sealed);
            WipedVector<u8> plain(std::max<i64>(std::ssize(in) - Seal::kOverhead, 0));
            if (!seal.open(in, view_of(context), plain)) return std::nullopt;
            return from_bytes(plain);
          },
          "seal"_a, "sealed"_a, "context"_a,
          "None when the bytes were altered or belong elsewhere.");
  m.def("lattice_choice", &choice, "inner"_a, "weight_bits"_a, "weight_signed"_a, "ell"_a,
        "noise"_a = "tail", "The parameters of such products; None where no set serves.");
  m.def("lattice_bytes", &bytes, "rows"_a, "inner"_a, "columns"_a, "weight_bits"_a,
        "weight_signed"_a, "ell"_a, "noise"_a = "tail",
        "Bytes of ciphertexts up and down, without those that dropping the noise takes.");
  m.def(
      "lattice_fingerprint",
      [](const py::array& weights, const Format& format, i64 inner, i64 columns) {
        const auto words = view<u64>(weights, "weights");
        expect(size(words) == inner * columns, "weights do not match the shape");
        return bytes_of(fingerprint(operand(format), words, inner, columns));
      },
      "weights"_a, "weights_format"_a, "inner"_a, "columns"_a);
  m.def(
      "lattice_matmul",
      [](TwoPartySession& session, const Words& x, const Format& x_format, const Words& y,
         const Format& y_format, i64 rows, i64 inner, i64 columns, int ell,
         const std::string& noise) {
        const auto a = view_if(x, "x"), b = view_if(y, "y");
        const Operand fx = operand(x_format), fy = operand(y_format);
        const MatrixShape shape{rows, inner, columns};
        const Noise kind = noise_of(noise);
        expect_lattice_matmul(fx, fy, shape, ell, kind);
        check_length(a, fx, session.rank(), rows * inner, "x");
        check_length(b, fy, session.rank(), inner * columns, "y");
        Result<u64> out(session, {rows, columns});
        session.run(
            [&](Party& party) { lattice_matmul(party, fx, a, fy, b, shape, ell, out.span, kind); },
            [&](CostMeter& meter) { cost_lattice_matmul(meter, fx, fy, shape, ell, kind); });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a, "rows"_a, "inner"_a, "columns"_a,
      "ell"_a, "noise"_a = "tail",
      "As matmul, by lattice-based encryption; one operand is owned by a party, the other one not "
      "by the same.");
  m.def("lattice_prepare", &prepare, "session"_a, "weights"_a, "weights_format"_a, "sizes"_a,
        "ell"_a, "label"_a = py::bytes(), "noise"_a = "tail",
        "Prepares rows of x @ weights before x is there; sizes are rows, inner, columns.");
  m.def("lattice_online", &online, "session"_a, "prepared"_a, "x"_a, "x_format"_a, "weights"_a,
        "weights_format"_a, "rows"_a, "digest"_a = py::none(),
        "x @ weights with the first rows of what was prepared; `digest` is the fingerprint of the "
        "weights where it is known already.");
}

}  // namespace privml::bindings
