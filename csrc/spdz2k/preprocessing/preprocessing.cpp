// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/preprocessing.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "spdz2k/preprocessing/bit_triples.h"
#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/matrix_triple.h"
#include "spdz2k/preprocessing/random_bit.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/shares/check.h"

namespace privml::spdz2k {
namespace {

// Counts traffic during its lifetime under Phase::preprocess, except the traffic that reserve() of
// the OT layer counts itself.
class PreprocessPhase {
 public:
  explicit PreprocessPhase(ot::Party& party)
      : party_(party),
        before_(party.channel.traffic()),
        booked_(book()),
        start_(std::chrono::steady_clock::now()) {}
  ~PreprocessPhase() {
    const net::Traffic after = party_.channel.traffic();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    ot::PhaseCount& now = book();
    now.sent = booked_.sent + after.sent - before_.sent;
    now.received = booked_.received + after.received - before_.received;
    now.depth = booked_.depth + after.depth - before_.depth;
    now.seconds = booked_.seconds + passed.count();
  }
  PreprocessPhase(const PreprocessPhase&) = delete;

 private:
  ot::PhaseCount& book() { return party_.ledger.phases[static_cast<int>(ot::Phase::preprocess)]; }
  ot::Party& party_;
  net::Traffic before_;
  ot::PhaseCount booked_;
  std::chrono::steady_clock::time_point start_;
};

// Shares of one correlation: of numbers, column by column, and of bits.
struct Layout {
  std::vector<i64> words;
  int bits;
};

Layout layout_of(Item item) {
  switch (item.kind) {
    case Kind::edabits:
      return {{1}, item.width};
    case Kind::bit_triples:
      return {{}, 3};
    case Kind::triples:
      return {{1, 1, 1}, 0};
    case Kind::squares:
      return {{1, 1}, 0};
    case Kind::matrix_triples: {
      const auto [rows, inner, columns] = item.shape;
      return {{rows * inner, inner * columns, rows * columns}, 0};
    }
    case Kind::bits:
    case Kind::masks:
    case Kind::randoms:
      break;
  }
  return {{1}, 0};
}

bool only_words(const Step& step) {
  return step.item.kind == Kind::masks || step.item.kind == Kind::randoms;
}

// Whether a pool hides what goes into these batches.
bool use_pool(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    const Kind kind = step.item.kind;
    return kind == Kind::squares || kind == Kind::triples || kind == Kind::matrix_triples;
  });
}

template <class W>
void copy(ShareView<W> from, ShareSpan<W> to) {
  std::copy(from.value.begin(), from.value.end(), to.value.begin());
  std::copy(from.mac.begin(), from.mac.end(), to.mac.begin());
}

}  // namespace

template <class R>
PreprocessingSupply<R>::PreprocessingSupply(Session<R>& session, ot::Party* party, bool silent)
    : session_(session), party_(party), silent_(silent) {
  session.set_supply(*this);
  if (party == nullptr) return;
  const PreprocessPhase phase(*party);
  authentication_ = std::make_unique<Authentication<R>>(session, *party);
}

template <class R>
CorrelationQueue<R>& PreprocessingSupply<R>::queue(Item item) {
  const Layout layout = layout_of(item);
  return queues_.try_emplace(item, layout.words, layout.bits).first->second;
}

template <class R>
CorrelationQueue<R>& PreprocessingSupply<R>::stocked(Item item, i64 n) {
  Demand wanted;
  count_of(wanted, item) = n;
  reserve(wanted);
  return queue(item);
}

template <class R>
Demand PreprocessingSupply<R>::stock() const {
  Demand stock;
  for (const auto& [item, queue] : queues_) count_of(stock, item) = queue.available();
  return stock;
}

