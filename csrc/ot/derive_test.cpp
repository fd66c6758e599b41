// SPDX-License-Identifier: Apache-2.0
// Derived transfers against the functions they claim to compute.
#include "ot/derive.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "base/error.h"
#include "ot/field.h"
#include "ot/pads.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

template <class T>
std::vector<T> random_values(i64 count, int bits, u64 seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(generator() & low_mask(bits));
  return values;
}

// sender and receiver run at ranks `sender` and 1 - sender.
void run_roles(int sender, const std::function<void(Party&)>& send,
               const std::function<void(Party&)>& receive, const std::string& provider = "ideal") {
  run_session(test_config(provider),
              [&](Party& party) { party.rank == sender ? send(party) : receive(party); });
}

TEST(Choose, ImposesTheChoicesOfTheReceiver) {
  for (i64 count : {0, 1, 7, 8, 1023, 1024, 1025, 5000}) {
    const auto choices = random_values<u8>(count, 1, 11 + count);
    std::vector<crypto::Block> q(count), t(count);
    crypto::Block delta{};
    run_roles(
        1,
        [&](Party& party) {
          choose_send(party, q.data(), count);
          delta = party.sender.delta();
        },
        [&](Party& party) { choose_receive(party, choices, t.data()); }, "softspoken");
    for (i64 i = 0; i < count; ++i) ASSERT_EQ(t[i], q[i] ^ crypto::select(choices[i], delta)) << i;
  }
}

TEST(Choose, ImposesDigitsBitByBit) {
  for (int m = 1; m <= 8; ++m) {
    const i64 count = 1500;
    const auto digits = random_values<u8>(count, m, m);
    std::vector<crypto::Block> q(count * m), t(count * m);
    crypto::Block delta{};
    run_roles(
        0,
        [&](Party& party) {
          choose_send(party, q.data(), count * m);
          delta = party.sender.delta();
        },
        [&](Party& party) { choose_digits_receive(party, digits, m, t.data()); });
    for (i64 i = 0; i < count * m; ++i) {
      ASSERT_EQ(t[i], q[i] ^ crypto::select(digits[i / m] >> (i % m) & 1, delta)) << i;
    }
  }
}

struct AdditiveCase {
  i64 count, length;
  int width;
};

TEST(Additive, GivesSharesOfChoiceTimesX) {
  std::vector<AdditiveCase> cases;
  for (int width : {1, 2, 7, 8, 13, 16, 31, 32, 33, 37, 48, 63, 64}) {
    for (i64 length : {1, 2, 3, 5, 8}) cases.push_back({1025, length, width});
    cases.push_back({3, 1, width});
    cases.push_back({0, 1, width});
    cases.push_back({20, 501, width});
    cases.push_back({2, 5000, width});
  }
  for (const auto& [count, length, width] : cases) {
    const auto x = random_values<u64>(count * length, 64, width);  // upper bits are ignored
    const auto choices = random_values<u8>(count, 1, length);
    std::vector<u64> r(x.size()), out(x.size());
    run_roles(
        0,
        [&](Party& party) {
          std::vector<crypto::Block> q(count);
          choose_send(party, q.data(), count);
          additive_send(party, q.data(), x, length, width, r);
        },
        [&](Party& party) {
          std::vector<crypto::Block> t(count);
          choose_receive(party, choices, t.data());
          additive_receive(party, t.data(), choices, length, width, out);
        });
    for (i64 i = 0; i < count * length; ++i) {
      ASSERT_EQ((r[i] + out[i]) & low_mask(width), choices[i / length] * x[i] & low_mask(width))
          << count << " x " << length << ", width " << width << ", element " << i;
      ASSERT_EQ(r[i] & ~low_mask(width), 0u);
      ASSERT_EQ(out[i] & ~low_mask(width), 0u);
    }
  }
}

