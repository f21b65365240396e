// The documents' verbs on the project's own client library (SPEC A8): each takes its arguments, talks to the API server, prints as kubectl
// does.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

int run_create(const std::vector<std::string>& args);    ///< create -f FILE… | create TYPE NAME
int run_apply(const std::vector<std::string>& args);     ///< apply -f FILE… (server-side)
int run_get(const std::vector<std::string>& args);       ///< get TYPE [NAME…] [-o wide|json|yaml|name] [-l …] [-A]
int run_describe(const std::vector<std::string>& args);  ///< describe TYPE NAME
int run_delete(const std::vector<std::string>& args);    ///< delete TYPE NAME… | -f FILE…
int run_label(const std::vector<std::string>& args);     ///< label TYPE NAME key=value… key-…
int run_annotate(const std::vector<std::string>& args);  ///< annotate TYPE NAME key=value… key-…
int run_adm(const std::vector<std::string>& args);       ///< adm VERB
int run_token(const std::vector<std::string>& args);     ///< token create | list | delete
int run_new_project(const std::vector<std::string>& args);
int run_project(const std::vector<std::string>& args);
int run_projects(const std::vector<std::string>& args);
int run_login(const std::vector<std::string>& args);   ///< login [URL] -u USER | --token T
int run_whoami(const std::vector<std::string>& args);  ///< whoami [-t|-c]

}  // namespace berth::cli
