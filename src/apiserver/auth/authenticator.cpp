#include "apiserver/auth/authenticator.h"

#include <strings.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kAuthenticated = "system:authenticated";

/// One line of comma-separated values, with double quotes around fields that have commas; nullopt when a quote is not closed.
std::optional<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

std::string_view without_padding(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

class ChainAuthenticator final : public Authenticator {
 public:
  explicit ChainAuthenticator(AuthenticatorOptions options) : options_(std::move(options)) {}

  model::ApiResult<UserInfo> authenticate(const net::HttpRequest& request) override {
    if (request.peer && !request.peer->common_name.empty()) {
      return authenticated(UserInfo{request.peer->common_name, "", request.peer->organizations, {}});
    }
    if (auto token = bearer_token(request)) {
      auto user = by_token(*token, {});
      // The client is told no more than that its credentials are bad.
      return user ? std::move(user) : std::unexpected(model::unauthorized());
    }
    if (!options_.anonymous) return std::unexpected(model::unauthorized());
    return UserInfo{"system:anonymous", "", {"system:unauthenticated"}, {}};
  }

  model::ApiResult<UserInfo> authenticate_token(const std::string& token, const std::vector<std::string>& audiences) override {
    return by_token(token, audiences);
  }

 private:
  static std::optional<std::string_view> bearer_token(const net::HttpRequest& request) {
    std::string_view header = without_padding(request.headers.get("Authorization"));
    constexpr std::string_view kScheme = "bearer ";
    if (header.size() <= kScheme.size() || ::strncasecmp(header.data(), kScheme.data(), kScheme.size()) != 0) return std::nullopt;
    // The token is the second of the words that single spaces part: after two spaces there is none.
    auto token = header.substr(kScheme.size());
    token = token.substr(0, token.find(' '));
    return token.empty() ? std::nullopt : std::optional(token);
  }

  static UserInfo authenticated(UserInfo user) {
    if (!user.in_group(kAuthenticated)) user.groups.emplace_back(kAuthenticated);
    return user;
  }

  model::ApiResult<UserInfo> by_token(std::string_view token, const std::vector<std::string>& audiences) {
    if (!options_.static_tokens.empty() && audiences.empty()) {
      if (auto known = options_.static_tokens.find(std::string(token)); known != options_.static_tokens.end())
        return authenticated(known->second);
    }
    if (options_.service_account_tokens != nullptr) {
      auto user = options_.service_account_tokens->verify(token, audiences);
      return user ? model::ApiResult<UserInfo>(authenticated(std::move(*user))) : user;
    }
    auto status = model::unauthorized();
    status.message = "invalid bearer token";
    return std::unexpected(status);
  }

  AuthenticatorOptions options_;
};

}  // namespace

Result<StaticTokens> parse_token_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0)
    log::warning("auth", "{}: tokens may be read by others than the file's owner (mode {:04o}): `chmod 600` it", path,
                 info.st_mode & 07777);
  StaticTokens tokens;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::string_view text = without_padding(line);
    if (text.empty() || text.starts_with('#')) continue;
    auto fields = split_csv(text);
    if (!fields || fields->size() < 3 || (*fields)[0].empty() || (*fields)[1].empty()) {
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: expected token,user,uid[,\"group1,group2\"]", path, number));
    }
    UserInfo user{(*fields)[1], (*fields)[2], {}, {}};
    if (fields->size() > 3) {
      auto groups = split_csv((*fields)[3]);
      for (auto& group : groups.value_or(std::vector<std::string>{})) {
        if (!without_padding(group).empty()) user.groups.emplace_back(without_padding(group));
      }
    }
    if (!tokens.emplace((*fields)[0], std::move(user)).second)
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: the token is there twice", path, number));
  }
  return tokens;
}

std::shared_ptr<Authenticator> make_authenticator(AuthenticatorOptions options) {
  return std::make_shared<ChainAuthenticator>(std::move(options));
}

}  // namespace berth::apiserver::auth
