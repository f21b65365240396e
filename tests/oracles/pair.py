#!/usr/bin/env python3
"""pair.py ask|compare [options]: the oracle about API requests (README.md here).

    ask URL OUT        sends the stories to a real kube-apiserver and writes down what it said
    compare URL IN     sends them to berth and tells what is answered otherwise, by kind of difference
"""
import argparse, concurrent.futures, gzip, json, os, threading, time
import oracle


def stories(args):
    out = []
    if "objects" in args.sets:
        import generate
        maker = generate.Maker(args.openapi)
        maker.creations()
        maker.updates()
        out += maker.stories
    for name in args.sets:
        if name != "objects":
            out += __import__(name).stories(args)
    return [s for s in out if args.only in s["name"]]


def in_parallel(args, todo):
    """Each story with its answers; several stories at a time, a connection each."""
    local = threading.local()

    def one(story):
        if not hasattr(local, "server"):
            local.server = oracle.Server(args.url)
        try:
            return story, oracle.play(local.server, story)
        except Exception as error:
            print("!!", story["name"], error)
            local.server.connection = None
            return story, []

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        yield from pool.map(one, todo)


SKIPPED = ("token_review", "self_subject_review", "subject_access", "self_access", "local_access", "rules_review")


def settled(story, again):
    """Without the steps that a second recording saw answered otherwise (the order of a Go map decides), or that ended the connection."""
    kept = [n for n, answer in enumerate(story["answers"]) if answer["c"] != 0 and (again is None or oracle.alike(answer, again["answers"][n]))]
    place = {n: at for at, n in enumerate(kept)}
    steps = [{**story["steps"][n], **({"of": place[story["steps"][n]["of"]]} if "of" in story["steps"][n] else {})} for n in kept]
    if len(kept) < len(story["steps"]):
        print(story["name"], "without", [n for n in range(len(story["steps"])) if n not in place])
    return {**story, "steps": steps, "answers": [story["answers"][n] for n in kept]}


def has_whole_float(value):
    if isinstance(value, float):
        return abs(value) < 1e15 and value == int(value)
    return any(map(has_whole_float, value.values() if isinstance(value, dict) else value)) if isinstance(value, (dict, list)) else False


def as_sent(steps):
    """Bodies with a number like 2.0 as text: who reads them as JSON would send 2."""
    bases = {step["of"] for step in steps if "of" in step}
    out = []
    for number, step in enumerate(steps):
        body = oracle.body_of(steps, number)
        if number not in bases and has_whole_float(body):
            step = {**{k: v for k, v in step.items() if k not in ("of", "set", "drop")}, "b": json.dumps(body)}
        out.append(step)
    return out


def pack(args):
    """Writes what `ask` brought home as the files that `make test` replays: a story a file, answers told by what differs from an earlier one."""
    os.makedirs(args.out, exist_ok=True)
    again = {}
    if args.again:
        with gzip.open(args.again, "rt") as lines:
            again = {one["name"]: one for one in map(json.loads, lines)}
    stories = 0
    with gzip.open(args.url, "rt") as lines:
        for line in lines:
            story = json.loads(line)
            if not story["answers"] or any(part in story["name"] for part in SKIPPED):
                continue  # Who asks is another in process.
            story = settled(story, again.get(story["name"]))
            answers, first = [], {}
            for number, answer in enumerate(story["answers"]):
                answer["o"] = oracle.mask(answer["o"])
                kept = {"c": answer["c"], **({"w": answer["w"]} if answer["w"] else {})}
                base = first.setdefault(answer["c"] < 300 and answer["c"], number) if isinstance(answer["o"], dict) else number
                change = oracle.difference(story["answers"][base]["o"], answer["o"]) if base != number else None
                if change is not None and len(json.dumps(change)) < len(json.dumps(answer["o"])):
                    kept.update(of=base, **{k: v for k, v in change.items() if v})
                else:
                    kept["o"] = answer["o"]
                answers.append(kept)
            for number, kept in enumerate(answers):
                assert isinstance(kept.get("o"), (dict, list, str)) or oracle.apply(story["answers"][kept["of"]]["o"], kept) == story["answers"][number]["o"], (story["name"], number)
            text = json.dumps({"name": story["name"], "steps": as_sent(story["steps"]), "answers": answers}, separators=(",", ":"))
            with open(os.path.join(args.out, story["name"] + ".json.gz"), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as out:
                out.write(text.encode())
            stories += 1
    print(stories, "stories")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["ask", "compare", "count", "pack"])
    parser.add_argument("url", nargs="?")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--openapi", default=os.environ.get("OPENAPI", "swagger.json"))
    parser.add_argument("--sets", type=lambda s: s.split(","), default=["objects"])
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", help="pack: a second recording")
    parser.add_argument("--out", default="differences.jsonl")
    args = parser.parse_args()
    if args.verb == "count":
        all_of = stories(args)
        print(len(all_of), "stories,", sum(len(s["steps"]) for s in all_of), "requests")
        return
    if args.verb == "pack":
        return pack(args)
    begin = time.time()
    if args.verb == "ask":
        todo = stories(args)
        with gzip.open(args.file, "wt", compresslevel=5) as out:
            count = 0
            for story, answers in in_parallel(args, todo):
                out.write(json.dumps({**story, "answers": answers}) + "\n")
                count += len(answers)
        print(f"{count} requests in {time.time() - begin:.0f} s")
        return
    equal = total = 0
    with gzip.open(args.file, "rt") as lines:
        todo = [one for one in map(json.loads, lines) if args.only in one["name"]]
    with open(args.out, "w") as out:
        for story, answers in in_parallel(args, todo):
            for number, (theirs, ours) in enumerate(zip(story["answers"], answers)):
                total += 1
                if oracle.alike(theirs, ours):
                    equal += 1
                    continue
                out.write(json.dumps({"story": story["name"], "step": number, "request": story["steps"][number], "theirs": theirs, "ours": ours}) + "\n")
    print(f"{equal} of {total} alike ({100.0 * equal / max(total, 1):.2f}%) in {time.time() - begin:.0f} s")


main()
