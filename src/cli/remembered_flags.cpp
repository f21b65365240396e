#include "cli/remembered_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

Result<std::map<std::string, std::string>> read_remembered(const std::string& file) {
  std::map<std::string, std::string> out;
  std::ifstream in(file, std::ios::binary);
  if (!in) return out;
  std::stringstream text;
  text << in.rdbuf();
  const auto document = json::parse(text.str());
  if (!document) return invalid(fmt::format("{}: {}; delete the file to start without it", file, document.error().message));
  if (!document->is_object())
    return invalid(fmt::format("{}: an object of flags and values is wanted; delete the file to start without it", file));
  for (const auto& [name, value] : document->get_object())
    if (value.is_string()) out.emplace(name, json::as_view(value));
  return out;
}

}  // namespace

Result<RememberedFlags> RememberedFlags::recall(CLI::App& app, const std::string& directory, const std::vector<RememberedFlag>& flags) {
  RememberedFlags out;
  out.file_ = directory + "/up.json";
  const auto before = read_remembered(out.file_);
  if (!before) return std::unexpected(before.error());
  std::vector<std::string> kept;
  for (const auto& [name, is_file] : flags) {
    CLI::Option* option = app.get_option(name);
    const auto known = before->find(name);
    if (option->count() > 0) {
      std::string value = option->results().back();
      if (is_file && !value.empty()) value = std::filesystem::absolute(value);
      if (known != before->end() && known->second != value)
        out.notes_.push_back(fmt::format("{} {} ({} at the last start)", name, value.empty() ? "\"\"" : value, known->second));
      if (!value.empty()) out.values_[name] = value;
    } else if (known != before->end()) {
      try {
        option->add_result(known->second);
        option->run_callback();
      } catch (const CLI::Error& wrong) {
        return invalid(fmt::format("{}: {} {}: {}; give the flag, or delete the file", out.file_, name, known->second, wrong.what()));
      }
      out.values_[name] = known->second;
      kept.push_back(fmt::format("{} {}", name, known->second));
    }
  }
  if (!kept.empty()) out.notes_.insert(out.notes_.begin(), fmt::format("as at the last start: {}", fmt::join(kept, " ")));
  return out;
}

Result<void> RememberedFlags::save() const {
  json::Object document;
  for (const auto& [name, value] : values_) document[name] = value;
  return client::write_private_file(file_, json::serialize_pretty(document));
}

}  // namespace berth::cli
