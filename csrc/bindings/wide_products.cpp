// SPDX-License-Identifier: Apache-2.0
// Python names of products both factors of which are shared, by lattice-based encryption.
#include <tuple>

#include "bindings/bytes.h"
#include "bindings/elementwise.h"
#include "twopc/product/wide_matmul.h"

namespace privml::bindings {
namespace {

using Format = std::tuple<int, int, bool>;
using Words = std::optional<py::array>;

twopc::Operand operand(const Format& format) {
  const auto [owner, bits, is_signed] = format;
  return {owner, bits, is_signed};
}

twopc::WideProduct product_of(const std::array<i64, 4>& sizes, const Format& x, const Format& y,
                              int ell, bool keeps_last_bit, std::optional<i64> byte_price) {
  expect(!byte_price || *byte_price >= 0, "lattice: the price of a byte is not negative");
  const twopc::WideProduct product{
      sizes[0],  {sizes[1], sizes[2], sizes[3]}, operand(x), operand(y), ell, keeps_last_bit,
      byte_price};
  twopc::expect_fits(product.x, ell);
  twopc::expect_fits(product.y, ell);
  expect(ell < 64 || !keeps_last_bit, "lattice: words hold up to 64 bits");
  return product;
}

py::dict side_of(const twopc::WideSide& side, const lattice::SwitchingLevels& levels) {
  const lattice::RingSet& ring = side.choice.set.ring;
  return py::dict("n"_a = ring.n, "log_q"_a = ring.log_q, "gates"_a = ring.security.gates,
                  "core_svp"_a = ring.security.core_svp, "terms"_a = side.terms.size(),
                  "upload_bits"_a = side.choice.upload_bits,
                  "answer_bits"_a = side.choice.answer_bits, "key_bytes"_a = side.key_bytes,
                  "upload_bytes"_a = side.upload_bytes, "answer_bytes"_a = side.answer_bytes,
                  "nanoseconds"_a = twopc::work_of(side, levels));
}

py::object plan(const twopc::WideSession& session, const std::array<i64, 4>& sizes, const Format& x,
                const Format& y, int ell, bool keeps_last_bit, std::optional<i64> byte_price) {
  const auto product = product_of(sizes, x, y, ell, keeps_last_bit, byte_price);
  const auto found = twopc::plan_wide(product, session.states);
  if (!found) return py::none();
  py::list sides;
  for (const int owner : {0, 1}) {
    const twopc::WideSide& side = found->sides[owner];
    if (side.terms.empty()) {
      sides.append(py::none());
      continue;
    }
    lattice::SwitchingLevels levels = session.states[owner][side.set].levels;
    levels.kept |= side.new_levels;
    sides.append(side_of(side, levels));
  }
  return py::dict("sides"_a = sides, "log2_failure"_a = found->log2_failure);
}

// A factor [batch, rows, columns] with any strides, which its owner passes.
MatrixBatch batch_if(const Words& array, const char* name, const std::array<i64, 3>& shape) {
  if (!array) return {};
  const bool words =
      py::isinstance<py::array_t<i64>>(*array) || py::isinstance<py::array_t<u64>>(*array);
  bool fits = words && array->ndim() == 3;
  MatrixBatch out;
  if (fits) {
    i64* const strides[] = {&out.batch, &out.row, &out.column};
    for (int i = 0; i < 3; ++i) {
      fits = fits && array->shape(i) == shape[i] &&
             array->strides(i) % static_cast<py::ssize_t>(sizeof(u64)) == 0;
      *strides[i] = array->strides(i) / static_cast<py::ssize_t>(sizeof(u64));
    }
  }
  if (!fits)
    throw InvalidArgument(std::string(name) +
                          ": needs an array of int64 or uint64 of the product's shape");
  out.words = static_cast<const u64*>(array->data());
  return out;
}

py::array multiply(TwoPartySession& session, twopc::WideSession& keys, const Words& x,
                   const Format& x_format, const Words& y, const Format& y_format,
                   const std::array<i64, 4>& sizes, int ell, bool keeps_last_bit,
                   std::optional<i64> byte_price) {
  // Arguments are checked before a session is touched, which a failing protocol would end.
  const twopc::WideProduct product =
      product_of(sizes, x_format, y_format, ell, keeps_last_bit, byte_price);
  const auto& [rows, inner, columns] = product.shape;
  expect(keys.plans.of(product, keys.states).has_value(),
         "lattice: no parameters serve this product");
  const MatrixBatch a = batch_if(x, "x", {product.batch, rows, inner});
  const MatrixBatch b = batch_if(y, "y", {product.batch, inner, columns});
  expect((a.words != nullptr) == twopc::holds(session.rank(), product.x) &&
             (b.words != nullptr) == twopc::holds(session.rank(), product.y),
         "lattice: a factor is passed by the parties that know it, and by no others");
  Result<u64> out(session, {product.batch, rows, columns});
  session.run([&](ot::Party& party) { twopc::wide_matmul(party, keys, product, a, b, out.span); },
              [&](ot::CostMeter& meter) { twopc::cost_wide_matmul(meter, keys, product); });
  return out.array;
}

}  // namespace

void define_wide_products(py::module_& m) {
  py::class_<twopc::WideSession>(
      m, "WideKeys",
      "What a party keeps for products of shared matrices of any shape: the "
      "first ones make the keys. One for each channel, used alike by both. `threads`: that this "
      "party answers with.")
      .def(py::init([](int threads) {
             expect(threads >= 1, "lattice: answers need a thread");
             twopc::WideSession session;
             session.threads = threads;
             return session;
           }),
           "threads"_a = 1);
  m.def("wide_plan", &plan, "keys"_a, "sizes"_a, "x_format"_a, "y_format"_a, "ell"_a,
        "keeps_last_bit"_a = false, "byte_price"_a = twopc::WideProduct{}.byte_price,
        "Who encrypts what in x @ y for batch, rows, inner, columns, and what it costs; None where "
        "no parameters serve. A byte weighs as much as byte_price nanoseconds of work; "
        "None: bytes count alone.");
  m.def("wide_matmul", &multiply, "session"_a, "keys"_a, "x"_a, "x_format"_a, "y"_a, "y_format"_a,
        "sizes"_a, "ell"_a, "keeps_last_bit"_a = false,
        "byte_price"_a = twopc::WideProduct{}.byte_price,
        "x @ y [batch, rows, columns] mod 2^ell by ciphertexts, both factors shared or known to a "
        "party, at any width; `keeps_last_bit`: twice that, or one more, mod 2^(ell + 1), which "
        "must not be opened before an exact truncation has dropped that bit.");
}

}  // namespace privml::bindings
