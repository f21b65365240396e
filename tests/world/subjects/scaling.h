// What subjects have in common whose nodes come and go with their pods: a Deployment `moves` that is made larger and smaller, and a pod
// `stays` that may not be moved.
#pragma once
#include "tests/world/subject.h"

namespace berth::world {

class ScalingSubject : public Subject {
 protected:
  ScalingSubject(World& world, Chronicle& chronicle, const char* ns) : Subject(world, chronicle), ns_(ns) {}

  /// Who wants it all, and his namespace.
  void begin(const std::string& user);
  void make_pods(const std::string& name, json::Object annotations, json::Value spec);
  /// How many pods of `moves` there are to be.
  void scale(std::int64_t replicas);
  /// Of each pod of the namespace: since when it has its node.
  void note_binding(const Seen& seen);
  /// The node goes: nobody is on it who was there for so long that everybody knows.
  void judge_end(const Seen& node);
  void judge_pods(int wanted, std::string_view when);

  std::unique_ptr<Hand> hand_;

 private:
  const char* ns_;
  std::map<std::string, TimePoint, std::less<>> bound_;  ///< By pods' uids.
};

}  // namespace berth::world
