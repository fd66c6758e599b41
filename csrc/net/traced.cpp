// SPDX-License-Identifier: Apache-2.0
#include "net/traced.h"

#include "base/error.h"

namespace privml::net {

void TracedChannel::write(Bytes bytes) {
  inner_->write(bytes);
  pending_ += std::ssize(bytes);
  if (keep_bytes_) sent_.insert(sent_.end(), bytes.begin(), bytes.end());
}

void TracedChannel::read(MutableBytes bytes) {
  finish_message();
  inner_->read(bytes);
  passages_.push_back({false, std::ssize(bytes)});
}

void TracedChannel::flush() {
  finish_message();
  inner_->flush();
}

void TracedChannel::set_depth(i64 depth) {
  finish_message();
  inner_->set_depth(depth);
}

void TracedChannel::set_tag(u64 tag) {
  finish_message();
  tags().set_tag(tag);
}

Tagged& TracedChannel::tags() {
  Tagged* inner = tagged(inner_.get());
  expect(inner != nullptr, "the traced channel knows no tags");
  return *inner;
}

void TracedChannel::finish_message() {
  if (pending_ > 0) passages_.push_back({true, pending_});
  pending_ = 0;
}

}  // namespace privml::net
