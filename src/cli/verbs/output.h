// How the verbs print objects: whole (-o json, yaml, name), or a line that says what became of one; and --dry-run.
#pragma once
#include <string>
#include <vector>

#include "cli/command/session.h"

namespace berth::cli {

/// JSON or YAML as kubectl prints it: one object, or a List. Managed fields are left out.
void print_documents(std::vector<json::Value> documents, const std::string& output, bool single);

/// A GET that asks for a Table; blocking. `path` is of the API, `query` raw.
model::ApiResult<json::Value> get_table(Session& session, const std::string& path, const std::string& query);

/// The flags of verbs that change objects.
struct ChangeFlags {
  std::string dry_run = "none", output;

  void add_to(CLI::App& app);
  /// Nothing is sent.
  [[nodiscard]] bool is_client_run() const { return dry_run == "client"; }
  /// "dryRun=All" or "", as a part of a query.
  [[nodiscard]] std::string query() const { return dry_run == "server" ? "dryRun=All" : ""; }
  /// "node/node1 tainted (dry run)", or the object as -o wants it.
  void print(const model::KindInfo& kind, const json::Value& object, std::string_view past) const;
};

/// "a=b&c=d" of parts that may be empty.
std::string joined_query(std::initializer_list<std::string> parts);

}  // namespace berth::cli
