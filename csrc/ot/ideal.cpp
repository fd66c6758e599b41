// SPDX-License-Identifier: Apache-2.0
#include "ot/ideal.h"

#include "base/error.h"
#include "crypto/prg.h"

namespace privml::ot {
namespace {

constexpr i64 kTile = i64{1} << 19;

class IdealRcot final : public Rcot {
 public:
  IdealRcot(OtRole role, crypto::Block seed) : role_(role), prg_(seed), delta_(prg_.next_block()) {
    delta_.lo |= 1;
  }

  OtRole role() const override { return role_; }
  crypto::Block delta() const override {
    expect(role_ == OtRole::sender, "delta: only the sender of a correlated OT knows the offset");
    return delta_;
  }
  i64 granularity() const override { return 1; }
  i64 tile() const override { return kTile; }

  int messages() const override { return 1; }

  // Without messages: both sides fill their output in their only step.
  void step(int, crypto::Block* out, i64 count) override {
    expect(count >= 0 && count <= kTile, "ideal OT: extend by at most one tile");
    prg_.fill_blocks(out, count);
    const crypto::Block offset = role_ == OtRole::receiver ? delta_ : crypto::kZeroBlock;
    for (i64 i = 0; i < count; ++i) {
      const u8 choice = crypto::low_bit(out[i]);
      out[i].lo &= ~u64{1};
      out[i] ^= crypto::select(choice, offset);
    }
  }

 private:
  OtRole role_;
  crypto::Prg prg_;
  crypto::Block delta_;
};

}  // namespace

std::unique_ptr<Rcot> make_ideal_rcot(OtRole role, crypto::Block shared_seed) {
  return std::make_unique<IdealRcot>(role, shared_seed);
}

RcotCost ideal_cost() { return {"ideal", 0, 1, kTile, 1}; }

}  // namespace privml::ot
