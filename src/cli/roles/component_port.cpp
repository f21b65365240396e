#include "cli/roles/component_port.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <future>
#include <sstream>

#include "base/log.h"
#include "cli/command/process.h"

namespace berth::cli {
namespace {

Result<std::string> read_pem(const char* flag, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid(fmt::format("{}: {} cannot be read: {}", flag, path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// "auto" takes the usual port or, when that is taken, any free one. The error names the flag.
Result<std::unique_ptr<client::ComponentServer>> start_on(const char* flag, const std::string& port, std::uint16_t usual_port,
                                                          client::ComponentServerOptions options) {
  options.port = usual_port;
  if (port == "auto") {
    if (auto server = client::ComponentServer::start(options)) return server;
    options.port = 0;
  } else {
    auto parsed = parse_listen(":" + port, usual_port);
    if (!parsed || parsed->port == 0) return invalid(fmt::format("{} {}: not \"auto\", 0 or a port", flag, port));
    options.port = parsed->port;
  }
  auto server = client::ComponentServer::start(std::move(options));
  if (!server) return invalid(fmt::format("{} {}: {}", flag, port, server.error().message));
  return server;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> shown_flags(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string value = option->get_default_str();
    if (option->count() > 0) value = fmt::format("{}", fmt::join(option->results(), ","));
    out.emplace_back(option->get_lnames().front(), std::move(value));
  }
  std::ranges::sort(out);
  return out;
}

void ComponentPortFlags::add_to(CLI::App& app, int default_port) {
  this->app = &app;
  app.add_option("--profiling", profiling,
                 "Processor profiles, heap figures and threads below /debug/pprof of that port, for administrators")
      ->capture_default_str();
  usual_port = static_cast<std::uint16_t>(default_port);
  app.add_option("--secure-port", port,
                 fmt::format("HTTPS port of /healthz, /livez, /readyz, /metrics and /configz; 0 serves none (default: {}, or any free one "
                             "when another process has that)",
                             default_port))
      ->check(CLI::Range(0, 65535));
  app.add_option("--bind-address", bind_address, "Address of that port")->capture_default_str();
  app.add_option("--tls-cert-file", certificate_file, "Its certificate (PEM); without one it signs one itself");
  app.add_option("--tls-private-key-file", key_file, "Its private key (PEM)");
  app.add_option("--client-ca-file", client_ca_file, "Authority of client certificates (PEM); default: the cluster's");
}

void ComponentPortFlags::check(Findings& findings) const {
  if (port == 0) return;
  if (certificate_file.empty() != key_file.empty()) findings.error("--tls-cert-file and --tls-private-key-file: give both or none");
  for (const auto& [flag, path] : {std::pair("--tls-cert-file", certificate_file), std::pair("--tls-private-key-file", key_file),
                                   std::pair("--client-ca-file", client_ca_file)})
    if (!path.empty()) static_cast<void>(findings.take(read_pem(flag, path)));
}

Result<std::unique_ptr<client::ComponentServer>> serve_component(const ComponentPortFlags& flags, client::ComponentServerOptions options) {
  options.profiling = options.profiling && flags.profiling;
  if (flags.app != nullptr) options.flags = shown_flags(*flags.app);
  if (flags.port == 0) return nullptr;
  if (flags.certificate_file.empty() != flags.key_file.empty())
    return invalid("--tls-cert-file and --tls-private-key-file: give both or none");
  for (const auto& [flag, path, into] : {std::tuple("--tls-cert-file", flags.certificate_file, &options.tls.certificate_pem),
                                         std::tuple("--tls-private-key-file", flags.key_file, &options.tls.private_key_pem),
                                         std::tuple("--client-ca-file", flags.client_ca_file, &options.tls.client_ca_pem)}) {
    if (path.empty()) continue;
    auto text = read_pem(flag, path);
    if (!text) return std::unexpected(text.error());
    *into = std::move(*text);
  }
  if (options.tls.client_ca_pem.empty()) {
    options.tls.client_ca_pem = client::published_client_ca(options.transport);
    if (options.tls.client_ca_pem.empty())
      log::warning(options.name, "the cluster names no authority for client certificates: /metrics and /configz take bearer tokens only");
  }
  options.address = flags.bind_address;
  const std::string name = options.name;
  auto server = start_on("--secure-port", flags.port == -1 ? "auto" : std::to_string(flags.port), flags.usual_port, std::move(options));
  if (server && flags.port == -1 && (*server)->port() != flags.usual_port)
    log::warning(name, "port {} is taken: /metrics, /healthz and /configz are on {}", flags.usual_port, (*server)->port());
  return server;
}

Result<std::unique_ptr<client::ComponentServer>> serve_component_of_up(const std::string& flag, const std::string& port,
                                                                       std::uint16_t usual_port, client::ComponentServerOptions options) {
  if (port == "0") return nullptr;
  return start_on(flag.c_str(), port, usual_port, std::move(options));
}

Result<void> check_component_port(const std::string& flag, const std::string& port) {
  if (port == "auto" || port == "0" || parse_listen(":" + port, 1)) return {};
  return invalid(fmt::format("{} {}: not \"auto\", 0 or a port", flag, port));
}

std::string ask_loop(EventLoop& loop, std::function<std::string()> question) {
  auto answer = std::make_shared<std::promise<std::string>>();
  auto future = answer->get_future();
  loop.post([answer, question = std::move(question)] { answer->set_value(question()); });
  if (future.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return "the component's loop does not respond";
  return future.get();
}

client::ComponentCheck loop_check(std::string name, EventLoop& loop) {
  return {std::move(name), [&loop] { return ask_loop(loop, [] { return std::string(); }); }};
}

}  // namespace berth::cli
