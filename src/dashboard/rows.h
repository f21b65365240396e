// What the page shows of an object: a small JSON object of its own. The only place that says what becomes of a Node, a Pod, an Event or a
// PodDisruptionBudget on its way to the page; live clusters and recordings alike. web/src/model/rows.ts has the same as TypeScript types.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::dashboard {

enum class RowKind { kNode, kPod, kEvent, kBudget, kGroup };

/// Of the object's `kind`; nullopt: the page does not show such objects.
std::optional<RowKind> row_kind_of(const json::Value& object);

/// {"kind":"node","name","zone","cpu" (milli),"memory" (bytes),"pods","gpu","ready","unknown" (nothing is heard of it),"since" (when it
///  stopped being ready),"why" (in its own words),"cordoned","taints":["k=v:E"],"pressure":["MemoryPressure"],"pressed" (since when),
///  "type" (of instance),"price" (of an hour, where somebody wrote it),"currency","pool" (NodePool),"created" (seconds since 1970, as all
///  times here)}
/// {"kind":"pod","ns","name","uid","node","phase","ready","cpu","memory","gpu","priority","workload" ("Deployment/web"),"created","bound",
///  "reason","message" (of PodScheduled, where it is False),"nominated","disruption" (reason of DisruptionTarget),"deleting","restarts",
///  "scheduler","unready" (since when a pod that has a node is not ready),"waiting" (what a container waits for, beyond its ordinary start:
///  "CrashLoopBackOff"),"ended" (how a container ended that was started again: "OOMKilled", "exit code 1"),"gang" (its pod group)}
/// {"kind":"event","ns","name","at" (seconds, with fraction),"type","reason","object" (kind),"on" (name),"message","source","count"}
/// {"kind":"budget","ns","name","allowed","healthy","desired","expected","since" (when it began to allow none),"created"}
/// {"kind":"group","ns","name","min" (minCount of a gang),"topology" (key),"priority","scheduled" (it was placed),"reason","message" (why
/// not),
///  "since" (of that),"created"}
/// What is empty, zero or false is left out.
json::Object row_of(RowKind kind, const json::Value& object);

/// That it is no longer there: {"gone":"pod","ns","name"}
json::Object gone_row(RowKind kind, std::string_view ns, std::string_view name);

}  // namespace berth::dashboard
