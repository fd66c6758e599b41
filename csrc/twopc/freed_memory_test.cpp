// SPDX-License-Identifier: Apache-2.0
// What protocols give back to the heap: never the offset, nor its base choices, nor two blocks that
// differ by it. Whoever has one of these learns all of a party's transfers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <unordered_set>

#include "ot/softspoken.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/relu.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/testing/parties.h"
#include "twopc/width/truncation.h"

namespace {

// What this thread has freed since recording began, one piece after another.
struct Record {
  unsigned char* bytes = nullptr;
  std::size_t used = 0;
};
constexpr std::size_t kMost = std::size_t{1} << 28;
thread_local Record record;

void keep(const void* memory) {
  if (memory == nullptr || record.bytes == nullptr) return;
  const std::size_t size = malloc_usable_size(const_cast<void*>(memory));
  if (record.used + size > kMost) std::abort();
  std::memcpy(record.bytes + record.used, memory, size);
  record.used += size + (16 - size % 16) % 16;
}

}  // namespace

// For the whole program, which frees with free() whatever the alignment.
void operator delete(void* memory) noexcept {
  keep(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}
void* operator new(std::size_t size) {
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort asks for its buffer so.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(step, (size + step - 1) / step * step)) return memory;
  throw std::bad_alloc();
}

namespace privml::twopc {
namespace {

using namespace ot::testing;
using namespace twopc::testing;

struct BlockHash {
  std::size_t operator()(const crypto::Block& block) const { return block.lo ^ block.hi * 31; }
};

struct Found {
  i64 offsets = 0, choices = 0, pairs = 0;
  std::size_t searched = 0;
};

// Keeps what this thread frees while it lives.
class Recording {
 public:
  Recording() { record = {space_.data(), 0}; }
  ~Recording() { record = {}; }
  Recording(const Recording&) = delete;

  // Ends it.
  Found search(crypto::Block delta, const WipedVector<u8>& choices) {
    record.bytes = nullptr;
    Found found;
    found.searched = record.used;
    std::unordered_set<crypto::Block, BlockHash> seen;
    for (std::size_t at = 0; at + sizeof(crypto::Block) <= record.used; at += 8) {
      crypto::Block block;
      std::memcpy(&block, space_.data() + at, sizeof(crypto::Block));
      found.offsets += block == delta;
      if (at % sizeof(crypto::Block) != 0 || block == crypto::kZeroBlock) continue;  // or wiped
      found.pairs += seen.contains(block ^ delta);
      seen.insert(block);
    }
    found.choices = memmem(space_.data(), record.used, choices.data(), choices.size()) != nullptr;
    return found;
  }

 private:
  std::vector<unsigned char> space_ = std::vector<unsigned char>(kMost);
};

// A protocol of every kind of transfer.
void use(ot::Party& party) {
  constexpr i64 kCount = 2000;
  Words x(kCount), out(kCount);
  party.prg.fill_ring(x, 32);
  Bits bits(kCount), ands(kCount);
  for (i64 i = 0; i < kCount; ++i) bits[i] = x[i] & 1;
  and_private(party, bits, ands);
  millionaires(party, x, 32, ands);
  relu(party, x, 32, out);
  truncate_arithmetic(party, x, 32, 12, out);
  multiplex(party, bits, x, 32, out);
  multiply(party, x, {32, true}, x, {32, true}, 32, out);
  for (const int index_bits : {2, 4, 6, 8, 10}) {
    Words table(u64{1} << index_bits, 7), index(kCount);
    for (i64 i = 0; i < kCount; ++i) index[i] = x[i] & low_mask(index_bits);
    lookup(party, table, index, index_bits, 30, out);
  }
  Words left(20 * 30), right(30 * 40), product(20 * 40);
  matmul(party, {kShared, 32, true}, left, {kShared, 32, true}, right, {20, 30, 40}, 32, product);
}

// Party 0 on this thread, which keeps all that it frees until its session has ended.
Found freed(const std::string& provider, const std::string& security) {
  std::optional<Recording> recording;
  auto [first, second] = net::make_memory_channels();
  std::array<std::unique_ptr<net::Channel>, 2> channels{std::move(first), std::move(second)};
  Secret<crypto::Block> delta = crypto::kZeroBlock;
  run_pair(
      [&](int rank) {
        if (rank == 0) recording.emplace();
        auto resources = ot::make_party_resources(*channels[rank], rank,
                                                  {provider, 4, security, crypto::Block{1, 2}});
        if (rank == 0) delta = resources->party().sender.delta();
        use(resources->party());
        channels[rank]->flush();
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return recording->search(delta, ot::softspoken_base_choices(delta, provider == "silent" ? 8 : 4));
}

TEST(FreedMemory, HoldsNothingThatTellsTheOffset) {
  for (const std::string provider : {"softspoken", "silent"}) {
    for (const std::string security : {"semi_honest", "malicious"}) {
      SCOPED_TRACE(provider + ", " + security);
      const Found found = freed(provider, security);
      EXPECT_GT(found.searched, std::size_t{1} << 20);
      EXPECT_EQ(found.offsets, 0);
      EXPECT_EQ(found.choices, 0);
      EXPECT_EQ(found.pairs, 0);
    }
  }
}

void free_copy(const void* bytes, std::size_t size) {
  void* const memory = ::operator new(size);
  std::memcpy(memory, bytes, size);
  ::operator delete(memory);
}

TEST(FreedMemory, IsSearched) {
  const crypto::Block delta{0x1234567, 0x89abcdef}, q{5, 6}, moved = q ^ delta;
  const WipedVector<u8> choices{1, 0, 1, 1, 0, 0, 0, 1};
  Recording recording;
  for (const crypto::Block& block : {delta, q, moved}) free_copy(&block, sizeof(block));
  free_copy(choices.data(), choices.size());
  const Found found = recording.search(delta, choices);
  EXPECT_EQ(found.offsets, 1);
  EXPECT_EQ(found.pairs, 1);
  EXPECT_EQ(found.choices, 1);
}

}  // namespace
}  // namespace privml::twopc
