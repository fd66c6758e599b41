// SPDX-License-Identifier: Apache-2.0
#include "net/tagged.h"

#include "base/error.h"
#include "net/channel.h"

namespace privml::net {
namespace {

constexpr size_t kLongestLine = 256;
constexpr size_t kMostLines = 512;
// With a cause and its newline it fits a frame.
constexpr size_t kMostBytes = size_t{60} << 10;

}  // namespace

void Account::add(std::string line) {
  expect(line.size() <= kLongestLine, "a line of an account has at most 256 bytes");
  const std::lock_guard lock(mutex_);
  bytes_ += line.size() + 1;
  lines_.push_back(std::move(line));
  while (bytes_ > kMostBytes || lines_.size() > kMostLines) {
    bytes_ -= lines_.front().size() + 1;
    lines_.pop_front();
  }
}

std::string Account::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& line : lines_) text.append(line).push_back('\n');
  return text;
}

ProgramsDiffer::ProgramsDiffer(const Account& account, std::string theirs)
    : runtime_error("the parties compute different things"),
      rank(account.rank()),
      peer(account.peer()),
      ours(account.text()),
      theirs(std::move(theirs)) {}

Tagged* tagged(Channel* channel) { return dynamic_cast<Tagged*>(channel); }

}  // namespace privml::net
