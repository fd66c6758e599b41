// SPDX-License-Identifier: Apache-2.0
// Python names of matrix products by lattice-based encryption, and of what is prepared for them. A
// half of a prepared product never becomes a Python object: it leaves the core sealed.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bindings/bytes.h"
#include "bindings/operands.h"
#include "crypto/seal.h"
#include "twopc/product/lattice_matmul.h"
#include "twopc/product/packed_matmul.h"

namespace privml::bindings {
namespace {

using lattice::Noise;

lattice::Noise noise_of(const std::string& name) {
  expect(name == "tail" || name == "proved", "noise must be \"tail\" or \"proved\"");
  return name == "tail" ? lattice::Noise::tail : lattice::Noise::proved;
}

py::object choice(i64 inner, int weight_bits, bool weight_signed, int ell,
                  const std::string& noise) {
  const auto found =
      twopc::lattice_choice(inner, {0, weight_bits, weight_signed}, ell, noise_of(noise));
  if (!found) return py::none();
  return py::dict("n"_a = found->set.n, "log_q"_a = found->set.log_q,
                  "dropped_bits"_a = found->dropped, "answer_bits"_a = found->answer_bits,
                  "upload_bits"_a = found->upload_bits, "log2_failure"_a = found->log2_failure,
                  "gates"_a = found->set.security.gates,
                  "core_svp"_a = found->set.security.core_svp);
}

// ---- what `privml bench` times of one party's work
void transform_polynomials(i64 n, i64 count) {
  expect(count >= 0, "count must not be negative");
  constexpr int kLowBits = lattice::kPackedSet.low_bits();
  const lattice::NegacyclicRing ring(n, kLowBits);
  crypto::Prg prg({1, 2});
  lattice::Words words(n);
  lattice::sample_uniform(prg, kLowBits, words.output());
  for (i64 i = 0; i < count; ++i) ring.transform(words.view());
}

void encrypt_polynomials(i64 inner, int weight_bits, int ell, i64 count) {
  expect(count >= 0, "count must not be negative");
  const auto choice = twopc::lattice_choice(inner, {0, weight_bits, true}, ell, Noise::tail);
  expect(choice.has_value(), "no set of parameters serves");
  crypto::Prg prg({1, 2});
  lattice::KeyOwner key(choice->set, {}, prg);
  std::vector<u64> message(choice->set.n);
  std::vector<u8> upload(lattice::upload_bytes(*choice, choice->set.n));
  prg.fill_ring(message, ell);
  for (i64 i = 0; i < count; ++i) key.encrypt(i, 1, *choice, message, upload);
}

void expect_threads(int threads) {
  expect(threads >= 1, "lattice: a party computes with a thread or more");
}

// This party's words, if it owns the weights, and what they are known by.
twopc::OwnedWeights owned(const TwoPartySession& session, const Words& weights,
                          const Format& format, i64 inner, i64 columns,
                          const std::optional<py::bytes>& digest) {
  twopc::OwnedWeights out{operand(format), view_if(weights, "weights")};
  expect(out.format.owner == 0 || out.format.owner == 1, "weights are owned by party 0 or 1");
  check_length(out.words, out.format, session.rank(), inner * columns, "weights");
  if (!digest) {
    out.digest = twopc::fingerprint(out.format, out.words, inner, columns);
  } else if (session.rank() == out.format.owner) {
    const Bytes given = view_of(*digest);
    expect(given.size() == out.digest.size(), "digest: needs 32 bytes");
    std::ranges::copy(given, out.digest.begin());
  }
  return out;
}

twopc::ProductHalves halves(const TwoPartySession& session, const Words& weights,
                            const Format& format, const std::array<i64, 2>& sizes, int ell,
                            const py::bytes& label, const std::string& noise,
                            const std::optional<py::bytes>& digest, int threads) {
  const auto [inner, columns] = sizes;
  expect_threads(threads);
  twopc::ProductHalves out =
      twopc::matmul_halves(owned(session, weights, format, inner, columns, digest), inner, columns,
                           ell, view_of(label), noise_of(noise));
  out.threads = threads;
  return out;
}

// Arguments are checked before a session is touched, which a failing protocol would end.
void check_use(const TwoPartySession& session, const twopc::ProductHalves& halves,
               const twopc::OwnedWeights& weights, i64 rows) {
  expect(weights.format.owner == halves.product.owner,
         "lattice: these halves are of another owner's weights");
  expect(session.rank() != halves.product.owner || weights.digest == halves.weights,
         "lattice: the weights have changed");
  expect(rows >= 1, "lattice: an empty product");
}

i64 batches_of(const twopc::ProductHalves& halves, i64 rows) {
  return ceil_div(rows, halves.product.choice.set.n);
}

py::array multiply(TwoPartySession& session, twopc::ProductHalves& halves, const Words& x,
                   const Format& x_format, const Words& weights, const Format& format, i64 rows,
                   const std::optional<py::bytes>& digest) {
  const auto [columns, inner] = halves.product.shape;
  const auto given = view_if(x, "x");
  const twopc::Operand fx = operand(x_format);
  const twopc::OwnedWeights own = owned(session, weights, format, inner, columns, digest);
  check_use(session, halves, own, rows);
  twopc::expect_fits(fx, twopc::ring_bits(halves.product));
  expect(fx.owner != halves.product.owner, "lattice: one party owns both operands");
  check_length(given, fx, session.rank(), rows * inner, "x");
  Result<u64> out(session, {rows, columns});
  session.run(
      [&](ot::Party& party) {
        twopc::lattice_matmul(party, halves, fx, given, own, rows, out.span);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_lattice_matmul(meter, halves.product, rows, halves.batches);
        halves.batches += batches_of(halves, rows);
      });
  return out.array;
}

twopc::PreparedProduct prepare(TwoPartySession& session, twopc::ProductHalves& halves,
                               const Words& weights, const Format& format, i64 rows,
                               const std::optional<py::bytes>& digest) {
  const auto [columns, inner] = halves.product.shape;
  const twopc::OwnedWeights own = owned(session, weights, format, inner, columns, digest);
  check_use(session, halves, own, rows);
  twopc::PreparedProduct prepared{
      halves.product.owner, {rows, inner, columns}, twopc::ring_bits(halves.product)};
  // A meter's half has only its size.
  if (session.metering() && session.rank() != halves.product.owner)
    prepared.row_seeds.resize(static_cast<std::size_t>(rows));
  session.run([&](ot::Party& party) { prepared = twopc::prepare_matmul(party, halves, own, rows); },
              [&](ot::CostMeter& meter) {
                twopc::cost_prepare_matmul(meter, halves.product, rows, halves.batches);
                halves.batches += batches_of(halves, rows);
              });
  return prepared;
}

py::array online(TwoPartySession& session, twopc::PreparedProduct& prepared, const Words& x,
                 const Format& x_format, const Words& weights, const Format& format, i64 rows,
                 const std::optional<py::bytes>& digest) {
  const auto given = view_if(x, "x");
  const twopc::Operand fx = operand(x_format);
  const i64 inner = prepared.shape.inner, columns = prepared.shape.columns;
  const twopc::OwnedWeights own = owned(session, weights, format, inner, columns, digest);
  twopc::expect_fits(fx, prepared.ell);
  expect(own.format.owner == prepared.owner, "lattice: the product was prepared for another owner");
  expect(fx.owner != prepared.owner, "lattice: one party owns both operands");
  check_length(given, fx, session.rank(), rows * inner, "x");
  expect(session.metering() || own.digest == prepared.weights,
         "lattice: the weights have changed since the product was prepared");
  twopc::PreparedProduct taken = twopc::take_rows(prepared, rows);
  // Every lane has rows of its own.
  const std::vector<twopc::LaneRange> ranges = twopc::divide_over_lanes(
      rows, session.lanes(), ceil_div(twopc::kLaneElements, std::max(inner, i64{1})));
  std::map<i64, twopc::PreparedProduct> parts;  // by their first rows
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
    parts.emplace(range->begin, twopc::take_rows(taken, range->count));
  Result<u64> out(session, {rows, columns});
  session.run_parts(
      ranges,
      [&](ot::Party& party, twopc::LaneRange range) {
        const auto of_range = [&](auto all, i64 width) {
          return all.empty() ? all : all.subspan(range.begin * width, range.count * width);
        };
        twopc::prepared_matmul(party, std::move(parts.at(range.begin)), fx, of_range(given, inner),
                               own, of_range(out.span, columns));
      },
      [&](ot::CostMeter& meter, twopc::LaneRange range) {
        twopc::cost_prepared_matmul(meter, taken.owner, range.count, inner, taken.ell);
      });
  return out.array;
}

const lattice::SwitchingSet& switching_set(int number) {
  expect(number >= 0 && number < std::ssize(lattice::kSwitchingSets),
         "lattice: no set of switching keys has that number");
  return lattice::kSwitchingSets[static_cast<std::size_t>(number)];
}

py::object packed_choice_of(const std::array<i64, 3>& sizes, int weight_bits, bool weight_signed,
                            int ell, int set) {
  const auto found = twopc::packed_choice({sizes[0], sizes[1], sizes[2]},
                                          {0, weight_bits, weight_signed}, ell, switching_set(set));
  if (!found) return py::none();
  const lattice::ColumnChoice& columns = found->columns;
  const auto& [rows, inner, outputs] = sizes;
  const lattice::PackedShape shape = lattice::matrix_product(
      rows, inner, outputs, lattice::largest_weight(weight_bits, weight_signed));
  return py::dict("n"_a = columns.set.n, "log_q"_a = columns.set.log_q,
                  "dropped_bits"_a = columns.dropped, "answer_bits"_a = columns.answer_bits,
                  "log2_failure"_a = columns.log2_failure, "gap"_a = found->gap(),
                  "digits"_a = lattice::switched_digits(switching_set(set), found->levels, outputs),
                  "word_products"_a = outputs * (rows * inner + lattice::c1_work(*found, shape, 1)),
                  "gates"_a = columns.set.security.gates,
                  "core_svp"_a = columns.set.security.core_svp);
}

py::array multiply_packed(TwoPartySession& session, twopc::PackingKeys& keys, const Words& x,
                          const Format& x_format, const Words& weights, const Format& format,
                          const std::array<i64, 3>& sizes, int ell) {
  const auto given = view_if(x, "x"), words = view_if(weights, "weights");
  const twopc::Operand fx = operand(x_format), fw = operand(format);
  const twopc::MatrixShape shape{sizes[0], sizes[1], sizes[2]};
  // Arguments are checked before a session is touched, which a failing protocol would end.
  twopc::expect_fits(fx, ell);
  twopc::expect_fits(fw, ell);
  expect(fw.owner == keys.owner && fx.owner != keys.owner,
         "lattice: the keys serve products with another party's weights");
  expect(twopc::packed_choice(shape, fw, ell, keys.set).has_value(),
         "lattice: no parameters serve this product");
  check_length(given, fx, session.rank(), shape.rows * shape.inner, "x");
  check_length(words, fw, session.rank(), shape.inner * shape.columns, "weights");
  Result<u64> out(session, {shape.rows, shape.columns});
  session.run(
      [&](ot::Party& party) {
        twopc::packed_matmul(party, keys, fx, given, fw, words, shape, ell, out.span);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_packed_matmul(meter, keys.set, keys.products, fw, shape, ell);
        ++keys.products;
      });
  return out.array;
}

}  // namespace

void define_lattice_products(py::module_& m) {
  py::class_<twopc::PreparedProduct>(
      m, "PreparedProduct",
      "A party's half of shares of r @ weights, for random rows r; each row serves once.")
      .def_property_readonly("rows", [](const twopc::PreparedProduct& p) { return p.shape.rows; })
      .def_property_readonly("inner", [](const twopc::PreparedProduct& p) { return p.shape.inner; })
      .def_property_readonly("columns",
                             [](const twopc::PreparedProduct& p) { return p.shape.columns; })
      .def_readonly("ell", &twopc::PreparedProduct::ell)
      .def_readonly("owner", &twopc::PreparedProduct::owner)
      .def_property_readonly(
          "weights", [](const twopc::PreparedProduct& p) { return bytes_of(p.weights); },
          "The weights' fingerprint at their owner, else zeros.")
      .def_property_readonly(
          "sealed_bytes",
          [](const twopc::PreparedProduct& p) {
            return twopc::stored_bytes(p) + crypto::Seal::kOverhead;
          },
          "Of what `seal` gives: by shape and side alone.")
      .def("take", &twopc::take_rows, "rows"_a, "The last rows, which are gone here.")
      .def(
          "seal",
          [](twopc::PreparedProduct& p, const crypto::Seal& seal, const py::bytes& context) {
            const twopc::PreparedProduct all = twopc::take_rows(p, p.shape.rows);
            return bytes_of(seal.seal(twopc::to_bytes(all), view_of(context)));
          },
          "seal"_a, "context"_a, "All rows, which are gone here.")
      .def_static(
          "open",
          [](const crypto::Seal& seal, const py::bytes& sealed,
             const py::bytes& context) -> std::optional<twopc::PreparedProduct> {
            const Bytes in = view_of(sealed);
            WipedVector<u8> plain(std::max<i64>(std::ssize(in) - crypto::Seal::kOverhead, 0));
            if (!seal.open(in, view_of(context), plain)) return std::nullopt;
            return twopc::from_bytes(plain);
          },
          "seal"_a, "sealed"_a, "context"_a,
          "None when the bytes were altered or belong elsewhere.");
  m.def("lattice_choice", &choice, "inner"_a, "weight_bits"_a, "weight_signed"_a, "ell"_a,
        "noise"_a = "tail", "The parameters of such products; None where no set serves.");
  m.def("lattice_transform", &transform_polynomials, "n"_a, "count"_a,
        "Transforms so many polynomials of n coefficients, modulo both primes, for benchmarks.");
  m.def("lattice_encrypt", &encrypt_polynomials, "inner"_a, "weight_bits"_a, "ell"_a, "count"_a,
        "Encrypts so many full polynomials for products of these formats, for benchmarks.");
  m.def(
      "lattice_fingerprint",
      [](const py::array& weights, const Format& format, i64 inner, i64 columns) {
        const auto words = view<u64>(weights, "weights");
        expect(size(words) == inner * columns, "weights do not match the shape");
        return bytes_of(twopc::fingerprint(operand(format), words, inner, columns));
      },
      "weights"_a, "weights_format"_a, "inner"_a, "columns"_a);
  m.def(
      "lattice_matmul",
      [](TwoPartySession& session, const Words& x, const Format& x_format, const Words& y,
         const Format& y_format, i64 rows, i64 inner, i64 columns, int ell,
         const std::string& noise, int threads) {
        const auto a = view_if(x, "x"), b = view_if(y, "y");
        const twopc::Operand fx = operand(x_format), fy = operand(y_format);
        const twopc::MatrixShape shape{rows, inner, columns};
        const lattice::Noise kind = noise_of(noise);
        expect_threads(threads);
        // Says what does not fit before a session is touched.
        ot::CostMeter meter{ot::RcotCost{"ideal", 0, 1, i64{1} << 40}};
        twopc::cost_lattice_matmul(meter, fx, fy, shape, ell, kind);
        check_length(a, fx, session.rank(), rows * inner, "x");
        check_length(b, fy, session.rank(), inner * columns, "y");
        Result<u64> out(session, {rows, columns});
        session.run(
            [&](ot::Party& party) {
              twopc::lattice_matmul(party, fx, a, fy, b, shape, ell, out.span, {kind, threads});
            },
            [&](ot::CostMeter& meter) {
              twopc::cost_lattice_matmul(meter, fx, fy, shape, ell, kind);
            });
        return out.array;
      },
      "session"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a, "rows"_a, "inner"_a, "columns"_a,
      "ell"_a, "noise"_a = "tail", "threads"_a = 1,
      "As matmul, by lattice-based encryption; one operand is owned by a party, the other one not "
      "by the same. `threads`: that this party computes with.");
  py::class_<twopc::ProductHalves>(
      m, "ProductHalves",
      "What a party keeps for products with one matrix of weights: the first batch of rows makes "
      "it, and further ones cost less.")
      .def_property_readonly("inner",
                             [](const twopc::ProductHalves& h) { return h.product.shape.inner; })
      .def_property_readonly("columns",
                             [](const twopc::ProductHalves& h) { return h.product.shape.outputs; })
      .def_property_readonly("owner", [](const twopc::ProductHalves& h) { return h.product.owner; })
      .def_property_readonly(
          "ell", [](const twopc::ProductHalves& h) { return twopc::ring_bits(h.product); })
      .def_readonly("batches", &twopc::ProductHalves::batches)
      .def_property_readonly(
          "stored_bytes", [](const twopc::ProductHalves& h) { return std::ssize(h.c1); },
          "Of memory that it takes at the client since the first batch.")
      .def_property_readonly(
          "batch_bytes",
          [](const twopc::ProductHalves& h) {
            return twopc::batch_bytes(h.product, h.product.choice.set.n);
          },
          "Bytes of ciphertexts up of a full batch, whose answers are not sent, without dropping "
          "the noise.")
      .def_property_readonly(
          "beginning_bytes",
          [](const twopc::ProductHalves& h) { return twopc::beginning_bytes(h.product); },
          "Bytes up and down of what the first batch takes besides.");
  m.def("lattice_halves", &halves, "session"_a, "weights"_a, "weights_format"_a, "sizes"_a, "ell"_a,
        "label"_a = py::bytes(), "noise"_a = "tail", "digest"_a = py::none(), "threads"_a = 1,
        "For products x @ weights; sizes are inner, columns. Sends nothing. `digest` is the "
        "fingerprint of the weights where it is known already; `threads`: that this party computes "
        "with.");
  m.def("lattice_multiply", &multiply, "session"_a, "halves"_a, "x"_a, "x_format"_a, "weights"_a,
        "weights_format"_a, "rows"_a, "digest"_a = py::none(),
        "x @ weights with nothing prepared but the halves.");
  m.def("lattice_prepare", &prepare, "session"_a, "halves"_a, "weights"_a, "weights_format"_a,
        "rows"_a, "digest"_a = py::none(), "Rows of x @ weights before x is there.");
  m.def("lattice_online", &online, "session"_a, "prepared"_a, "x"_a, "x_format"_a, "weights"_a,
        "weights_format"_a, "rows"_a, "digest"_a = py::none(),
        "x @ weights with the last rows of what was prepared.");
  py::class_<twopc::PackingKeys>(
      m, "PackingKeys",
      "What a party keeps for packed products with weights of one owner: the "
      "first one makes it. `threads`: that the owner answers with.")
      .def(py::init([](int owner, int set, int threads) {
             expect(owner == 0 || owner == 1, "weights are owned by party 0 or 1");
             expect(threads >= 1, "lattice: answers need a thread");
             return twopc::PackingKeys{owner, switching_set(set), threads};
           }),
           "owner"_a, "set"_a = 0, "threads"_a = 1)
      .def_readonly("owner", &twopc::PackingKeys::owner)
      .def_readonly("products", &twopc::PackingKeys::products)
      .def_property_readonly(
          "beginning_bytes",
          [](const twopc::PackingKeys& keys) { return lattice::switching_bytes(keys.set); },
          "Bytes up that the first product takes besides, and each 4096th one.");
  m.attr("switching_sets") = std::ssize(lattice::kSwitchingSets);
  m.def(
      "lattice_packed_choice", &packed_choice_of, "sizes"_a, "weight_bits"_a, "weight_signed"_a,
      "ell"_a, "set"_a = 0,
      "The parameters of a packed product of rows, inner, columns with the switching keys of that "
      "number, how many digits are switched and how many words multiplied; None where none "
      "serve.");
  m.def("lattice_packed", &multiply_packed, "session"_a, "keys"_a, "x"_a, "x_format"_a, "weights"_a,
        "weights_format"_a, "sizes"_a, "ell"_a,
        "x @ weights for few rows, with nothing prepared but the keys; sizes are rows, inner, "
        "columns.");
}

}  // namespace privml::bindings
