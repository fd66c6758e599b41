// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/wipe.h"
#include "crypto/prg.h"
#include "ot/ggm.h"
#include "ot/softspoken_check.h"

namespace privml::ot {
namespace {

constexpr i64 kGranularity = 256;
// Bounds the bytes in flight (2 MB at k = 4, 8 MB at k = 1) and covers a wide-area round trip.
constexpr i64 kTile = i64{1} << 19;

using KeyPair = std::array<crypto::Block, 2>;

// The seeds' message: both sums of every level, hidden by the keys of its base OT; then the proofs.
struct SeedsMessage {
  SeedsMessage(int k, bool malicious)
      : masked(kSoftSpokenRows), proofs(malicious ? offset_elements(k).size() : 0) {}

  template <class Transfer>
  void transfer(Transfer&& piece) {
    piece(MutableBytes{reinterpret_cast<u8*>(masked.data()), masked.size() * sizeof(masked[0])});
    piece(MutableBytes{reinterpret_cast<u8*>(proofs.data()), proofs.size() * sizeof(GgmProof)});
  }
  std::vector<u8> bytes() {
    std::vector<u8> all;
    transfer([&](Bytes piece) { all.insert(all.end(), piece.begin(), piece.end()); });
    return all;
  }

  std::vector<KeyPair> masked;
  std::vector<GgmProof> proofs;
};

// What both sides share: the rows of a slice, its message and the check.
class SoftSpoken : public Rcot {
 public:
  SoftSpoken(net::Channel& channel, int k) : channel_(channel), rows_(k) {
    correction_.resize((rows_.count() - 1) * SoftSpokenRows::kSlice / 128);
  }

  i64 granularity() const override { return kGranularity; }
  i64 tile() const override { return kTile; }
  int messages() const override { return 1; }

  void step(int s, crypto::Block* out, i64 count) override {
    expect(0 <= s && s <= messages() && role() == extension_role(s),
           "SoftSpoken OT: the receiver takes step 0 of an extension, the sender step 1");
    expect(count >= 0 && count <= kTile && count % kGranularity == 0,
           "SoftSpoken OT: extend by a multiple of the granularity, at most one tile");
    if (failed_) throw SecurityAbort("SoftSpoken OT: the peer has failed a consistency check");
    if (count == 0) return;
    const i64 hiding = check_ ? kSoftSpokenHidingColumns : 0;
    if (check_) check_->begin();
    for (i64 done = 0; done < hiding + count; done += SoftSpokenRows::kSlice) {
      const i64 blocks = std::min(SoftSpokenRows::kSlice, hiding + count - done) / 128;
      make_slice(blocks);
      const i64 hidden = done == 0 ? hiding / 128 : 0;
      crypto::Block* made = out + (done == 0 ? 0 : done - hiding);
      rows_.transpose(hidden, blocks, made);
      if (check_) tell_apart(made, 128 * (blocks - hidden));
    }
    if (check_ && !finish_check()) {
      failed_ = true;
      wipe(out, static_cast<size_t>(count) * sizeof(crypto::Block));
      channel_.close();
      throw SecurityAbort("SoftSpoken OT: the peer's extension failed the consistency check");
    }
  }

 protected:
  // All rows of the next `blocks` blocks, the first row's bits being those of q or t; writes or
  // reads the slice's message.
  virtual void make_slice(i64 blocks) = 0;
  // Writes the proof, or reads it and says whether it holds.
  virtual bool finish_check() = 0;

  void begin_check(const SoftSpokenSecurity& security, Bytes seeds) {
    check_.emplace(security.context, seeds);
    offsets_.emplace(check_->offset_key());
  }

  crypto::Block* correction(i64 i, i64 blocks) { return correction_.data() + (i - 1) * blocks; }
  MutableBytes message(i64 blocks) {
    return {reinterpret_cast<u8*>(correction_.data()),
            static_cast<size_t>((rows_.count() - 1) * blocks) * sizeof(crypto::Block)};
  }

  net::Channel& channel_;
  SoftSpokenRows rows_;
  std::optional<SoftSpokenCheck> check_;  // with malicious security
  bool failed_ = false;

