// SPDX-License-Identifier: Apache-2.0
// Bytes, depth and speed of the actively secure online protocols, MAC checks included, between two
// threads over loopback TCP. Correlations come from a store that was filled before and is handed
// out again and again: INSECURE, so that the online phase alone is timed. Arguments: number of
// inputs (default 100000), names of rows (default all), separated by commas.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/online/selection.h"
#include "spdz2k/online/truncation.h"
#include "spdz2k/preprocessing/ideal.h"
#include "spdz2k/shares/check.h"

namespace privml::spdz2k {
namespace {

constexpr crypto::Block kSeed{17, 4};

// Copies `from` to `to` as often as it fits.
template <class W>
void repeat(const Shares<W>& from, i64 first, i64 count, ShareSpan<W> to) {
  for (i64 at = 0; at < to.size(); at += count) {
    const i64 n = std::min(count, to.size() - at);
    std::memcpy(&to.value[at], &from.value[first], n * sizeof(W));
    std::memcpy(&to.mac[at], &from.mac[first], n * sizeof(W));
  }
}

template <class R>
class RepeatingSupply final : public Supply<R> {
 public:
  explicit RepeatingSupply(int rank) : ideal_(make_ideal_supply<R>(kSeed, rank)) {
    ideal_->triples(a_, b_, c_);
    ideal_->squares(d_, d2_);
    ideal_->bit_triples(x_, y_, z_);
    ideal_->bits(bits_);
    ideal_->randoms(randoms_);
  }
  void reserve(const Demand& demand) override {
    for (const auto& [width, count] : demand.edabits) edabits_of(width);
  }

 private:
  static constexpr i64 kWords = 1 << 16, kBits = 1 << 20, kEdabits = 1 << 12;
  struct Edabits {
    WordShares<R> r{kEdabits};
    BitShares<R> bits;
  };

  Edabits& edabits_of(int width) {
    const auto [at, fresh] = edabits_.try_emplace(width);
    if (fresh) {
      at->second.bits.resize(width * kEdabits);
      ideal_->edabits(width, at->second.r, at->second.bits);
    }
    return at->second;
  }

  void draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) override {
    ideal_->masks(owner, r, clear);
  }
  void draw_randoms(WordSpan<R> r) override { repeat(randoms_, 0, kWords, r); }
  void draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) override {
    repeat(a_, 0, kWords, a);
    repeat(b_, 0, kWords, b);
    repeat(c_, 0, kWords, c);
  }
  void draw_squares(WordSpan<R> a, WordSpan<R> square) override {
    repeat(d_, 0, kWords, a);
    repeat(d2_, 0, kWords, square);
  }
  void draw_bits(WordSpan<R> b) override { repeat(bits_, 0, kWords, b); }
  void draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) override {
    repeat(x_, 0, kBits, x);
    repeat(y_, 0, kBits, y);
    repeat(z_, 0, kBits, z);
  }
  void draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) override {
    const Edabits& store = edabits_of(width);
    const i64 n = r.size();
    repeat(store.r, 0, kEdabits, r);
    for (int j = 0; j < width; ++j) {
      repeat(store.bits, j * kEdabits, kEdabits, bits.part(j * n, n));
    }
  }
  void draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                           WordSpan<R> c) override {
    ideal_->matrix_triples(shape, n, a, b, c);
  }

  std::unique_ptr<Supply<R>> ideal_;
  WordShares<R> a_{kWords}, b_{kWords}, c_{kWords}, d_{kWords}, d2_{kWords}, bits_{kWords},
      randoms_{kWords};
  BitShares<R> x_{kBits}, y_{kBits}, z_{kBits};
  std::map<int, Edabits> edabits_;
};

template <class R>
struct Data {
  explicit Data(i64 n) : x(n), y(n), z(n), a(n), b(n), c(n) {}
  WordShares<R> x, y, z;
  BitShares<R> a, b, c;
};

template <class R>
struct Row {
  std::string name;
  std::function<void(Session<R>&, Data<R>&)> run;
};