TEST(OneOfN, GivesTheChosenMessage) {
  for (int m = 1; m <= 8; ++m) {
    for (int width : {1, 2, 3, 4, 7, 8, 11, 16, 17, 32, 33, 37, 63, 64}) {
      for (i64 count : {0, 1, 3, 300}) {
        const i64 n = i64{1} << m;
        const auto messages = random_values<u64>(count * n, 64, width);
        const auto choices = random_values<u8>(count, m, width + m);
        std::vector<u64> out(count);
        run_roles(
            1,
            [&](Party& party) {
              std::vector<crypto::Block> q(count * m);
              choose_send(party, q.data(), count * m);
              one_of_n_send(party, q.data(), m, width, messages);
            },
            [&](Party& party) {
              std::vector<crypto::Block> t(count * m);
              choose_digits_receive(party, choices, m, t.data());
              one_of_n_receive(party, t.data(), choices, m, width, out);
            });
        for (i64 i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], messages[i * n + choices[i]] & low_mask(width))
              << "m " << m << ", width " << width << ", instance " << i << " of " << count;
        }
      }
    }
  }
}

TEST(OneOfN, RowsAreTheSameTransferAsMessages) {
  for (int m = 1; m <= 5; ++m) {
    for (int width = 1; width << m <= 32 && width <= 8; ++width) {
      for (bool rows_send : {false, true}) {
        const i64 count = 1000, n = i64{1} << m;
        const auto rows = random_values<u32>(count, 32, width);  // upper bits are ignored
        std::vector<u64> messages(count * n);
        for (i64 i = 0; i < count * n; ++i) messages[i] = rows[i / n] >> (i % n * width);
        const auto choices = random_values<u8>(count, m, m);
        std::vector<u8> narrow(count);
        std::vector<u64> wide(count);
        run_roles(
            0,
            [&](Party& party) {
              std::vector<crypto::Block> q(count * m);
              choose_send(party, q.data(), count * m);
              if (rows_send) {
                one_of_n_send_rows(party, q.data(), m, width, rows);
              } else {
                one_of_n_send(party, q.data(), m, width, messages);
              }
            },
            [&](Party& party) {
              std::vector<crypto::Block> t(count * m);
              choose_digits_receive(party, choices, m, t.data());
              if (rows_send) {
                one_of_n_receive(party, t.data(), choices, m, width, wide);
              } else {
                one_of_n_receive_rows(party, t.data(), choices, m, width, narrow);
              }
            });
        for (i64 i = 0; i < count; ++i) {
          const u64 expected = messages[i * n + choices[i]] & low_mask(width);
          ASSERT_EQ(rows_send ? wide[i] : narrow[i], expected) << m << " " << width << " " << i;
        }
      }
    }
  }
}

// Whoever knows all keys but those of the choice must see noise at every other message: the
// sender's pads of messages that differ in the choice are independent, so repeated rows never
// repeat on the wire.
TEST(OneOfN, PadsOfAllMessagesAreFreshAndDistinct) {
  for (int m = 1; m <= 8; ++m) {
    for (int width : {8, 64}) {
      const TransferShape shape{m, width};
      const i64 count = 64, n = shape.messages();
      const crypto::CorrelationRobustHash hash(crypto::Block{1, 2});
      crypto::Prg prg(crypto::Block{3, 4});
      std::vector<crypto::Block> q(count * m), pads(count * std::max(n, shape.row_blocks()));
      prg.fill_blocks(q.data(), std::ssize(q));
      const crypto::Block delta = prg.next_block();
      std::vector<u8> bytes;
      if (shape.combined()) {
        const auto multiples = offset_multiples(delta, m);
        combined_pads_send(hash, q.data(), count, m, multiples.data(), pads.data());
        for (i64 i = 0; i < count * n; ++i) {
          for (int j = 0; j < width / 8; ++j) bytes.push_back(pads[i].lo >> (8 * j) & 0xff);
        }
      } else {
        DigitPads digit_pads(shape, delta, count);
        digit_pads.send(hash, q.data(), count, pads.data());
        for (i64 i = 0; i < count; ++i) {
          const u8* row = reinterpret_cast<const u8*>(pads.data() + i * shape.row_blocks());
          bytes.insert(bytes.end(), row, row + shape.row_bits() / 8);
        }
      }
      ASSERT_EQ(std::ssize(bytes), packed_bytes(count * n, width));
      // Every bit of the row is masked: each position is 1 in between 1/8 and 7/8 of the instances.
      const i64 row_bits = shape.row_bits();
      for (i64 bit = 0; bit < row_bits; ++bit) {
        i64 ones = 0;
        for (i64 i = 0; i < count; ++i) {
          const i64 at = i * row_bits + bit;
          ones += bytes[at / 8] >> (at % 8) & 1;
        }
        ASSERT_GT(ones, count / 8) << m << " " << width << " " << bit;
        ASSERT_LT(ones, count * 7 / 8) << m << " " << width << " " << bit;
      }
      if (width < 64) continue;
      std::set<u64> words;
      for (i64 i = 0; i < count * n; ++i) {
        u64 word;
        std::memcpy(&word, bytes.data() + 8 * i, 8);
        words.insert(word);
      }
      EXPECT_EQ(std::ssize(words), count * n);
    }
  }
}