template <class R>
void PreprocessingSupply<R>::reserve(const Demand& demand) {
  session_.require_alive();
  const Demand there = stock();
  const auto items = items_of(demand);
  if (std::all_of(items.begin(), items.end(),
                  [&](Item item) { return count_of(demand, item) <= count_of(there, item); })) {
    return;
  }
  if (party_ == nullptr) {
    throw InvalidArgument(
        "this session makes no correlations, and those from its store are used up");
  }
  const PreprocessPhase phase(*party_);
  const double correlation_bits = party_->correlation_bits;
  const auto plan = [&] {
    return plan_production<R>(correlation_bits, stock(), demand, voles_ != nullptr);
  };
  std::vector<Step> steps = plan();
  if (session_.openings.pending() > 0 && !std::all_of(steps.begin(), steps.end(), only_words)) {
    // What the batches open is checked apart from what was opened before.
    check(session_);
    steps = plan();
  }
  if (silent_ && !voles_ && voles_pay<R>(correlation_bits, stock(), demand)) {
    voles_ = std::make_unique<SilentVole<R>>(*authentication_);
    steps = plan();
  }
  if (use_pool(steps)) {
    if (pool_used_) authentication_->renew_pool();
    pool_used_ = true;
  }
  const Demand drawn = this->drawn();
  for (const Step& step : steps) make(step);
  this->forget_draws_since(drawn);
}

template <class R>
void PreprocessingSupply<R>::bits_from_own_squares(WordSpan<R> bits) {
  WordShares<R> u(bits.size()), square(bits.size());
  this->squares(u, square);
  bits_from_squares<R>(session_, u, square, bits);
  check(session_);
}

template <class R>
void PreprocessingSupply<R>::make(const Step& step) {
  const i64 n = step.n;
  const Layout layout = layout_of(step.item);
  // Made aside: nothing comes into stock before its checks have passed.
  const int columns = static_cast<int>(std::ssize(layout.words));
  std::vector<WordShares<R>> words;
  for (const i64 per : layout.words) words.emplace_back(per * n);
  BitShares<R> bits(layout.bits * n);
  const auto word = [&](int column) { return WordSpan<R>(words[column]); };
  const auto bit = [&](int column) { return bits.part(column * n, n); };
  switch (step.item.kind) {
    case Kind::edabits:
      generate_edabits<R>(session_, *party_, step.method, step.item.width, word(0), bits);
      break;
    case Kind::bit_triples:
      generate_bit_triples<R>(session_, *party_, bit(0), bit(1), bit(2));
      break;
    case Kind::bits:
      bits_from_own_squares(word(0));
      break;
    case Kind::squares:
      generate_squares<R>(*authentication_, word(0), word(1));
      break;
    case Kind::masks: {
      WipedVector<u64> clear(step.item.width == session_.rank ? n : 0);
      generate_masks<R>(*authentication_, step.item.width, word(0), clear);
      break;
    }
    case Kind::randoms:
      generate_randoms<R>(*authentication_, word(0));
      break;
    case Kind::triples:
      generate_triples<R>(*authentication_, word(0), word(1), word(2));
      break;
    case Kind::matrix_triples:
      generate_matrix_triples<R>(*authentication_, step.item.shape, n, word(0), word(1), word(2));
  }
  CorrelationQueue<R>& to = queue(step.item);
  to.add(n);
  for (int c = 0; c < columns; ++c) copy<Word>(word(c), to.added_words(c, n));
  for (int c = 0; c < layout.bits; ++c) copy<typename R::BitWord>(bit(c), to.added_bits(c, n));
}

template <class R>
void PreprocessingSupply<R>::draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) {
  CorrelationQueue<R>& from = stocked({Kind::masks, owner}, r.size());
  copy<Word>(from.next_words(0, r.size()), r);
  from.drop(r.size());
  // The owner's share is the mask itself.
  for (std::size_t i = 0; i < clear.size(); ++i) {
    clear[i] = static_cast<u64>(low_bits(r.value[i], R::k));
  }
}

template <class R>
void PreprocessingSupply<R>::draw_randoms(WordSpan<R> r) {
  CorrelationQueue<R>& from = stocked({Kind::randoms}, r.size());
  copy<Word>(from.next_words(0, r.size()), r);
  from.drop(r.size());
}

