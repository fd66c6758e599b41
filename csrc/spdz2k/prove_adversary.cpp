// SPDX-License-Identifier: Apache-2.0
// prove_adversary [n]: alters every nth message of each part of a session in every way, from
// either side and in both rings, and prints what became of it at the honest party, by the part of
// the session, as the table of docs/active-security.md. Fails if a wrong value came out or a
// party ended in any other way than by a value, SecurityAbort, ProtocolError or PeerDisconnected.
#include <cstdio>
#include <cstdlib>

#include "spdz2k/testing/adversary.h"

namespace privml::spdz2k::testing {
namespace {

using namespace std::chrono_literals;

struct Counts {
  i64 messages = 0;
  std::array<i64, 6> verdicts{};  // by Verdict
};

// Parts in the order in which they come.
struct Table {
  std::vector<std::string> order;
  std::map<std::string, Counts> rows;
  Counts& row(const std::string& part) {
    if (!rows.contains(part)) order.push_back(part);
    return rows[part];
  }
};

// Whether all was right or noticed.
template <class R>
bool attack(Table& table, i64 step) {
  bool good = true;
  for (const int dishonest : {0, 1}) {
    const auto clean = run_altered<R>(dishonest, -1, Alteration::none, 60s);
    if (clean.verdict != Verdict::right) {
      std::fprintf(stderr, "the honest run failed: %s\n", clean.what.c_str());
      return false;
    }
    for (const std::string& part : clean.parts) ++table.row(part).messages;
    std::map<std::string, i64> seen;
    for (i64 message = 0; message < std::ssize(clean.parts); ++message) {
      if (seen[clean.parts[message]]++ % step != 0) continue;
      for (const Alteration alteration : spdz2k::testing::kAlterations) {
        const auto deadline = spdz2k::testing::may_stall(alteration) ? 300ms : 60s;
        const auto outcome = run_altered<R>(dishonest, message, alteration, deadline);
        if (!outcome.altered) continue;  // there was nothing to change
        const std::string& part = clean.parts[message];
        ++table.row(part).verdicts[static_cast<int>(outcome.verdict)];
        if (outcome.verdict == Verdict::wrong || outcome.verdict == Verdict::crashed) {
          good = false;
          std::fprintf(stderr, "k = %d, party %d, message %lld (%s), %s: %s %s\n", R::k, dishonest,
                       static_cast<long long>(message), part.c_str(), name_of(alteration),
                       outcome.verdict == Verdict::wrong ? "wrong value" : "crash",
                       outcome.what.c_str());
        }
      }
    }
  }
  return good;
}

void print(const Table& table) {
  std::puts(
      "| part of the session | messages | attacks | aborted | malformed | connection ended | value "
      "right all the same | value wrong |\n| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const std::string& part : table.order) {
    const Counts& counts = table.rows.at(part);
    const auto of = [&](Verdict verdict) {
      return static_cast<long long>(counts.verdicts[static_cast<int>(verdict)]);
    };
    long long attacks = 0;
    for (const i64 count : counts.verdicts) attacks += count;
    std::printf("| %s | %lld | %lld | %lld | %lld | %lld | %lld | %lld |\n", part.c_str(),
                static_cast<long long>(counts.messages), attacks, of(Verdict::aborted),
                of(Verdict::malformed), of(Verdict::disconnected), of(Verdict::right),
                of(Verdict::wrong) + of(Verdict::crashed));
  }
}

}  // namespace
}  // namespace privml::spdz2k::testing

int main(int argc, char** argv) {
  namespace spdz2k = privml::spdz2k;
  namespace attacks = privml::spdz2k::testing;
  const privml::i64 step = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  attacks::Table table;
  const bool good32 = attacks::attack<spdz2k::Ring32>(table, step);
  const bool good64 = attacks::attack<spdz2k::Ring64>(table, step);
  attacks::print(table);
  return good32 && good64 ? 0 : 1;
}
