// SPDX-License-Identifier: Apache-2.0
// Python names of channels. Waiting calls run without the interpreter lock.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cmath>

#include "bindings/arrays.h"
#include "bindings/bytes.h"
#include "net/framed.h"
#include "net/memory.h"
#include "net/sealed.h"
#include "net/shaped.h"
#include "net/tagged.h"
#include "net/tcp.h"
#include "net/traced.h"

namespace privml::bindings {
namespace {

// What one Python read may ask for at once.
constexpr i64 kLongestRead = i64{1} << 30;

std::chrono::milliseconds duration(double seconds) {
  expect(std::isfinite(seconds) && seconds >= 0 && seconds < 1e9, "seconds must be in [0, 1e9)");
  return std::chrono::milliseconds{static_cast<i64>(std::ceil(seconds * 1000))};
}

std::unique_ptr<net::Channel> shaped(std::unique_ptr<net::Channel> channel, double delay_ms,
                                     double bandwidth_mbps) {
  if (delay_ms == 0 && bandwidth_mbps == 0) return channel;
  expect(std::isfinite(delay_ms) && std::isfinite(bandwidth_mbps),
         "delay and bandwidth must be finite");
  const std::chrono::nanoseconds delay{static_cast<i64>(delay_ms * 1e6)};
  return net::make_shaped(std::move(channel), delay, bandwidth_mbps * 1e6);
}

net::Tagged& tags_of(net::Channel& channel) {
  net::Tagged* tags = net::tagged(&channel);
  expect(tags != nullptr, "this channel knows no tags");
  return *tags;
}

void define_account(py::module_& m) {
  py::class_<net::Account, std::shared_ptr<net::Account>>(
      m, "Account",
      "What a party has computed lately, one line for "
      "each step, which its peer receives if the two "
      "differ.")
      .def(py::init<int, int>(), "rank"_a, "peer"_a)
      .def("add", &net::Account::add, "line"_a, "At most 256 bytes; the oldest lines give way.")
      .def("text", &net::Account::text);
}

void define_channel(py::module_& m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<net::Channel, std::shared_ptr<net::Channel>>(m, "Channel",
                                                          "One ordered byte stream to one peer.")
      .def(
          "write",
          [](net::Channel& channel, const py::bytes& data) {
            const Bytes bytes = view_of(data);
            py::gil_scoped_release without_interpreter;
            channel.write(bytes);
          },
          "data"_a, "Queues bytes; they leave at the next flush or read.")
      .def(
          "read",
          [](net::Channel& channel, i64 count) {
            expect(count >= 0 && count <= kLongestRead, "count must be in [0, 2^30]");
            std::string data(static_cast<std::size_t>(count), '\0');
            {
              py::gil_scoped_release without_interpreter;
              channel.read({reinterpret_cast<u8*>(data.data()), data.size()});
            }
            return py::bytes(data);
          },
          "count"_a, "Exactly `count` bytes; raises PeerDisconnected after the deadline.")
      .def(
          "write_array",
          [](net::Channel& channel, const py::array& array) {
            const auto bytes = view<u8>(array, "array");
            py::gil_scoped_release without_interpreter;
            channel.write(bytes);
          },
          "array"_a, "Queues the bytes of a uint8 array without a copy in Python.")
      .def(
          "read_array",
          [](net::Channel& channel, i64 count) {
            expect(count >= 0, "count must not be negative");
            Result<u8> data({static_cast<py::ssize_t>(count)});
            {
              py::gil_scoped_release without_interpreter;
              channel.read(data.span);
            }
            return data.array;
          },
          "count"_a, "Exactly `count` bytes as a uint8 array.")
      .def_property_readonly("peer_name", &net::Channel::peer_name,
                             "The name that the peer has proved by a certificate, once something "
                             "was read or sent; empty without TLS.")
      .def_property_readonly(
          "peer_address",
          [](const net::Channel& channel) {
            const auto* framed = dynamic_cast<const net::FramedChannel*>(&channel);
            return framed == nullptr ? std::string() : framed->peer_address();
          },
          "\"host:port\" of the peer's end; empty where there is no network.")
      .def_property_readonly(
          "names",
          [](const net::Channel& channel) {
            const net::CertifiedNames names = channel.names();
            return py::make_tuple(names.own, names.peer);
          },
          "(own, peer's): all names in the certificates of both sides, once something was read or "
          "sent; two empty lists without TLS.")
      .def_property_readonly(
          "peer_closed", &net::Channel::peer_closed,
          "Whether the peer is known to send no more, without a wait; what it sent "
          "before may still be there to be read.")
      .def("set_depth", &net::Channel::set_depth, Release(), "depth"_a,
           "Sends what is queued and sets the depth clock, for sessions of several channels.")
      .def(
          "set_account",
          [](net::Channel& channel, std::shared_ptr<net::Account> account, bool peer_reads) {
            tags_of(channel).set_account(std::move(account), peer_reads);
          },
          Release(), "account"_a, "peer_reads"_a = true,
          "Frames carry tags from here on; both ends say so at the same place of the stream. "
          "`peer_reads`: whether the peer ever reads from this channel.")
      .def(
          "set_tag", [](net::Channel& channel, u64 tag) { tags_of(channel).set_tag(tag); },
          Release(), "tag"_a,
          "Sends what is queued; what comes next belongs to the computation of this tag. Reading "
          "a frame of another one raises ProgramsDiffer.")
      .def(
          "differ", [](net::Channel& channel) { tags_of(channel).differ(); }, Release(),
          "Tells the peer that the two differ, and raises ProgramsDiffer with what it answers.")
      .def(
          "stalled", [](net::Channel& channel) { tags_of(channel).stalled(); }, Release(),
          "After a wait until the deadline: asks the peer whether it waits, too, and raises "
          "ProgramsDiffer when it answers.")
      .def(
          "report",
          [](net::Channel& channel, const std::string& cause, double seconds) {
            tags_of(channel).report(cause, duration(seconds));
          },
          Release(), "cause"_a, "seconds"_a,
          "Tells the peer in one line why this party ends, and waits so long at most until the "
          "peer "
          "has read it.")
      .def("flush", &net::Channel::flush, Release())
      .def("close", &net::Channel::close, Release())
      .def(
          "set_deadline",
          [](net::Channel& channel, double seconds) { channel.set_deadline(duration(seconds)); },
          "seconds"_a, "The longest time one read may wait.")
      .def(
          "depth", [](const net::Channel& channel) { return channel.traffic().depth; },
          "The depth clock, which `traffic` has too.")
      .def("traffic", [](const net::Channel& channel) {
        const net::Traffic traffic = channel.traffic();
        return py::dict("sent"_a = traffic.sent, "received"_a = traffic.received,
                        "depth"_a = traffic.depth);
      });
}

void define_traced(py::module_& m) {
  py::class_<net::TracedChannel, net::Channel, std::shared_ptr<net::TracedChannel>>(
      m, "TracedChannel", "A channel that keeps what somebody on the network sees of it.")
      .def(py::init<std::shared_ptr<net::Channel>, bool>(), "channel"_a, "keep_bytes"_a = false)
      .def(
          "passages",
          [](const net::TracedChannel& channel) {
            py::list result;
            for (const auto& [sent, bytes] : channel.passages())
              result.append(py::make_tuple(sent, bytes));
            return result;
          },
          "(whether it was sent, bytes) of every message and read, in order; once the session has "
          "ended.")
      .def(
          "sent", [](const net::TracedChannel& channel) { return bytes_of(channel.sent()); },
          "All bytes sent, where they are kept.");
}

void define_sealed(py::module_& m) {
  py::class_<net::SealedMessages>(
      m, "SealedMessages", "Messages of one direction of a channel, encrypted and authenticated.")
      .def(py::init([](std::shared_ptr<net::Channel> channel, const py::bytes& key) {
             return net::SealedMessages(std::move(channel), view_of(key));
           }),
           "channel"_a, "key"_a, "32 bytes, for this direction of this channel alone.")
      .def(
          "send",
          [](net::SealedMessages& sealed, const py::array& message) {
            const auto bytes = view<u8>(message, "message");
            py::gil_scoped_release without_interpreter;
            sealed.send(bytes);
          },
          "message"_a, "Sends a uint8 array.")
      .def(
          "receive",
          [](net::SealedMessages& sealed, i64 count) {
            expect(count >= 0, "count must not be negative");
            py::array_t<u8> message(count);
            const MutableBytes bytes{message.mutable_data(), static_cast<std::size_t>(count)};
            {
              py::gil_scoped_release without_interpreter;
              sealed.receive(bytes);
            }
            return message;
          },
          "count"_a,
          "The next message, of `count` bytes; SecurityAbort when the peer has sent another one.")
      .def_readonly_static("tag_bytes", &net::SealedMessages::kTagBytes)
      .def_readonly_static("piece_bytes", &net::SealedMessages::kPieceBytes);
}

void define_identity(py::module_& m) {
  py::class_<net::TlsIdentity>(m, "TlsIdentity",
                               "A party's certificate, and the names of its peers under TLS 1.3.")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    std::vector<std::string>>(),
           "authority"_a, "certificate"_a, "key"_a, "peers"_a,
           "PEM files; names that a peer may prove (none: any). ValueError naming a wrong file.")
      .def("expecting", &net::TlsIdentity::expecting, "peers"_a, "The same with other peers.")
      .def_property_readonly("peers", &net::TlsIdentity::peers);
}

void define_listener(py::module_& m) {
  py::class_<net::TcpListener>(
      m, "TcpListener", "A listening socket; port 0 takes any free port. ValueError if it cannot.")
      .def(py::init<const std::string&, int>(), "host"_a, "port"_a)
      .def_property_readonly("port", &net::TcpListener::port)
      .def(
          "accept",
          [](net::TcpListener& listener, double deadline, double delay_ms, double bandwidth_mbps,
             const net::TlsIdentity* identity) {
            const auto limit = duration(deadline);
            py::gil_scoped_release without_interpreter;
            return std::shared_ptr<net::Channel>(
                shaped(listener.accept(limit, identity), delay_ms, bandwidth_mbps));
          },
          "deadline"_a, "delay_ms"_a = 0.0, "bandwidth_mbps"_a = 0.0, "identity"_a = nullptr)
      .def("close", &net::TcpListener::close);
}

}  // namespace

