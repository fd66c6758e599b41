// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/buffer.h"
#include "base/error.h"

namespace privml::net {
namespace {

constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr u8 kAccepted = 1;
constexpr u8 kRefused = 2;

std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

void use(bool done, const char* what, const std::string& file) {
  if (done) return;
  const std::string reason = last_reason();
  ERR_clear_error();
  throw InvalidArgument(std::string(what) + " '" + file + "' cannot be used: " + reason);
}

// OpenSSL's own socket BIO would raise SIGPIPE if the peer is gone.
int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int finished(BIO* bio, ssize_t n, int retry) {
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(n);
}

int write_socket(BIO* bio, const char* data, int size) {
  return finished(bio, send(socket_of(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL),
                  BIO_FLAGS_WRITE);
}

int read_socket(BIO* bio, char* data, int size) {
  return finished(bio, recv(socket_of(bio), data, static_cast<size_t>(size), 0), BIO_FLAGS_READ);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* make_socket_bio(int socket) {
  static const std::unique_ptr<BIO_METHOD, decltype(&BIO_meth_free)> method = [] {
    std::unique_ptr<BIO_METHOD, decltype(&BIO_meth_free)> made(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "privml socket"), BIO_meth_free);
    BIO_meth_set_write(made.get(), write_socket);
    BIO_meth_set_read(made.get(), read_socket);
    BIO_meth_set_ctrl(made.get(), control_socket);
    return made;
  }();
  BIO* bio = BIO_new(method.get());
  expect(bio != nullptr, "TLS: out of memory");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

// Names of DNS kind among the certificate's subject alternative names.
std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  auto* entries = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(entries); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(entries, i);
    if (entry->type != GEN_DNS) continue;
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(entry->d.dNSName)),
                       static_cast<size_t>(ASN1_STRING_length(entry->d.dNSName)));
  }
  GENERAL_NAMES_free(entries);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// Whether the first bytes of a connection begin a TLS handshake. A frame's header never does: where
// its length looks like that of a record of this kind, the record is empty.
bool begins_tls(const u8 (&first)[5]) {
  return first[0] == SSL3_RT_HANDSHAKE && first[1] == 3 && (first[3] | first[4]) != 0;
}

// Shows a peer that does not speak TLS that this side does, by alerts (protocol_version) that have
// together at least the length of a frame's header, which such a peer waits for.
void send_tls_alerts(int socket) {
  constexpr u8 kAlerts[] = {21, 3, 3, 0, 2, 2, 70, 21, 3, 3, 0, 2, 2, 70, 21, 3, 3, 0, 2, 2, 70};
  static_assert(sizeof kAlerts >= 16);
  (void)send(socket, kAlerts, sizeof kAlerts, MSG_NOSIGNAL);
  shutdown(socket, SHUT_WR);
  // A socket that is closed over unread bytes is reset, and the peer may lose the alerts.
  u8 unread[4096];
  for (int i = 0; i < 16 && recv(socket, unread, sizeof unread, MSG_DONTWAIT) > 0; ++i) {
  }
}

// What a failed handshake means, for the operator of this party.
std::string explanation(SSL* ssl, bool verified_badly) {
  if (verified_badly) {
    return std::string("the peer's certificate is refused: ") +
           X509_verify_cert_error_string(SSL_get_verify_result(ssl));
  }
  const unsigned long code = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(code);
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET)
    return "the peer refuses this party: " + last_reason();
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return "the peer shows no certificate";
  if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
      (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
       reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_UNEXPECTED_MESSAGE))
    return "the peer does not speak TLS 1.3; give both parties certificates (" + last_reason() +
           ")";
  return last_reason();
}

class TlsStream final : public SocketStream {
 public:
  TlsStream(std::shared_ptr<void> context, int socket, TlsRole role, std::vector<std::string> peers)
      : context_(std::move(context)),
        ssl_(SSL_new(static_cast<SSL_CTX*>(context_.get())), SSL_free),
        role_(role),
        peers_(std::move(peers)) {
    expect(ssl_ != nullptr, "TLS: out of memory");
    BIO* bio = make_socket_bio(socket);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (role == TlsRole::connecting) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }

  short prepare() override {
    while (state_ != State::ready) {
      const short events = state_ == State::handshake ? handshake()
                           : verdict_due_             ? send_verdict()
                                                      : receive_verdict();
      if (events != 0) return events;
    }
    return 0;
  }

