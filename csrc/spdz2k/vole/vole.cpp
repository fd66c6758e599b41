// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/vole/vole.h"

#include "base/error.h"

namespace privml::spdz2k {
namespace {

// Elements that are worked on at once: a digit's streams stay in the second-level cache.
constexpr i64 kBlock = 64;

template <class W>
constexpr i64 kStreamBlocks =
    kBlock * static_cast<i64>(sizeof(W)) / static_cast<i64>(sizeof(crypto::Block));

// The words of a digit's streams, kBlock of each, and their sums.
template <class W>
class Digit {
 public:
  explicit Digit(const TreeShape& shape)
      : width_(shape.width), streams_(shape.leaves() * kBlock), sums_(shape.width * kBlock) {}

  void load(const SeedStreams& streams, int digit) {
    streams.read(digit, kStreamBlocks<W>, reinterpret_cast<crypto::Block*>(streams_.data()));
    std::fill(sums_.begin(), sums_.end(), W(0));
    for (int bit = width_ - 1; bit >= 0; --bit) {
      W* sum = sums_.data() + bit * kBlock;
      const i64 half = i64{1} << bit;
      for (i64 y = 0; y < half; ++y) {
        W* low = streams_.data() + y * kBlock;
        const W* high = low + half * kBlock;
        for (i64 i = 0; i < kBlock; ++i) {
          sum[i] += high[i];
          low[i] += high[i];
        }
      }
    }
  }
  // Of all streams; only the vector's side has it.
  const W* total() const { return streams_.data(); }
  // Of the streams whose number has the bit.
  const W* sum(int bit) const { return sums_.data() + bit * kBlock; }

