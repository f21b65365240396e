#include "cli/planning/whatif_ask.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/config_reader.h"
#include "cli/command/parse.h"

namespace berth::cli {
namespace {

/// A copy of this process that answers one part and writes the losses it found.
struct Helper {
  pid_t pid = -1;
  int out = -1;
};

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(file, text.data(), text.size());
    if (done <= 0) ::_exit(1);
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

[[noreturn]] void answer_part(whatif::Present& present, const json::Value& question, whatif::Part part, int file) {
  const auto answer = present.ask(question, part);
  if (!answer) ::_exit(1);
  json::Object losses;
  for (const char* key : {"eachPending", "each", "notes"})
    if (const json::Value* value = json::find(*answer, key)) losses[key] = *value;
  write_all(file, json::serialize(json::Value(std::move(losses))));
  ::_exit(0);
}

Helper start_helper(whatif::Present& present, const json::Value& question, whatif::Part part) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    answer_part(present, question, part, ends[1]);
  }
  ::close(ends[1]);
  if (pid < 0) ::close(ends[0]);
  return pid < 0 ? Helper{} : Helper{pid, ends[0]};
}

/// What the helper wrote; nullopt when it failed.
std::optional<json::Value> finish(const Helper& helper) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = ::read(helper.out, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  ::close(helper.out);
  int status = 0;
  if (::waitpid(helper.pid, &status, 0) != helper.pid || status != 0) return std::nullopt;
  auto losses = json::parse(text);
  return losses ? std::optional(std::move(*losses)) : std::nullopt;
}

}  // namespace

Result<json::Value> ask_with_processes(whatif::Present& present, const json::Value& question, std::size_t processes,
                                       const whatif::NameOfChange& name_of) {
  if (processes < 2 || json::find(question, "each") == nullptr) return present.ask(question, {}, name_of);
  std::vector<Helper> helpers;
  for (std::size_t i = 1; i < processes; ++i) helpers.push_back(start_helper(present, question, {i, processes}));
  auto answer = present.ask(question, {0, processes}, name_of);
  for (std::size_t i = 1; i < processes; ++i) {
    const Helper& helper = helpers[i - 1];
    std::optional<json::Value> losses = helper.pid < 0 ? std::nullopt : finish(helper);
    if (!answer) continue;
    if (losses) {
      whatif::join_losses(*answer, *losses);
      continue;
    }
    // A machine without room for another process: the work is done here.
    auto part = present.ask(question, {i, processes});
    if (!part) return part;
    whatif::join_losses(*answer, *part);
  }
  return answer;
}

int check_answer(const std::string& path, WhatIfFlags flags) {
  const auto text = config::read_whole_file(path);
  if (!text) return report(text.error());
  const auto saved = json::parse_yaml(*text);
  if (!saved) return report(Error{ErrorCode::kInvalid, fmt::format("{}: {}", path, saved.error().message)});
  for (const json::Value& change : json::get_array(*saved, {"question", "changes"}))
    flags.may_lack_nodes |= json::find(change, "pools") != nullptr;
  auto present = read_present(flags);
  if (!present) return report(present.error());
  const auto look = present->look_again(*saved);
  if (!look) return report(Error{look.error().code, fmt::format("{}: {}", path, look.error().message)});
  const std::string words = flags.output == "json"   ? json::serialize_pretty(*look)
                            : flags.output == "yaml" ? json::to_yaml(*look)
                                                     : whatif::text_of_look(*look);
  std::fwrite(words.data(), 1, words.size(), stdout);
  return json::get_bool(*look, {"holds"}) ? 0 : 3;
}

}  // namespace berth::cli
