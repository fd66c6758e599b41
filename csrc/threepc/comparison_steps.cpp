// SPDX-License-Identifier: Apache-2.0
#include "threepc/comparison_steps.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/pack.h"
#include "base/wipe.h"
#include "threepc/kernels.h"

namespace privml::threepc {
namespace {

i64 sum(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), i64{0});
}

void add_bits(u8* to, const u8* other, i64 count) {
  for (i64 i = 0; i < count; ++i) to[i] ^= other[i];
}

}  // namespace

ComparisonForm::ComparisonForm(ComparisonPlan chosen, i64 several_values, i64 masks)
    : plan(std::move(chosen)), several(several_values), count(masks), size(ceil_div(masks, 8)) {
  expect(several >= 1 && count >= 1, "several and count must be positive");
  expect(bits() >= 2 && bits() <= 64, "a comparison has 2 to 64 bits");
  i64 blocks = std::ssize(plan.blocks);
  for (const auto& nodes : plan.levels) {
    expect(sum(nodes) == blocks, "the levels of a plan do not fit");
    blocks = std::ssize(nodes);
  }
  expect(blocks == 1, "the last level of a plan has one node");
}

int ComparisonForm::bits() const { return static_cast<int>(sum(plan.blocks)) + 1; }

i64 ComparisonForm::opened_planes() const {
  i64 planes = 1;
  for (const auto& nodes : plan.levels) planes += 2 * sum(nodes) - 1;
  return planes;
}

i64 ComparisonForm::dealt_bytes() const {
  i64 products = 0;
  for (const auto& nodes : plan.levels) products += product_planes(nodes);
  return (table_planes(plan.blocks) + products * several) * size;
}

i64 ComparisonForm::mask_bytes() const { return opened_planes() * several * size; }

ComparisonSteps::ComparisonSteps(int party, ComparisonForm form, const u8* masks, const u8* dealt)
    : party_(party),
      form_(std::move(form)),
      masks_(masks),
      dealt_(dealt),
      products_(table_planes(form_.plan.blocks) * form_.size) {
  expect(party == 0 || party == 1, "party must be 0 or 1");
}

ComparisonSteps::~ComparisonSteps() {
  for (std::vector<u8>* bytes : {&top_, &sent_, &next_}) {
    bytes->resize(bytes->capacity());
    wipe(bytes->data(), bytes->size());
  }
}

std::span<const u8> ComparisonSteps::begin(const u64* m, int threads) {
  expect(top_.empty(), "a comparison begins once");
  const i64 each = form_.several * form_.size, lower = form_.bits() - 1;
  next_.resize(form_.bits() * each);
  bit_planes(m, form_.several, form_.count, form_.bits(), next_.data(), threads);
  top_.assign(next_.begin() + lower * each, next_.end());
  sent_.resize((2 * std::ssize(form_.plan.blocks) - 1) * each);
  compare_blocks(party_, form_.plan.blocks, next_.data(), dealt_, form_.several, form_.size,
                 sent_.data());
  mask_message();
  return sent_;
}

std::span<const u8> ComparisonSteps::join(std::span<const u8> received) {
  expect(level_ < form_.plan.levels.size(), "a comparison has no such level");
  open(received);
  const std::vector<int>& nodes = form_.plan.levels[level_++];
  const i64 each = form_.several * form_.size;
  next_.resize((2 * std::ssize(nodes) - 1) * each);
  join_blocks(party_, nodes, sent_.data(), masks_, dealt_ + products_, each, next_.data());
  masks_ += std::ssize(sent_);
  products_ += product_planes(nodes) * each;
  std::swap(sent_, next_);
  mask_message();
  return sent_;
}

void ComparisonSteps::finish(std::span<const u8> received, u8* known, u8* mask) {
  expect(level_ == form_.plan.levels.size(), "a comparison ends after its last level");
  open(received);
  add_bits(sent_.data(), top_.data(), std::ssize(sent_));
  for (i64 row = 0; row < form_.several; ++row) {
    unpack(sent_.data() + row * form_.size, form_.count, 1, known + row * form_.count);
    unpack(masks_ + row * form_.size, form_.count, 1, mask + row * form_.count);
  }
  sent_.clear();
}

// The last message has the top bit of the dealer's mask besides.
void ComparisonSteps::mask_message() {
  add_bits(sent_.data(), masks_, std::ssize(sent_));
  if (level_ < form_.plan.levels.size()) return;
  const u8* top = dealt_ + (table_planes(form_.plan.blocks) - 1) * form_.size;
  for (i64 row = 0; row < form_.several; ++row)
    add_bits(sent_.data() + row * form_.size, top, form_.size);
}

void ComparisonSteps::open(std::span<const u8> received) {
  expect(!sent_.empty() && received.size() == sent_.size(), "a message of another length");
  add_bits(sent_.data(), received.data(), std::ssize(sent_));
}

}  // namespace privml::threepc
