"""Is what clients saw of one object what one copy of it could have told them? A linearizability check (Wing and Gong's search, one operation's
return at a time) for registers, and one for lists that only grow.

An operation has `start` and `end` (seconds; end None: nobody knows what came of it), `kind`, and what it was asked and told:
  create v, patch v, swap (was, v), delete: ok or refused        read: v, or None when the object was not there
Every value is written by one operation only, so a state is a value, or None."""

TOO_MANY = 200_000  # States of the search: then it is given up, and said so.


def apply(state, op):
    """The state after `op` in `state`; Ellipsis when what it was told cannot be."""
    kind, value, ok = op["kind"], op.get("value"), op.get("ok", True)
    if kind == "read":
        return state if state == value else ...
    there = state is not None
    may = {"create": not there, "patch": there, "delete": there, "swap": there and state == op.get("was")}[kind]
    if may != ok:
        return ...
    if not ok:
        return state
    return None if kind == "delete" else value


def check_register(operations, happened=None):
    """What is wrong, or None. `happened`: the values that some complete watch told, in their order; an unknown write that is not among them never was,
    and no other order of these needs to be tried."""
    relevant, places = [], {value: place for place, value in enumerate(happened or ())}
    for op in operations:
        if op["end"] is None:
            if op["kind"] == "read" or (happened is not None and op["kind"] != "delete" and op["value"] not in happened):
                continue
        relevant.append(op)
    moments = []
    for number, op in enumerate(relevant):
        moments.append((op["start"], 0, number))
        if op["end"] is not None:
            moments.append((op["end"], 1, number))
    moments.sort()
    # What the object holds and how many of what happened has, with those of the open operations that are done.
    open_now, states = [], {((None, 0), frozenset())}
    for _, is_end, number in moments:
        if not is_end:
            open_now.append(number)
            continue
        seen, todo, after = set(states), list(states), set()
        while todo:
            state, done = todo.pop()
            if number in done:
                after.add((state, done - {number}))
                continue
            is_deleted = False  # By one of unknown outcome that is open: the next one would do the same.
            for other in open_now:
                if other in done:
                    continue
                if relevant[other]["end"] is None and relevant[other]["kind"] == "delete":
                    if is_deleted:
                        continue
                    is_deleted = True
                op, (held, place) = relevant[other], state
                result = apply(held, dict(op, ok=True) if op["end"] is None else op)
                if result is ...:
                    continue
                if op["kind"] not in ("read", "delete") and (op["end"] is None or op.get("ok", True)) and op["value"] in places:
                    if places[op["value"]] != place:
                        continue
                    place += 1
                config = ((result, place), done | {other})
                if config not in seen:
                    seen.add(config)
                    todo.append(config)
            if len(seen) > TOO_MANY:
                return "the search has too many states: the history is undecided"
        if not after:
            return f"no order of the operations explains {relevant[number]}; before it the object may have been {sorted({str(held) for (held, _), _ in states})}"
        states = after
        open_now.remove(number)
    return None


def check_list(operations, final):
    """Operations: append v, told the whole list afterwards (`seen`), refused (`ok` False) or of unknown outcome; read, told `seen`."""
    if len(set(final)) != len(final):
        return f"appended twice: {sorted({v for v in final if final.count(v) > 1})[:5]}"
    places = {value: place for place, value in enumerate(final)}
    told = []  # (end, length), of what was answered
    for op in sorted(operations, key=lambda op: op["start"]):
        value, seen = op.get("value"), op.get("seen")
        if op["kind"] == "append" and not op.get("ok", True) and op["end"] is not None and value in places:
            return f"{value} was refused, and is in the list"
        if op["end"] is None or seen is None:
            continue
        if seen != final[: len(seen)]:
            return f"{op} saw what is no beginning of the list in the end"
        if op["kind"] == "append" and (value not in places or not seen or seen[-1] != value):
            return f"{value} was acknowledged; the answer ends with {seen[-1:]}, the list has it at {places.get(value)}"
        told.append((op["start"], op["end"], len(seen), op["kind"]))
    told.sort(key=lambda one: one[1])
    longest, ended = 0, 0
    for start, _, length, kind in sorted(told):
        while ended < len(told) and told[ended][1] < start:
            longest = max(longest, told[ended][2])
            ended += 1
        if length < longest + (kind == "append"):
            return f"{length} entries were seen after an answer with {longest}"
    return None


def self_test():
    """A checker that finds nothing is worth nothing."""
    op = lambda start, end, kind, value=None, **more: dict(start=start, end=end, kind=kind, value=value, **more)
    good = [op(0, 1, "create", "a"), op(2, 5, "swap", "b", was="a"), op(3, 4, "read", "b"), op(6, 7, "delete"), op(8, 9, "read", None)]
    assert check_register(good) is None
    stale = good[:3] + [op(6, 7, "read", "a")]
    lost = [op(0, 1, "create", "a"), op(2, 3, "patch", "b"), op(4, 5, "swap", "c", was="a")]
    doubled = [op(0, None, "create", "a"), op(1, 2, "read", "a"), op(3, 4, "delete"), op(5, 6, "read", "a")]
    two_winners = [op(0, 1, "create", "a"), op(2, 5, "swap", "b", was="a"), op(2, 5, "swap", "c", was="a")]
    refused_and_done = [op(0, 1, "create", "a"), op(2, 3, "swap", "b", was="a", ok=False)]
    for bad in (stale, lost, doubled, two_winners, refused_and_done):
        assert check_register(bad) is not None, bad
    assert check_register([op(0, 1, "create", "a"), op(2, None, "patch", "b"), op(3, 4, "read", "a"), op(5, 6, "read", "b")]) is None
    in_order = [op(0, None, "create", "a"), op(0, None, "patch", "b"), op(3, 4, "read", "b")]
    assert check_register(in_order, ["a", "b"]) is None and check_register(in_order, ["b", "a"]) is not None
    add = lambda start, end, value, seen: dict(start=start, end=end, kind="append", value=value, seen=seen)
    assert check_list([add(0, 1, "a", ["a"]), add(2, 3, "b", ["a", "b"])], ["a", "b"]) is None
    assert check_list([add(0, 1, "a", ["a"])], ["a", "a"]) is not None
    assert check_list([add(0, 1, "a", ["a"]), add(2, 3, "b", ["b"])], ["b", "a"]) is not None
    assert check_list([add(0, 1, "a", ["a"])], []) is not None


if __name__ == "__main__":
    self_test()
    print("the checker finds what it is to find")
