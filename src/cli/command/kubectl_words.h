// What people type that is not a command of berth: words of kubectl and oc, and slips.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

/// `; did you mean "taint"?`, or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// "kubectl create cronjob x": the command line with its words quoted where a shell wants it.
std::string kubectl_line(std::string_view verb, const std::vector<std::string>& args);

/// For a command that kubectl or oc has and berth has not: what to do instead, a sentence and a command line to type. Empty for other
/// words.
std::string instead_of_command(const std::string& word, const std::vector<std::string>& args);
/// The same for `adm WORD`.
std::string instead_of_adm(const std::string& word, const std::vector<std::string>& args);
/// For OpenShift's types that are not served, what there is instead: "; a Route is …"; for other words the type that was probably meant.
std::string instead_of_type(const std::string& plural);

}  // namespace berth::cli