 private:
  // Adds the next public random blocks, but to the lowest bits, which q and t have meanings for.
  void tell_apart(crypto::Block* out, i64 count) {
    std::array<crypto::Block, 256> offsets;
    for (i64 done = 0; done < count; done += std::ssize(offsets)) {
      const i64 n = std::min<i64>(std::ssize(offsets), count - done);
      offsets_->encrypt_counter({told_apart_, 0}, offsets.data(), n);
      told_apart_ += static_cast<u64>(n);
      for (i64 i = 0; i < n; ++i) {
        out[done + i] = out[done + i] ^ crypto::Block{offsets[i].lo & ~u64{1}, offsets[i].hi};
      }
    }
  }

  AlignedVector<crypto::Block> correction_;
  std::optional<crypto::Aes128> offsets_;  // with malicious security
  u64 told_apart_ = 0;
};

class SoftSpokenSender final : public SoftSpoken {
 public:
  SoftSpokenSender(net::Channel& channel, int k, crypto::Block delta,
                   std::span<const crypto::Block> keys, const SoftSpokenSecurity& security)
      : SoftSpoken(channel, k), delta_(delta) {
    expect(std::ssize(keys) == kSoftSpokenRows, "SoftSpoken OT: needs 128 base OTs");
    expect(crypto::low_bit(delta) == 1, "SoftSpoken OT: the lowest bit of the offset must be 1");
    SeedsMessage seeds(k, security.malicious);
    seeds.transfer([&](MutableBytes piece) { channel.read(piece); });
    const WipedVector<u8> choices = softspoken_base_choices(delta, k);
    bool proven = true;
    for (i64 i = 0; i < rows_.count(); ++i) {
      const OffsetElement& element = rows_.elements()[i];
      WipedVector<crypto::Block> sums(element.bits);
      for (int level = 0; level < element.bits; ++level) {
        const int j = element.first_bit + level;
        const auto& [left, right] = seeds.masked[j];
        sums[level] = keys[j] ^ left ^ crypto::select(choices[j], left ^ right);
      }
      const u64 hole = element.value(delta);
      WipedVector<crypto::Block> leaves = ggm_puncture(sums, hole);
      if (security.malicious) proven &= ggm_verify(leaves, hole, seeds.proofs[i]);
      rows_.add_seeds(leaves);
    }
    if (!proven) {
      channel.close();
      throw SecurityAbort("SoftSpoken OT: the peer's seeds failed the consistency check");
    }
    if (security.malicious) begin_check(security, seeds.bytes());
  }

  OtRole role() const override { return OtRole::sender; }
  crypto::Block delta() const override { return delta_; }

 protected:
  void make_slice(i64 blocks) override {
    channel_.read(message(blocks));
    rows_.expand(blocks, [&](i64 i, const crypto::Block*) {
      if (i == 0) return;
      const OffsetElement& element = rows_.elements()[i];
      const u64 value = element.value(delta_);
      for (int b = 0; b < element.bits; ++b) {
        xor_selected(value >> b & 1, correction(i, blocks), blocks,
                     rows_.row(element.first_bit + b));
      }
    });
    if (check_) {
      check_->absorb(message(blocks), blocks);
      check_->add_rows(rows_.row(0), rows_.stride());
    }
    // Row 0 would differ from the receiver's by u_0: dropping it leaves lsb(q) = 0, lsb(t) =
    // choice.
    std::fill_n(rows_.row(0), blocks, crypto::kZeroBlock);
  }

  bool finish_check() override {
    SoftSpokenProof proof;
    channel_.read({reinterpret_cast<u8*>(&proof), sizeof(proof)});
    return check_->verify(proof, delta_);
  }

