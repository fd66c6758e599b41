// SPDX-License-Identifier: Apache-2.0
// Python names of the three-party kernels (submodule threepc). Words are int64, bits and small
// numbers uint8, keys 32 bytes; arrays are C-contiguous and never copied, results are fresh.
// The interpreter lock is released while a kernel runs.
#include "bindings/threepc.h"

#include <array>
#include <numeric>

#include "threepc/comparison.h"
#include "threepc/kernels.h"
#include "threepc/pieces.h"

namespace privml::bindings {
namespace {

using namespace threepc;

const i64* words(const py::array& array, const char* name) {
  return reinterpret_cast<const i64*>(view<u64>(array, name).data());
}

void define_fills(py::module_& m) {
  m.def("words_blocks", &words_blocks, "count"_a, "bits"_a,
        "Counter blocks that prf_words and deal_words consume.");
  m.def("bits_blocks", &bits_blocks, "count"_a, "Counter blocks that prf_bits consumes.");
  m.def("field_blocks", &field_blocks, "count"_a, "Counter blocks that prf_field consumes.");
  m.def(
      "prf_words",
      [](const py::buffer& key, u64 counter, i64 count, int bits, int threads) {
        const Key k(key, "key");
        auto out = fresh<i64>(count);
        FillJob job{k.words, counter, count, bits, 0, nullptr, out.mutable_data(), nullptr};
        unlocked([&] { fill_words(job, {threads}); });
        return out;
      },
      "key"_a, "counter"_a, "count"_a, "bits"_a, "threads"_a = 1,
      "int64[count]: uniform words in [0, 2^bits), bits 1..64, from ChaCha20 blocks counter, "
      "counter + 1, ...; consumes words_blocks(count, bits) of them.");
  m.def(
      "deal_words",
      [](const py::array& values, const py::buffer& key, u64 counter, int bits, int threads) {
        const Key k(key, "key");
        const auto in = view<u64>(values, "values");
        auto out = fresh<i64>(std::ssize(in));
        FillJob job{k.words,
                    counter,
                    std::ssize(in),
                    bits,
                    0,
                    reinterpret_cast<const i64*>(in.data()),
                    out.mutable_data(),
                    nullptr};
        if (!in.empty()) unlocked([&] { fill_words(job, {threads}); });
        return out;
      },
      "values"_a, "key"_a, "counter"_a, "bits"_a, "threads"_a = 1,
      "int64[n]: values - prf_words(key, counter, n, bits) modulo 2^bits, the share that the "
      "dealer sends while the other party takes prf_words. values: int64[n].");
  m.def(
      "prf_bits",
      [](const py::buffer& key, u64 counter, i64 count, int threads) {
        const Key k(key, "key");
        auto out = fresh<u8>(count);
        FillJob job{k.words, counter, count, 1, 0, nullptr, nullptr, out.mutable_data()};
        unlocked([&] { fill_bits(job, {threads}); });
        return out;
      },
      "key"_a, "counter"_a, "count"_a, "threads"_a = 1,
      "uint8[count] of uniform bits, one keystream bit each; consumes bits_blocks(count) blocks.");
  m.def(
      "prf_field",
      [](const py::buffer& key, u64 counter, i64 count, u32 modulus, int threads) {
        const Key k(key, "key");
        auto out = fresh<u8>(count);
        FillJob job{k.words, counter, count, 8, modulus, nullptr, nullptr, out.mutable_data()};
        unlocked([&] { fill_field(job, {threads}); });
        return out;
      },
      "key"_a, "counter"_a, "count"_a, "modulus"_a, "threads"_a = 1,
      "uint8[count] exactly uniform in [0, modulus), modulus 1..128 (not only primes: a rotation's "
      "modulus is bits); consumes field_blocks(count) blocks.");
}

void define_sign(py::module_& m) {
  m.def(
      "deal_bytes",
      [](i64 count, int bits, int prime) { return deal_bytes(sign_field(bits, prime), count); },
      "count"_a, "bits"_a, "prime"_a = 127,
      "Bytes of sign_deal's list: count * ceil((bits - 1) * ceil(log2 prime) / 8).");
  m.def(
      "mask_bytes",
      [](i64 count, int bits, int prime) { return mask_bytes(sign_field(bits, prime), count); },
      "count"_a, "bits"_a, "prime"_a = 127,
      "Bytes of sign_mask's list: count * ceil(bits * ceil(log2 prime) / 8).");
  m.def(
      "deal_blocks", [](i64 count, int bits) { return deal_blocks(bits, count); }, "count"_a,
      "bits"_a, "Counter blocks of the dealer's key that sign_deal consumes (at both holders).");
  m.def(
      "mask_blocks", [](i64 count, int bits) { return mask_blocks(bits, count); }, "count"_a,
      "bits"_a, "Counter blocks of the mask key that sign_mask consumes.");
  m.def(
      "sign_deal",
      [](const py::array& r, const py::buffer& key, u64 counter, int bits, int prime, int threads) {
        const Key k(key, "key");
        const SignField field = sign_field(bits, prime);
        const i64 count = r.size();
        auto out = fresh<u8>(deal_bytes(field, count));
        DealJob job{field, words(r, "r"), count, k.words, counter, out.mutable_data()};
        unlocked([&] { deal_sign(job, {threads}); });
        return out;
      },
      "r"_a, "key"_a, "counter"_a, "bits"_a, "prime"_a = 127, "threads"_a = 1,
      "Party 2: the list for party 0, uint8[deal_bytes(n, bits, prime)] as it goes on the wire; "
      "party 1's shares come from (key, counter), common to parties 1 and 2. r: int64[n], the "
      "whole mask; bits above `bits` are ignored. Needed once per r, whatever it is compared to.");
  m.def(
      "sign_mask",
      [](int party, const py::array& m_values, const py::array& delta, const py::array& rotation,
         const std::optional<py::array>& dealt, const std::optional<py::buffer>& deal_key,
         u64 deal_counter, const py::buffer& mask_key, u64 mask_counter, int bits, int prime,
         int threads) {
        const SignField field = sign_field(bits, prime);
        const Key common(mask_key, "mask_key");
        const i64 count = m_values.size();
        expect(party == 0 || party == 1, "party must be 0 or 1");
        expect(party == 1 || dealt, "dealt: party 0 needs the dealer's list");
        expect(party == 0 || deal_key, "deal_key: party 1 needs the key common with the dealer");
        std::optional<Key> other;
        if (party == 1) other.emplace(*deal_key, "deal_key");
        MaskJob job{};
        job.field = field;
        job.party = party;
        job.m = words(m_values, "m");
        job.delta = list(delta, count, "delta");
        job.rotation = list(rotation, count, "rotation");
        job.count = count;
        if (party == 0) job.dealt = list(*dealt, deal_bytes(field, count), "dealt");
        if (party == 1) job.deal_key = other->words;
        job.deal_counter = deal_counter;
        job.mask_key = common.words;
        job.mask_counter = mask_counter;
        auto out = fresh<u8>(mask_bytes(field, count));
        job.out = out.mutable_data();
        unlocked([&] { mask_sign(job, {threads}); });
        return out;
      },
      "party"_a, "m"_a, "delta"_a, "rotation"_a, "dealt"_a, "deal_key"_a, "deal_counter"_a,
      "mask_key"_a, "mask_counter"_a, "bits"_a, "prime"_a = 127, "threads"_a = 1,
      "Parties 0 and 1: the list for party 2, uint8[mask_bytes(n, bits, prime)] as it goes on the "
      "wire. m: int64[n]; delta: uint8[n] common random bits; rotation: uint8[n] common random "
      "numbers below bits (prf_field(.., modulus=bits)); dealt: party 0's list from sign_deal, "
      "None at party 1; deal_key, deal_counter: those of sign_deal at party 1, None and 0 at "
      "party 0; mask_key, mask_counter: common to parties 0 and 1. delta, rotation and the mask's "
      "counters are fresh for every comparison; the deal may be used for several m with the same "
      "r.");
  m.def(
      "sign_open",
      [](const py::array& first, const py::array& second, i64 count, int bits, int prime,
         int threads) {
        const SignField field = sign_field(bits, prime);
        auto out = fresh<u8>(count);
        OpenJob job{field, list(first, mask_bytes(field, count), "first"),
                    list(second, mask_bytes(field, count), "second"), count, out.mutable_data()};
        unlocked([&] { open_sign(job, {threads}); });
        return out;
      },
      "first"_a, "second"_a, "count"_a, "bits"_a, "prime"_a = 127, "threads"_a = 1,
      "Party 2: uint8[count], z = 1 where the lists of parties 0 and 1 add up to one with a zero. "
      "The sign of m - r is msb(-r) ^ z ^ 1 ^ delta.");
}

// How many planes of `size` bytes an array holds, which must be so many.
const u8* planes(const py::array& array, i64 count, i64 size, const char* name) {
  return list(array, count * size, name);
}

i64 total(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), i64{0});
}

