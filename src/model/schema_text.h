// The facts of fields as text, embedded by the build from the files *.schema, *.zeros, *.shapes, *.enums and *.descriptions beside the
// kinds' records (src/model/kinds/<group>).
//
// A schema may begin with "@package NAME [group=GROUP] [openapi=NAME] [custom]": what the names of its types begin with, for which group
// where that is not the group's first word, under which name in OpenAPI, and whether its types keep every zero that they were given; a type
// that does so has a line "@custom".
//
// A type is a line with its name, its fields are the indented lines below: NAME TYPE [required] [patch=merge,retainKeys] [key=MERGE_KEY]
// [list=atomic|set|map:KEY,KEY] [map=atomic|granular] [off|off=GATE] [#NUMBER]. "off": of a
// feature that is off by default, so that what is given is dropped; with a gate of model/features.h: unless that is on. NUMBER is the
// field's in Kubernetes' protobuf form; "2.3" is field 3 of the message in field 2, which JSON spreads into its parent. TYPE is any,
// string, int32, int64, double, bool, quantity, time, microtime, bytes, intorstring, a type's name, [TYPE] or {TYPE}; "bool|TYPE" and
// "list|TYPE" are a type's object or a boolean, or a list of them; "TYPE/v1.Name" has a name of its own in Go. A field line "@atomic" marks
// the whole type; "@embeds NAME" says what Go calls the struct inside it that its fields "2.3" belong to, unseen in JSON but not in the
// decoder's errors ("@embeds NAME.NAME": a struct in a struct).
#pragma once
#include <string_view>
#include <vector>

namespace berth::model {

const std::vector<std::string_view>& schema_texts();
/// "TYPE: FIELD FIELD …" a type, going on in indented lines: the fields that are written even when they are zero.
/// Where the field's name ends with "!", it is there even when nobody gave it.
const std::vector<std::string_view>& zeros_texts();
/// "TYPE: FIELD=GOTYPE FIELD=GOTYPE …" a type, going on in indented lines: what the decoder's errors call a field whose type has a name of
/// its own in Go, as "[]v1.FinalizerName".
const std::vector<std::string_view>& named_texts();
/// "TYPE: MEMBER MEMBER …" a type, going on in indented lines: the members of the internal struct by their Go names. A field is the one of
/// the same name whatever the letters' case, unless "Member=field" says which; "*": a pointer, null when absent; "?": left out when
/// empty, as omitempty has it; "+metadata": the object's metadata stands here, its members beside the others.
const std::vector<std::string_view>& shapes_texts();
/// "TYPE.FIELD TYPE.FIELD…: WORD WORD…" a line, going on in indented lines: the words that a text may be. Types without their package.
const std::vector<std::string_view>& enums_texts();
/// "TYPE: SENTENCE" or "TYPE.FIELD: SENTENCE" a line; ".FIELD" of any type.
const std::vector<std::string_view>& descriptions_texts();

/// An entry of zeros, named, shapes or enums.
struct Fact {
  std::vector<std::string_view> of;  ///< What stands before the colon.
  std::vector<std::string_view> words;
};
std::vector<Fact> read_facts(const std::vector<std::string_view>& texts);

}  // namespace berth::model
