// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/wide_matmul.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "linear/product.h"
#include "twopc/product/agreement.h"
#include "twopc/product/last_bit.h"

namespace privml::twopc {
namespace {

using lattice::Digest;
using lattice::kWideSets;
using lattice::Torus;
using lattice::TorusVector;
using lattice::WideSet;

constexpr i64 kOwnWords = i64{1} << 16;  // of a factor, half a megabyte
constexpr std::string_view kPurpose = "products of ring elements";

std::vector<u8> bytes_of(std::initializer_list<i64> numbers) {
  std::vector<u8> out(numbers.size() * sizeof(i64));
  std::ranges::copy(std::as_bytes(std::span(numbers.begin(), numbers.size())),
                    reinterpret_cast<std::byte*>(out.data()));
  return out;
}

// Of the keys of a generation.
Digest digest_of(const WideSession& session, int owner, size_t set) {
  const lattice::WideSet& parameters = lattice::kWideSets[set];
  const auto label = bytes_of({session.states[owner][set].generation, parameters.moduli,
                               parameters.digit_bits, static_cast<i64>(parameters.primes[0])});
  return lattice::digest_of({owner, {parameters.ring}, {}, label}, session.digest, {});
}

// Public halves follow from both parties' nonces.
void agree_on_digest(ot::Party& party, WideSession& session) {
  session.digest =
      agree(party, {0, {}, {}, {reinterpret_cast<const u8*>(kPurpose.data()), kPurpose.size()}});
  session.prg = std::make_unique<crypto::Prg>(party.prg.next_block());
  session.agreed = true;
}

using States = std::array<WideKeyState, 2>;  // of the keys that a plan's sides use, by owner

// Of all that a party reads by, sent before anything else: parties whose plans differ, as those
// with other libraries of mathematical functions might have, must not wait for each other.
crypto::Block tag_of(const WideSession& session, const WideProduct& product, const WidePlan& plan,
                     const States& before, int sender) {
  std::vector<u8> label;
  const auto append = [&](std::initializer_list<i64> numbers) {
    const auto bytes = bytes_of(numbers);
    label.insert(label.end(), bytes.begin(), bytes.end());
  };
  const auto& [rows, inner, columns] = product.shape;
  append({product.batch, rows, inner, columns, product.ell});
  if (product.keeps_last_bit) append({1});
  for (const int owner : {0, 1}) {
    const WideSide& side = plan.sides[owner];
    const auto& [made, generation, products, levels] = before[owner];
    append({std::ssize(side.terms), static_cast<i64>(side.set), side.choice.upload_bits,
            side.choice.answer_bits, side.new_levels, made, generation, products, levels.kept});
    for (const auto& [turned, shape] : side.terms)
      append({turned, shape.batch, shape.rows, shape.inner, shape.columns, shape.levels,
              shape.column_levels, shape.upload_levels});
  }
  return lattice::tag_of(lattice::digest_of({sender, {}, {}, label}, session.digest, {}), 0, 0);
}

void write_tag(ot::Party& party, const WideSession& session, const WideProduct& product,
               const WidePlan& plan, const States& before) {
  const crypto::Block mine = tag_of(session, product, plan, before, party.rank);
  party.channel.write({reinterpret_cast<const u8*>(&mine), sizeof mine});
}

void read_tag(ot::Party& party, const WideSession& session, const WideProduct& product,
              const WidePlan& plan, const States& before) {
  crypto::Block theirs;
  party.channel.read({reinterpret_cast<u8*>(&theirs), sizeof theirs});
  if (!(theirs == tag_of(session, product, plan, before, 1 - party.rank)))
    throw ProtocolError("lattice: the peer computes another product, or plans it otherwise");
}

// The number of the first ciphertext of a product, whose plan has fewer than 2^32 of them.
i64 first_ciphertext(i64 product) { return product << 32; }

// What both parties know of the keys once a product is under way. Before anything is sent: after a
// failure the same public halves would serve another message.
void advance(WideSession& session, const WidePlan& plan) {
  for (const int owner : {0, 1}) {
    const WideSide& side = plan.sides[owner];
    if (side.terms.empty()) continue;
    WideKeyState& state = session.states[owner][side.set];
    state.made = true;
    state.levels.kept |= side.new_levels;
    ++state.products;
  }
}

// Keys that are used up give way to new ones.
void renew(WideSession& session, const WidePlan& plan) {
  for (const int owner : {0, 1}) {
    const WideSide& side = plan.sides[owner];
    if (side.terms.empty()) continue;
    WideKeyState& state = session.states[owner][side.set];
    if (state.products < lattice::kMostWideProducts) continue;
    state = {false, state.generation + 1, 0, {}};
    session.keys[owner][side.set] = {};
  }
}

// A product's factors as this party has them; without words if the other one knows a factor.
struct Factors {
  MatrixBatch x, y;
};

// What a term encrypts: rows x inner for each product.
WipedVector<u64> encrypted_factor(const WideProduct& product, const WideTerm& term,
                                  const Factors& factors) {
  const MatrixBatch& from = term.turned ? factors.y.turned() : factors.x;
  const NumberFormat format = held_format(term.turned ? product.y : product.x);
  const auto& shape = term.shape;
  WipedVector<u64> out(shape.batch * shape.rows * shape.inner);
  u64* next = out.data();
  for (i64 b = 0; b < shape.batch; ++b)
    for (i64 i = 0; i < shape.rows; ++i)
      for (i64 k = 0; k < shape.inner; ++k)
        *next++ = format(from.matrix(b)[i * from.row + k * from.column]) & low_mask(product.ell);
  return out;
}

// What a term multiplies with; shares as numbers of either sign, so that noise is as small as it
// can be.
lattice::WideFactor multiplied_factor(const WideProduct& product, const WideTerm& term,
                                      const Factors& factors) {
  const Operand& operand = term.turned ? product.x : product.y;
  const bool is_signed =
      operand.owner == kShared || operand.is_signed || operand.bits == product.ell;
  return {term.turned ? factors.x.turned() : factors.y, {operand.bits, is_signed}};
}

// out += x y modulo 2^bits of what this party has of both, x times `scale`: some columns at a time,
// so that what is read of y stays near.
void add_own(const WideProduct& product, const Factors& factors, u64 scale, int bits,
             std::span<u64> out) {
  const auto& [rows, inner, columns] = product.shape;
  const NumberFormat x_format = held_format(product.x), y_format = held_format(product.y);
  const i64 most = std::clamp<i64>(kOwnWords / inner, 1, columns);
  WipedVector<u64> left(rows * inner), right(most * inner);
  const std::vector<i64> row = linear::strided(rows, inner), by_row = linear::strided(inner, most);
  const std::vector<i64> inner_places = linear::strided(inner, 1);
  const std::vector<i64> out_row = linear::strided(rows, columns);
  const std::vector<i64> places = linear::strided(columns, 1);
  for (i64 b = 0; b < product.batch; ++b) {
    const u64 *const x = factors.x.matrix(b), *const y = factors.y.matrix(b);
    for (i64 i = 0; i < rows; ++i)
      for (i64 k = 0; k < inner; ++k)
        left[i * inner + k] = scale * x_format(x[i * factors.x.row + k * factors.x.column]);
    for (i64 first = 0; first < columns; first += most) {
      const i64 count = std::min(most, columns - first);
      // In the order in which y stands.
      const bool by_columns = factors.y.row < factors.y.column;
      const i64 outer = by_columns ? count : inner, within = by_columns ? inner : count;
      for (i64 i = 0; i < outer; ++i)
        for (i64 j = 0; j < within; ++j) {
          const i64 k = by_columns ? j : i, column = by_columns ? i : j;
          right[k * most + column] =
              y_format(y[k * factors.y.row + (first + column) * factors.y.column]);
        }
      linear::add_product(
          {left.data(), row, inner_places}, {right.data(), by_row, std::span(places).first(count)},
          bits, {&out[b * rows * columns + first], out_row, std::span(places).first(count)});
    }
  }
}

// A term's outputs, which lie as its shape says, to where those of the product lie.
void add_outputs(const WideTerm& term, std::span<const lattice::Torus> outputs,
                 std::span<lattice::Torus> sums) {
  const auto& shape = term.shape;
  for (i64 b = 0; b < shape.batch; ++b)
    for (i64 i = 0; i < shape.rows; ++i)
      for (i64 j = 0; j < shape.columns; ++j) {
        const i64 from = (b * shape.rows + i) * shape.columns + j;
        const i64 to = term.turned ? (b * shape.columns + j) * shape.rows + i : from;
        sums[to] = sums[to] + outputs[from];
      }
}

void send_uploads(ot::Party& party, WideSession& session, const WideProduct& product,
                  const WideSide& side, const WideKeyState& before, const Factors& factors) {
  auto& owner = session.keys[party.rank][side.set].owner;
  std::vector<u8> wire;
  if (!before.made) {
    owner = std::make_unique<lattice::WideKeyOwner>(
        side.choice.set, digest_of(session, party.rank, side.set), *session.prg);
    wire.resize(lattice::wide_key_bytes(side.choice.set));
    owner->write_key(wire);
    party.channel.write(wire);
  }
  wire.resize(lattice::wide_switching_bytes(side.choice.set));
  for (int level = 0; level < lattice::kMostWideLevels; ++level) {
    if ((side.new_levels >> level & 1) == 0) continue;
    owner->write_switching(level, wire);
    party.channel.write(wire);
  }
  i64 first = first_ciphertext(before.products);
  for (const WideTerm& term : side.terms) {
    wire.resize(lattice::wide_upload_bytes(side.choice, term.shape));
    owner->write_upload(side.choice, term.shape, first, encrypted_factor(product, term, factors),
                        wire);
    party.channel.write(wire);
    first += term.shape.polynomials();
  }
}

void read_keys(ot::Party& party, WideSession& session, const WideSide& side,
               const WideKeyState& before) {
  const int owner = 1 - party.rank;
  auto& keys = session.keys[owner][side.set].keys;
  std::vector<u8> wire;
  if (!before.made) {
    wire.resize(lattice::wide_key_bytes(side.choice.set));
    party.channel.read(wire);
    keys = std::make_unique<lattice::WideKeys>(side.choice.set, digest_of(session, owner, side.set),
                                               wire);
  }
  wire.resize(lattice::wide_switching_bytes(side.choice.set));
  for (int level = 0; level < lattice::kMostWideLevels; ++level) {
    if ((side.new_levels >> level & 1) == 0) continue;
    party.channel.read(wire);
    keys->add_level(level, wire);
  }
}

// Answers a term: halves c1 leave as they are made, those of c0 are added to sums and stay here.
void answer_term(ot::Party& party, WideSession& session, const WideSide& side, const WideTerm& term,
                 i64 first, const lattice::WideFactor& y, std::span<lattice::Torus> sums) {
  const lattice::WideKeys& keys = *session.keys[1 - party.rank][side.set].keys;
  lattice::WideEvaluator evaluator(keys, side.choice, term.shape, first, *session.prg,
                                   session.threads);
  TorusVector outputs(sums.size());
  std::ranges::fill(outputs, lattice::Torus{});
  std::vector<u8> wire, answers;
  const i64 each = lattice::wide_answer_bytes(side.choice);
  for (i64 i = 0; i < term.shape.answers(); i += session.threads) {
    const i64 count = std::min<i64>(session.threads, term.shape.answers() - i);
    while (evaluator.parts_read() < evaluator.parts_for(i + count - 1)) {
      const i64 part = evaluator.parts_read() % term.shape.parts();
      wire.resize(lattice::wide_part_bytes(side.choice, term.shape, part));
      party.channel.read(wire);
      evaluator.read_part(wire);
    }
    answers.resize(count * each);
    evaluator.answer(i, y, answers, outputs);
    party.channel.write(answers);
    party.channel.flush();
  }
  add_outputs(term, outputs, sums);
}

TorusVector zeros(const WideProduct& product) {
  TorusVector out(product.batch * product.shape.rows * product.shape.columns);
  std::ranges::fill(out, lattice::Torus{});
  return out;
}

// Answers a side. This party's shares modulo 1 of the sum of its terms.
TorusVector answer(ot::Party& party, WideSession& session, const WideProduct& product,
                   const WideSide& side, const WideKeyState& before, const Factors& factors) {
  read_keys(party, session, side, before);
  TorusVector sums = zeros(product);
  i64 first = first_ciphertext(before.products);
  for (const WideTerm& term : side.terms) {
    answer_term(party, session, side, term, first, multiplied_factor(product, term, factors), sums);
    first += term.shape.polynomials();
  }
  return sums;
}

// The same of the side whose key this party owns, added to sums.
void read_answers(ot::Party& party, const WideSession& session, const WideSide& side,
                  std::span<lattice::Torus> sums) {
  const lattice::WideKeyOwner& owner = *session.keys[party.rank][side.set].owner;
  TorusVector outputs(sums.size());
  std::vector<u8> wire(lattice::wide_answer_bytes(side.choice));
  for (const WideTerm& term : side.terms) {
    std::ranges::fill(outputs, lattice::Torus{});
    for (i64 i = 0; i < term.shape.answers(); ++i) {
      party.channel.read(wire);
      owner.add_answers(side.choice, term.shape, i, wire, outputs);
    }
    add_outputs(term, outputs, sums);
  }
}

int result_bits(const WideProduct& product) {
  return product.ell + (product.keeps_last_bit ? 1 : 0);
}

// The result from shares modulo 1 of the sum of all terms.
void drop_noise(ot::Party& party, const WideProduct& product, std::span<const lattice::Torus> sums,
                std::span<u64> out) {
  WipedVector<u64> high(sums.size());
  WipedVector<u8> last(sums.size());
  lattice::round_shares(product.ell, party.rank == 0, sums, high, last);
  if (!product.keeps_last_bit) return drop_last_bit(party, high, last, product.ell, out);
  for (size_t i = 0; i < out.size(); ++i) out[i] = 2 * high[i] + last[i];
}

WidePlan plan_for(WideSession& session, const WideProduct& product) {
  expect_fits(product.x, product.ell);
  expect_fits(product.y, product.ell);
  expect(product.ell < 64 || !product.keeps_last_bit, "lattice: words hold up to 64 bits");
  const auto& plan = session.plans.of(product, session.states);
  expect(plan.has_value(), "lattice: no parameters serve this product");
  return *plan;
}

}  // namespace

void wide_matmul(ot::Party& party, WideSession& session, const WideProduct& product,
                 const MatrixBatch& x, const MatrixBatch& y, std::span<u64> out) {
  const auto& [rows, inner, columns] = product.shape;
  const WidePlan plan = plan_for(session, product);
  const bool has_x = holds(party.rank, product.x), has_y = holds(party.rank, product.y);
  expect((x.words != nullptr) == has_x && (y.words != nullptr) == has_y &&
             std::ssize(out) == product.batch * rows * columns,
         "lattice: an operand does not match the shape");
  expect(!session.agreed || session.prg, "lattice: these keys are of a meter");
  if (!session.agreed) agree_on_digest(party, session);
  States before;
  for (const int owner : {0, 1}) before[owner] = session.states[owner][plan.sides[owner].set];
  advance(session, plan);
  const WideSide &mine = plan.sides[party.rank], &theirs = plan.sides[1 - party.rank];
  const Factors factors{x, y};
  write_tag(party, session, product, plan, before);
  if (!mine.terms.empty()) send_uploads(party, session, product, mine, before[party.rank], factors);
  party.channel.flush();
  read_tag(party, session, product, plan, before);
  TorusVector sums = theirs.terms.empty()
                         ? zeros(product)
                         : answer(party, session, product, theirs, before[1 - party.rank], factors);
  if (!mine.terms.empty()) read_answers(party, session, mine, sums);
  renew(session, plan);

  drop_noise(party, product, sums, out);
  if (has_x && has_y)
    add_own(product, factors, product.keeps_last_bit ? 2 : 1, result_bits(product), out);
}

void wide_matmul(ot::Party& party, WideSession& session, const WideProduct& product,
                 std::span<const u64> x, std::span<const u64> y, std::span<u64> out) {
  const auto& [rows, inner, columns] = product.shape;
  const bool has_x = holds(party.rank, product.x), has_y = holds(party.rank, product.y);
  expect(std::ssize(x) == (has_x ? product.batch * rows * inner : 0) &&
             std::ssize(y) == (has_y ? product.batch * inner * columns : 0),
         "lattice: an operand does not match the shape");
  wide_matmul(party, session, product, row_major(x, rows, inner), row_major(y, inner, columns),
              out);
}

void cost_wide_matmul(ot::CostMeter& meter, WideSession& session, const WideProduct& product) {
  const WidePlan plan = plan_for(session, product);
  if (!session.agreed) meter.exchange(kAgreementBytes, kAgreementBytes);
  session.agreed = true;
  constexpr i64 kTag = sizeof(crypto::Block);
  std::array<i64, 2> up{kTag, kTag}, down{};
  for (const int owner : {0, 1}) {
    const WideSide& side = plan.sides[owner];
    if (side.terms.empty()) continue;
    up[owner] += side.key_bytes + side.upload_bytes;
    down[1 - owner] = side.answer_bytes;
  }
  meter.exchange(up[0], up[1]);
  meter.exchange(down[0], down[1]);
  if (!product.keeps_last_bit)
    cost_drop_last_bit(meter, product.batch * product.shape.rows * product.shape.columns,
                       product.ell);
  advance(session, plan);
  renew(session, plan);
}

}  // namespace privml::twopc
