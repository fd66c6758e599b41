// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/error.h"
#include "base/transpose.h"
#include "base/wipe.h"
#include "crypto/aes.h"
#include "crypto/prg.h"
#include "ot/ggm.h"
#include "ot/vole_fold.h"

namespace privml {
namespace {

constexpr i64 kRows = 128;
constexpr i64 kGranularity = 256;  // an even number of blocks per row
// Bounds the bytes in flight (2 MB at k = 4, 8 MB at k = 1) and covers a wide-area round trip.
constexpr i64 kTile = i64{1} << 19;

// Correlations made at once: their rows stay in the second-level cache, and a key schedule is read
// once for all of them. High degrees have many keys.
constexpr i64 slice_size(int k) { return k <= 4 ? 4096 : 8192; }

// Element i of delta: bits [k * i, k * i + bits).
struct Element {
  int first_bit;
  int bits;
};

std::vector<Element> elements_of(int k) {
  expect(1 <= k && k <= kSoftSpokenMaxDegree, "SoftSpoken OT: k must be in 1..8");
  std::vector<Element> elements;
  for (int bit = 0; bit < kRows; bit += k) {
    elements.push_back({bit, std::min<int>(k, kRows - bit)});
  }
  return elements;
}

u64 element_value(Block delta, const Element& element) {
  u64 value = 0;
  for (int b = 0; b < element.bits; ++b) {
    const int bit = element.first_bit + b;
    value |= ((bit < 64 ? delta.lo >> bit : delta.hi >> (bit - 64)) & 1) << b;
  }
  return value;
}

// What both sides share: the expanded seeds and the rows of one slice.
class Vole {
 public:
  Vole(int k, bool punctured)
      : elements_(elements_of(k)),
        slice_(slice_size(k)),
        punctured_(punctured),
        expanded_((i64{1} << kFoldMaxDigit) * slice_ / 128),
        totals_((i64{1} << (kSoftSpokenMaxDegree - kFoldMaxDigit)) * slice_ / 128),
        rows_(kRows * slice_ / 128),
        correction_((count() - 1) * slice_ / 128) {
    i64 seeds = 0;
    for (const Element& element : elements_) seeds += i64{1} << element.bits;
    seeds_.reserve(seeds);
  }

  Vole(const Vole&) = delete;

  i64 count() const { return std::ssize(elements_); }
  i64 slice() const { return slice_; }
  const Element& element(i64 i) const { return elements_[i]; }
  Block* row(i64 index, i64 blocks) { return rows_.data() + index * blocks; }
  Block* correction(i64 i, i64 blocks) { return correction_.data() + (i - 1) * blocks; }
  MutableBytes correction_bytes(i64 blocks) {
    return {reinterpret_cast<u8*>(correction_.data()),
            static_cast<size_t>((count() - 1) * blocks * static_cast<i64>(sizeof(Block)))};
  }

  void add_seeds(const WipedVector<Block>& leaves) {
    for (Block leaf : leaves) seeds_.emplace_back(leaf);
  }

  // Fills all rows of a slice; total(i) is called with u_i (meaningful at the receiver only).
  template <class Total>
  void expand(i64 blocks, Total&& total) {
    std::fill(rows_.begin(), rows_.begin() + kRows * blocks, kZeroBlock);
    const Aes128* seeds = seeds_.data();
    for (i64 i = 0; i < count(); ++i) {
      const int bits = elements_[i].bits;
      Block* planes = row(elements_[i].first_bit, blocks);
      const int low = std::min(bits, kFoldMaxDigit);
      const i64 groups = i64{1} << (bits - low);
      for (i64 group = 0; group < groups; ++group) {
        for (i64 x = 0; x < i64{1} << low; ++x, ++seeds) {
          Block* out = expanded_.data() + x * blocks;
          if (punctured_ && group == 0 && x == 0) {
            std::fill(out, out + blocks, kZeroBlock);  // the unknown leaf, whose factor is zero
          } else {
            seeds->encrypt_counter({position_, 0}, out, blocks);
          }
        }
        vole_fold(expanded_.data(), low, blocks, totals_.data() + group * blocks, planes);
      }
      // The upper bits of x select whole groups.
      if (groups > 1) {
        vole_fold(totals_.data(), bits - low, blocks, expanded_.data(), planes + low * blocks);
      }
      total(i, groups > 1 ? expanded_.data() : totals_.data());
    }
    position_ += blocks;
  }

  void transpose_rows(i64 blocks, Block* out) { transpose_128(rows_.data(), blocks, out); }

 private:
  std::vector<Element> elements_;
  i64 slice_;
  bool punctured_;
  std::vector<Aes128> seeds_;  // element by element, 2^bits each
  u64 position_ = 0;           // in blocks of 128 correlations
  WipedVector<Block> expanded_;
  WipedVector<Block> totals_;
  WipedVector<Block> rows_;
  AlignedVector<Block> correction_;
};

void check_step(const Rcot& side, int s, i64 count) {
  expect(0 <= s && s <= side.messages() && side.role() == extension_role(s),
         "SoftSpoken OT: the receiver takes step 0 of an extension, the sender step 1");
  expect(count >= 0 && count <= kTile && count % kGranularity == 0,
         "SoftSpoken OT: extend by a multiple of the granularity, at most one tile");
}

class SoftSpokenSender final : public Rcot {
 public:
  SoftSpokenSender(Channel& channel, int k, Block delta, const std::vector<Block>& keys)
      : channel_(channel), delta_(delta), vole_(k, true) {
    expect(std::ssize(keys) == kRows, "SoftSpoken OT: needs 128 base OTs");
    expect(low_bit(delta) == 1, "SoftSpoken OT: the lowest bit of the offset must be 1");
    std::vector<std::array<Block, 2>> masked(kRows);
    channel.read({reinterpret_cast<u8*>(masked.data()), kSoftSpokenSeedBytes});
    const std::vector<u8> choices = softspoken_base_choices(delta, k);
    for (i64 i = 0; i < vole_.count(); ++i) {
      const Element& element = vole_.element(i);
      std::vector<Block> sums(element.bits);
      for (int level = 0; level < element.bits; ++level) {
        const int j = element.first_bit + level;
        sums[level] = keys[j] ^ masked[j][0] ^ select(choices[j], masked[j][0] ^ masked[j][1]);
      }
      const WipedVector<Block> leaves = ggm_puncture(sums, element_value(delta, element));
      vole_.add_seeds(leaves);
    }
  }
  ~SoftSpokenSender() override { wipe(&delta_, sizeof(delta_)); }