void define_network(py::module_& m) {
  define_account(m);
  define_channel(m);
  define_traced(m);
  define_sealed(m);
  define_identity(m);
  define_listener(m);
  m.def(
      "memory_pair",
      [](double delay_ms, double bandwidth_mbps) {
        auto [first, second] = net::make_memory_channels();
        return std::make_pair(
            std::shared_ptr<net::Channel>(shaped(std::move(first), delay_ms, bandwidth_mbps)),
            std::shared_ptr<net::Channel>(shaped(std::move(second), delay_ms, bandwidth_mbps)));
      },
      "delay_ms"_a = 0.0, "bandwidth_mbps"_a = 0.0, "Two connected channels in this process.");
  m.def(
      "connect_tcp",
      [](const std::string& host, int port, double deadline,
         const std::optional<std::function<void()>>& on_wait, double delay_ms,
         double bandwidth_mbps, const net::TlsIdentity* identity) {
        const auto limit = duration(deadline);
        std::function<void()> hook;
        if (on_wait) {
          hook = [&on_wait] {
            py::gil_scoped_acquire with_interpreter;
            (*on_wait)();
          };
        }
        py::gil_scoped_release without_interpreter;
        return std::shared_ptr<net::Channel>(
            shaped(net::connect_tcp(host, port, limit, hook, identity), delay_ms, bandwidth_mbps));
      },
      "host"_a, "port"_a, "deadline"_a, "on_wait"_a = py::none(), "delay_ms"_a = 0.0,
      "bandwidth_mbps"_a = 0.0, "identity"_a = nullptr,
      "Tries until the deadline; on_wait is called if nobody is there yet.");
}

}  // namespace privml::bindings
