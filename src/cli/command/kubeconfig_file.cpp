#include "cli/command/kubeconfig_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "security/file_owner.h"

namespace berth::cli {
namespace {

/// "contexts" → "context"
std::string inner_of(std::string_view section) { return std::string(section.substr(0, section.size() - 1)); }

}  // namespace

Result<KubeconfigFile> KubeconfigFile::open(const ConnectionFlags& flags) {
  KubeconfigFile out;
  out.path_ = client::kubeconfig_to_change(flags.kubeconfig);
  if (out.path_.empty()) return fail(ErrorCode::kNotFound, "no kubeconfig to change: name one with --kubeconfig or $KUBECONFIG");
  out.root_ = json::Object{{"apiVersion", "v1"}, {"kind", "Config"}};
  std::ifstream in(out.path_, std::ios::binary);
  if (!in) return out;
  std::ostringstream text;
  text << in.rdbuf();
  auto root = json::parse_yaml(text.str());
  if (!root) return invalid(fmt::format("{}: {}", out.path_, root.error().message));
  if (root->is_object()) out.root_ = std::move(*root);
  return out;
}

std::string KubeconfigFile::current_context() const { return std::string(json::get_string(root_, {"current-context"})); }

const json::Value* KubeconfigFile::find(std::string_view section, std::string_view name) const {
  for (const json::Value& entry : json::get_array(root_, {section}))
    if (json::get_string(entry, {"name"}) == name) return json::find(entry, inner_of(section));
  return nullptr;
}

std::vector<std::string> KubeconfigFile::names(std::string_view section) const {
  std::vector<std::string> out;
  for (const json::Value& entry : json::get_array(root_, {section})) out.emplace_back(json::get_string(entry, {"name"}));
  return out;
}

void KubeconfigFile::put(std::string_view section, const std::string& name, json::Object inner) {
  json::Value entry = json::Object{{"name", name}, {inner_of(section), std::move(inner)}};
  json::Array entries = json::get_array(root_, {section});
  const auto at = std::ranges::find_if(entries, [&](const json::Value& one) { return json::get_string(one, {"name"}) == name; });
  if (at != entries.end())
    *at = std::move(entry);
  else
    entries.push_back(std::move(entry));
  root_.get_object()[section] = std::move(entries);
}

void KubeconfigFile::use_context(const std::string& name) { root_.get_object()["current-context"] = name; }

Result<void> KubeconfigFile::save() const {
  std::error_code none;
  if (const auto folder = std::filesystem::path(path_).parent_path(); !folder.empty()) std::filesystem::create_directories(folder, none);
  return security::write_file(path_, json::to_yaml(root_), 0600);
}

}  // namespace berth::cli
