// What every client verb of `berth` starts from: where the API server is, the namespace, and how results are printed.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command/report.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "model/kinds.h"

namespace CLI {
class App;
}

namespace berth::cli {

/// The flags that all client verbs share: --kubeconfig, --context, -n/--namespace.
struct ConnectionFlags {
  std::string kubeconfig, context, ns;
  void add_to(CLI::App& app);
};

/// A connection to an API server. Blocking; for one thread.
class Session {
 public:
  /// Errors say which file or field is wrong.
  static Result<std::unique_ptr<Session>> open(const ConnectionFlags& flags);

  [[nodiscard]] client::Client& client() { return client_; }
  [[nodiscard]] const std::string& ns() const { return ns_; }
  [[nodiscard]] const client::Connection& connection() const { return connection_; }

 private:
  Session(std::shared_ptr<client::Transport> transport, client::Connection connection, std::string ns)
      : client_(std::move(transport), nullptr, "berth"), connection_(std::move(connection)), ns_(std::move(ns)) {}
  client::Client client_;
  client::Connection connection_;
  std::string ns_;
};

/// "pods", "po", "Pod", "deploy", "deployments.apps" → the kind; the error lists near names.
Result<const model::KindInfo*> resolve_resource(const std::string& word);

/// One thing named on the command line.
struct ResourceName {
  const model::KindInfo* kind = nullptr;
  std::string name;
};
/// `pods`, `pods a b`, `deploy/web job/x`: kinds with names; one entry with an empty name when only a kind is given. `all` is every kind
/// of that category.
Result<std::vector<ResourceName>> parse_resource_args(const std::vector<std::string>& args);

/// One object of a file.
struct Manifest {
  std::string file;
  json::Value document;
  const model::KindInfo* kind = nullptr;
  std::shared_ptr<const std::string> text;  ///< The file's, as it was read (manifest_text.h).
  std::size_t number = 0;                   ///< Which of the file's documents it stands in, from 0; empty ones are not counted.
  std::string within;                       ///< Where in that document: "items[2]" of a List, or empty.

  /// The line of a field ("spec.nodeSelector") in the file, from 1; 0 when it cannot be told.
  [[nodiscard]] int line_of(const std::string& path) const;
};
/// All objects of the files (JSON or YAML, several a file, Lists taken apart, "-" standard input, directories read whole). Errors name the
/// file; one object of an unknown kind refuses them all, so that nothing is half done.
Result<std::vector<Manifest>> read_manifests(const std::vector<std::string>& files);
/// The same of any kinds: `kind` is not looked for.
Result<std::vector<Manifest>> read_documents(const std::vector<std::string>& files);

/// The kind of a manifest; the error names what is missing or unknown.
Result<const model::KindInfo*> kind_of(const json::Value& document);

/// Prints a meta.k8s.io Table as kubectl does; `wide` shows all columns. With `with_namespace` a NAMESPACE column comes first. With `named`
/// names are shown as "deployment.apps/web".
void print_table(const json::Value& table, bool wide, bool with_namespace, bool with_header, const model::KindInfo* named = nullptr);

/// What the server says of one object that is not there, with the namespace in which it was looked for, and those in which there is one. 1.
int report_about(Session& session, const model::KindInfo& kind, const std::string& ns, const std::string& name,
                 const model::ApiStatus& status);

/// "deployment.apps/web"
std::string qualified_name(const model::KindInfo& kind, std::string_view name);

}  // namespace berth::cli
