// SPDX-License-Identifier: Apache-2.0
#include "ot/silent.h"

#include <sodium.h>

#include <algorithm>

#include "base/error.h"
#include "base/wipe.h"
#include "ot/half_tree.h"
#include "ot/silent_check.h"

namespace privml::ot {
namespace {

// Trees per write, so that the receiver works while the sender goes on.
constexpr i64 kBatch = 64;
constexpr u64 kNowhere = ~u64{0};

// What both sides share: the correlations of the next iteration, where outputs go, the order of
// steps.
class Silent : public Rcot {
 public:
  Silent(net::Channel& channel, const SilentParameters& parameters, const SilentKeys& keys,
         crypto::Prg prg, WipedVector<crypto::Block> bases, int first_step)
      : channel_(channel),
        parameters_(parameters),
        lpn_(parameters.lpn),
        pi_(keys.trees),
        prg_(prg),
        code_(keys.code, lpn_.secret),
        matrix_(parameters.first_matrix),
        bases_(std::move(bases)),
        first_step_(first_step),
        due_(first_step) {
    expect(std::ssize(bases_) >= parameters.spent(), "silent OT: too few correlations to start");
    kept_.resize(parameters.kept_trees * lpn_.leaves());
    sums_.resize(lpn_.choices());
  }

  i64 granularity() const override { return parameters_.usable(); }
  i64 tile() const override { return parameters_.usable(); }
  int messages() const override { return parameters_.malicious ? 4 : 2; }

  void step(int s, crypto::Block* out, i64 count) override {
    expect(count == 0 || count == parameters_.usable(),
           "silent OT: an extension makes all outputs of an iteration");
    if (count == 0) return;
    if (aborted_) throw SecurityAbort("silent OT: an earlier extension failed its check");
    expect(s == due_, "silent OT: steps out of order, after a failure or after the last iteration");
    due_ = -1;  // for good, if this step fails
    act(s, out);
    if (s + 2 <= messages()) {
      due_ = s + 2;
    } else {
      finish();
    }
  }

 protected:
  virtual void act(int s, crypto::Block* out) = 0;

  const crypto::Block* choices(i64 tree) const {
    return bases_.data() + lpn_.secret + tree * lpn_.depth;
  }
  const crypto::Block* masks() const { return bases_.data() + lpn_.secret + lpn_.choices(); }
  crypto::Block* sums(i64 tree) { return sums_.data() + tree * lpn_.depth; }
  crypto::Block* leaves(i64 tree, crypto::Block* out) {
    const i64 given = lpn_.trees - parameters_.kept_trees;
    return tree < given ? out + tree * lpn_.leaves()
                        : kept_.data() + (tree - given) * lpn_.leaves();
  }
  MutableBytes sum_bytes(i64 first_tree, i64 trees) {
    const auto size = static_cast<size_t>(trees * lpn_.depth) * sizeof(crypto::Block);
    return {reinterpret_cast<u8*>(sums(first_tree)), size};
  }
  // Calls body(first, trees) for each batch.
  template <class Body>
  void for_each_batch(Body&& body) {
    for (i64 i = 0; i < lpn_.trees; i += kBatch) body(i, std::min(kBatch, lpn_.trees - i));
  }
  // Leaves nothing of the extension and of those to come.
  [[noreturn]] void abort(crypto::Block* out) {
    wipe(out, static_cast<size_t>(parameters_.usable()) * sizeof(crypto::Block));
    wipe(kept_.data(), kept_.size() * sizeof(crypto::Block));
    wipe(bases_.data(), bases_.size() * sizeof(crypto::Block));
    aborted_ = true;
    channel_.close();
    throw SecurityAbort("silent OT: the sender's trees are not consistent with its answer");
  }
  // From the leaves of a tree to outputs.
  void encode(i64 tree, crypto::Block* nodes, u64 hole) {
    code_.encode(matrix_, tree * lpn_.leaves(), bases_.data(), hole, nodes, lpn_.leaves());
  }

  net::Channel& channel_;
  SilentParameters parameters_;
  LpnParameters lpn_;
  crypto::Aes128 pi_;
  crypto::Prg prg_;
  LpnCode code_;
  u64 matrix_;
  WipedVector<crypto::Block> bases_;
  WipedVector<crypto::Block> kept_;  // outputs that become `bases_`

 private:
  void finish() {
    ++matrix_;
    if (parameters_.kept_trees == 0) {
      bases_.clear();
      return;
    }
    bases_.resize(kept_.size());
    std::swap(bases_, kept_);
    wipe(kept_.data(), kept_.size() * sizeof(crypto::Block));
    due_ = first_step_;
  }

  WipedVector<crypto::Block> sums_;  // as on the wire, then the receiver's known ones
  int first_step_;
  int due_;
  bool aborted_ = false;
};

class SilentSender final : public Silent {
 public:
  SilentSender(net::Channel& channel, const SilentParameters& parameters, const SilentKeys& keys,
               crypto::Block delta, crypto::Prg prg, WipedVector<crypto::Block> bases)
      : Silent(channel, parameters, keys, prg, std::move(bases), 1), delta_(delta) {
    expect(crypto::low_bit(delta) == 1, "silent OT: the lowest bit of the offset must be 1");
  }

  OtRole role() const override { return OtRole::sender; }
  crypto::Block delta() const override { return delta_; }

 private:
  void act(int s, crypto::Block* out) override { s == 1 ? send_trees(out) : answer(out); }

