// SPDX-License-Identifier: Apache-2.0
#include "net/sealed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "net/memory.h"

namespace privml::net {
namespace {

using Buffer = std::vector<u8>;

constexpr size_t kTag = SealedMessages::kTagBytes, kPiece = SealedMessages::kPieceBytes;
const Buffer kKey(32, 7);

Buffer pattern(size_t size) {
  Buffer bytes(size);
  std::iota(bytes.begin(), bytes.end(), u8{1});
  return bytes;
}

struct Line {
  ChannelPair ends = make_memory_channels();
  std::shared_ptr<Channel> first{std::move(ends.first)}, second{std::move(ends.second)};
};

// What crosses a channel when `messages` are sent.
Buffer sealed(const std::vector<Buffer>& messages, const Buffer& key = kKey) {
  Line line;
  SealedMessages sender(line.first, key);
  size_t size = 0;
  for (const Buffer& message : messages) {
    sender.send(message);
    size += message.size() + kTag * ((message.size() + kPiece - 1) / kPiece);
  }
  Buffer crossed(size);
  line.second->read(crossed);
  return crossed;
}

// What a receiver makes of `crossed`; the lengths are those of `messages`.
std::vector<Buffer> opened(const Buffer& crossed, std::vector<Buffer> messages) {
  Line line;
  line.first->write(crossed);
  line.first->flush();
  SealedMessages receiver(line.second, kKey);
  for (Buffer& message : messages) receiver.receive(message);
  return messages;
}

std::vector<Buffer> empty_like(std::vector<Buffer> messages) {
  for (Buffer& message : messages) std::fill(message.begin(), message.end(), u8{0xee});
  return messages;
}

TEST(Sealed, WhatIsSentArrives) {
  const std::vector<Buffer> messages{pattern(1),      pattern(15),         pattern(0),
                                     pattern(kPiece), pattern(kPiece + 1), pattern(3 * kPiece + 5)};
  EXPECT_EQ(opened(sealed(messages), empty_like(messages)), messages);
}

TEST(Sealed, EqualPiecesLookDifferent) {
  const Buffer crossed = sealed({Buffer(2 * kPiece, 0)});
  const auto second = crossed.begin() + kPiece + kTag;
  EXPECT_FALSE(std::equal(crossed.begin(), crossed.begin() + kPiece, second));
  EXPECT_EQ(std::search_n(crossed.begin(), crossed.end(), 16, 0), crossed.end());
}

TEST(Sealed, EveryChangeIsNoticed) {
  const std::vector<Buffer> messages{pattern(9), pattern(20)};
  const Buffer crossed = sealed(messages);
  for (size_t bit = 0; bit < 8 * crossed.size(); ++bit) {
    Buffer changed = crossed;
    changed[bit / 8] ^= static_cast<u8>(1 << bit % 8);
    EXPECT_THROW(opened(changed, empty_like(messages)), SecurityAbort) << bit;
  }
}

TEST(Sealed, OrderRepetitionAndKeyAreNoticed) {
  const std::vector<Buffer> messages{pattern(20), Buffer(20, 3)};
  const Buffer crossed = sealed(messages);
  Buffer moved = crossed, repeated = crossed;
  std::rotate(moved.begin(), moved.begin() + 36, moved.end());
  std::copy_n(crossed.begin(), 36, repeated.begin() + 36);
  EXPECT_THROW(opened(moved, empty_like(messages)), SecurityAbort);
  EXPECT_THROW(opened(repeated, empty_like(messages)), SecurityAbort);
  EXPECT_THROW(opened(sealed(messages, Buffer(32, 8)), empty_like(messages)), SecurityAbort);
}

TEST(Sealed, NothingUnauthenticatedIsLeft) {
  Line line;
  Buffer crossed = sealed({pattern(kPiece + 100)});
  crossed.back() ^= 1;
  line.first->write(crossed);
  line.first->flush();
  SealedMessages receiver(line.second, kKey);
  Buffer message(kPiece + 100, 0xee);
  EXPECT_THROW(receiver.receive(message), SecurityAbort);
  EXPECT_EQ(message, Buffer(message.size(), 0));
}

TEST(Sealed, KeysHave32Bytes) {
  Line line;
  EXPECT_THROW(SealedMessages(line.first, Buffer(16, 0)), InvalidArgument);
}

}  // namespace
}  // namespace privml::net
