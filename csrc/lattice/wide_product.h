// SPDX-License-Identifier: Apache-2.0
// Products of matrices of ring elements, of which the key owner knows one and the evaluator the
// other; neither needs to be small.
//
// Functionality  the key owner holds x (rows x inner), the evaluator y (inner x columns), for each
//                product of a batch, both modulo 2^ring_bits. They get shares modulo 1 of x y /
//                2^ring_bits + noise, whose noise is below 2^-(ring_bits + 2) but for
//                choice.log2_failure: c0 of answers at the evaluator and c1 times the key at the
//                key owner. round_shares() makes shares of 2 x y + b modulo 2^(ring_bits + 1) of
//                them, where b is 0 or 1 as noise decides. Whoever uses these drops the last bit
//                exactly by transfers, which make fresh shares, so that noise reaches nobody
//                (twopc/product/last_bit.h).
// Method         2^levels (the gap) entries of a row of x stand side by side in one slot of a
//                polynomial, every 2^column_levels slots, so that it holds n / gap /
//                2^column_levels rows. 2^column_levels columns of y, a slot each, are a polynomial,
//                too, and its product with the ciphertext has a row's entries of the output at the
//                beginnings of its slots. More columns at once need fewer key switches, and longer
//                uploads: what an output meets of slots without entries, encryptions of zero, is
//                sent, too. Such products, of the whole batch, are packed, gap of them in one
//                answer, as in packed.h; but y is divided by the gap first, which an odd modulus
//                allows, so that packing takes no room. Where one message meets many columns, the
//                last u levels of packing (upload_levels) take images of the message in place of
//                images of products: a product's image is that of the ciphertext times that of its
//                factor, so that 2^u products become one of 2^u images with sums of their factors.
//                Images are made 2^u times for each ciphertext instead of once for each product.
//                Messages stand u bits lower, and y is not divided by 2^u, since images have noise
//                of their own. Digits of key switching are the first bits of numbers divided by q:
//                since noise is as large as y, two long digits suffice. Ciphertexts come as their
//                first bits, of which more than noise allows say nothing.
// Leakage        as packed.h, with y for the weights: to the evaluator, uploads and keys are
//                samples of ring learning with errors; to the key owner, U p1 + e' hides c1, with
//                U and e' fresh for each answer, and c0 is not sent. The shares are not fresh: what
//                they add up to depends on noise, and must not be opened. One key serves up to
//                kMostWideProducts products, each with public halves of its own.
// Assumption     wide_parameters.h; transcript.h.
// Cost           ring.bytes() up for the key and twice that for each level of key switching, once;
//                for each product wide_upload_bytes() up, and down answers() times
//                wide_answer_bytes().
// Source         as packed.h; Huang, Lu, Hong, Ding, Cheetah (USENIX Security 2022), for products
//                of polynomials as products of matrices; He, Yang, Lu, Qiu, Rhombus (CCS 2024),
//                for images of the message in place of images of products.
#pragma once

#include <map>

#include "base/matrix_batch.h"
#include "lattice/packed.h"
#include "lattice/residue_key.h"

namespace privml::lattice {

inline constexpr i64 kMostWideProducts = i64{1} << 12;
inline constexpr int kWideDigits = 2;

// A batch of products x y and how it lies in polynomials of n coefficients: blocks of `gap` entries
// of up to rows_at_once() rows, of which each has as many slots as there are columns at once. The
// last `upload_levels` levels of packing, of a product whose rows are one part, take images of
// uploads.
struct WideShape {
  i64 n = 0, batch = 1, rows = 0, inner = 0, columns = 0;
  int levels = 0, column_levels = 0, upload_levels = 0;

  i64 gap() const { return i64{1} << levels; }
  i64 columns_at_once() const { return i64{1} << column_levels; }
  i64 rows_at_once() const { return n >> (levels + column_levels); }
  i64 parts() const { return ceil_div(rows, rows_at_once()); }  // of the rows
  i64 blocks() const { return ceil_div(inner, gap()); }         // of a row
  i64 column_groups() const { return ceil_div(columns, columns_at_once()); }
  i64 polynomials() const { return batch * parts() * blocks(); }
  i64 outputs() const { return batch * parts() * column_groups(); }  // before they are packed
  i64 answers() const { return ceil_div(outputs(), gap()); }
  i64 outputs_of(i64 answer) const { return std::min(gap(), outputs() - answer * gap()); }
  i64 images() const { return i64{1} << upload_levels; }  // of an upload, itself among them
  // Sums over images: those that an answer may pack, and those that it does. Sum i joins outputs i,
  // i + sums, i + 2 sums, ... of the answer, which come to places p, p + made, p + 2 made, ... for
  // p the place of the sum: i with its bits reversed, so that neighbours are packed first, and
  // those of an answer that is not full soon become few.
  i64 made() const { return gap() >> upload_levels; }
  i64 sums(i64 answer) const { return ceil_div(outputs_of(answer), images()); }
  i64 place(i64 sum) const;
  i64 rows_of(i64 part) const { return std::min(rows_at_once(), rows - part * rows_at_once()); }
  i64 width_of(i64 block) const { return std::min(gap(), inner - block * gap()); }
  // Slots of a part's polynomials that its outputs depend on, and where the i-th one is: those of
  // the rows, and as many before them as other columns of a group reach.
  i64 slots_of(i64 part) const {
    return std::min(n >> levels, (rows_of(part) + 1) * columns_at_once() - 1);
  }
  i64 slot(i64 i) const { return (i - (columns_at_once() - 1)) & ((n >> levels) - 1); }
  // The first coefficients of a factor, a power of two of them, beyond which all are zero.
  i64 factor_words() const;
  // Coefficients of all uploads.
  i64 sent() const;
};

// Of all ciphertexts, of those of one part of the rows of one product, and of an answer's c1.
i64 wide_upload_bytes(const WideChoice& choice, const WideShape& shape);
i64 wide_part_bytes(const WideChoice& choice, const WideShape& shape, i64 part);
i64 wide_answer_bytes(const WideChoice& choice);
// Of the key; of the keys of one level.
i64 wide_key_bytes(const WideSet& set);
i64 wide_switching_bytes(const WideSet& set);

// This party's shares modulo 1 rounded down to ring_bits + 1 bits, the last one apart; one party
// adds 3/2 units of that bit before. Noise is below half a unit, so that m / 2^ring_bits + noise +
// 3/2 units lies in [2 m + 1, 2 m + 2) units, and shares rounded down add up to 2 m or 2 m + 1.
void round_shares(int ring_bits, bool adds, std::span<const Torus> shares, std::span<u64> high,
                  std::span<u8> last);

// The key owner's side.
class WideKeyOwner {
 public:
  // Draws the key; `prg` must outlive the object.
  WideKeyOwner(const WideSet& set, const Digest& digest, crypto::Prg& prg);

