// SPDX-License-Identifier: Apache-2.0
// Python names of convolutions by lattice-based encryption, and of what is prepared for them.
#include "bindings/bytes.h"
#include "bindings/operands.h"
#include "twopc/product/lattice_convolution.h"

namespace privml::bindings {
namespace {

py::object choice_of(const twopc::ConvolutionTask& task, const twopc::PackingKeys& keys) {
  const auto found = twopc::convolution_layout(task, keys.set);
  if (!found) return py::none();
  const twopc::PackedProduct& product = found->product;
  const lattice::ColumnChoice& columns = product.choice.columns;
  const auto [up, down] = twopc::packed_bytes_of(product);
  const i64 products =
      product.shape.outputs * (product.messages * product.shape.inner() * product.shape.count() +
                               lattice::c1_work(product.choice, product.shape, product.messages));
  const i64 switched =
      lattice::switched_digits(keys.set, product.choice.levels, product.shape.outputs);
  const i64 sent = product.messages * ceil_div(product.shape.rows, product.choice.gap());
  const i64 answers = product.messages * ceil_div(product.shape.outputs, product.choice.gap());
  return py::dict("answer_bits"_a = columns.answer_bits, "log2_failure"_a = columns.log2_failure,
                  "gap"_a = product.choice.gap(), "messages"_a = product.messages, "up"_a = up,
                  "down"_a = down, "polynomials"_a = sent + 2 * answers,
                  "word_products"_a = products, "digits"_a = product.messages * switched);
}

// This party's words, if it owns the kernel.
twopc::KernelUse use_of(const TwoPartySession& session, const twopc::ConvolutionTask& task,
                        const Words& kernel) {
  twopc::KernelUse use{task, view_if(kernel, "kernel")};
  check_length(use.words, task.kernel, session.rank(), task.shape.kernel_count(), "kernel");
  return use;
}

// What the words are known by.
void know(const TwoPartySession& session, twopc::KernelUse& use,
          const std::optional<py::bytes>& digest) {
  if (!digest) {
    use.digest = twopc::fingerprint(use.task, use.words);
  } else if (session.rank() == use.task.kernel.owner) {
    const Bytes given = view_of(*digest);
    expect(given.size() == use.digest.size(), "digest: needs 32 bytes");
    std::ranges::copy(given, use.digest.begin());
  }
}

// Arguments are checked before a session is touched, which a failing protocol would end.
void check_keys(const twopc::PackingKeys& keys, const twopc::ConvolutionTask& task) {
  expect(keys.owner == task.kernel.owner,
         "lattice: the keys serve products with another party's weights");
  expect(twopc::convolution_layout(task, keys.set).has_value(),
         "lattice: no parameters serve this convolution");
}

void check_images(const TwoPartySession& session, const twopc::ConvolutionTask& task,
                  std::span<const u64> x, twopc::Operand format) {
  twopc::expect_fits(format, task.ell);
  expect(format.owner != task.kernel.owner, "lattice: one party owns both operands");
  check_length(x, format, session.rank(), task.shape.in_count(), "x");
}

Result<u64> results(const TwoPartySession& session, const linear::ConvolutionShape& shape) {
  return {session, {shape.batch, shape.out_channels, shape.out_height(), shape.out_width()}};
}

py::array convolve(TwoPartySession& session, twopc::PackingKeys& keys,
                   const twopc::ConvolutionTask& task, const Words& x, const Format& x_format,
                   const Words& kernel) {
  const auto given = view_if(x, "x");
  const twopc::Operand fx = operand(x_format);
  const twopc::KernelUse use = use_of(session, task, kernel);
  check_keys(keys, task);
  check_images(session, task, given, fx);
  Result<u64> out = results(session, task.shape);
  session.run(
      [&](ot::Party& party) { twopc::lattice_convolution(party, keys, fx, given, use, out.span); },
      [&](ot::CostMeter& meter) {
        twopc::cost_lattice_convolution(meter, keys.set, keys.products, task);
        ++keys.products;
      });
  return out.array;
}

twopc::PreparedProduct prepare(TwoPartySession& session, twopc::PackingKeys& keys,
                               const twopc::ConvolutionTask& task, const Words& kernel,
                               const std::optional<py::bytes>& digest) {
  twopc::KernelUse use = use_of(session, task, kernel);
  know(session, use, digest);
  check_keys(keys, task);
  twopc::PreparedProduct prepared{keys.owner, twopc::images_of(task.shape), task.ell};
  // A meter's half has only its size.
  if (session.metering() && session.rank() != keys.owner)
    prepared.row_seeds.resize(static_cast<std::size_t>(task.shape.batch));
  session.run([&](ot::Party& party) { prepared = twopc::prepare_convolution(party, keys, use); },
              [&](ot::CostMeter& meter) {
                twopc::cost_prepare_convolution(meter, keys.set, keys.products, task);
                ++keys.products;
              });
  return prepared;
}

py::array online(TwoPartySession& session, twopc::PreparedProduct& prepared,
                 const twopc::ConvolutionTask& task, const Words& x, const Format& x_format,
                 const Words& kernel, const std::optional<py::bytes>& digest) {
  const auto given = view_if(x, "x");
  const twopc::Operand fx = operand(x_format);
  twopc::KernelUse use = use_of(session, task, kernel);
  know(session, use, digest);
  const twopc::MatrixShape images = twopc::images_of(task.shape);
  expect(task.kernel.owner == prepared.owner,
         "lattice: the product was prepared for another owner");
  expect(images.inner == prepared.shape.inner && images.columns == prepared.shape.columns &&
             task.ell == prepared.ell,
         "lattice: another convolution was prepared");
  twopc::expect_fits(task.kernel, task.ell);
  check_images(session, task, given, fx);
  expect(session.metering() || use.digest == prepared.weights,
         "lattice: the weights have changed since the product was prepared");
  twopc::PreparedProduct taken = twopc::take_rows(prepared, images.rows);
  Result<u64> out = results(session, task.shape);
  session.run(
      [&](ot::Party& party) {
        twopc::prepared_convolution(party, std::move(taken), fx, given, use, out.span);
      },
      [&](ot::CostMeter& meter) { twopc::cost_prepared_convolution(meter, task); });
  return out.array;
}

}  // namespace

void define_lattice_convolutions(py::module_& m) {
  py::class_<twopc::ConvolutionTask>(
      m, "Convolution",
      "What both parties know of a convolution of x [n, c, h, w] with a kernel "
      "[o, c / groups, kh, kw] that one of them owns.")
      .def(py::init([](std::array<i64, 4> x_shape, std::array<i64, 4> w_shape,
                       std::array<i64, 2> stride, std::array<i64, 4> padding,
                       std::array<i64, 2> dilation, i64 groups, const Format& kernel_format,
                       int ell) {
             twopc::ConvolutionTask made{
                 convolution_shape(x_shape, w_shape, stride, padding, dilation, groups),
                 operand(kernel_format), ell};
             expect(made.kernel.owner == 0 || made.kernel.owner == 1,
                    "kernels are owned by party 0 or 1");
             twopc::expect_fits(made.kernel, ell);
             return made;
           }),
           "x_shape"_a, "w_shape"_a, "stride"_a, "padding"_a, "dilation"_a, "groups"_a,
           "kernel_format"_a, "ell"_a, "padding is (top, bottom, left, right)")
      .def_property_readonly("images",
                             [](const twopc::ConvolutionTask& c) { return c.shape.batch; })
      .def(
          "of",
          [](twopc::ConvolutionTask c, i64 images) {
            expect(images >= 1, "convolution: needs images");
            c.shape.batch = images;
            return c;
          },
          "images"_a, "The same convolution of so many images.")
      .def(
          "over",
          [](twopc::ConvolutionTask c, i64 nanoseconds) {
            expect(nanoseconds >= 0, "convolution: a byte takes no negative time");
            c.byte_price = nanoseconds;
            return c;
          },
          "nanoseconds"_a,
          "The same convolution over a link on which a byte takes so long (else 8): what its "
          "layout weighs work against.")
      .def("choice", &choice_of, "keys"_a,
           "How such keys make it: bytes up and down besides the keys, what the owner computes; "
           "None where no parameters serve.")
      .def(
          "fingerprint",
          [](const twopc::ConvolutionTask& c, const py::array& kernel) {
            const auto words = view<u64>(kernel, "kernel");
            expect(size(words) == c.shape.kernel_count(), "kernel: another shape");
            return bytes_of(twopc::fingerprint(c, words));
          },
          "kernel"_a, "32 bytes by which prepared convolutions know their kernel.");
  m.def("lattice_convolve", &convolve, "session"_a, "keys"_a, "convolution"_a, "x"_a, "x_format"_a,
        "kernel"_a, "The convolution, with nothing prepared but the keys.");
  m.def("lattice_prepare_convolution", &prepare, "session"_a, "keys"_a, "convolution"_a, "kernel"_a,
        "digest"_a = py::none(), "What its images need beside x: the rows of a prepared product.");
  m.def("lattice_online_convolution", &online, "session"_a, "prepared"_a, "convolution"_a, "x"_a,
        "x_format"_a, "kernel"_a, "digest"_a = py::none(),
        "The convolution with the last images of what was prepared.");
}

}  // namespace privml::bindings