void define_comparison(py::module_& m) {
  m.def(
      "deal_comparison",
      [](const std::vector<int>& blocks, const std::vector<std::vector<int>>& levels,
         const py::array& r, const py::array& masks, i64 several, i64 size) {
        expect(several >= 0 && size >= 0, "several and size must not be negative");
        i64 products = 0, opened = 0;
        for (const std::vector<int>& nodes : levels) {
          products += product_planes(nodes);
          opened += 2 * total(nodes) - 1;
        }
        const u8* from = planes(r, total(blocks) + 1, size, "r");
        const u8* masked = planes(masks, opened, several * size, "masks");
        auto out = fresh<u8>((table_planes(blocks) + products * several) * size);
        unlocked([&] {
          deal_comparison({blocks, levels}, from, masked, several, size, out.mutable_data());
        });
        return out;
      },
      "blocks"_a, "levels"_a, "r"_a, "masks"_a, "several"_a, "size"_a,
      "Party 2: what a comparison is dealt, in clear; see threepc/comparison.h.");
}

void define_ring_elements(py::module_& m) {
  m.def(
      "bit_planes",
      [](const py::array& values, i64 rows, i64 count, int bits, int threads) {
        expect(rows >= 0 && count >= 0, "rows and count must not be negative");
        const u64* from = operand(values, rows * count, "words");
        py::array_t<u8> out({i64{bits}, rows, ceil_div(count, 8)});
        unlocked([&] { bit_planes(from, rows, count, bits, out.mutable_data(), threads); });
        return out;
      },
      "words"_a, "rows"_a, "count"_a, "bits"_a, "threads"_a = 1,
      "uint8[bits, rows, ceil(count / 8)]: the low bits of int64[rows * count], lowest first, "
      "eight "
      "elements to a byte.");
  m.def(
      "selection_shares",
      [](int party, const py::array& m_b, const py::array& m_a, const py::array& r_a,
         const py::array& r_bit, const py::array& r_product, int bits, int threads) {
        const i64 n = m_a.size();
        const u8* bit = list(m_b, n, "m_b");
        const u64 *a = operand(m_a, n, "m_a"), *b = operand(r_a, n, "r_a"),
                  *c = operand(r_bit, n, "r_bit"), *d = operand(r_product, n, "r_product");
        auto out = fresh<i64>(n);
        unlocked([&] { selection_shares(party, bit, a, b, c, d, n, bits, data(out), threads); });
        return out;
      },
      "party"_a, "m_b"_a, "m_a"_a, "r_a"_a, "r_bit"_a, "r_product"_a, "bits"_a, "threads"_a = 1,
      "int64[n]: this party's share of b * a for the bit b = m_b ^ r_b (m_b: uint8[n]); r_bit, "
      "r_product: its shares of r_b and r_b * r_a in the ring.");
  m.def(
      "bit_shares",
      [](int party, const py::array& m_b, const py::array& r_bit, int bits, int threads) {
        const i64 n = m_b.size();
        const u8* bit = list(m_b, n, "m_b");
        const u64* a = operand(r_bit, n, "r_bit");
        auto out = fresh<i64>(n);
        unlocked([&] { bit_shares(party, bit, a, n, bits, data(out), threads); });
        return out;
      },
      "party"_a, "m_b"_a, "r_bit"_a, "bits"_a, "threads"_a = 1,
      "int64[n]: this party's share in the ring of the bit b = m_b ^ r_b.");
  m.def(
      "lookup_shares",
      [](const py::array& turned, const py::array& m_x, const py::array& dealt, int bits,
         int threads) {
        expect(turned.ndim() == 2, "turned: needs one row per table");
        const i64 kinds = turned.shape(0), n = m_x.size();
        const int size = static_cast<int>(turned.shape(1) / 2);
        const u64 *t = operand(turned, kinds * 2 * size, "turned"), *a = operand(m_x, n, "m"),
                  *d = operand(dealt, n * size, "dealt");
        py::array_t<i64> out({kinds, n});
        unlocked([&] { lookup_shares(t, kinds, size, a, d, n, bits, data(out), threads); });
        return out;
      },
      "turned"_a, "m"_a, "dealt"_a, "bits"_a, "threads"_a = 1,
      "int64[k, n]: this party's share of table[(m - r) mod size] for k public tables; turned: "
      "int64[k, 2 * size], each table backwards and twice; dealt: int64[n, size], this party's "
      "share of the unit vectors of r, which party 2 deals.");
  m.def(
      "piece_sums",
      [](const py::array& coefficients, int powers, int dropped, const py::array& index,
         const py::array& place, const py::array& hot, i64 total, int threads) {
        expect(coefficients.ndim() == 2, "coefficients: needs one row per power");
        const i64 rows = coefficients.shape(0), pieces = coefficients.shape(1), n = index.size();
        expect(rows <= kMostCoefficients && pieces <= kMostPieces, "coefficients: too many");
        const PieceTable table{operand(coefficients, rows * pieces, "coefficients"),
                               static_cast<int>(rows), static_cast<int>(pieces), powers, dropped};
        const u64 *i = operand(index, n, "index"), *p = operand(place, n, "place"),
                  *h = operand(hot, n * (pieces - 1), "hot");
        py::array_t<i64> out({rows, n});
        unlocked(
            [&] { piece_sums(table, i, p, h, static_cast<u64>(total), n, data(out), threads); });
        return out;
      },
      "coefficients"_a, "powers"_a, "dropped"_a, "index"_a, "place"_a, "hot"_a, "total"_a,
      "threads"_a = 1,
      "int64[k, n]: sums of pieces' coefficients, int64[k, pieces], around the places; "
      "hot: int64[n, pieces - 1], see threepc/pieces.h.");
}

}  // namespace

void define_three_party_kernels(py::module_& m) {
  define_fills(m);
  define_sign(m);
  define_comparison(m);
  define_ring_elements(m);
}

}  // namespace privml::bindings