  void send_trees(crypto::Block* out) {
    for_each_batch([&](i64 first, i64 trees) {
      for (i64 i = first; i < first + trees; ++i) {
        crypto::Block* nodes = leaves(i, out);
        half_tree_expand(pi_, prg_.next_block(), delta_, lpn_.depth, nodes, sums(i));
        for (int level = 0; level < lpn_.depth; ++level) sums(i)[level] ^= choices(i)[level];
        if (!parameters_.malicious) encode(i, nodes, kNowhere);
      }
      channel_.write(sum_bytes(first, trees));
      channel_.flush();
    });
  }

  void answer(crypto::Block* out) {
    std::array<crypto::Block, 2> query;
    channel_.read({reinterpret_cast<u8*>(query.data()), sizeof(query)});
    TreeHash hash(query[0], lpn_.depth);
    WipedVector<crypto::Block> shifted(masks(), masks() + 128);
    for (int b = 0; b < 128; ++b) {
      const u64 word = b < 64 ? query[1].lo : query[1].hi;
      shifted[b] ^= crypto::select(static_cast<u8>(word >> b % 64 & 1), delta_);
    }
    for (i64 i = 0; i < lpn_.trees; ++i) {
      crypto::Block* nodes = leaves(i, out);
      hash.add(nodes);
      encode(i, nodes, kNowhere);
    }
    channel_.write(check_digest(hash.value() ^ pack_blocks(shifted.data()), matrix_));
  }

  Secret<crypto::Block> delta_;
};

class SilentReceiver final : public Silent {
 public:
  SilentReceiver(net::Channel& channel, const SilentParameters& parameters, const SilentKeys& keys,
                 crypto::Prg prg, WipedVector<crypto::Block> bases)
      : Silent(channel, parameters, keys, prg, std::move(bases), 0) {}
  ~SilentReceiver() override { wipe(&expected_, sizeof(expected_)); }

  OtRole role() const override { return OtRole::receiver; }
  crypto::Block delta() const override {
    throw InvalidArgument("delta: only the sender of a correlated OT knows the offset");
  }

 private:
  void act(int s, crypto::Block* out) override {
    if (s == 2) parameters_.malicious ? query(out) : receive_trees(out);
    if (s == 4) compare(out);
  }

  // The choices were random, so the place is.
  u64 hole(i64 tree) const {
    u64 place = 0;
    for (int level = 0; level < lpn_.depth; ++level) {
      place |= u64{crypto::low_bit(choices(tree)[level]) ^ 1u} << level;
    }
    return place;
  }

  crypto::Block* puncture(i64 tree, crypto::Block* out) {
    for (int level = 0; level < lpn_.depth; ++level) sums(tree)[level] ^= choices(tree)[level];
    crypto::Block* nodes = leaves(tree, out);
    half_tree_puncture(pi_, sums(tree), hole(tree), lpn_.depth, nodes);
    return nodes;
  }

  void receive_trees(crypto::Block* out) {
    for_each_batch([&](i64 first, i64 trees) {
      channel_.read(sum_bytes(first, trees));
      for (i64 i = first; i < first + trees; ++i) encode(i, puncture(i, out), hole(i));
    });
  }

  void query(crypto::Block* out) {
    channel_.read(sum_bytes(0, lpn_.trees));
    std::array<crypto::Block, 2> message{prg_.next_block(), crypto::kZeroBlock};
    TreeHash noise(message[0], lpn_.depth), hash = noise;
    for (i64 i = 0; i < lpn_.trees; ++i) noise.add_unit(hole(i));
    message[1] = noise.value();
    for (int b = 0; b < 128; ++b) {
      u64& word = b < 64 ? message[1].lo : message[1].hi;
      word ^= u64{crypto::low_bit(masks()[b])} << b % 64;
    }
    channel_.write({reinterpret_cast<const u8*>(message.data()), sizeof(message)});
    channel_.flush();
    for (i64 i = 0; i < lpn_.trees; ++i) {
      crypto::Block* nodes = puncture(i, out);
      hash.add(nodes);
      encode(i, nodes, hole(i));
    }
    expected_ = check_digest(hash.value() ^ pack_blocks(masks()), matrix_);
  }

  void compare(crypto::Block* out) {
    CheckDigest answer;
    channel_.read(answer);
    if (sodium_memcmp(answer.data(), expected_.data(), answer.size()) != 0) abort(out);
  }

  CheckDigest expected_{};
};

}  // namespace

SilentParameters silent_setup_parameters(bool malicious) { return {kLpnSetup, 0, 0, malicious}; }

SilentParameters silent_main_parameters(bool malicious) {
  SilentParameters parameters{kLpnMain, 0, 1, malicious};
  parameters.kept_trees = ceil_div(parameters.spent(), kLpnMain.leaves());
  return parameters;
}

std::unique_ptr<Rcot> make_silent_sender(net::Channel& channel, const SilentParameters& parameters,
                                         const SilentKeys& keys, crypto::Block delta,
                                         crypto::Prg prg, WipedVector<crypto::Block> bases) {
  return std::make_unique<SilentSender>(channel, parameters, keys, delta, prg, std::move(bases));
}

std::unique_ptr<Rcot> make_silent_receiver(net::Channel& channel,
                                           const SilentParameters& parameters,
                                           const SilentKeys& keys, crypto::Prg prg,
                                           WipedVector<crypto::Block> bases) {
  return std::make_unique<SilentReceiver>(channel, parameters, keys, prg, std::move(bases));
}

RcotCost silent_cost(const SilentParameters& parameters) {
  RcotCost cost{"silent", 0, parameters.usable(), parameters.usable(),
                parameters.malicious ? 4 : 2};
  cost.malicious = parameters.malicious;
  cost.tree_bytes = parameters.lpn.choices() * static_cast<i64>(sizeof(crypto::Block));
  return cost;
}

}  // namespace privml::ot
