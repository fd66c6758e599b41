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
constexpr int kNoiseBits = 9;                   // of uploads and answers, about
constexpr int kMostColumnLevels = 6;            // more do not pay
constexpr int kMostUploadLevels = 6;            // nor do more of these
constexpr size_t kMostPlans = 4096;             // that are kept
// Nanoseconds of one core: for each residue of a factor, its product, each layer of its transform,
// and the images that join it; for each residue of what is not zero of it; for each residue of key
// switches and of ciphertexts. The own time of a thread, over the products of product_bench.cpp and
// of one row times 768 x 768 to 768 x 46080, on a two-core x86-64 server (AVX-512).
constexpr double kProduct = 0.7, kLayer = 0.15, kJoined = 0.5, kWord = 3, kSwitch = 8,
                 kCiphertext = 45;

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

const Operand& multiplied_of(const WideProduct& product, const WideTerm& term) {
  return term.turned ? product.x : product.y;
}

// Of what a coefficient meets, as WideBounds takes them.
double squares_of(const WideProduct& product, const WideTerm& term) {
  const double y = largest(multiplied_of(product, term), product.ell);
  const i64 columns = std::min(term.shape.columns, term.shape.columns_at_once());
  return static_cast<double>(product.shape.inner * columns) * y * y *
         std::exp2(2 * term.shape.upload_levels);
}

// Levels that images of uploads may serve: sums of factors and messages fit words.
int most_upload_levels(const WideProduct& product, const WideTerm& term, const WideShape& shape) {
  if (!product.byte_price || shape.batch * shape.parts() > 1) return 0;
  const int bits = std::max(product.ell, multiplied_of(product, term).bits + 1);
  return std::clamp(64 - bits, 0, std::min(kMostUploadLevels, shape.levels));
}

double work_of(const WideShape& shape, const WideSet& set, SwitchingLevels levels) {
  const double residues = static_cast<double>(set.ring.n) * set.moduli;
  const auto used = static_cast<double>(shape.factor_words());
  double factor = residues * (kProduct + kLayer * std::log2(used)) + kWord * set.moduli * used;
  if (shape.upload_levels > 0) factor += residues * kJoined;
  const double full = static_cast<double>(shape.outputs() / shape.gap());
  const int packed = shape.levels - shape.upload_levels;
  const i64 last = ceil_div(shape.outputs() % shape.gap(), shape.images());
  double images = full * levels.images(packed, shape.made()) + levels.images(packed, last);
  // An upload has an image by the last level, those two another one each by the level before, ...
  for (int level = packed; level < shape.levels; ++level)
    images +=
        static_cast<double>((shape.blocks() << (shape.levels - 1 - level)) * levels.times(level));
  const auto ciphertexts = static_cast<double>(shape.polynomials() + shape.answers());
  return static_cast<double>(shape.outputs() * shape.blocks()) * factor +
         residues * (images * kSwitch + ciphertexts * kCiphertext);
}

double price_of(i64 bytes, double work, std::optional<i64> byte_price) {
  const auto sent = static_cast<double>(bytes);
  return byte_price ? sent * static_cast<double>(*byte_price) + work : sent;
}

// Of packing and of images of uploads, at most; and of columns at once, if there are as many.
struct MostLevels {
  int packing = 0, columns = 0, upload = 0;
};

// The levels of a term of about the least price, with keys of these levels.
void choose_levels(WideTerm& term, const WideProduct& product, const WideSet& set, MostLevels most,
                   SwitchingLevels keys) {
  const i64 n = set.ring.n;
  term.shape.n = n;
  double least = -1;
  for (int levels = 0; levels <= most.packing && n >> levels >= 1; ++levels) {
    WideShape shape = term.shape;
    shape.levels = levels;
    shape.column_levels =
        std::min({most.columns, std::countr_zero(static_cast<u64>(n >> levels)),
                  std::countr_zero(std::bit_ceil(static_cast<u64>(shape.columns)))});
    const int images = std::min(most.upload, most_upload_levels(product, term, shape));
    for (int upload = 0; upload <= images; ++upload) {
      shape.upload_levels = upload;
      const Operand& multiplied = multiplied_of(product, term);
      const i64 upload_bits = product.ell + upload + multiplied.bits + kNoiseBits;
      const i64 bits =
          shape.sent() * upload_bits + shape.answers() * n * (product.ell + kNoiseBits);
      const double price = price_of(bits / 8, work_of(shape, set, keys), product.byte_price);
      if (least >= 0 && price >= least) continue;
      term.shape = shape;
      least = price;
    }
  }
}

// Keys that there are for up to so many levels of packing once a product is made.
using KeysByLevels = std::array<SwitchingLevels, lattice::kMostWideLevels + 1>;

KeysByLevels keys_by_levels(SwitchingLevels kept) {
  KeysByLevels keys;
  for (int levels = 0; levels <= lattice::kMostWideLevels; ++levels)
    keys[levels] = kept.with(levels);
  return keys;
}

// Of images of uploads, by any of the terms.
int most_used(const std::vector<WideTerm>& terms) {
  int most = 0;
  for (const WideTerm& term : terms) most = std::max(most, term.shape.upload_levels);
  return most;
}

// Keys of one owner in one set, and how many owners' products the result is the sum of.
struct SideKeys {
  const WideKeyState& before;
  const KeysByLevels& later;
  int joined;
};

