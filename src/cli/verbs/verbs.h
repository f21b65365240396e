// The documents' verbs on the project's own client library (SPEC A8): each takes its arguments, talks to the API server, prints as kubectl
// does.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_create(
    const std::vector<std::string>& args);  ///< create -f FILE… | create sa|configmap|clusterrolebinding|rolebinding|namespace NAME
int run_apply(const std::vector<std::string>& args);     ///< apply -f FILE… (server-side)
int run_get(const std::vector<std::string>& args);       ///< get TYPE [NAME…] [-o wide|json|yaml|name] [-l …] [-A]
int run_describe(const std::vector<std::string>& args);  ///< describe TYPE NAME
int run_delete(const std::vector<std::string>& args);    ///< delete TYPE NAME… | -f FILE…
int run_label(const std::vector<std::string>& args);     ///< label TYPE NAME key=value… key-…
int run_annotate(const std::vector<std::string>& args);  ///< annotate TYPE NAME key=value… key-…
int run_adm(const std::vector<std::string>& args);       ///< adm taint nodes | new-project | cordon | uncordon | drain

}  // namespace berth::cli
