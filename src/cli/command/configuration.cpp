#include "cli/command/configuration.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/config_reader.h"
#include "base/log.h"
#include "base/log_format.h"
#include "cli/command/commands.h"

namespace berth::cli {
namespace {

constexpr std::string_view kApiVersion = "berth/v1", kKind = "Configuration";
constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};

/// What a flag of the role takes; by its name without dashes.
enum class Takes { kNothing, kOne, kMany };
using FlagTable = std::map<std::string, Takes, std::less<>>;

/// Empty: not said there.
struct LogSettings {
  std::string level, format;
};

/// What a file says for one role.
struct Settings {
  LogSettings log;
  bool has_log = false;
  std::map<std::string, std::vector<std::string>> values;  ///< By flag; a switch has "true" or "false".
};

/// What this process was started with, for a reload.
struct Started {
  std::string file, section;
  FlagTable flags;
  Settings settings;
  std::set<std::string> said;  ///< Flags that the command line left to the file.
};
std::optional<Started>& started() {
  static std::optional<Started> one;
  return one;
}

/// What stood before the command: wins over every file.
LogSettings& given_log() {
  static LogSettings given;
  return given;
}

/// What holds with this file.
LogSettings with_given(const LogSettings& file) {
  const auto first_of = [](const std::string& a, const std::string& b, const char* usual) {
    return !a.empty() ? a : !b.empty() ? b : usual;
  };
  return {first_of(given_log().level, file.level, "info"), first_of(given_log().format, file.format, "text")};
}

void set_log(const LogSettings& settings) {
  log::set_level(static_cast<log::Level>(std::ranges::find(kLevels, settings.level) - kLevels.begin()));
  log::set_format(settings.format == "json" ? log::Format::kJson : log::Format::kText);
}

std::vector<std::string_view> sections() {
  std::vector<std::string_view> out = {"apiVersion", "kind", "log"};
  for (const Command& command : commands())
    if (command.group == "Run a control plane") out.emplace_back(command.name);
  return out;
}

FlagTable flags_of(const CLI::App& app) {
  FlagTable out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (name != "help")
        out[name] = option->get_items_expected_max() == 0  ? Takes::kNothing
                    : option->get_items_expected_max() > 1 ? Takes::kMany
                                                           : Takes::kOne;
  return out;
}

/// One scalar as a command line would have it; nullopt with a problem when it is none.
std::optional<std::string> as_text(const config::Reader& value) {
  const json::Value& it = *value.value();
  if (it.is_string()) return std::string(it.as_string());
  if (it.is_bool()) return it.as_bool() ? "true" : "false";
  if (it.is_number()) return json::serialize(it);
  value.problem("is neither a text nor a number nor true or false");
  return std::nullopt;
}

std::vector<std::string> values_of(const config::Reader& value, Takes takes) {
  std::vector<std::string> out;
  const auto add = [&](const config::Reader& item, const std::string& before) {
    if (!item.is_present())
      item.problem("has no value");
    else if (auto text = as_text(item))
      out.push_back(before + *text);
  };
  if (!value.is_present()) {
    value.problem("has no value; leave the line out for the default");
  } else if (takes == Takes::kNothing) {
    if (value.value()->is_bool())
      out.emplace_back(value.value()->as_bool() ? "true" : "false");
    else
      value.problem("must be true or false");
  } else if (value.value()->is_array()) {
    if (takes == Takes::kOne) value.problem("takes one value, this is a list");
    for (const config::Reader& item : value.items()) add(item, "");
  } else if (value.is_object() && takes == Takes::kMany) {
    for (const auto& [name, item] : value.members()) add(item, name + "=");  // feature-gates: {A: true}
  } else {
    add(value, "");
  }
  return out;
}

Settings read_settings(const config::Reader& root, std::string_view section, const FlagTable& flags) {
  Settings out;
  root.expect_kind(std::array{kKind}, std::array{kApiVersion});
  root.only(sections());
  const config::Reader log = root.field("log");
  out.has_log = log.is_present();
  if (log.expect_object()) {
    log.only({"level", "format"});
    if (log.has("level")) out.log.level = log.one_of("level", kLevels, "info");
    if (log.has("format")) out.log.format = log.one_of("format", kFormats, "text");
  }
  for (const std::string_view name : sections()) {
    const config::Reader part = root.field(name);
    if (name == section || !part.is_present()) continue;
    if (part.is_object()) part.skip();  // Another role's.
  }
  const config::Reader mine = root.field(section);
  if (!mine.expect_object()) return out;
  std::vector<std::string_view> names;
  for (const auto& [name, takes] : flags) names.emplace_back(name);
  mine.only(names);
  for (const auto& [name, value] : mine.members())
    if (const auto flag = flags.find(name); flag != flags.end()) out.values[name] = values_of(value, flag->second);
  return out;
}

Result<Settings> read_configuration(const std::string& file, std::string_view section, const FlagTable& flags) {
  const auto text = config::read_whole_file(file);
  if (!text) return std::unexpected(text.error());
  Settings out;
  auto read = config::read_text(*text, {.file = file}, [&](const config::Reader& root) { out = read_settings(root, section, flags); });
  if (!read) return std::unexpected(read.error());
  return out;
}

/// Whether the file says that it is a Configuration of berth's; one that cannot be read says nothing, and a pipe is not read twice.
bool is_configuration(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const auto text = config::read_whole_file(file);
  if (!text) return false;
  bool is_ours = false;
  static_cast<void>(config::read_text(*text, {.file = file}, [&](const config::Reader& root) {
    is_ours = root.string("kind") == kKind && root.string("apiVersion").starts_with("berth/");
  }));
  return is_ours;
}

/// Takes `--config FILE` out of `args`; the last one counts, as for any flag.
std::optional<std::string> take_config_flag(std::vector<std::string>& args, bool keeps_others) {
  std::optional<std::string> file;
  for (std::size_t i = 0; i < args.size();) {
    if (args[i] == "--") break;
    const bool has_value = args[i].starts_with("--config=");
    if (!has_value && (args[i] != "--config" || i + 1 == args.size())) {
      ++i;
      continue;
    }
    std::string name = has_value ? args[i].substr(9) : args[i + 1];
    if (keeps_others && !is_configuration(name)) {
      ++i;
      continue;
    }
    file = std::move(name);
    args.erase(args.begin() + static_cast<std::ptrdiff_t>(i), args.begin() + static_cast<std::ptrdiff_t>(i + (has_value ? 1 : 2)));
  }
  return file;
}

bool is_given(const CLI::App& app, const std::string& flag, const std::vector<std::string>& args) {
  const CLI::Option* option = app.get_option_no_throw("--" + flag);
  return std::ranges::any_of(args, [&](const std::string& arg) {
    return arg.starts_with('-') && option != nullptr && option->check_name(arg.substr(0, arg.find('=')));
  });
}

std::vector<std::string> changed_flags(const Settings& before, const Settings& after) {
  std::vector<std::string> out;
  for (const auto& [name, values] : after.values)
    if (const auto old = before.values.find(name); old == before.values.end() || old->second != values) out.push_back(name);
  for (const auto& [name, values] : before.values)
    if (!after.values.contains(name)) out.push_back(name);
  return out;
}

/// "server" of "berth server".
std::string section_of(const CLI::App& app) { return app.get_name().substr(app.get_name().find(' ') + 1); }

bool is_section(const std::string& name) {
  const auto known = sections();
  return std::ranges::find(known, name) != known.end();
}

}  // namespace