TEST(BitTriples, AreProductsOfBalancedRandomBits) {
  for (int width = 1; width <= 8; ++width) {
    for (i64 count : {0, 1, 511, 513, 3000}) {
      std::array<std::vector<u8>, 2> a, b, c;
      const SessionRecord record =
          run_session(test_config(width == 2 ? "softspoken" : "ideal"), [&](Party& party) {
            for (auto* v : {&a, &b, &c}) (*v)[party.rank].resize(count);
            bit_triples(party, count, width, a[party.rank], b[party.rank], c[party.rank]);
          });
      i64 ones_a = 0, ones_b = 0;
      for (i64 i = 0; i < count; ++i) {
        const u8 clear_a = a[0][i] ^ a[1][i], clear_b = b[0][i] ^ b[1][i];
        ASSERT_LE(clear_a, 1);
        ASSERT_EQ(clear_b >> width, 0);
        ASSERT_EQ(c[0][i] ^ c[1][i], clear_a ? clear_b : 0) << width << " " << i;
        ones_a += clear_a;
        ones_b += std::popcount(clear_b);
      }
      if (count == 3000) {
        EXPECT_NEAR(ones_a, 1500, 200);
        EXPECT_NEAR(ones_b, 1500 * width, 200 * width);
      }
      for (const Ledger& ledger : record.ledger) {
        EXPECT_EQ(ledger.cots_as_sender, count);
        EXPECT_EQ(ledger.cots_as_receiver, count);
      }
    }
  }
}

TEST(Derive, RefusesWrongShapes) {
  run_session(test_config("ideal"), [](Party& party) {
    std::vector<crypto::Block> blocks(8);
    std::vector<u64> words(8);
    std::vector<u8> bytes(8);
    std::vector<u32> rows(2);
    const crypto::Block* q = blocks.data();
    EXPECT_THROW(additive_send(party, q, words, 1, 0, words), InvalidArgument);
    EXPECT_THROW(additive_send(party, q, words, 1, 65, words), InvalidArgument);
    EXPECT_THROW(additive_send(party, q, words, 3, 8, words), InvalidArgument);
    EXPECT_THROW(additive_receive(party, q, bytes, 2, 8, words), InvalidArgument);
    EXPECT_THROW(one_of_n_send(party, q, 0, 8, words), InvalidArgument);
    EXPECT_THROW(one_of_n_send(party, q, 9, 8, words), InvalidArgument);
    EXPECT_THROW(one_of_n_send(party, q, 4, 8, words), InvalidArgument);
    EXPECT_THROW(one_of_n_receive(party, q, std::span(bytes).first(3), 2, 8, words),
                 InvalidArgument);
    EXPECT_THROW(one_of_n_send_rows(party, q, 4, 3, rows), InvalidArgument);
    EXPECT_THROW(one_of_n_receive_rows(party, q, bytes, 1, 9, bytes), InvalidArgument);
    EXPECT_THROW(bit_triples(party, 8, 9, bytes, bytes, bytes), InvalidArgument);
    EXPECT_THROW(bit_triples(party, 7, 1, bytes, bytes, bytes), InvalidArgument);
    EXPECT_THROW(choose_digits_receive(party, bytes, 9, blocks.data()), InvalidArgument);
  });
}

TEST(Field, TimesXIsMultiplicationInTheField) {
  EXPECT_EQ(times_x(crypto::Block{1, 0}), (crypto::Block{2, 0}));
  EXPECT_EQ(times_x(crypto::Block{u64{1} << 63, 0}), (crypto::Block{0, 1}));
  EXPECT_EQ(times_x(crypto::Block{0, u64{1} << 63}), (crypto::Block{0x87, 0}));
}

}  // namespace
}  // namespace privml::ot::testing
