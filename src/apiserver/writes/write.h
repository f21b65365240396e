// Writes: what one of them carries through its steps. The lists of steps, and the order that none of them may leave: verbs/lists.cpp.
#pragma once
#include "apiserver/cache/object_part.h"
#include "apiserver/ground/proposals.h"
#include "apiserver/writes/pipeline.h"

namespace berth::apiserver {

/// What kind of write it is: which list of steps it goes through.
enum class WriteMode {
  kCreate,          ///< POST of an object.
  kCreateApplied,   ///< An apply of what is not there: its owners are written already.
  kReplace,         ///< PUT.
  kPatch,           ///< PATCH in the languages that say what changes.
  kApply,           ///< PATCH that says what is wanted: its change keeps the field owners itself.
  kScale,           ///< PUT and PATCH of a Scale.
  kScaleApply,      ///< Apply of a Scale.
  kBind,            ///< POST of a Binding: admission judges that, the pod then changes without being admitted, owned or validated.
  kMark,            ///< A change by the server itself on behalf of a request that was admitted as something else.
  kDelete,          ///< DELETE, of one object.
  kDeleteMember,    ///< The same of one object of a collection.
  kDeleteAdmitted,  ///< A deletion on behalf of a request that was admitted as something else.
  kEvict,           ///< POST of an Eviction.
  kToken,           ///< POST of a TokenRequest: nothing is stored.
  kConnect,         ///< exec, attach, portforward, proxy: nothing is stored.
};

/// What was decoded of an update: what it makes of the object, asked once an attempt.
class Change {
 public:
  virtual ~Change() = default;
  /// The new document from the present one.
  [[nodiscard]] virtual model::ApiResult<json::Value> made_of(const json::Value& current) const = 0;
  /// The document to create where nothing is there; nothing: 404.
  [[nodiscard]] virtual std::optional<model::ApiResult<json::Value>> made_anew() const { return std::nullopt; }
  /// Which part of the object it has to do with, if no more; of a whole object that is sent the rest counts for nothing.
  [[nodiscard]] virtual Choice part() const { return nullptr; }
};

struct Draft;
struct WriteOperation;
using WritePtr = std::shared_ptr<WriteOperation>;

/// What was sent, for all attempts.
struct Decoded {
  std::unique_ptr<const Change> change;  ///< Updates.
  std::string text;                      ///< A body of protobuf as JSON, where patterns have looked for it.
  json::Value options;                   ///< Deletions: DeleteOptions.
  std::optional<Asked::Body> body;       ///< What admission is asked about instead of the object.
};

/// What there is and what becomes of it, of the present attempt, until admission is asked.
struct Candidate {
  ObjectPtr base;       ///< What is there.
  json::Value current;  ///< The same as a document, until admission.old_object takes it over.
  /// What it becomes, until admission.object takes it over. Of what is no object of the kind (Binding, Eviction, TokenRequest, options of a
  /// session): the body.
  json::Value document;
  /// What is wrong with the metadata of an update as it was sent, and is carried over: told with what is wrong with the rest.
  model::FieldErrors findings;
  /// Of what `current`, `document` and the objects of admission are a part: nobody has asked for the rest yet.
  std::optional<ObjectPart> part;
  std::optional<json::Value> sent_spec;  ///< Of the rest, where it was sent all the same; null: without any. Until the write is prepared.
  bool insists_on_revision = false;
  std::string generate_name;    ///< Creations.
  bool names_revision = false;  ///< Creations: the object came with a resourceVersion, which the system takes from it.
};

/// What was taken or done for it with everybody's leave.
struct Granted {
  bool is_admitted = false;  ///< Deletions: asked once, however often it is tried.
  ServiceAllocation allocation;
  std::shared_ptr<const TokenSpec> token;  ///< What is to be issued, as admission left the request.
  ObjectPtr marked;                        ///< Deletions: as it was marked by this one, to go at once.
};

/// One write, through all its attempts. Documents are in the version of `kind`.
struct WriteOperation : std::enable_shared_from_this<WriteOperation> {
  RequestPtr request;
  WriteMode mode = WriteMode::kMark;
  const model::KindInfo* kind = nullptr;
  std::string ns, name;
  std::string subresource;  ///< As admission and strategies see it.
  bool dry_run = false;
  /// Called exactly once. make_write's answers the request.
  std::function<void(model::ApiResult<WriteOutcome>)> done;

  Decoded decoded;
  Candidate candidate;
  AdmissionRequest admission;
  Granted granted;

  std::size_t next_step = 0;
  std::shared_ptr<Draft> draft;  ///< Of a write that may leave a pattern (alike.h).
  int attempts = 0;

  /// The last step: hands over to the writer what the attempt came to.
  void propose(WritePipeline& writes, json::Value document, std::function<void(Proposal)> then);
  /// Instead of it where nothing is stored: what a webhook would be asked on the way is asked all the same.
  void try_out(WritePipeline& writes, json::Value document, bool is_created);
  /// The objects of admission get what they lack.
  void fill_in();

  void fail(model::ApiStatus status) { done(std::unexpected(std::move(status))); }
};

/// A write on behalf of a request to its own resource, which is answered with what is written: 201 for what was made, 200 for what was
/// there.
WritePtr make_write(WritePipeline& writes, const RequestPtr& request, WriteMode mode);

/// Goes on with the step that is next, up to the last one or to one that waits.
void run_steps(WritePipeline& writes, WritePtr operation);

/// make_write, then run_steps.
void begin_write(WritePipeline& writes, const RequestPtr& request, WriteMode mode);

/// A PUT or an apply that would create: that is a right of its own. Empty when the user has it.
std::optional<model::ApiStatus> refuse_creation(const Ground& ground, const Request& request);

/// A write that means another object than the one that is there, or another state of it.
struct BrokenPrecondition {
  std::string_view what;  ///< "UID" or "ResourceVersion".
  std::string asked, present;
};
/// `named`: what has the uid and the resourceVersion that are asked for, if any (metadata, or preconditions of DeleteOptions).
std::optional<BrokenPrecondition> broken_precondition(const json::Value* named, std::string_view uid, std::string_view revision);
/// The 409 of the storage for one (apiserver/pkg/storage, Preconditions).
model::ApiStatus precondition_conflict(const model::KindInfo& kind, std::string_view ns, std::string_view name,
                                       const BrokenPrecondition& broken);
/// The 409 of a deletion by these options for one; rest.BeforeDelete knows the kind, not the resource.
std::optional<model::ApiStatus> refuse_deletion(const model::KindInfo& kind, std::string_view name, const json::Value& options,
                                                std::string_view uid, std::string_view revision);

/// {"kind": "Status", "status": "Success"} with 201: what is posted to a subresource is answered so.
json::Value created_status();

}  // namespace berth::apiserver
