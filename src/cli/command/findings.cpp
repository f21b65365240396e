#include "cli/command/findings.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/log.h"
#include "client/kubeconfig.h"

namespace berth::cli {

void Findings::print_errors() const {
  for (const std::string& error : errors_) std::fprintf(stderr, "error: %s\n", error.c_str());
}

std::string Findings::all_errors() const {
  std::string out;
  for (const std::string& error : errors_) out += (out.empty() ? "" : "\n") + error;
  return out;
}

bool Findings::may_start(const char* component) const {
  for (const std::string& note : notes_) log::warning(component, "{}", note);
  print_errors();
  return ok();
}

int Findings::print_validation(const std::string& what) const {
  for (const std::string& note : notes_) std::printf("note: %s\n", note.c_str());
  std::fflush(stdout);
  print_errors();
  if (ok()) std::printf("%s\n", what.c_str());
  return ok() ? 0 : 1;
}

void add_validate_flag(CLI::App& app, bool& validate_only) {
  app.add_flag(
      "--validate", validate_only,
      "Only look at the files and flags: everything that a start would find wrong, all at once; exit code 0 or 1, nothing is touched");
}

void check_connection(const std::string& kubeconfig, const std::string& context, Findings& findings) {
  auto transport = client::transport_from_kubeconfig(kubeconfig, context);
  // Files are often checked where no cluster is: that none is named anywhere is for the start to refuse.
  if (!transport && kubeconfig.empty() && transport.error().code == ErrorCode::kNotFound)
    findings.note(fmt::format("{} (for the start)", transport.error().message));
  else
    static_cast<void>(findings.take(std::move(transport)));
}

}  // namespace berth::cli
