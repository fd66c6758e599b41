// SPDX-License-Identifier: Apache-2.0
// Bytes and speed of products, tables and digits between two threads over loopback TCP,
// correlations included. Arguments: SoftSpoken's k (default 4), then names of rows (default all).
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp.h"
#include "ot/setup.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/convolution.h"
#include "twopc/product/matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/product/wide_matmul.h"

namespace privml::twopc {
namespace {

using Words = std::vector<u64>;

using Run = std::function<void(ot::Party&)>;

struct Row {
  std::string name;
  i64 n;                             // elements per run
  std::function<Run(int)> prepared;  // party `rank`'s run, its inputs made outside the timed part
};

Words random_words(i64 count, int bits) {
  Words words(count);
  crypto::Prg(crypto::os_random_block()).fill_ring(words, bits);
  return words;
}

Words operand_words(const Operand& format, int rank, i64 count) {
  return format.owner == kShared || format.owner == rank ? random_words(count, format.bits)
                                                         : Words{};
}

Row multiply_row(const char* name, i64 n, int bits, int ell, bool nonnegative) {
  return {name, n, [=](int) -> Run {
            const FactorFormat format{bits, true, nonnegative};
            return [=, x = random_words(n, bits), y = random_words(n, bits),
                    out = Words(n)](ot::Party& party) mutable {
              multiply(party, x, format, y, format, ell, out);
            };
          }};
}

Row lookup_row(const char* name, i64 n, int index_bits, int width) {
  return {name, n, [=](int) -> Run {
            return [=, table = random_words(i64{1} << index_bits, width),
                    index = random_words(n, index_bits), out = Words(n)](ot::Party& party) mutable {
              lookup(party, table, index, index_bits, width, out);
            };
          }};
}

Row transfer_row(const char* name, i64 n, int index_bits, int width) {
  return {name, n, [=](int rank) -> Run {
            if (rank == 0)
              return [=, messages = random_words(n << index_bits, width)](ot::Party& party) {
                transfer_one_of_n_send(party, messages, index_bits, width);
              };
            const Words places = random_words(n, index_bits);
            return [=, choices = std::vector<u8>(places.begin(), places.end()),
                    out = Words(n)](ot::Party& party) mutable {
              transfer_one_of_n_receive(party, choices, index_bits, width, out);
            };
          }};
}

Row matmul_row(const char* name, MatrixShape shape, Operand x, Operand y, int ell) {
  return {name, 1, [=](int rank) -> Run {
            return [=, left = operand_words(x, rank, shape.rows * shape.inner),
                    right = operand_words(y, rank, shape.inner * shape.columns),
                    out = Words(shape.rows * shape.columns)](ot::Party& party) mutable {
              matmul(party, x, left, y, right, shape, ell, out);
            };
          }};
}

// Several of them in one session, whose keys come with the first.
Row wide_row(const char* name, i64 products, i64 batch, MatrixShape shape, int ell) {
  return {name, products, [=](int) -> Run {
            const WideProduct product{batch, shape, {kShared, ell}, {kShared, ell}, ell};
            return [=, x = random_words(batch * shape.rows * shape.inner, ell),
                    y = random_words(batch * shape.inner * shape.columns, ell),
                    out = Words(batch * shape.rows * shape.columns)](ot::Party& party) mutable {
              WideSession session;
              for (i64 i = 0; i < products; ++i) wide_matmul(party, session, product, x, y, out);
            };
          }};
}

Row convolution_row(const char* name, const linear::ConvolutionShape& shape, Operand in,
                    Operand kernel, int ell) {
  return {name, 1, [=](int rank) -> Run {
            return [=, pixels = operand_words(in, rank, shape.in_count()),
                    weights = operand_words(kernel, rank, shape.kernel_count()),
                    out = Words(shape.out_count())](ot::Party& party) mutable {
              convolution(party, in, pixels, kernel, weights, shape, ell, out);
            };
          }};
}

Row digits_row(const char* name, i64 n, int ell, int digit_bits) {
  return {name, n, [=](int) -> Run {
            return [=, x = random_words(n, ell), out = Words(digit_count(ell, digit_bits) * n)](
                       ot::Party& party) mutable { digits(party, x, ell, digit_bits, out); };
          }};
}

Row nonzero_bit_row(const char* name, i64 n, int ell) {
  return {name, n, [=](int) -> Run {
            return [=, x = random_words(n, ell),
                    out = std::vector<u8>(n * ell)](ot::Party& party) mutable {
              most_significant_nonzero_bit(party, x, ell, out);
            };
          }};
}

std::vector<Row> rows() {
  const i64 n = i64{1} << 18;
  const Operand shared{kShared, 32, true}, pixels{1, 8, false}, weights{0, 12, true};
  linear::ConvolutionShape first{1, 1, 28, 28, 6, 5, 5}, second{1, 6, 14, 14, 16, 5, 5};
  first.pad_top = first.pad_left = first.pad_bottom = first.pad_right = 2;
  linear::ConvolutionShape block{1, 64, 32, 32, 64, 3, 3};
  block.pad_top = block.pad_left = block.pad_bottom = block.pad_right = 1;
  return {
      multiply_row("multiply16", n, 16, 32, false),
      multiply_row("multiply16_nonnegative", n, 16, 32, true),
      multiply_row("multiply32", n, 32, 32, false),
      multiply_row("multiply64", n / 4, 64, 64, false),
      lookup_row("lut8x16", n, 8, 16),
      lookup_row("lut4x16", n, 4, 16),
      transfer_row("ot16", 4 * n, 4, 2),
      digits_row("digits32", n, 32, 8),
      nonzero_bit_row("msnzb32", n, 32),
      convolution_row("lenet_conv1", first, pixels, weights, 32),
      convolution_row("lenet_conv2", second, shared, weights, 32),
      matmul_row("lenet_fc1", {1, 400, 120}, shared, weights, 32),
      matmul_row("lenet_fc2", {1, 120, 84}, shared, weights, 32),
      matmul_row("lenet_fc3", {1, 84, 10}, shared, weights, 32),
      convolution_row("conv3x3_64_32x32", block, shared, weights, 32),
      matmul_row("matmul", {128, 768, 768}, shared, {0, 16, true}, 32),
      wide_row("wide_matmul", 1, 1, {128, 768, 768}, 32),
      wide_row("wide_matmul_4", 4, 1, {128, 768, 768}, 32),
      wide_row("wide_attention", 1, 12, {128, 64, 128}, 32),
      wide_row("wide_attention_4", 4, 12, {128, 64, 128}, 32),
      wide_row("wide_attention_44", 1, 12, {128, 64, 128}, 44),
      wide_row("wide_attention_64", 1, 12, {128, 64, 128}, 64),
      wide_row("wide_block_4", 4, 4, {32, 32, 32}, 32),
  };
}

struct Measured {
  double seconds = 0;          // until the later party is done
  double cpu_seconds[2] = {};  // of each party's thread
  i64 bytes = 0, preprocess_bytes = 0, depth = 0;
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Measured measure(const Row& row, int k) {
  net::TcpListener listener("127.0.0.1", 0);
  Measured m;
  std::barrier together(2);
  net::Traffic traffic[2];
  double seconds[2];
  const auto run = [&](int rank) {
    const std::chrono::seconds deadline(60);
    const std::unique_ptr<net::Channel> channel =
        rank == 0 ? listener.accept(deadline)
                  : net::connect_tcp("127.0.0.1", listener.port(), deadline);
    const auto resources =
        ot::make_party_resources(*channel, rank, {"softspoken", k, "semi_honest", {}});
    ot::Party& party = resources->party();
    const Run timed = row.prepared(rank);
    const net::Traffic before = channel->traffic();
    together.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = thread_seconds();
    timed(party);
    channel->flush();
    m.cpu_seconds[rank] = thread_seconds() - cpu_start;
    seconds[rank] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    traffic[rank] = channel->traffic();
    traffic[rank].sent -= before.sent;
    traffic[rank].depth -= before.depth;
    const ot::PhaseCount& preprocess = party.ledger.phases[static_cast<int>(ot::Phase::preprocess)];
    if (rank == 0) m.preprocess_bytes = preprocess.sent + preprocess.received;
    together.arrive_and_wait();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  m.seconds = std::max(seconds[0], seconds[1]);
  m.bytes = traffic[0].sent + traffic[1].sent;
  m.depth = std::max(traffic[0].depth, traffic[1].depth);
  return m;
}

}  // namespace
}  // namespace privml::twopc

int main(int argc, char** argv) {
  using namespace privml;
  using namespace privml::twopc;
  const int k = argc > 1 ? std::atoi(argv[1]) : 4;
  std::printf("%-24s %9s %9s %9s %12s %14s %14s %6s\n", "row", "seconds", "cpu 0", "cpu 1",
              "per second", "bytes each", "correlations", "depth");
  for (const Row& row : rows()) {
    bool wanted = argc <= 2;
    for (int i = 2; i < argc; ++i) wanted |= row.name == argv[i];
    if (!wanted) continue;
    const Measured m = measure(row, k);
    const double n = static_cast<double>(row.n);
    std::printf("%-24s %9.4f %9.4f %9.4f %12.0f %14.2f %14.2f %6ld\n", row.name.c_str(), m.seconds,
                m.cpu_seconds[0], m.cpu_seconds[1], n / m.seconds, static_cast<double>(m.bytes) / n,
                static_cast<double>(m.preprocess_bytes) / n, m.depth);
    std::fflush(stdout);
  }
}
