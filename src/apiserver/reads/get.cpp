#include "apiserver/reads/reading.h"
#include "apiserver/reads/reads.h"

namespace berth::apiserver {

void Reads::get(const RequestPtr& request) {
  const auto& kind = *request->kind;
  const auto revision = read_revision(request->query.get("resourceVersion"));
  if (!revision) return respond.status(*request, revision.error());
  const auto answer = [this, request, &kind] {
    const auto object = ground.cache->get(object_key(kind, kind.namespaced ? request->info.ns : "", request->info.name));
    if (object == nullptr) return respond.status(*request, model::not_found(kind.group, kind.plural, request->info.name));
    respond.converted(request, 200, object);
  };
  if (!*revision || **revision <= ground.cache->revision()) return answer();
  // "Not older than": wait for what has been promised elsewhere, as a list does.
  ground.cache->wait_for(**revision, std::chrono::seconds(3), [this, request, answer, wanted = **revision](bool reached) {
    if (reached) return answer();
    respond.status(*request, too_large_revision(wanted, ground.cache->revision()));
  });
}

}  // namespace berth::apiserver
