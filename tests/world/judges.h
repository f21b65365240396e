// What must hold of a world, whatever broke. Each judge returns what does not, in words.
#pragma once
#include <string>
#include <vector>

#include "tests/world/subject.h"
#include "tests/world/users.h"

namespace berth::world {

/// Every register's history is linearizable: what was acknowledged is in etcd's history, once; what was refused is not; each reader saw a
/// state between what anybody had been told before he asked and what was there when he was answered.
Findings judge_registers(const Ledger& ledger, const Held& held);
/// Each stretch of a watch is etcd's own history from where it began to where it ended: no gap, no repetition, nothing backwards.
Findings judge_watch(const RegisterWatcher& watcher, const Held& held);
/// What etcd held at every moment: no pod moves to another node, no node is asked for more than it has, no pod on a node goes without its
/// grace.
Findings judge_history(const Held& held);
/// Once everything is healed and has had its time: each server shows what etcd holds, `deployments` (names and replicas, in namespace
/// default) have exactly their pods, and all pods run; but of a gang (label `gang`) that lacks its group or members those that never had a
/// place.
Findings judge_rest(World& world, const std::map<std::string, int>& deployments);

}  // namespace berth::world