  void write_key(MutableBytes out);
  void write_switching(int level, MutableBytes out);
  // x of the whole batch; its ciphertexts have numbers from `first` on, each of which serves once.
  void write_upload(const WideChoice& choice, const WideShape& shape, i64 first,
                    std::span<const u64> x, MutableBytes out);
  // sums += c1 times the key of answers `first` and following ones, at the places of their outputs;
  // sums: batch x rows x columns. Throws ProtocolError if the bytes are none.
  void add_answers(const WideChoice& choice, const WideShape& shape, i64 first, Bytes answers,
                   std::span<Torus> sums) const;

 private:
  WideSet set_;
  Digest digest_;
  crypto::Prg& prg_;
  ResidueKey key_;
};

// What the evaluator keeps of a key.
class WideKeys {
 public:
  // `key` as write_key() wrote it, else ProtocolError.
  WideKeys(const WideSet& set, const Digest& digest, Bytes key);
  void add_level(int level, Bytes keys);

  const ResidueRing& ring() const { return ring_; }
  const Digest& digest() const { return digest_; }
  const ResiduePair& key() const { return key_; }
  const SwitchingLevels& kept() const { return kept_; }

  using Ciphertext = ResiduePair;
  // to += the image of a ciphertext that packing adds at a level, which keys serve; `from` is used
  // up.
  void add_image(int level, Ciphertext& from, Ciphertext& to) const;

 private:
  struct Level {
    std::vector<u32> places;
    std::vector<Residues> k0, k1;  // kWideDigits each
  };

  WideSet set_;
  Digest digest_;
  ResidueRing ring_;
  ResiduePair key_;
  SwitchingLevels kept_{};
  std::vector<Level> levels_;
};

// What the evaluator multiplies with, numbers of these bits, which may be shares; the closer to
// zero they are read, the smaller noise is.
struct WideFactor {
  MatrixBatch matrices;
  NumberFormat format;
};

// One batch of products at the evaluator. Parts, each a part of the rows of a product, come one
// after another; an answer forgets those that it is the last to need.
class WideEvaluator {
 public:
  // keys and prg must outlive the object. Answers of one call are made by up to `threads` threads.
  WideEvaluator(const WideKeys& keys, const WideChoice& choice, const WideShape& shape, i64 first,
                crypto::Prg& prg, int threads = 1);
  // The next part, of wide_part_bytes() of what write_upload() wrote, else ProtocolError.
  void read_part(Bytes upload);
  i64 parts_read() const { return read_; }
  i64 parts_for(i64 answer) const;  // that must have been read
  // c1 of the next answers, from number `first` on, to `out`, as many as fill it; c0 is added to
  // sums at the places of their outputs. y: batch x inner x columns; sums: batch x rows x columns.
  void answer(i64 first, const WideFactor& y, MutableBytes out, std::span<Torus> sums);

 private:
  using Ciphertext = WideKeys::Ciphertext;
  void answer_one(i64 number, const WideFactor& y, const Blinding& blinding, MutableBytes out,
                  std::span<Torus> sums) const;
  // Of an answer: those of its sums that are made together, from number `first` on, and what they
  // are made with.
  struct Sums {
    i64 answer = 0, count = 0;
    i64 first = 0;
    std::vector<Ciphertext> made;
    WipedVector<u64> words;
    WipedVector<double> residues;
  };
  i64 sums_at_once() const;
  void write_factors(i64 whole, std::span<const i64> outputs, const WideFactor& y,
                     std::span<u64> words) const;
  void join_factors(i64 count, std::span<u64> words) const;
  void make(i64 first, i64 count, const WideFactor& y, Sums& sums) const;
  Ciphertext pack(i64 place, i64 stride, const WideFactor& y, Sums& sums) const;

  const WideKeys& keys_;
  WideChoice choice_;
  WideShape shape_;
  crypto::Prg& prg_;
  i64 first_, read_ = 0;  // the first ciphertext's number; parts
  int threads_;
  // Of a part, by image and block: ciphertexts shifted so that outputs come to the right place.
  std::map<i64, std::vector<Ciphertext>> parts_;
  std::vector<Residues> monomials_;  // X^(2^level)
};

}  // namespace privml::lattice
