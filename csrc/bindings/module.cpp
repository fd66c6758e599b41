// SPDX-License-Identifier: Apache-2.0
// privml._core: the module, and the translation of the core's exceptions.
#include <pybind11/pybind11.h>

#include "base/error.h"
#include "net/tagged.h"

namespace py = pybind11;

namespace privml::bindings {

void define_linear(py::module_& m);
void define_network(py::module_& m);
void define_packing(py::module_& m);
void define_key_agreement(py::module_& m);
void define_kernels(py::module_& m);
void define_session(py::module_& m);
void define_correlations(py::module_& m);
void define_comparison_family(py::module_& m);
void define_product_family(py::module_& m);
void define_lattice_products(py::module_& m);
void define_lattice_convolutions(py::module_& m);
void define_wide_products(py::module_& m);
void define_fixed_point_functions(py::module_& m);
void define_clear_float_primitives(py::module_& m);
void define_float_dot(py::module_& m);
void define_float_primitives(py::module_& m);
void define_float_functions(py::module_& m);
void define_three_party_kernels(py::module_& m);
void define_three_party_messages(py::module_& m);
void define_wide_numbers(py::module_& m);
void define_active_session(py::module_& core, py::module_& m);
void define_active_store(py::module_& m);

namespace {

// InvalidArgument is a std::invalid_argument, which pybind11 turns into ValueError by itself.
void translate_exceptions() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    const auto raise = [](const char* name, const std::exception& error) {
      py::set_error(py::module_::import("privml.errors").attr(name), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const PeerDisconnected& error) {
      raise("PeerDisconnected", error);
    } catch (const ProtocolError& error) {
      raise("ProtocolError", error);
    } catch (const IdentityError& error) {
      raise("IdentityError", error);
    } catch (const net::ProgramsDiffer& error) {
      const py::object difference =
          py::module_::import("privml.differences")
              .attr("difference")(error.rank, error.peer, py::bytes(error.ours),
                                  py::bytes(error.theirs));
      py::set_error(py::type::handle_of(difference), difference.attr("args")[py::int_(0)]);
    } catch (const SecurityAbort& error) {
      raise("SecurityAbort", error);
    }
  });
}

}  // namespace
}  // namespace privml::bindings

PYBIND11_MODULE(_core, m) {
  m.doc() =
      "The compiled core: channels, sessions, the two-party protocols (submodule twopc), "
      "fixed-point functions (submodule fixmath), floating-point numbers (submodule secfloat), "
      "local products (submodule linear), three-party kernels (submodule threepc), actively secure "
      "protocols (submodule spdz2k).";
  privml::bindings::translate_exceptions();
  privml::bindings::define_network(m);
  privml::bindings::define_packing(m);
  privml::bindings::define_key_agreement(m);
  privml::bindings::define_kernels(m);
  privml::bindings::define_session(m);
  privml::bindings::define_correlations(m);
  py::module_ linear = m.def_submodule("linear", "Local products of ring elements.");
  privml::bindings::define_linear(linear);
  privml::bindings::define_wide_numbers(linear);
  py::module_ twopc = m.def_submodule(
      "twopc", "Protocols: the first argument is a TwoPartySession, both parties call alike.");
  privml::bindings::define_comparison_family(twopc);
  privml::bindings::define_product_family(twopc);
  privml::bindings::define_lattice_products(twopc);
  privml::bindings::define_lattice_convolutions(twopc);
  privml::bindings::define_wide_products(twopc);
  py::module_ fixmath = m.def_submodule(
      "fixmath",
      "Functions of fixed-point numbers: <name>(session, x, formats) on shares, clear_<name>(x, "
      "formats) the same in the clear.");
  privml::bindings::define_fixed_point_functions(fixmath);
  py::module_ secfloat = m.def_submodule(
      "secfloat",
      "Floating-point numbers in words of p + q + 5 bits: <name>(session, words, p, q) on shares, "
      "clear_<name>(words, p, q) the same in the clear.");
  privml::bindings::define_clear_float_primitives(secfloat);
  privml::bindings::define_float_dot(secfloat);
  privml::bindings::define_float_primitives(secfloat);
  privml::bindings::define_float_functions(secfloat);
  py::module_ threepc = m.def_submodule(
      "threepc", "Kernels of the three-party engine: what one party computes between messages.");
  privml::bindings::define_three_party_kernels(threepc);
  privml::bindings::define_three_party_messages(threepc);
  py::module_ spdz2k = m.def_submodule(
      "spdz2k", "Actively secure protocols: the first argument is an ActiveSession.");
  privml::bindings::define_active_session(m, spdz2k);
  privml::bindings::define_active_store(m);
}
