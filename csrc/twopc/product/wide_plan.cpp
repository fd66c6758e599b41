// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/wide_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace privml::twopc {
namespace {

using lattice::kWideSets;
using lattice::SwitchingLevels;
using lattice::WideChoice;
using lattice::WideSet;
using lattice::WideShape;

constexpr i64 kMostOutputs = i64{1} << 26, kMostInner = i64{1} << 16;
constexpr i64 kMostPolynomials = i64{1} << 30;  // of a term: their numbers are unique
constexpr i64 kKeysServe = 4;                   // products, in the weight of keys' bytes

// A product of what party `left` knows of x with what the other one knows of y.
struct Cross {
  int left;
};

// The largest absolute value of a factor that is known in `operand`'s format.
double largest(Operand operand, int ell) {
  const bool is_signed = operand.owner == kShared || operand.is_signed || operand.bits == ell;
  return is_signed ? std::exp2(operand.bits - 1) : std::exp2(operand.bits) - 1;
}

// A term whose ciphertexts are of party `owner`.
WideTerm term_of(const WideProduct& product, Cross cross, int owner) {
  const auto& [rows, inner, columns] = product.shape;
  if (owner == cross.left) return {false, {0, product.batch, rows, inner, columns, 0}};
  return {true, {0, product.batch, columns, inner, rows, 0}};
}

double squares_of(const WideProduct& product, const WideTerm& term) {
  const double y = largest(term.turned ? product.x : product.y, product.ell);
  return static_cast<double>(product.shape.inner) * y * y;
}

// Its levels up to `most` with the fewest answers, and of these the fewest.
void choose_levels(WideTerm& term, i64 n, int most) {
  term.shape.n = n;
  i64 fewest = 0;
  for (int levels = 0; levels <= most && n >> levels >= 1; ++levels) {
    lattice::WideShape shape = term.shape;
    shape.levels = levels;
    const i64 answers = shape.answers();
    if (levels > 0 && answers >= fewest) continue;
    term.shape = shape;
    fewest = answers;
  }
}

std::optional<WideSide> side_of(const WideProduct& product, std::vector<WideTerm> terms,
                                const lattice::WideSet& set, const WideKeyState& keys, int most) {
  lattice::WideBounds bounds{product.ell, 0, static_cast<int>(terms.size()), 0, {}};
  for (WideTerm& term : terms) {
    choose_levels(term, set.ring.n, most);
    if (term.shape.polynomials() > kMostPolynomials) return std::nullopt;
    bounds.levels = std::max(bounds.levels, term.shape.levels);
    bounds.squares += squares_of(product, term);
  }
  bounds.keys = keys.levels.with(bounds.levels);
  const auto choice = lattice::choose_wide(set, bounds);
  if (!choice) return std::nullopt;
  WideSide side{0, *choice, std::move(terms), bounds.keys.kept & ~keys.levels.kept};
  side.key_bytes = (keys.made ? 0 : lattice::wide_key_bytes(set)) +
                   std::popcount(side.new_levels) * lattice::wide_switching_bytes(set);
  const i64 outputs = product.batch * product.shape.rows * product.shape.columns;
  side.answer_bytes = lattice::torus_bytes(outputs, choice->masked_bits());
  for (const WideTerm& term : side.terms) {
    side.upload_bytes += lattice::wide_upload_bytes(*choice, term.shape);
    side.answer_bytes += term.shape.answers() * lattice::wide_answer_bytes(*choice);
  }
  return side;
}

i64 weight_of(const WideSide& side) {
  return side.key_bytes / kKeysServe + side.upload_bytes + side.answer_bytes;
}

// The best of all sets and levels.
std::optional<WideSide> best_side(const WideProduct& product, const std::vector<WideTerm>& terms,
                                  const WideKeyStates& keys) {
  std::optional<WideSide> best;
  for (size_t set = 0; set < lattice::kWideSets.size(); ++set)
    for (int most = 0; most <= lattice::kMostWideLevels; ++most) {
      auto side = side_of(product, terms, lattice::kWideSets[set], keys[set], most);
      if (!side || (best && weight_of(*side) >= weight_of(*best))) continue;
      side->set = set;
      best = std::move(side);
    }
  return best;
}

// Bit i of `owners` says which party encrypts for crosses[i]: party 0 if it is set.
std::optional<WidePlan> plan_of(const WideProduct& product, const std::vector<Cross>& crosses,
                                unsigned owners, const std::array<WideKeyStates, 2>& keys) {
  std::array<std::vector<WideTerm>, 2> terms;
  for (size_t i = 0; i < crosses.size(); ++i) {
    const int owner = owners >> i & 1 ? 0 : 1;
    terms[owner].push_back(term_of(product, crosses[i], owner));
  }
  WidePlan plan;
  for (const int owner : {0, 1}) {
    if (terms[owner].empty()) continue;
    const auto side = best_side(product, terms[owner], keys[owner]);
    if (!side) return std::nullopt;
    plan.sides[owner] = *side;
    // A result is wrong if any of its parts is.
    plan.log2_failure = plan.log2_failure == 0
                            ? side->choice.log2_failure
                            : std::max(plan.log2_failure, side->choice.log2_failure) + 1;
  }
  return plan;
}

// `dropped`: bytes of dropping the last bits of one side's results; `kept`: of one side they stay.
i64 weight_of(const WidePlan& plan, i64 dropped, bool kept) {
  i64 sum = kept ? -dropped : 0;
  for (const WideSide& side : plan.sides)
    if (!side.terms.empty()) sum += weight_of(side) + dropped;
  return sum;
}

}  // namespace

std::optional<WidePlan> plan_wide(const WideProduct& product,
                                  const std::array<WideKeyStates, 2>& keys) {
  const auto& [rows, inner, columns] = product.shape;
  std::vector<Cross> crosses;
  for (const int r : {0, 1})
    if (holds(r, product.x) && holds(1 - r, product.y)) crosses.push_back({r});
  if (crosses.empty() || product.batch < 1 || rows < 1 || inner < 1 || columns < 1 ||
      inner > kMostInner || rows > kMostOutputs || columns > kMostOutputs ||
      product.batch > kMostOutputs / rows / columns)
    return std::nullopt;
  // What is shared in the end has a last bit to drop for each side.
  const i64 dropped = packed_bytes(product.batch * rows * columns, product.ell + 1);
  std::optional<WidePlan> best;
  i64 fewest = 0;
  unsigned best_owners = 0;
  for (unsigned owners = 0; owners < 1U << crosses.size(); ++owners) {
    auto plan = plan_of(product, crosses, owners, {});
    const i64 weight = plan ? weight_of(*plan, dropped, product.keeps_last_bit) : 0;
    if (!plan || (best && weight >= fewest)) continue;
    best = std::move(plan);
    fewest = weight;
    best_owners = owners;
  }
  return best ? plan_of(product, crosses, best_owners, keys) : best;
}

WideWork work_of(const WideSide& side, lattice::SwitchingLevels levels) {
  WideWork work;
  const double residues =
      static_cast<double>(side.choice.set.ring.n) * static_cast<double>(side.choice.set.moduli);
  for (const WideTerm& term : side.terms) {
    const lattice::WideShape& shape = term.shape;
    work.factors += residues * static_cast<double>(shape.outputs() * shape.blocks());
    work.switches += residues * levels.images(shape.levels) * static_cast<double>(shape.answers());
    work.ciphertexts += residues * static_cast<double>(shape.polynomials() + shape.answers());
  }
  return work;
}

}  // namespace privml::twopc