bool takes_only_a_configuration(const CLI::App& app) {
  return is_section(section_of(app)) && app.get_option_no_throw("--config") == nullptr;
}

Result<std::vector<std::string>> with_configuration(const CLI::App& app, std::vector<std::string> args) {
  const std::string section = section_of(app);
  if (!is_section(section)) return args;
  const bool has_own = !takes_only_a_configuration(app);
  const auto file = take_config_flag(args, has_own);
  if (!file && !has_own && !args.empty() && args.back() == "--config") return invalid("--config: the name of its file is missing");
  if (!file) return args;
  Started now{*file, section, flags_of(app), {}, {}};
  auto settings = read_configuration(*file, section, now.flags);
  if (!settings) return std::unexpected(settings.error());
  if (settings->has_log) set_log(with_given(settings->log));
  now.settings = *settings;
  std::vector<std::string> out;
  for (const auto& [flag, values] : settings->values)
    if (!is_given(app, flag, args)) {
      now.said.insert("--" + flag);
      for (const std::string& value : values) out.push_back(fmt::format("--{}={}", flag, value));
    }
  started() = std::move(now);
  out.insert(out.end(), args.begin(), args.end());
  return out;
}

bool names_configuration(std::vector<std::string> args) { return take_config_flag(args, true).has_value(); }

std::string configuration_file() { return started() ? started()->file : std::string(); }

std::set<std::string> configured_flags() { return started() ? started()->said : std::set<std::string>(); }

bool reload_configuration() {
  if (!started()) return false;
  Started& now = *started();
  auto settings = read_configuration(now.file, now.section, now.flags);
  if (!settings) {
    log::error("config", "{} was read again and is not taken: {}", now.file, settings.error().message);
    return true;
  }
  const LogSettings in_force = with_given(settings->log);
  if (settings->has_log || now.settings.has_log) set_log(in_force);
  const auto changed = changed_flags(now.settings, *settings);
  log::info("config", "{} was read again: log level {}, format {}{}", now.file, in_force.level, in_force.format,
            changed.empty() ? "" : fmt::format("; these take effect with the next start: {}", fmt::join(changed, ", ")));
  now.settings.log = settings->log;
  now.settings.has_log = settings->has_log;
  return true;
}

Result<void> take_log_flags(std::vector<std::string>& args) {
  LogSettings& settings = given_log();
  bool is_given = false;
  const auto take = [&](std::string_view flag, std::span<const std::string_view> words, std::string& into) -> Result<bool> {
    if (args.empty() || (args.front() != flag && !args.front().starts_with(std::string(flag) + "="))) return false;
    const bool has_value = args.front() != flag;
    const std::string value = has_value ? args.front().substr(flag.size() + 1) : args.size() > 1 ? args[1] : "";
    if (std::ranges::find(words, value) == words.end())
      return invalid(fmt::format("{}: \"{}\" is not one of {}{}", flag, value, fmt::join(words, ", "), config::suggestion(value, words)));
    args.erase(args.begin(), args.begin() + (has_value ? 1 : 2));
    into = value;
    return is_given = true;
  };
  for (bool found = true; found;) {
    const auto level = take("--log-level", kLevels, settings.level);
    if (!level) return std::unexpected(level.error());
    const auto format = take("--log-format", kFormats, settings.format);
    if (!format) return std::unexpected(format.error());
    found = *level || *format;
  }
  if (is_given) set_log(with_given({}));
  return {};
}

}  // namespace berth::cli
