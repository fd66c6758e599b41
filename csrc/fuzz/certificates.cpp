// SPDX-License-Identifier: Apache-2.0
#include "fuzz/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"

namespace privml::fuzz {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

void must(bool done, const char* what) {
  if (!done) throw InvalidArgument(what);
}

// A certificate for `name`, signed by `issuer` with `issuer_key`; by itself if there is none.
Certificate issue(const std::string& name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Certificate made(X509_new(), X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), issuer == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 30L * 24 * 3600);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const u8*>(name.c_str()), -1, -1, 0);
  X509* signer = issuer == nullptr ? made.get() : issuer;
  X509_set_issuer_name(made.get(), X509_get_subject_name(signer));
  const std::string value = issuer == nullptr ? "critical,CA:TRUE" : "DNS:" + name;
  const int kind = issuer == nullptr ? NID_basic_constraints : NID_subject_alt_name;
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  must(extension != nullptr && X509_add_ext(made.get(), extension, -1) == 1, "no extension");
  X509_EXTENSION_free(extension);
  must(X509_sign(made.get(), issuer == nullptr ? key : issuer_key, EVP_sha256()) > 0,
       "no signature");
  return made;
}

Key make_key() { return Key(EVP_EC_gen("P-256"), EVP_PKEY_free); }

template <class Write>
std::string write_file(const std::filesystem::path& path, Write&& write) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  must(file != nullptr && write(file) == 1, "a certificate could not be written");
  std::fclose(file);
  return path;
}

std::array<net::TlsIdentity, 2> make_identities() {
  std::string pattern = std::filesystem::temp_directory_path() / "privml-fuzz-XXXXXX";
  must(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
  const std::filesystem::path folder(pattern);
  const Key authority_key = make_key();
  const Certificate authority = issue("authority", authority_key.get(), nullptr, nullptr);
  const std::string trusted = write_file(
      folder / "authority", [&](auto* file) { return PEM_write_X509(file, authority.get()); });
  const auto identity = [&](const std::string& name, const std::string& peer) {
    const Key key = make_key();
    const Certificate mine = issue(name, key.get(), authority.get(), authority_key.get());
    const std::string shown =
        write_file(folder / name, [&](auto* file) { return PEM_write_X509(file, mine.get()); });
    const std::string secret = write_file(folder / (name + ".key"), [&](auto* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return net::TlsIdentity(trusted, shown, secret, {peer});
  };
  std::array<net::TlsIdentity, 2> made{identity("alice", "bob"), identity("bob", "alice")};
  std::filesystem::remove_all(folder);
  return made;
}

}  // namespace

const std::array<net::TlsIdentity, 2>& identities() {
  static const std::array<net::TlsIdentity, 2> made = make_identities();
  return made;
}

}  // namespace privml::fuzz
