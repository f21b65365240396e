#include "cli/command/parse.h"

#include "base/config_reader.h"
#include "cli/command/commands.h"
#include "cli/command/configuration.h"
#include "cli/command/kubectl_words.h"

namespace berth::cli {
namespace {

/// "unknown flag: --node; did you mean \"--nodes\"?"
std::string unknown_words(const CLI::App& app, const std::vector<std::string>& left) {
  const auto flag = std::ranges::find_if(left, [](const std::string& one) { return one.starts_with('-') && one.size() > 1; });
  if (flag == left.end()) return left.empty() ? "an argument too many" : fmt::format("unexpected argument: \"{}\"", left.front());
  const std::string said = flag->substr(0, flag->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view bare = std::string_view(said).substr(std::min(said.find_first_not_of('-'), said.size()));
  const std::string_view near = bare.size() < 3 ? std::string_view() : config::nearest(bare, views);
  return fmt::format("unknown flag: {}{}", said, near.empty() ? "" : fmt::format("; did you mean \"--{}\"?", near));
}

/// The flag or argument that an error of the parser is about, which begins with it or names it before "=".
std::string words_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unknown_words(app, app.remaining());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return what.substr(0, what.find_first_of(": ")) + ": its value is missing, or there are too many";
  constexpr std::string_view kNoNumber = "Could not convert: ";
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr && what.starts_with(kNoNumber)) {
    const std::string rest = what.substr(kNoNumber.size());
    const std::size_t equals = rest.find(" = ");
    if (equals != std::string::npos) return fmt::format("{}: \"{}\" is not a number", rest.substr(0, equals), rest.substr(equals + 3));
  }
  return what;
}

/// For verbs that kubectl has with more flags: the line to type there.
std::string instead_with_kubectl(const CLI::App& app, const std::vector<std::string>& args) {
  const std::string& name = app.get_name();
  const std::string verb = name.substr(name.find(' ') + 1);
  const auto command = std::ranges::find(commands(), verb, &Command::name);
  if (command == commands().end() || command->group != "Work with objects" || verb == "adm") return {};
  return fmt::format("\nkubectl takes more flags, and the same kubeconfig: {}", kubectl_line(verb, args));
}

}  // namespace

std::optional<int> parse_args(CLI::App& app, std::vector<std::string> args) {
  auto configured = with_configuration(app, std::move(args));
  if (!configured) {
    fmt::print(stderr, "error: {}\n", configured.error().message);
    return 2;
  }
  args = std::move(*configured);
  const bool is_role_without_file = takes_only_a_configuration(app);
  if (std::string name = app.get_name(); name.starts_with("berth")) app.name(program_name() + name.substr(5));
  const std::vector<std::string> given = args;
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back.
  try {
    app.parse(args);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::string file;  // Taken before the others are looked at.
      if (is_role_without_file)
        app.add_option("--config", file, "berth's Configuration (docs/configuration.md): its section's flags, where none are given here");
      return app.exit(error);
    }
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    fmt::print(stderr, "error: {}{}\nRun {} --help for what it takes.\n", words_of(app, error),
               is_unknown ? instead_with_kubectl(app, given) : "", app.get_name());
    return 2;
  }
}

}  // namespace berth::cli