  OtRole role() const override { return OtRole::sender; }
  Block delta() const override { return delta_; }
  i64 granularity() const override { return kGranularity; }
  i64 tile() const override { return kTile; }

  int messages() const override { return 1; }

  void step(int s, Block* out, i64 count) override {
    check_step(*this, s, count);
    for (i64 done = 0; done < count; done += vole_.slice()) {
      const i64 blocks = std::min(vole_.slice(), count - done) / 128;
      vole_.expand(blocks, [](i64, const Block*) {});
      channel_.read(vole_.correction_bytes(blocks));
      for (i64 i = 1; i < vole_.count(); ++i) correct(i, blocks);
      // Row 0 would differ from the receiver's by u_0: dropping it leaves lsb(q) = 0, lsb(t) =
      // choice.
      std::fill(vole_.row(0, blocks), vole_.row(0, blocks) + blocks, kZeroBlock);
      vole_.transpose_rows(blocks, out + done);
    }
  }

 private:
  void correct(i64 i, i64 blocks) {
    const Element& element = vole_.element(i);
    const u64 value = element_value(delta_, element);
    const Block* correction = vole_.correction(i, blocks);
    for (int b = 0; b < element.bits; ++b) {
      const u8 bit = value >> b & 1;
      Block* row = vole_.row(element.first_bit + b, blocks);
      for (i64 j = 0; j < blocks; ++j) row[j] ^= select(bit, correction[j]);
    }
  }

  Channel& channel_;
  Block delta_;
  Vole vole_;
};

class SoftSpokenReceiver final : public Rcot {
 public:
  SoftSpokenReceiver(Channel& channel, int k, Block root,
                     const std::vector<std::array<Block, 2>>& keys)
      : channel_(channel), vole_(k, false), choices_(vole_.slice() / 128) {
    expect(std::ssize(keys) == kRows, "SoftSpoken OT: needs 128 base OTs");
    Prg roots(root);
    std::vector<std::array<Block, 2>> masked(kRows);
    for (i64 i = 0; i < vole_.count(); ++i) {
      const Element& element = vole_.element(i);
      const GgmTree tree = ggm_expand(roots.next_block(), element.bits);
      for (int level = 0; level < element.bits; ++level) {
        const int j = element.first_bit + level;
        for (int side : {0, 1}) masked[j][side] = keys[j][side] ^ tree.sums[level][side];
      }
      vole_.add_seeds(tree.leaves);
    }
    channel.write({reinterpret_cast<const u8*>(masked.data()), kSoftSpokenSeedBytes});
  }

  OtRole role() const override { return OtRole::receiver; }
  Block delta() const override {
    throw InvalidArgument("delta: only the sender of a correlated OT knows the offset");
  }
  i64 granularity() const override { return kGranularity; }
  i64 tile() const override { return kTile; }

  int messages() const override { return 1; }

  void step(int s, Block* out, i64 count) override {
    check_step(*this, s, count);
    for (i64 done = 0; done < count; done += vole_.slice()) {
      const i64 blocks = std::min(vole_.slice(), count - done) / 128;
      vole_.expand(blocks, [&](i64 i, const Block* u) {
        if (i == 0) {
          std::copy(u, u + blocks, choices_.begin());
          return;
        }
        Block* correction = vole_.correction(i, blocks);
        for (i64 j = 0; j < blocks; ++j) correction[j] = u[j] ^ choices_[j];
      });
      channel_.write(vole_.correction_bytes(blocks));
      std::copy(choices_.begin(), choices_.begin() + blocks, vole_.row(0, blocks));
      vole_.transpose_rows(blocks, out + done);
    }
  }

 private:
  Channel& channel_;
  Vole vole_;
  WipedVector<Block> choices_;  // u_0
};

}  // namespace

std::vector<u8> softspoken_base_choices(Block delta, int k) {
  std::vector<u8> choices(kRows);
  for (const Element& element : elements_of(k)) {
    const u64 value = element_value(delta, element);
    for (int level = 0; level < element.bits; ++level) {
      choices[element.first_bit + level] = ~(value >> (element.bits - 1 - level)) & 1;
    }
  }
  return choices;
}

std::unique_ptr<Rcot> make_softspoken_sender(Channel& channel, int k, Block delta,
                                             const std::vector<Block>& keys) {
  return std::make_unique<SoftSpokenSender>(channel, k, delta, keys);
}

std::unique_ptr<Rcot> make_softspoken_receiver(Channel& channel, int k, Block root,
                                               const std::vector<std::array<Block, 2>>& keys) {
  return std::make_unique<SoftSpokenReceiver>(channel, k, root, keys);
}

RcotCost softspoken_cost(int k) {
  elements_of(k);
  return {"softspoken", k, kGranularity, kTile, 1};
}

}  // namespace privml