 private:
  int width_;
  WipedVector<W> streams_, sums_;
};

template <class W>
W power_of_two(int exponent) {
  return static_cast<W>(u128{1} << exponent);
}

// Calls take(digit number, first, count, digit) after the corrections x - u are written.
template <class W, class Bits, class Take>
void send(SeedStreams& streams, net::Channel& channel, std::span<const W> x, Bits&& bits,
          Take&& take) {
  const TreeShape shape = streams.shape();
  Digit<W> digit(shape);
  std::array<W, kBlock> correction;
  const i64 n = std::ssize(x);
  for (i64 first = 0; first < n; first += kBlock) {
    const i64 count = std::min(kBlock, n - first);
    for (int d = 0; d < shape.digits; ++d) {
      digit.load(streams, d);
      for (i64 i = 0; i < count; ++i) {
        correction[i] = static_cast<W>(x[first + i] - digit.total()[i]);
      }
      write_column(channel, correction.data(), count, bits(d));
      take(d, first, count, digit);
    }
    streams.advance(kStreamBlocks<W>);
  }
}

template <class W, class Bits, class Take>
void receive(SeedStreams& streams, net::Channel& channel, i64 n, Bits&& bits, Take&& take) {
  const TreeShape shape = streams.shape();
  Digit<W> digit(shape);
  std::array<W, kBlock> correction;
  for (i64 first = 0; first < n; first += kBlock) {
    const i64 count = std::min(kBlock, n - first);
    for (int d = 0; d < shape.digits; ++d) {
      digit.load(streams, d);
      read_column(channel, correction.data(), count, bits(d));
      take(d, first, count, digit, correction.data());
    }
    streams.advance(kStreamBlocks<W>);
  }
}

template <class Bits>
i64 correction_bytes(const TreeShape& shape, i64 n, Bits&& bits) {
  i64 bytes = 0;
  for (int d = 0; d < shape.digits; ++d) {
    bytes += n / kBlock * column_bytes(kBlock, bits(d)) + column_bytes(n % kBlock, bits(d));
  }
  return bytes;
}

// Bits that matter of a correction that weighs 2^(width d).
auto shrinking(const TreeShape& shape, int b) {
  return [width = shape.width, b](int d) { return b - width * d; };
}
auto constant(int b) {
  return [b](int) { return b; };
}

}  // namespace

template <class W>
void vector_times_key(SeedStreams& peer_key, net::Channel& channel, int b, std::span<const W> x,
                      std::span<W> v) {
  const TreeShape shape = peer_key.shape();
  std::fill(v.begin(), v.end(), W(0));
  send(peer_key, channel, x, shrinking(shape, b),
       [&](int d, i64 first, i64 count, const Digit<W>& digit) {
         for (int bit = 0; bit < shape.width; ++bit) {
           const W factor = power_of_two<W>(d * shape.width + bit);
           const W* sum = digit.sum(bit);
           for (i64 i = 0; i < count; ++i) v[first + i] -= product(factor, sum[i]);
         }
       });
}

template <class W>
void key_times_vector(SeedStreams& own_key, net::Channel& channel, int b, std::span<const u8> key,
                      std::span<W> m) {
  const TreeShape shape = own_key.shape();
  std::fill(m.begin(), m.end(), W(0));
  receive<W>(own_key, channel, std::ssize(m), shrinking(shape, b),
             [&](int d, i64 first, i64 count, const Digit<W>& digit, const W* correction) {
               W value(0);
               for (int bit = 0; bit < shape.width; ++bit) {
                 const int exponent = d * shape.width + bit;
                 const W weight = product(power_of_two<W>(exponent), W(key[exponent]));
                 value += weight;
                 // 2^e or -2^e, without a branch on the key.
                 const W factor = static_cast<W>(weight + weight - power_of_two<W>(exponent));
                 const W* sum = digit.sum(bit);
                 for (i64 i = 0; i < count; ++i) m[first + i] += product(factor, sum[i]);
               }
               for (i64 i = 0; i < count; ++i) m[first + i] += product(value, correction[i]);
             });
}

i64 key_product_bytes(const TreeShape& shape, int b, i64 n) {
  return correction_bytes(shape, n, shrinking(shape, b));
}

template <class W>
Columns<W> vector_times_bits(SeedStreams& peer_key, net::Channel& channel, int b,
                             std::span<const W> x) {
  const TreeShape shape = peer_key.shape();
  Columns<W> v(shape.bits(), std::ssize(x));
  send(peer_key, channel, x, constant(b), [&](int d, i64 first, i64 count, const Digit<W>& digit) {
    for (int bit = 0; bit < shape.width; ++bit) {
      W* out = v[d * shape.width + bit] + first;
      const W* sum = digit.sum(bit);
      for (i64 i = 0; i < count; ++i) out[i] = static_cast<W>(W(0) - sum[i]);
    }
  });
  return v;
}

template <class W>
Columns<W> bits_times_vector(SeedStreams& own_key, net::Channel& channel, int b,
                             std::span<const u8> key, i64 n) {
  const TreeShape shape = own_key.shape();
  Columns<W> m(shape.bits(), n);
  receive<W>(own_key, channel, n, constant(b),
             [&](int d, i64 first, i64 count, const Digit<W>& digit, const W* correction) {
               for (int bit = 0; bit < shape.width; ++bit) {
                 const W taken(key[d * shape.width + bit]);
                 const W sign = static_cast<W>(taken + taken - W(1));
                 W* out = m[d * shape.width + bit] + first;
                 const W* sum = digit.sum(bit);
                 for (i64 i = 0; i < count; ++i) {
                   out[i] = static_cast<W>(product(sign, sum[i]) + product(taken, correction[i]));
                 }
               }
             });
  return m;
}

i64 bit_product_bytes(const TreeShape& shape, int b, i64 n) {
  return correction_bytes(shape, n, constant(b));
}

#define PRIVML_INSTANTIATE(W)                                                                     \
  template void vector_times_key<W>(SeedStreams&, net::Channel&, int, std::span<const W>,         \
                                    std::span<W>);                                                \
  template void key_times_vector<W>(SeedStreams&, net::Channel&, int, std::span<const u8>,        \
                                    std::span<W>);                                                \
  template Columns<W> vector_times_bits<W>(SeedStreams&, net::Channel&, int, std::span<const W>); \
  template Columns<W> bits_times_vector<W>(SeedStreams&, net::Channel&, int, std::span<const u8>, \
                                           i64);
PRIVML_INSTANTIATE(u16)
PRIVML_INSTANTIATE(u32)
PRIVML_INSTANTIATE(u64)
PRIVML_INSTANTIATE(u128)
PRIVML_INSTANTIATE(U192)

}  // namespace privml::spdz2k