  i64 send_some(Bytes header, Bytes payload) override {
    // One record for a header and what fits behind it; a retry brings the same bytes again.
    Bytes record = payload.first(std::min(payload.size(), kRecord));
    if (!header.empty()) {
      staged_.resize(std::min(header.size() + payload.size(), kRecord));
      std::memcpy(staged_.data(), header.data(), header.size());
      std::memcpy(staged_.data() + header.size(), payload.data(), staged_.size() - header.size());
      record = {staged_.data(), staged_.size()};
    }
    size_t n = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_.get(), record.data(), record.size(), &n) == 1) return static_cast<i64>(n);
    return waits() != 0 ? 0 : -1;
  }

  i64 receive_some(MutableBytes bytes) override {
    size_t n = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &n) == 1) return static_cast<i64>(n);
    return waits() != 0 ? 0 : -1;
  }

  std::string peer_name() const override { return peer_name_; }

  CertifiedNames names() const override {
    const X509* own = SSL_get_certificate(ssl_.get());
    return {own == nullptr ? std::vector<std::string>{} : names_of(own),
            peer_name_.empty() ? std::vector<std::string>{} : names_};
  }

 private:
  enum class State { handshake, names, ready };

  // The events that the last call waits for; 0 when it failed.
  short waits(int result = 0) const {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return POLLIN;
      case SSL_ERROR_WANT_WRITE:
        return POLLOUT;
      default:
        return 0;
    }
  }

  short handshake() {
    if (role_ == TlsRole::listening && !checked_first_bytes_ && !check_first_bytes()) return POLLIN;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) {
      const short events = waits(result);
      if (events == 0) fail();
      return events;
    }
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        SSL_get1_peer_certificate(ssl_.get()), X509_free);
    names_ = certificate == nullptr ? std::vector<std::string>{} : names_of(certificate.get());
    for (const std::string& name : names_) {
      const bool expected =
          peers_.empty() || std::find(peers_.begin(), peers_.end(), name) != peers_.end();
      if (expected && peer_name_.empty()) peer_name_ = name;
    }
    state_ = State::names;
    verdict_due_ = role_ == TlsRole::listening;
    return 0;
  }

  // Looks at the peer's first bytes without taking them. Whether there are any.
  bool check_first_bytes() {
    const int socket = socket_of(SSL_get_rbio(ssl_.get()));
    u8 first[5];
    const ssize_t n = recv(socket, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    checked_first_bytes_ = true;
    if (n == sizeof first && !begins_tls(first)) {
      send_tls_alerts(socket);
      throw IdentityError("TLS: the peer does not speak TLS 1.3; give both parties certificates");
    }
    return true;
  }

  // Whether the names fit. The listening side sends first, so that nothing is left unread if it
  // refuses.
  short send_verdict() {
    const u8 verdict = peer_name_.empty() ? kRefused : kAccepted;
    size_t n = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_.get(), &verdict, 1, &n) != 1) {
      const short events = waits();
      if (events == 0) fail();
      return events;
    }
    if (peer_name_.empty())
      throw IdentityError("the peer's certificate is for " + joined(names_) + ", expected is " +
                          joined(peers_) + "; check the names of the parties");
    verdict_due_ = false;
    if (role_ == TlsRole::connecting) state_ = State::ready;
    return 0;
  }

  short receive_verdict() {
    u8 verdict = 0;
    size_t n = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), &verdict, 1, &n) != 1) {
      const short events = waits();
      if (events == 0) fail();
      return events;
    }
    if (verdict != kAccepted)
      throw IdentityError(
          "the peer refuses this party: no name in its certificate is one that the peer "
          "expects");
    if (role_ == TlsRole::connecting) {
      verdict_due_ = true;
    } else {
      state_ = State::ready;
    }
    return 0;
  }

  [[noreturn]] void fail() const {
    const bool verified_badly = SSL_get_verify_result(ssl_.get()) != X509_V_OK;
    const bool gone = ERR_peek_last_error() == 0;
    const std::string text = gone && !verified_badly
                                 ? "the peer closed the connection during TLS's handshake; does it "
                                   "use TLS, with a certificate of the same authority?"
                                 : explanation(ssl_.get(), verified_badly);
    ERR_clear_error();
    throw IdentityError("TLS: " + text);
  }

  std::shared_ptr<void> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  TlsRole role_;
  std::vector<std::string> peers_;
  std::vector<std::string> names_;
  std::string peer_name_;
  State state_ = State::handshake;
  bool checked_first_bytes_ = false;  // whether the peer's first bytes have been looked at
  bool verdict_due_ = false;
  AlignedVector<u8> staged_;
};

}  // namespace

TlsIdentity::TlsIdentity(const std::string& authority, const std::string& certificate,
                         const std::string& key, std::vector<std::string> peers)
    : context_(SSL_CTX_new(TLS_method()),
               [](void* context) { SSL_CTX_free(static_cast<SSL_CTX*>(context)); }),
      peers_(std::move(peers)) {
  auto* context = static_cast<SSL_CTX*>(context_.get());
  expect(context != nullptr, "TLS: out of memory");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  use(SSL_CTX_load_verify_locations(context, authority.c_str(), nullptr) == 1,
      "the authority's certificate", authority);
  use(SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1, "the certificate",
      certificate);
  use(SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1, "the private key",
      key);
  use(SSL_CTX_check_private_key(context) == 1, "the private key", key);
}

TlsIdentity TlsIdentity::expecting(std::vector<std::string> peers) const {
  TlsIdentity other(*this);
  other.peers_ = std::move(peers);
  return other;
}

std::unique_ptr<SocketStream> TlsIdentity::stream(int socket, TlsRole role) const {
  return std::make_unique<TlsStream>(context_, socket, role, peers_);
}

}  // namespace privml::net
