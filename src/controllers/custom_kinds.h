// Kinds that come and go by CustomResourceDefinitions, as controllers need them: owners, dependents and namespaces know no difference.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/lifeline.h"
#include "client/informer.h"
#include "controllers/engine.h"

namespace berth::controllers {

/// The kind that the objects of a definition are read as: its stored version, or the first served one where that is not served. Null: not
/// established, nothing served, or one of the API's own kinds. Equal definitions give the same pointer, which lives as long as the process
/// (as many of them as there ever were names).
Kind kind_of_definition(const json::Value& definition);

/// What the scale subresource of a custom object shows. Nothing of a kind without one.
struct CustomScale {
  std::int64_t replicas = 0;
  std::string selector;  ///< As a query writes it.
};
std::optional<CustomScale> read_custom_scale(Kind kind, const json::Value& document);

/// Follows the definitions and keeps an informer a custom kind, whose objects it shows to the engine. Lives on the client's loop.
class CustomKinds {
 public:
  CustomKinds(client::Client& client, Engine& engine);
  ~CustomKinds();
  /// From here on the objects of each definition are listed and watched.
  void follow(client::Informer& definitions);
  /// From here on the engine sees them. Once.
  void show();
  /// Once the kinds that are known now have their objects in the engine, or patience is over: one whose conversion fails holds nobody up.
  void on_synced(std::function<void()> synced);

 private:
  struct Followed {
    Kind kind = nullptr;
    std::unique_ptr<client::Informer> informer;
  };
  void take(const std::string& name, Kind kind, bool is_gone);
  void show(const Followed& followed);
  void tell_if_synced();

  client::Client& client_;
  Engine& engine_;
  std::map<std::string, Followed> followed_;  ///< By the definition's name.
  bool is_shown_ = false;
  std::function<void()> synced_;
  TimerId patience_ = TimerId::kNone;
  Lifeline lifeline_;
};

}  // namespace berth::controllers
