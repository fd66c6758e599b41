// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/prepared_product.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/pack.h"

namespace privml::twopc {
namespace {

// In front of a stored half.
struct Header {
  std::array<u8, 8> magic;
  i64 owner, rows, inner, columns, ell, seeds, batch, first;
  lattice::Digest weights, digest;
};

constexpr std::array<u8, 8> kMagic{'p', 'r', 'o', 'd', 'u', 'c', 't', '2'};
constexpr i64 kMost = i64{1} << 40;  // of numbers in a half

Header header_of(const PreparedProduct& half) {
  const auto& [rows, inner, columns] = half.shape;
  return {kMagic,
          half.owner,
          rows,
          inner,
          columns,
          half.ell,
          std::ssize(half.row_seeds),
          half.batch,
          half.first,
          half.weights,
          half.digest};
}

bool is_valid(const Header& header) {
  const auto below = [](i64 x, i64 limit) { return x >= 0 && x <= limit; };
  return header.magic == kMagic && below(header.owner, 1) && header.ell >= 1 &&
         below(header.ell, 64) && below(header.rows, kMost) && below(header.inner, kMost) &&
         below(header.columns, kMost) && below(header.batch, kMost) && below(header.first, kMost) &&
         (header.columns == 0 || header.rows <= kMost / header.columns) &&
         (header.seeds == 0 || header.seeds == header.rows);
}

i64 bytes_of(const Header& header) {
  return static_cast<i64>(sizeof header) + header.seeds * static_cast<i64>(sizeof(crypto::Block)) +
         packed_bytes(header.rows * header.columns, static_cast<int>(header.ell));
}

// Moves the last `count` elements out, so that the others need not move.
template <class T>
WipedVector<T> split(WipedVector<T>& all, i64 count) {
  if (all.empty()) return {};
  WipedVector<T> last(all.end() - count, all.end());
  wipe(all.data() + all.size() - count, static_cast<std::size_t>(count) * sizeof(T));
  all.resize(all.size() - count);
  return last;
}

}  // namespace

PreparedProduct take_rows(PreparedProduct& from, i64 rows) {
  expect(rows >= 0 && rows <= from.shape.rows, "lattice: fewer rows are prepared than asked for");
  PreparedProduct taken{from.owner, from.shape, from.ell, from.weights, from.digest, from.batch};
  taken.first = from.first + from.shape.rows - rows;
  taken.shape.rows = rows;
  taken.share = split(from.share, rows * from.shape.columns);
  taken.row_seeds = split(from.row_seeds, rows);
  from.shape.rows -= rows;
  return taken;
}

crypto::Block tag_of(const PreparedProduct& half) {
  return lattice::tag_of_rows(half.digest, half.batch, half.first, half.shape.rows);
}

void fill_mask(crypto::Block seed, int ell, std::span<u64> row) {
  crypto::Prg(seed).fill_ring(row, ell);
}

void send_masked(ot::Party& party, const PreparedProduct& half, std::span<const u64> x) {
  const auto& [rows, inner, columns] = half.shape;
  const crypto::Block tag = tag_of(half);
  WipedVector<u64> masked(rows * inner);
  for (i64 i = 0; i < rows; ++i) {
    const std::span<u64> row = std::span(masked).subspan(i * inner, inner);
    fill_mask(half.row_seeds[i], half.ell, row);
    for (i64 k = 0; k < inner; ++k) row[k] = x[i * inner + k] - row[k];
  }
  std::vector<u8> wire(packed_bytes(rows * inner, half.ell));
  pack(masked.data(), rows * inner, half.ell, wire.data());
  party.channel.write({reinterpret_cast<const u8*>(&tag), sizeof tag});
  party.channel.write(wire);
}

std::vector<u64> receive_masked(ot::Party& party, const PreparedProduct& half,
                                std::span<const u64> share) {
  const i64 count = half.shape.rows * half.shape.inner;
  crypto::Block theirs;
  party.channel.read({reinterpret_cast<u8*>(&theirs), sizeof theirs});
  if (!(theirs == tag_of(half)))
    throw ProtocolError("lattice: the peer's half was prepared with another one than this party's");
  std::vector<u8> wire(packed_bytes(count, half.ell));
  party.channel.read(wire);
  std::vector<u64> sum(count);
  unpack(wire.data(), count, half.ell, sum.data());
  for (std::size_t i = 0; i < share.size(); ++i) sum[i] = (sum[i] + share[i]) & low_mask(half.ell);
  return sum;
}

void cost_masked(ot::CostMeter& meter, int owner, i64 numbers, int ell) {
  meter.message(1 - owner, static_cast<i64>(sizeof(crypto::Block)) + packed_bytes(numbers, ell));
}

i64 stored_bytes(const PreparedProduct& half) { return bytes_of(header_of(half)); }

WipedVector<u8> to_bytes(const PreparedProduct& half) {
  const Header header = header_of(half);
  WipedVector<u8> out(bytes_of(header));
  std::memcpy(out.data(), &header, sizeof header);
  u8* rest = out.data() + sizeof header;
  const std::size_t seeds = half.row_seeds.size() * sizeof(crypto::Block);
  if (seeds != 0) std::memcpy(rest, half.row_seeds.data(), seeds);
  pack(half.share.data(), std::ssize(half.share), half.ell, rest + seeds);
  return out;
}

std::optional<PreparedProduct> from_bytes(Bytes bytes) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_valid(header) || bytes_of(header) != std::ssize(bytes)) return std::nullopt;
  PreparedProduct half{static_cast<int>(header.owner),
                       {header.rows, header.inner, header.columns},
                       static_cast<int>(header.ell),
                       header.weights,
                       header.digest,
                       header.batch,
                       header.first,
                       WipedVector<crypto::Block>(header.seeds),
                       WipedVector<u64>(header.rows * header.columns)};
  const u8* rest = bytes.data() + sizeof header;
  const std::size_t seeds = half.row_seeds.size() * sizeof(crypto::Block);
  if (seeds != 0) std::memcpy(half.row_seeds.data(), rest, seeds);
  unpack(rest + seeds, std::ssize(half.share), half.ell, half.share.data());
  return half;
}

// Numbers of up to 16 bits in two bytes each: hashing is what takes time.
lattice::Digest fingerprint(Operand format, std::span<const u64> weights, i64 inner, i64 columns) {
  constexpr std::size_t kTile = 4096;
  lattice::Digest out{};
  if (weights.empty()) return out;
  const std::array<i64, 4> header{inner, columns, format.bits, format.is_signed};
  const int width = format.bits <= 16 ? 16 : 64;
  std::array<u8, kTile * sizeof(u64)> tile;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(header.data()), sizeof header);
  std::array<u64, kTile> words;
  for (std::size_t done = 0; done < weights.size(); done += kTile) {
    const std::size_t count = std::min(kTile, weights.size() - done);
    for (std::size_t i = 0; i < count; ++i) words[i] = weights[done + i] & low_mask(format.bits);
    pack(words.data(), static_cast<i64>(count), width, tile.data());
    crypto_generichash_update(&state, tile.data(), count * static_cast<std::size_t>(width / 8));
  }
  crypto_generichash_final(&state, out.data(), out.size());
  wipe(words.data(), sizeof words);
  wipe(tile.data(), sizeof tile);
  return out;
}

}  // namespace privml::twopc