template <class R>
void PreprocessingSupply<R>::draw_bits(WordSpan<R> b) {
  CorrelationQueue<R>& from = stocked({Kind::bits}, b.size());
  copy<Word>(from.next_words(0, b.size()), b);
  from.drop(b.size());
}

template <class R>
void PreprocessingSupply<R>::draw_squares(WordSpan<R> a, WordSpan<R> square) {
  const i64 n = a.size();
  CorrelationQueue<R>& from = stocked({Kind::squares}, n);
  copy<Word>(from.next_words(0, n), a);
  copy<Word>(from.next_words(1, n), square);
  from.drop(n);
}

template <class R>
void PreprocessingSupply<R>::draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) {
  const i64 n = c.size();
  CorrelationQueue<R>& from = stocked({Kind::triples}, n);
  copy<Word>(from.next_words(0, n), a);
  copy<Word>(from.next_words(1, n), b);
  copy<Word>(from.next_words(2, n), c);
  from.drop(n);
}

template <class R>
void PreprocessingSupply<R>::draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) {
  using BitWord = typename R::BitWord;
  const i64 n = z.size();
  CorrelationQueue<R>& from = stocked({Kind::bit_triples}, n);
  copy<BitWord>(from.next_bits(0, n), x);
  copy<BitWord>(from.next_bits(1, n), y);
  copy<BitWord>(from.next_bits(2, n), z);
  from.drop(n);
}

template <class R>
void PreprocessingSupply<R>::draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) {
  const i64 n = r.size();
  CorrelationQueue<R>& from = stocked({Kind::edabits, width}, n);
  copy<Word>(from.next_words(0, n), r);
  for (int j = 0; j < width; ++j) {
    copy<typename R::BitWord>(from.next_bits(j, n), bits.part(j * n, n));
  }
  from.drop(n);
}

template <class R>
void PreprocessingSupply<R>::draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a,
                                                 WordSpan<R> b, WordSpan<R> c) {
  CorrelationQueue<R>& from = stocked({Kind::matrix_triples, 0, shape}, n);
  copy<Word>(from.next_words(0, n), a);
  copy<Word>(from.next_words(1, n), b);
  copy<Word>(from.next_words(2, n), c);
  from.drop(n);
}

template <class R>
i64 PreprocessingSupply<R>::bytes_of(Item item, i64 n) {
  const Layout layout = layout_of(item);
  return CorrelationQueue<R>(layout.words, layout.bits).bytes(n);
}

template <class R>
bool PreprocessingSupply<R>::fits(Item item, i64 n, i64 size) {
  const Layout layout = layout_of(item);
  return CorrelationQueue<R>(layout.words, layout.bits).fits(n, size);
}

template <class R>
void PreprocessingSupply<R>::take_out(Item item, i64 n, MutableBytes out) {
  session_.require_alive();
  queue(item).take_bytes(n, out);
}

template <class R>
void PreprocessingSupply<R>::put_in(Item item, i64 n, Bytes in) {
  session_.require_alive();
  queue(item).put_bytes(n, in);
}

template <class R>
void cost_preprocessing_setup(CostMeter& meter) {
  cost_authentication_setup<R>(meter);
}

template <class R>
void cost_reserve(CostMeter& meter, Demand& stock, const Demand& wanted) {
  const double correlation_bits = meter.correlation_bits;
  const bool silent = meter.rcot.provider == "silent";
  if (silent && !meter.voles && voles_pay<R>(correlation_bits, stock, wanted)) {
    begin_voles<R>(meter);
  }
  const std::vector<Step> steps =
      plan_production<R>(correlation_bits, stock, wanted, meter.voles.has_value());
  if (use_pool(steps)) {
    if (meter.pool_used) cost_renew_pool<R>(meter);
    meter.pool_used = true;
  }
  for (const Step& step : steps) {
    cost_step<R>(meter, step);
    book_step<R>(step, stock);
  }
}

#define PRIVML_INSTANTIATE(R)                            \
  template class PreprocessingSupply<R>;                 \
  template void cost_preprocessing_setup<R>(CostMeter&); \
  template void cost_reserve<R>(CostMeter&, Demand&, const Demand&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