 private:
  Secret<crypto::Block> delta_;
};

class SoftSpokenReceiver final : public SoftSpoken {
 public:
  SoftSpokenReceiver(net::Channel& channel, int k, std::span<const crypto::Block> roots,
                     std::span<const KeyPair> keys, const SoftSpokenSecurity& security)
      : SoftSpoken(channel, k), choices_(SoftSpokenRows::kSlice / 128) {
    expect(std::ssize(keys) == kSoftSpokenRows, "SoftSpoken OT: needs 128 base OTs");
    expect(std::ssize(roots) == rows_.count(), "SoftSpoken OT: needs a root per element");
    SeedsMessage seeds(k, security.malicious);
    for (i64 i = 0; i < rows_.count(); ++i) {
      const OffsetElement& element = rows_.elements()[i];
      GgmTree tree = ggm_expand(roots[i], element.bits);
      for (int level = 0; level < element.bits; ++level) {
        const int j = element.first_bit + level;
        for (int side : {0, 1}) seeds.masked[j][side] = keys[j][side] ^ tree.sums[level][side];
      }
      if (security.malicious) seeds.proofs[i] = ggm_prove(tree.leaves);
      rows_.add_seeds(tree.leaves);
    }
    seeds.transfer([&](Bytes piece) { channel.write(piece); });
    if (security.malicious) begin_check(security, seeds.bytes());
  }

  OtRole role() const override { return OtRole::receiver; }
  crypto::Block delta() const override {
    throw InvalidArgument("delta: only the sender of a correlated OT knows the offset");
  }

 protected:
  void make_slice(i64 blocks) override {
    rows_.expand(blocks, [&](i64 i, const crypto::Block* u) {
      if (i == 0) {
        std::copy_n(u, blocks, choices_.begin());
      } else {
        xor_blocks(u, choices_.data(), blocks, correction(i, blocks));
      }
    });
    channel_.write(message(blocks));
    if (check_) {
      check_->absorb(message(blocks), blocks);
      check_->add_rows(rows_.row(0), rows_.stride());
      check_->add_choices(choices_.data());
    }
    std::copy_n(choices_.begin(), blocks, rows_.row(0));
  }

  bool finish_check() override {
    const SoftSpokenProof proof = check_->prove();
    channel_.write({reinterpret_cast<const u8*>(&proof), sizeof(proof)});
    return true;
  }

 private:
  WipedVector<crypto::Block> choices_;  // u_0
};

}  // namespace

WipedVector<u8> softspoken_base_choices(crypto::Block delta, int k) {
  WipedVector<u8> choices(kSoftSpokenRows);
  for (const OffsetElement& element : offset_elements(k)) {
    const u64 value = element.value(delta);
    for (int level = 0; level < element.bits; ++level) {
      choices[element.first_bit + level] = ~(value >> (element.bits - 1 - level)) & 1;
    }
  }
  return choices;
}

std::unique_ptr<Rcot> make_softspoken_sender(net::Channel& channel, int k, crypto::Block delta,
                                             std::span<const crypto::Block> keys,
                                             const SoftSpokenSecurity& security) {
  return std::make_unique<SoftSpokenSender>(channel, k, delta, keys, security);
}

std::unique_ptr<Rcot> make_softspoken_receiver(net::Channel& channel, int k, crypto::Block root,
                                               std::span<const KeyPair> keys,
                                               const SoftSpokenSecurity& security) {
  WipedVector<crypto::Block> roots(offset_elements(k).size());
  crypto::Prg(root).fill_blocks(roots.data(), std::ssize(roots));
  return make_softspoken_receiver(channel, k, roots, keys, security);
}

std::unique_ptr<Rcot> make_softspoken_receiver(net::Channel& channel, int k,
                                               std::span<const crypto::Block> roots,
                                               std::span<const KeyPair> keys,
                                               const SoftSpokenSecurity& security) {
  return std::make_unique<SoftSpokenReceiver>(channel, k, roots, keys, security);
}

i64 softspoken_seed_bytes(int k, bool malicious) {
  const i64 proofs = malicious ? std::ssize(offset_elements(k)) : 0;
  return 2 * kSoftSpokenRows * static_cast<i64>(sizeof(crypto::Block)) +
         proofs * static_cast<i64>(sizeof(GgmProof));
}

RcotCost softspoken_cost(int k, bool malicious) {
  offset_elements(k);
  RcotCost cost{"softspoken", k, kGranularity, kTile, 1};
  cost.malicious = malicious;
  return cost;
}

}  // namespace privml::ot
