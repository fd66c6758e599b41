// SPDX-License-Identifier: Apache-2.0
// For tests of whole sessions: a small model, on shares and in the clear, and what it draws.
#pragma once

#include "spdz2k/online/comparison.h"
#include "spdz2k/online/matrix_product.h"
#include "spdz2k/online/selection.h"
#include "spdz2k/online/truncation.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/parties.h"

namespace privml::spdz2k::testing {

// A layer of a perceptron for six samples of party 1 with weights of party 0, and a tree of depth
// two on the first features; the layer's outputs go to both parties, the tree's to party 1.
struct SmallModel {
  static constexpr i64 kOutputs = 8, kInputs = 6, kSamples = 6, kScale = 4;
  Words weights = random_words(kOutputs * kInputs, 8, 21);
  Words samples = random_words(kInputs * kSamples, 8, 22);  // a column each
  Words thresholds{100, 60, 170}, leaves{11, 22, 33, 44};

  // The layer's outputs, then the tree's.
  Both<Words> outputs(int bits) const {
    Both<Words> out;
    for (i64 i = 0; i < kOutputs; ++i) {
      for (i64 l = 0; l < kSamples; ++l) {
        u64 sum = 0;
        for (i64 j = 0; j < kInputs; ++j) {
          sum += (weights[i * kInputs + j] - 128) * samples[j * kSamples + l];
        }
        const i64 value = to_signed(sum, 64) >> kScale;
        out[0].push_back(low_bits(static_cast<u64>(std::max<i64>(value, 0)), bits));
      }
    }
    for (i64 l = 0; l < kSamples; ++l) {
      const bool left = samples[l] < thresholds[0];
      const bool lefter = samples[kSamples + l] < thresholds[left ? 1 : 2];
      out[1].push_back(leaves[2 * !left + !lefter]);
    }
    return out;
  }
};

// Shares of `size` copies of one share.
template <class R>
WordShares<R> spread(WordView<R> share, i64 at, i64 size) {
  WordShares<R> out(size);
  std::fill(out.value.begin(), out.value.end(), share.value[at]);
  std::fill(out.mac.begin(), out.mac.end(), share.mac[at]);
  return out;
}

// What a party learns of the model's outputs. begin(name) is called before every part.
template <class R, class Begin>
Both<Words> run_model(Session<R>& session, const SmallModel& model, Begin&& begin) {
  constexpr i64 outputs = SmallModel::kOutputs, samples = SmallModel::kSamples;
  const auto enter = [&](int owner, const Words& words) {
    WordShares<R> out(std::ssize(words));
    input<R>(session, owner,
             owner == session.rank ? std::span<const u64>(words) : std::span<const u64>(), out);
    return out;
  };
  begin("inputs");
  Words centred = model.weights;
  for (u64& weight : centred) weight = low_bits(weight - 128, R::k);
  const auto weights = enter(0, centred), x = enter(1, model.samples);
  const auto thresholds = enter(0, model.thresholds), leaves = enter(0, model.leaves);

  Both<Words> learned;
  begin("product of matrices");
  WordShares<R> layer(outputs * samples);
  multiply_matrices<R>(session, weights, x, {outputs, SmallModel::kInputs, samples}, 1, layer);
  begin("truncation");
  truncate<R>(session, layer, {R::k, SmallModel::kScale, TruncationKind::exact_bounded}, layer);
  begin("ReLU");
  relu<R>(session, layer, R::k, layer);
  begin("reveal to both");
  learned[0].resize(layer.size());
  reveal<R>(session, layer, R::k, kBothParties, learned[0]);

  begin("tree");
  WordShares<R> first(3 * samples), second(3 * samples), bits(3 * samples);
  for (i64 node = 0; node < 3; ++node) {
    const auto threshold = spread<R>(thresholds, node, samples);
    const WordView<R> feature = WordView<R>(x).part(node == 0 ? 0 : samples, samples);
    for (i64 l = 0; l < samples; ++l) {
      first.value[node * samples + l] = feature.value[l];
      first.mac[node * samples + l] = feature.mac[l];
      second.value[node * samples + l] = threshold.value[l];
      second.mac[node * samples + l] = threshold.mac[l];
    }
  }
  less_than<R>(session, first, second, 16, Range::restricted, bits);
  WordShares<R> left(samples), right(samples), leaf(samples);
  const auto choose = [&](i64 node, WordView<R> x, WordView<R> y, WordSpan<R> out) {
    select<R>(session, bits.part(node * samples, samples), x, y, out);
  };
  choose(1, spread<R>(leaves, 0, samples), spread<R>(leaves, 1, samples), left);
  choose(2, spread<R>(leaves, 2, samples), spread<R>(leaves, 3, samples), right);
  choose(0, left, right, leaf);
  begin("reveal to one");
  learned[1].resize(session.rank == 1 ? samples : 0);
  reveal<R>(session, leaf, R::k, 1, learned[1]);
  return learned;
}

// What the model draws.
template <class R>
Demand demand_of_model() {
  Demand demand;
  run_parties<R>([&](Session<R>& session) {
    const SmallModel model;
    run_model<R>(session, model, [](const std::string&) {});
    if (session.rank == 0) demand = session.supply().drawn();
  });
  return demand;
}

}  // namespace privml::spdz2k::testing
