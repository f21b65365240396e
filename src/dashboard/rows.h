// What the page shows of an object: a small JSON object of its own. The only place that says what becomes of a Node, a Pod or an Event on
// its way to the page; live clusters and recordings alike. web/src/model/rows.ts has the same as TypeScript types.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::dashboard {

enum class RowKind { kNode, kPod, kEvent };

/// Of the object's `kind`; nullopt: the page does not show such objects.
std::optional<RowKind> row_kind_of(const json::Value& object);

/// {"kind":"node","name","zone","cpu" (milli),"memory"
/// (bytes),"pods","gpu","ready","cordoned","taints":["k=v:E"],"pressure":["MemoryPressure"],
///  "type" (of instance),"created" (seconds since 1970)}
/// {"kind":"pod","ns","name","uid","node","phase","ready","cpu","memory","gpu","priority","workload"
/// ("Deployment/web"),"created","bound","reason",
///  "message" (of PodScheduled, where it is False),"nominated","disruption" (reason of DisruptionTarget),"deleting","restarts","scheduler"}
/// {"kind":"event","ns","name","at" (seconds, with fraction),"type","reason","object" (kind),"on" (name),"message","source","count"}
/// What is empty, zero or false is left out.
json::Object row_of(RowKind kind, const json::Value& object);

/// That it is no longer there: {"gone":"pod","ns","name"}
json::Object gone_row(RowKind kind, std::string_view ns, std::string_view name);

}  // namespace berth::dashboard
