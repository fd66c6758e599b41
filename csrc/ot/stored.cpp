// SPDX-License-Identifier: Apache-2.0
#include "ot/stored.h"

#include "base/error.h"
#include "base/wipe.h"

namespace privml::ot {
namespace {

constexpr i64 kTile = i64{1} << 20;

class StoredRcot final : public Rcot {
 public:
  StoredRcot(OtRole role, crypto::Block delta) : role_(role), delta_(delta) {
    expect(role == OtRole::receiver || crypto::low_bit(delta) == 1,
           "stored OT: the lowest bit of the offset must be 1");
  }

  OtRole role() const override { return role_; }
  crypto::Block delta() const override {
    expect(role_ == OtRole::sender, "delta: only the sender of a correlated OT knows the offset");
    return delta_;
  }
  i64 granularity() const override { return 1; }
  i64 tile() const override { return kTile; }
  int messages() const override { return 1; }

  void step(int, crypto::Block*, i64) override {
    throw InvalidArgument(
        "this session makes no correlations, and those that it got from the store are used up");
  }

 private:
  OtRole role_;
  Secret<crypto::Block> delta_;
};

}  // namespace

std::unique_ptr<Rcot> make_stored_rcot(OtRole role, crypto::Block delta) {
  return std::make_unique<StoredRcot>(role, delta);
}

}  // namespace privml::ot
