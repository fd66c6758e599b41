// SPDX-License-Identifier: Apache-2.0
// Python names of what a party computes before and after a message of the three-party engine, each
// as one call (submodule threepc); arrays as in threepc.h.
#include "bindings/threepc.h"
#include "threepc/comparison_steps.h"
#include "threepc/kernels.h"

namespace privml::bindings {
namespace {

using threepc::ComparisonForm;
using threepc::ComparisonSteps;

py::array_t<u8> copied(std::span<const u8> bytes) {
  return py::array_t<u8>(static_cast<py::ssize_t>(bytes.size()), bytes.data());
}

// A comparison with the arrays that it reads until its end.
struct Comparison {
  py::array masks, dealt;
  ComparisonForm form;
  ComparisonSteps steps;

  Comparison(int party, ComparisonForm wanted, py::array mask_bytes, py::array dealt_bytes)
      : masks(std::move(mask_bytes)),
        dealt(std::move(dealt_bytes)),
        form(std::move(wanted)),
        steps(party, form, list(masks, form.mask_bytes(), "masks"),
              list(dealt, form.dealt_bytes(), "dealt")) {}

  py::array_t<u8> begin(const py::array& m, int threads) {
    const u64* known = operand(m, form.several * form.count, "m");
    std::span<const u8> message;
    unlocked([&] { message = steps.begin(known, threads); });
    return copied(message);
  }

  py::array_t<u8> join(const py::array& received) {
    const auto theirs = view<u8>(received, "received");
    std::span<const u8> message;
    unlocked([&] { message = steps.join(theirs); });
    return copied(message);
  }

  py::tuple finish(const py::array& received) {
    const auto theirs = view<u8>(received, "received");
    auto known = fresh<u8>(form.several * form.count), mask = fresh<u8>(known.size());
    unlocked([&] { steps.finish(theirs, known.mutable_data(), mask.mutable_data()); });
    return py::make_tuple(known, mask);
  }
};

void define_openings(py::module_& m) {
  m.def(
      "mask_words",
      [](const py::array& part, const py::buffer& key, u64 counter, int bits, int threads) {
        expect(bits >= 1 && bits <= 64, "bits must be 1 to 64");
        const Key k(key, "key");
        const auto in = view<u64>(part, "part");
        const i64 n = std::ssize(in);
        auto mask = fresh<i64>(n), masked = fresh<i64>(n);
        auto wire = fresh<u8>(packed_bytes(n, bits));
        unlocked([&] {
          threepc::mask_words({k.words, counter}, in.data(), n, bits, data(mask), data(masked),
                              wire.mutable_data(), threads);
        });
        return py::make_tuple(mask, masked, wire);
      },
      "part"_a, "key"_a, "counter"_a, "bits"_a, "threads"_a = 1,
      "(mask, masked, wire): prf_words(key, counter, n, bits), part + mask, and pack() of that.");
  m.def(
      "deal_packed",
      [](const py::array& values, const py::buffer& key, u64 counter, int bits, int threads) {
        expect(bits >= 1 && bits <= 64, "bits must be 1 to 64");
        const Key k(key, "key");
        const auto in = view<u64>(values, "values");
        const i64 n = std::ssize(in);
        auto wire = fresh<u8>(packed_bytes(n, bits));
        unlocked([&] {
          threepc::deal_packed({k.words, counter}, in.data(), n, bits, wire.mutable_data(),
                               threads);
        });
        return wire;
      },
      "values"_a, "key"_a, "counter"_a, "bits"_a, "threads"_a = 1,
      "pack() of deal_words(values, key, counter, bits).");
  m.def(
      "add_packed",
      [](const py::array& words, const py::array& wire, int bits) {
        expect(bits >= 1 && bits <= 64, "bits must be 1 to 64");
        const auto in = view<u64>(words, "words");
        const i64 n = std::ssize(in);
        const u8* from = list(wire, packed_bytes(n, bits), "wire");
        auto sums = fresh<i64>(n);
        unlocked([&] { threepc::add_packed(in.data(), from, n, bits, data(sums)); });
        return sums;
      },
      "words"_a, "wire"_a, "bits"_a, "words + unpack(wire), modulo 2^64.");
}

}  // namespace

void define_three_party_messages(py::module_& m) {
  define_openings(m);
  py::class_<Comparison>(m, "Comparison",
                         "A comparison from dealt tables at party 0 or 1; see "
                         "threepc/comparison_steps.h.")
      .def(py::init([](int party, const std::vector<int>& blocks,
                       const std::vector<std::vector<int>>& levels, i64 several, i64 count,
                       py::array masks, py::array dealt) {
             return std::make_unique<Comparison>(party,
                                                 ComparisonForm({blocks, levels}, several, count),
                                                 std::move(masks), std::move(dealt));
           }),
           "party"_a, "blocks"_a, "levels"_a, "several"_a, "count"_a, "masks"_a, "dealt"_a)
      .def("begin", &Comparison::begin, "m"_a, "threads"_a = 1,
           "The first message, of int64[several * count].")
      .def("join", &Comparison::join, "received"_a, "The message after the peer's.")
      .def("finish", &Comparison::finish, "received"_a,
           "uint8[several * count] each, after the peer's last message: the public bits and this "
           "party's masks of them.");
}

}  // namespace privml::bindings
