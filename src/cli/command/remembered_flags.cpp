#include "cli/command/remembered_flags.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/command/process.h"
#include "security/file_owner.h"

namespace berth::cli {
namespace {

constexpr std::string_view kConfiguration = "configuration";

std::string file_in(const std::string& directory) { return directory + "/up.json"; }

/// As it is found again from elsewhere: a file by its whole path, NAME=FILE of another program's flag likewise; "-" is no file.
std::string kept_value(const std::string& flag, const std::string& value) {
  const auto whole = [](const std::string& path) { return path.empty() || path == "-" ? path : std::filesystem::absolute(path).string(); };
  if (names_file(flag)) return whole(value);
  const std::size_t equals = value.find('=');
  if (!flag.ends_with("-arg") || equals == std::string::npos || !names_file("--" + value.substr(0, equals))) return value;
  return value.substr(0, equals + 1) + whole(value.substr(equals + 1));
}

/// "--nodes 3", "--controller-arg a=b --controller-arg c=d", "--hard-disruption-budgets": as it could be typed.
std::string typed(const CLI::Option& option, const std::string& name, const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) {
    if (!out.empty()) out += ' ';
    out += name;
    if (option.get_items_expected_max() > 0) out += " " + shell_word(value);
    if (option.get_items_expected_max() == 0 && value != "true") out += "=" + value;
  }
  return out;
}

bool is_empty(const std::vector<std::string>& values) {
  return std::ranges::all_of(values, [](const std::string& one) { return one.empty(); });
}

}  // namespace

bool names_file(std::string_view flag) {
  static constexpr std::array<std::string_view, 10> kEnds = {"file", "-config",    "-policy",   "-path", "-certificate",
                                                             "-key", "-authority", "-scenario", "-dir",  "-directory"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return flag.ends_with(end); });
}

Result<RememberedFlags::Values> RememberedFlags::read(const std::string& file) {
  Values out;
  std::ifstream in(file, std::ios::binary);
  if (!in) return out;
  std::stringstream text;
  text << in.rdbuf();
  const auto document = json::parse(text.str());
  if (!document) return invalid(fmt::format("{}: {}; delete the file to start without it", file, document.error().message));
  if (!document->is_object())
    return invalid(fmt::format("{}: an object of flags and values is wanted; delete the file to start without it", file));
  for (const auto& [name, value] : document->get_object()) {
    if (value.is_string()) out[name].emplace_back(json::as_view(value));
    if (!value.is_array()) continue;
    for (const json::Value& one : value.get_array())
      if (one.is_string()) out[name].emplace_back(json::as_view(one));
  }
  return out;
}

std::string RememberedFlags::last_configuration(const std::string& directory) {
  const auto values = read(file_in(directory));
  if (!values) return {};  // recall says what is wrong.
  const auto found = values->find(std::string(kConfiguration));
  return found == values->end() || found->second.empty() ? std::string() : found->second.front();
}

Result<RememberedFlags> RememberedFlags::recall(CLI::App& app, const std::string& directory, const std::set<std::string>& left_out,
                                                const std::string& configuration) {
  RememberedFlags out;
  out.file_ = file_in(directory);
  const auto before = read(out.file_);
  if (!before) return std::unexpected(before.error());
  std::vector<std::string> kept;
  if (!configuration.empty()) {
    const std::string file = std::filesystem::absolute(configuration);
    out.values_[std::string(kConfiguration)] = {file};
    if (last_configuration(directory) == file) kept.push_back("--config " + shell_word(file));
  }
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (name == "--help" || left_out.contains(name)) continue;
    const auto known = before->find(name);
    if (option->count() > 0) {
      std::vector<std::string> values;
      for (const std::string& value : option->results()) values.push_back(kept_value(name, value));
      if (known != before->end() && known->second != values)
        out.notes_.push_back(fmt::format("{} ({} at the last start)", typed(*option, name, values), fmt::join(known->second, ", ")));
      if (!is_empty(values)) out.values_[name] = std::move(values);
    } else if (known != before->end()) {
      try {
        option->add_result(known->second);
        option->run_callback();
      } catch (const CLI::Error& wrong) {
        return invalid(
            fmt::format("{}: {}: {}; give the flag, or delete the file", out.file_, typed(*option, name, known->second), wrong.what()));
      }
      out.values_[name] = known->second;
      kept.push_back(typed(*option, name, known->second));
    }
  }
  if (!kept.empty()) out.notes_.insert(out.notes_.begin(), fmt::format("as at the last start: {}", fmt::join(kept, " ")));
  return out;
}

Result<void> RememberedFlags::save() const {
  json::Object document;
  for (const auto& [name, values] : values_)
    document[name] = values.size() == 1 ? json::Value(values.front()) : json::Value(json::Array(values.begin(), values.end()));
  return security::write_file(file_, json::serialize_pretty(document), 0600);
}

}  // namespace berth::cli