// With the levels that are chosen for the terms.
std::optional<WideSide> side_of(const WideProduct& product, std::vector<WideTerm>& terms,
                                const WideSet& set, const SideKeys& keys, MostLevels most) {
  lattice::WideBounds bounds{product.ell, 0, static_cast<int>(terms.size()), 0, {}, 0, keys.joined};
  int levels = 0;
  for (WideTerm& term : terms) {
    choose_levels(term, product, set, most, keys.later[most.packing]);
    const WideShape& shape = term.shape;
    if (shape.polynomials() > kMostPolynomials) return std::nullopt;
    levels = std::max(levels, shape.levels);
    bounds.levels = std::max(bounds.levels, shape.levels - shape.upload_levels);
    bounds.squares += squares_of(product, term);
  }
  bounds.keys = keys.later[levels];
  for (const WideTerm& term : terms) {
    const int last = term.shape.levels, first = last - term.shape.upload_levels;
    bounds.images += squares_of(product, term) * bounds.keys.switches(first, last);
  }
  const auto choice = lattice::choose_wide(set, bounds);
  if (!choice) return std::nullopt;
  WideSide side{0, *choice, terms, bounds.keys.kept & ~keys.before.levels.kept};
  side.key_bytes = (keys.before.made ? 0 : lattice::wide_key_bytes(set)) +
                   std::popcount(side.new_levels) * lattice::wide_switching_bytes(set);
  for (const WideTerm& term : side.terms) {
    side.upload_bytes += lattice::wide_upload_bytes(*choice, term.shape);
    side.answer_bytes += term.shape.answers() * lattice::wide_answer_bytes(*choice);
  }
  return side;
}

double price_of(const WideSide& side, SwitchingLevels levels, std::optional<i64> byte_price) {
  levels.kept |= side.new_levels;
  const i64 bytes = side.key_bytes / kKeysServe + side.upload_bytes + side.answer_bytes;
  return price_of(bytes, work_of(side, levels), byte_price);
}

// The best of all sets and levels, of a result that is the sum of `joined` owners' products.
std::optional<WideSide> best_side(const WideProduct& product, const std::vector<WideTerm>& terms,
                                  const WideKeyStates& keys, int joined) {
  std::optional<WideSide> best;
  double least = 0;
  static const KeysByLevels without = keys_by_levels({});
  const int most = product.byte_price ? kMostColumnLevels : 0;
  for (size_t set = 0; set < kWideSets.size(); ++set) {
    const auto later = keys[set].levels.kept == 0 ? without : keys_by_levels(keys[set].levels);
    // Whether there was one.
    const auto consider = [&](std::vector<WideTerm>& chosen, MostLevels levels) {
      auto side = side_of(product, chosen, kWideSets[set], {keys[set], later, joined}, levels);
      if (!side) return false;
      const double price = price_of(*side, keys[set].levels, product.byte_price);
      if (best && price >= least) return true;
      side->set = set;
      best = std::move(side);
      least = price;
      return true;
    };
    for (int packing = 0; packing <= lattice::kMostWideLevels; ++packing)
      for (int columns = 0; columns <= most; ++columns)
        // Levels are chosen by their price, and may have too much noise with so many images.
        for (int upload = kMostUploadLevels; upload >= 0;) {
          std::vector<WideTerm> chosen = terms;
          const bool found = consider(chosen, {packing, columns, upload});
          const int used = most_used(chosen);
          upload = used == 0 ? -1 : found ? 0 : used - 1;
        }
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
  const int joined = terms[0].empty() || terms[1].empty() ? 1 : 2;
  WidePlan plan;
  for (const int owner : {0, 1}) {
    if (terms[owner].empty()) continue;
    const auto side = best_side(product, terms[owner], keys[owner], joined);
    if (!side) return std::nullopt;
    plan.sides[owner] = *side;
    // Each side's bound is that of a result whose sides have as much noise as it.
    plan.log2_failure = plan.log2_failure == 0
                            ? side->choice.log2_failure
                            : std::max(plan.log2_failure, side->choice.log2_failure);
  }
  return plan;
}

// Of a plan without keys, but for the last bits, which every plan drops alike.
double price_of(const WidePlan& plan, std::optional<i64> byte_price) {
  double sum = 0;
  for (const WideSide& side : plan.sides)
    if (!side.terms.empty()) sum += price_of(side, {}, byte_price);
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
  std::optional<WidePlan> best;
  double least = 0;
  unsigned best_owners = 0;
  for (unsigned owners = 0; owners < 1U << crosses.size(); ++owners) {
    auto plan = plan_of(product, crosses, owners, {});
    const double price = plan ? price_of(*plan, product.byte_price) : 0;
    if (!plan || (best && price >= least)) continue;
    best = std::move(plan);
    least = price;
    best_owners = owners;
  }
  return best ? plan_of(product, crosses, best_owners, keys) : best;
}

const std::optional<WidePlan>& WidePlans::of(const WideProduct& product,
                                             const std::array<WideKeyStates, 2>& keys) {
  const auto& [rows, inner, columns] = product.shape;
  std::vector<i64> key{product.batch, rows, inner, columns, product.ell};
  key.push_back(product.byte_price.value_or(-1));
  for (const Operand& operand : {product.x, product.y})
    key.insert(key.end(), {operand.owner, operand.bits, operand.is_signed});
  for (const WideKeyStates& states : keys)
    for (const WideKeyState& state : states)
      key.insert(key.end(), {state.made, static_cast<i64>(state.levels.kept)});
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  if (made_.size() >= kMostPlans) made_.clear();
  return made_[key] = plan_wide(product, keys);
}

double work_of(const WideSide& side, SwitchingLevels levels) {
  double sum = 0;
  for (const WideTerm& term : side.terms) sum += work_of(term.shape, side.choice.set, levels);
  return sum;
}

}  // namespace privml::twopc
