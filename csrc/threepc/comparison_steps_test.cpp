// SPDX-License-Identifier: Apache-2.0
#include "threepc/comparison_steps.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "base/pack.h"
#include "threepc/kernels.h"

namespace privml::threepc {
namespace {

using Bytes = std::vector<u8>;
using Words = std::vector<u64>;

std::mt19937_64 generator(7);

Bytes random_bytes(i64 count) {
  Bytes out(count);
  for (u8& byte : out) byte = static_cast<u8>(generator());
  return out;
}

Words random_words(i64 count) {
  Words out(count);
  for (u64& word : out) word = generator();
  return out;
}

Bytes operator^(Bytes a, const Bytes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
  return a;
}

Bytes kept(std::span<const u8> message) { return {message.begin(), message.end()}; }

// [m - r < 0] as the three parties compute it.
Bytes signs(const ComparisonForm& form, const Words& r, const Words& m) {
  const Bytes masks = random_bytes(form.mask_bytes());
  Bytes planes(form.bits() * form.size), dealt(form.dealt_bytes());
  bit_planes(r.data(), 1, form.count, form.bits(), planes.data());
  deal_comparison(form.plan, planes.data(), masks.data(), form.several, form.size, dealt.data());
  const Bytes mask_of_0 = random_bytes(form.mask_bytes()), dealt_to_0 = random_bytes(dealt.size());
  const Bytes mask_of_1 = masks ^ mask_of_0, dealt_to_1 = dealt ^ dealt_to_0;
  ComparisonSteps first(0, form, mask_of_0.data(), dealt_to_0.data());
  ComparisonSteps second(1, form, mask_of_1.data(), dealt_to_1.data());
  Bytes from_0 = kept(first.begin(m.data(), 1)), from_1 = kept(second.begin(m.data(), 1));
  for (std::size_t level = 0; level < form.plan.levels.size(); ++level) {
    const Bytes next = kept(first.join(from_1));
    from_1 = kept(second.join(from_0));
    from_0 = next;
  }
  Bytes known(m.size()), same(m.size()), own(m.size()), other(m.size());
  first.finish(from_1, known.data(), own.data());
  second.finish(from_0, same.data(), other.data());
  EXPECT_EQ(known, same);
  return known ^ own ^ other;
}

void expect_right(const ComparisonForm& form, const Words& r, const Words& m) {
  const Bytes found = signs(form, r, m);
  for (std::size_t i = 0; i < m.size(); ++i)
    ASSERT_EQ(found[i], (m[i] - r[i % r.size()]) >> (form.bits() - 1) & 1)
        << m[i] << " " << r[i % r.size()];
}

TEST(ComparisonSteps, AllNumbersOfFewBits) {
  for (const ComparisonPlan& plan :
       {ComparisonPlan{{1}, {}}, ComparisonPlan{{4}, {}}, ComparisonPlan{{2, 2}, {{2}}},
        ComparisonPlan{{1, 1, 1, 1}, {{2, 2}, {2}}}, ComparisonPlan{{1, 1, 1, 1}, {{4}}}}) {
    const int bits = std::accumulate(plan.blocks.begin(), plan.blocks.end(), 1);
    Words r, m;
    for (u64 i = 0; i < u64{1} << 2 * bits; ++i) {
      r.push_back(i & low_mask(bits));
      m.push_back(i >> bits);
    }
    expect_right({plan, 1, std::ssize(r)}, r, m);
  }
}

TEST(ComparisonSteps, WideNumbersAndSeveralOfOneMask) {
  const ComparisonPlan wide{{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3}, {{4, 4, 4, 4}, {4}}};
  const ComparisonPlan middle{{6, 6, 6, 6, 6, 6}, {{6}}};
  for (const ComparisonPlan& plan : {wide, middle})
    for (const i64 count : {1, 7, 8, 77, 513})
      for (const i64 several : {1, 3}) {
        Words r = random_words(count), m = random_words(count * several);
        for (i64 i = 0; i < std::ssize(m); i += 3) m[i] = r[i % count];  // the difference is 0
        expect_right({plan, several, count}, r, m);
      }
}

TEST(ComparisonSteps, RefusesWhatDoesNotFit) {
  const ComparisonPlan plan{{2, 2}, {{2}}};
  EXPECT_THROW(ComparisonForm({{2, 2}, {{3}}}, 1, 8), InvalidArgument);
  EXPECT_THROW(ComparisonForm({{2, 2}, {}}, 1, 8), InvalidArgument);
  EXPECT_THROW(ComparisonForm(plan, 0, 8), InvalidArgument);
  const ComparisonForm form(plan, 1, 8);
  const Bytes masks(form.mask_bytes()), dealt(form.dealt_bytes());
  EXPECT_THROW(ComparisonSteps(2, form, masks.data(), dealt.data()), InvalidArgument);
  ComparisonSteps steps(0, form, masks.data(), dealt.data());
  const Words m(8);
  const Bytes message = kept(steps.begin(m.data(), 1));
  Bytes known(8), mask(8);
  EXPECT_THROW(steps.begin(m.data(), 1), InvalidArgument);
  EXPECT_THROW(steps.finish(message, known.data(), mask.data()), InvalidArgument);
  EXPECT_THROW(steps.join(Bytes(message.size() + 1)), InvalidArgument);
  EXPECT_THROW(steps.finish(message, known.data(), mask.data()), InvalidArgument);
  const Bytes last = kept(steps.join(message));  // a message that was refused changes nothing
  steps.finish(last, known.data(), mask.data());
  EXPECT_THROW(steps.finish(last, known.data(), mask.data()), InvalidArgument);
  ComparisonSteps other(1, form, masks.data(), dealt.data());
  EXPECT_THROW(other.join(message), InvalidArgument);
}

TEST(Openings, AreFillsSumsAndPacks) {
  const u32 key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const i64 count : {0, 1, 63, 300, 1024, 2500})
    for (const int bits : {1, 7, 27, 32, 33, 37, 64}) {
      Words drawn(count), mask(count), masked(count), sums(count);
      Bytes wire(packed_bytes(count, bits)), packed(wire.size());
      const Words part = random_words(count);
      if (count > 0)
        fill_words(
            {key, 5, count, bits, 0, nullptr, reinterpret_cast<i64*>(drawn.data()), nullptr});
      mask_words({key, 5}, part.data(), count, bits, mask.data(), masked.data(), wire.data(), 1);
      EXPECT_EQ(mask, drawn);
      for (i64 i = 0; i < count; ++i) EXPECT_EQ(masked[i], part[i] + drawn[i]);
      pack(masked.data(), count, bits, packed.data());
      EXPECT_EQ(wire, packed);
      add_packed(drawn.data(), wire.data(), count, bits, sums.data());
      for (i64 i = 0; i < count; ++i) EXPECT_EQ(sums[i], drawn[i] + (masked[i] & low_mask(bits)));
      deal_packed({key, 5}, masked.data(), count, bits, wire.data(), 1);
      pack(part.data(), count, bits, packed.data());
      EXPECT_EQ(wire, packed);
    }
}

}  // namespace
}  // namespace privml::threepc
