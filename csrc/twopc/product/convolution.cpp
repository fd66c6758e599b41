// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/convolution.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/product/convolution_plan.h"
#include "twopc/product/dense.h"
#include "twopc/product/vector_products.h"

namespace privml::twopc {
namespace {

constexpr i64 kBatchWords = i64{1} << 22;  // operands and sums that are gathered at once

// Products with choices and correlations as the plan names them.
struct Roles {
  std::array<bool, 2> choosers;  // party r's choices meet the other party's correlations
  KnownFormat choice, correlation;
};

Roles roles(Operand choice, Operand correlation) {
  Roles roles{{}, held_format(choice), held_format(correlation)};
  for (int r : {0, 1}) roles.choosers[r] = holds(r, choice) && holds(1 - r, correlation);
  return roles;
}

// Calls visit(first, run) for runs of a plan's products, from its first on, whose operands stay
// bounded.
template <class Visit>
void in_runs(std::span<const ProductBlock> plan, Visit&& visit) {
  for (size_t first = 0; first < plan.size();) {
    size_t last = first;
    i64 words = 0;
    for (; last < plan.size() && words < kBatchWords; ++last) {
      const auto [rows, inner, columns] = plan[last];
      words += rows * inner + inner * columns + rows * columns;
    }
    visit(first, plan.subspan(first, last - first));
    first = last;
  }
}

std::vector<ProductBlock> blocks_of(std::span<const IndexedProduct> plan) {
  std::vector<ProductBlock> blocks;
  for (const IndexedProduct& p : plan) blocks.push_back({p.rows(), p.inner, p.columns()});
  return blocks;
}

void gather_choices(const IndexedProduct& p, std::span<const u64> from, std::vector<u64>& to) {
  for (i64 row : p.choice_row)
    for (i64 c = 0; c < p.inner; ++c) to.push_back(from[row + c * p.choice_stride]);
}

void gather_correlations(const IndexedProduct& p, std::span<const u64> from, std::vector<u64>& to) {
  for (i64 c = 0; c < p.inner; ++c)
    for (i64 column : p.correlation_column) to.push_back(from[column + c * p.correlation_stride]);
}

// Adds the rows x columns sums to their places; returns what follows them.
const u64* scatter(const IndexedProduct& p, const u64* sums, u64 mask, std::span<u64> out) {
  for (i64 row : p.out_row)
    for (i64 column : p.out_column) out[row + column] = (out[row + column] + *sums++) & mask;
  return sums;
}

void cross_products(ot::Party& party, const std::vector<IndexedProduct>& plan, const Roles& roles,
                    std::span<const u64> choices, std::span<const u64> correlations, int ell,
                    std::span<u64> out) {
  const bool chooses = roles.choosers[party.rank], sends = roles.choosers[1 - party.rank];
  in_runs(blocks_of(plan), [&](size_t first, std::span<const ProductBlock> blocks) {
    const auto run = std::span(plan).subspan(first, blocks.size());
    std::vector<u64> x, y;
    i64 size = 0;
    for (const IndexedProduct& p : run) {
      if (chooses) gather_choices(p, choices, x);
      if (sends) gather_correlations(p, correlations, y);
      size += p.rows() * p.columns();
    }
    std::vector<u64> sums(size);
    vector_products(party, blocks, {roles.choice.bits, roles.choice.is_signed, ell}, x, y, sums);
    const u64* next = sums.data();
    for (const IndexedProduct& p : run) next = scatter(p, next, low_mask(ell), out);
  });
}

bool by_kernel(const linear::ConvolutionShape& s, Operand in, Operand kernel, int ell,
               ConvolutionChoice choice) {
  if (choice != ConvolutionChoice::automatic) return choice == ConvolutionChoice::kernel;
  const PlanSize size = plan_size(s);
  return cross_term_bits(size.kernel_choices, size.elements, kernel.bits, ell) <=
         cross_term_bits(size.pixel_choices, size.elements, in.bits, ell);
}

}  // namespace

void convolution(ot::Party& party, Operand in_format, std::span<const u64> in,
                 Operand kernel_format, std::span<const u64> kernel,
                 const linear::ConvolutionShape& shape, int ell, std::span<u64> out,
                 ConvolutionChoice choice) {
  expect_fits(in_format, ell);
  expect_fits(kernel_format, ell);
  linear::expect_valid(shape);
  const bool has_in = holds(party.rank, in_format), has_kernel = holds(party.rank, kernel_format);
  expect(!has_in || std::ssize(in) == shape.in_count(),
         "convolution: input does not match the shape");
  expect(!has_kernel || std::ssize(kernel) == shape.kernel_count(),
         "convolution: kernel does not match the shape");
  expect(std::ssize(out) == shape.out_count(), "convolution: output does not match the shape");
  const std::vector<u64> pixels =
      has_in ? ring_elements(in, held_format(in_format), ell) : std::vector<u64>{};
  const std::vector<u64> weights =
      has_kernel ? ring_elements(kernel, held_format(kernel_format), ell) : std::vector<u64>{};
  std::fill(out.begin(), out.end(), 0);
  if (by_kernel(shape, in_format, kernel_format, ell, choice)) {
    const Roles r = roles(kernel_format, in_format);
    if (r.choosers[0] || r.choosers[1])
      cross_products(party, plan_by_kernel(shape), r, weights, pixels, ell, out);
  } else {
    const Roles r = roles(in_format, kernel_format);
    if (r.choosers[0] || r.choosers[1])
      cross_products(party, plan_by_pixels(shape), r, pixels, weights, ell, out);
  }
  if (has_in && has_kernel) linear::add_convolution(pixels, weights, shape, ell, out);
}

void cost_convolution(ot::CostMeter& meter, Operand in_format, Operand kernel_format,
                      const linear::ConvolutionShape& shape, int ell, ConvolutionChoice choice) {
  const bool kernel_chooses = by_kernel(shape, in_format, kernel_format, ell, choice);
  const Roles r =
      kernel_chooses ? roles(kernel_format, in_format) : roles(in_format, kernel_format);
  if (!r.choosers[0] && !r.choosers[1]) return;
  const auto plan = kernel_chooses ? blocks_by_kernel(shape) : blocks_by_pixels(shape);
  in_runs(plan, [&](size_t, std::span<const ProductBlock> run) {
    cost_vector_products(meter, {r.choosers[1], r.choosers[0]}, run,
                         {r.choice.bits, r.choice.is_signed, ell});
  });
}

}  // namespace privml::twopc
