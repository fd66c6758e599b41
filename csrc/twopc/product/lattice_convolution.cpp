// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/lattice_convolution.h"

#include <algorithm>

#include "base/error.h"
#include "twopc/product/agreement.h"
#include "twopc/product/dense.h"
#include "twopc/product/preprocessing.h"

namespace privml::twopc {
namespace {

using lattice::Digest;

ConvolutionLayout layout_for(const ConvolutionTask& task, const lattice::SwitchingSet& set) {
  expect_fits(task.kernel, task.ell);
  expect(task.kernel.owner != kShared, "lattice: kernels are owned by a party");
  const auto layout = convolution_layout(task, set);
  expect(layout.has_value(), "lattice: no parameters serve this convolution");
  return *layout;
}

void expect_kernel(const ot::Party& party, const KernelUse& use) {
  const bool owns = party.rank == use.task.kernel.owner;
  expect(std::ssize(use.words) == (owns ? use.task.shape.kernel_count() : 0),
         "lattice: the kernel does not match the shape");
}

void expect_images(const ot::Party& party, Operand format, std::span<const u64> in,
                   const KernelUse& use, std::span<u64> out) {
  expect_fits(format, use.task.ell);
  expect(format.owner != use.task.kernel.owner, "lattice: one party owns both operands");
  expect(std::ssize(in) == (holds(party.rank, format) ? use.task.shape.in_count() : 0) &&
             std::ssize(out) == use.task.shape.out_count(),
         "lattice: an operand does not match the shape");
}

// Whole words, so that a scalar of a ciphertext has its sign.
std::vector<u64> scalars(const KernelUse& use) {
  const Operand format = use.task.kernel;
  return ring_elements(use.words, {format.bits, format.is_signed}, 64);
}

// `images` are the client's.
void multiply(ot::Party& party, PackingKeys& keys, const ConvolutionLayout& layout,
              std::span<const u64> kernel, std::span<const u64> images, std::span<u64> out) {
  const auto& [choice, shape, count] = layout.product;
  WipedVector<u64> messages, results(count * shape.outputs * shape.count());
  if (party.rank != keys.owner) {
    messages.resize(count * shape.rows * shape.positions);
    lay_out(layout, images, messages);
  }
  packed_product(party, keys, layout.product, kernel, messages, results);
  collect(layout, results, out);
}

void expect_keys(const PackingKeys& keys, const KernelUse& use) {
  expect(keys.owner == use.task.kernel.owner,
         "lattice: the keys serve products with another party's weights");
}

}  // namespace

void lattice_convolution(ot::Party& party, PackingKeys& keys, Operand in_format,
                         std::span<const u64> in, const KernelUse& use, std::span<u64> out) {
  expect_keys(keys, use);
  const ConvolutionLayout layout = layout_for(use.task, keys.set);
  expect_kernel(party, use);
  expect_images(party, in_format, in, use, out);
  const bool owns = party.rank == keys.owner;
  const std::vector<u64> elements = ring_elements(in, held_format(in_format), use.task.ell);
  const std::vector<u64> kernel = scalars(use);
  multiply(party, keys, layout, kernel, owns ? std::span<const u64>{} : elements, out);
  // The owner's own share of the image.
  if (owns && in_format.owner == kShared)
    linear::add_convolution(elements, kernel, use.task.shape, use.task.ell, out);
}

void cost_lattice_convolution(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                              const ConvolutionTask& task) {
  cost_packed_product(meter, {task.kernel.owner, set, products}, layout_for(task, set).product);
}

PreparedProduct prepare_convolution(ot::Party& party, PackingKeys& keys, const KernelUse& use) {
  expect_keys(keys, use);
  const ConvolutionLayout layout = layout_for(use.task, keys.set);
  expect_kernel(party, use);
  const bool owns = party.rank == keys.owner;
  const MatrixShape images = images_of(use.task.shape);
  PreparedProduct prepared{keys.owner, images, use.task.ell, owns ? use.digest : Digest{}};
  prepared.share.resize(use.task.shape.out_count());
  WipedVector<u64> masks;
  if (!owns) {
    prepared.row_seeds.resize(images.rows);
    party.prg.fill_blocks(prepared.row_seeds.data(), images.rows);
    masks.resize(use.task.shape.in_count());
    for (i64 i = 0; i < images.rows; ++i)
      fill_mask(prepared.row_seeds[i], use.task.ell,
                std::span(masks).subspan(i * images.inner, images.inner));
  }
  in_preprocessing(party,
                   [&] { multiply(party, keys, layout, scalars(use), masks, prepared.share); });
  prepared.digest = keys.digest;
  prepared.batch = keys.products;
  return prepared;
}

void cost_prepare_convolution(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                              const ConvolutionTask& task) {
  meter_preprocessing(meter, [&] { cost_lattice_convolution(meter, set, products, task); });
}

void prepared_convolution(ot::Party& party, PreparedProduct prepared, Operand in_format,
                          std::span<const u64> in, const KernelUse& use, std::span<u64> out) {
  const MatrixShape images = images_of(use.task.shape);
  const auto& [rows, inner, columns] = images;
  const bool owns = party.rank == prepared.owner;
  expect_fits(use.task.kernel, use.task.ell);
  expect(use.task.kernel.owner == prepared.owner,
         "lattice: the product was prepared for another owner");
  expect(prepared.shape.rows == rows && prepared.shape.inner == inner &&
             prepared.shape.columns == columns && prepared.ell == use.task.ell,
         "lattice: another convolution was prepared");
  expect(std::ssize(prepared.share) == rows * columns &&
             std::ssize(prepared.row_seeds) == (owns ? 0 : rows),
         "lattice: this is the other party's half");
  expect_kernel(party, use);
  expect_images(party, in_format, in, use, out);
  expect(!owns || use.digest == prepared.weights,
         "lattice: the weights have changed since the product was prepared");
  const std::vector<u64> elements = ring_elements(in, held_format(in_format), use.task.ell);
  std::ranges::copy(prepared.share, out.begin());
  if (!owns) return send_masked(party, prepared, elements);
  const std::vector<u64> sum = receive_masked(party, prepared, elements);
  linear::add_convolution(sum, scalars(use), use.task.shape, use.task.ell, out);
}

void cost_prepared_convolution(ot::CostMeter& meter, const ConvolutionTask& task) {
  const MatrixShape images = images_of(task.shape);
  cost_masked(meter, task.kernel.owner, images.rows * images.inner, task.ell);
}

MatrixShape images_of(const linear::ConvolutionShape& shape) {
  return {shape.batch, shape.in_channels * shape.height * shape.width,
          shape.out_channels * shape.out_height() * shape.out_width()};
}

Digest fingerprint(const ConvolutionTask& task, std::span<const u64> kernel) {
  const linear::ConvolutionShape& shape = task.shape;
  const Digest words = fingerprint(task.kernel, kernel, shape.out_channels,
                                   kernel.empty() ? 0 : std::ssize(kernel) / shape.out_channels);
  if (kernel.empty()) return words;
  const std::array<i64, 15> numbers{shape.in_channels,   shape.height,       shape.width,
                                    shape.kernel_height, shape.kernel_width, shape.groups,
                                    shape.stride_y,      shape.stride_x,     shape.pad_top,
                                    shape.pad_left,      shape.pad_bottom,   shape.pad_right,
                                    shape.dilation_y,    shape.dilation_x,   shape.out_channels};
  return lattice::digest_of(words, {reinterpret_cast<const u8*>(numbers.data()), sizeof numbers});
}

}  // namespace privml::twopc