template <class R>
std::vector<Row<R>> all_rows() {
  using S = Session<R>&;
  using D = Data<R>&;
  constexpr int k = R::k;
  const auto truncation = [](TruncationKind kind) {
    return [kind](S s, D d) { truncate<R>(s, d.x, {k, 16, kind}, d.z); };
  };
  return {
      {"multiply", [](S s, D d) { multiply<R>(s, d.x, d.y, d.z); }},
      {"square", [](S s, D d) { square<R>(s, d.x, d.z); }},
      {"bit_and", [](S s, D d) { and_bits<R>(s, d.a, d.b, d.c); }},
      {"bits_to_ring", [](S s, D d) { bits_to_ring<R>(s, d.a, d.z); }},
      {"less_than", [](S s, D d) { less_than<R>(s, d.x, d.y, k, Range::restricted, d.z); }},
      {"less_than_full", [](S s, D d) { less_than<R>(s, d.x, d.y, k, Range::full, d.z); }},
      {"less_than32", [](S s, D d) { less_than<R>(s, d.x, d.y, 32, Range::restricted, d.z); }},
      {"equal", [](S s, D d) { equal_zero<R>(s, d.x, k, d.z); }},
      {"relu", [](S s, D d) { relu<R>(s, d.x, k, d.z); }},
      {"truncate_bounded", truncation(TruncationKind::bounded)},
      {"truncate_probable", truncation(TruncationKind::probable)},
      {"truncate_exact", truncation(TruncationKind::exact)},
      {"maximum_of_8",
       [](S s, D d) {
         const i64 n = d.x.size() / 8;
         maximum<R>(s, d.x.part(0, 8 * n), 8, k, d.z.part(0, n));
       }},
  };
}

// Both parties run every row twice and time the second run.
template <class R>
void run_party(int rank, net::Channel& channel, i64 n, const std::string& names,
               std::barrier<>& together) {
  crypto::Prg prg({static_cast<u64>(rank), 1});
  RepeatingSupply<R> supply(rank);
  Session<R> session(rank, channel, prg, ideal_key<R>(kSeed, rank));
  session.set_supply(supply);
  Data<R> data(n);
  supply.randoms(data.x);
  supply.randoms(data.y);
  to_bits(data.x, data.a);
  to_bits(data.y, data.b);
  for (const Row<R>& row : all_rows<R>()) {
    if (!names.empty() && ("," + names + ",").find("," + row.name + ",") == std::string::npos) {
      continue;
    }
    const auto run = [&] {
      row.run(session, data);
      check(session);
      channel.flush();
      together.arrive_and_wait();
    };
    run();
    const net::Traffic before = channel.traffic();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const net::Traffic after = channel.traffic();
    if (rank == 0) {
      const double count = static_cast<double>(n);
      std::printf("%2d/%-2d %-18s %8lld %9.4f s %11.0f /s %8.2f B/party %6lld hops\n", R::k, R::s,
                  row.name.c_str(), static_cast<long long>(n), seconds.count(),
                  count / seconds.count(), static_cast<double>(after.sent - before.sent) / count,
                  static_cast<long long>(after.depth - before.depth));
      std::fflush(stdout);
    }
    together.arrive_and_wait();
  }
}

template <class R>
void run_ring(i64 n, const std::string& names) {
  net::TcpListener listener("127.0.0.1", 0);
  std::barrier together(2);
  const auto party = [&](int rank) {
    try {
      const auto channel =
          rank == 0 ? listener.accept(std::chrono::seconds(10))
                    : net::connect_tcp("127.0.0.1", listener.port(), std::chrono::seconds(10));
      run_party<R>(rank, *channel, n, names, together);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "party %d: %s\n", rank, error.what());
      std::exit(1);
    }
  };
  std::thread other(party, 1);
  party(0);
  other.join();
}

}  // namespace
}  // namespace privml::spdz2k

int main(int argc, char** argv) {
  const privml::i64 n = argc > 1 ? std::atoll(argv[1]) : 100000;
  const std::string names = argc > 2 ? argv[2] : "";
  privml::spdz2k::run_ring<privml::spdz2k::Ring64>(n, names);
  privml::spdz2k::run_ring<privml::spdz2k::Ring32>(n, names);
}
