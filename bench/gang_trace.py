#!/usr/bin/env python3
"""Gangs made of the openb trace, under three policies in one simulator: what docs/gangs.md shows.

    bench/gang_trace.py PODS.csv[.gz] [--berth build/release/bin/berth] [--pages DIR] [--topology] [--show-rule]

PODS.csv is openb_pod_list_default.csv of Alibaba's cluster-trace-gpu-v2023 (as in the repository
hkust-adsl/kubernetes-scheduler-simulator); it is not in this repository.

The rule. Tasks that ask for GPUs, were created from day 115 of the trace on (before that few were recorded) and have an
end, in order of creation. Tasks of one kind (the same CPU, memory and GPUs; a share of a GPU counts as a whole one) are cut
into gangs of 1, 8, 1, 4, 2, 16, 1, 4, 8 and 2 tasks, over and over, but of no more than 24 GPUs. A gang comes when its
first task was created and works as long as its tasks ran on average, at most 12 hours. Days pass ten times as fast as in
the trace, so that a cluster of 16 nodes with 8 GPUs each, in 4 racks, is short of GPUs now and then. With --topology each
gang has to be in one rack.

Three policies see the same arrivals: berth's gangs; the rules of kube-scheduler 1.36 with its chance; and the same pods
without any gang. A gang that stands for ten minutes without its partners gives up and comes anew half a minute later.
"""
import argparse, csv, gzip, json, pathlib, subprocess, sys, tempfile

SIZES = [1, 8, 1, 4, 2, 16, 1, 4, 8, 2]
FIRST_DAY, LONGEST, SPEED, NODES, RACKS, MOST_GPUS = 115, 12 * 3600, 10, 16, 4, 24
POLICIES = [("berth", "berth"), ("kube-scheduler 1.36", "kubernetes"), ("plain pods", "none")]
ROWS = [("gangs finished", "", "{:.0f}"), ("gangs that came anew", "", "{:.0f}"), ("wait of a gang, mean", "s", "{:.0f}"),
        ("wait of a gang, median", "s", "{:.0f}"), ("wait of a gang, 99%", "s", "{:.0f}"), ("gpu requested", "%", "{:.1f}"),
        ("gpu at work in gangs", "%", "{:.1f}"), ("held for partners", "%", "{:.1f}")]


def gangs_of(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as text:
        rows = [r for r in csv.DictReader(text) if int(r["num_gpu"]) > 0 and r["deletion_time"] and r["scheduled_time"]]
    rows = [r for r in rows if int(r["creation_time"]) >= FIRST_DAY * 86400]
    rows.sort(key=lambda r: (int(r["creation_time"]), r["name"]))
    open_gangs, gangs, turn = {}, [], 0
    for row in rows:
        kind = (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]))
        if kind not in open_gangs:
            open_gangs[kind] = {"at": int(row["creation_time"]), "kind": kind, "size": min(SIZES[turn % len(SIZES)], MOST_GPUS // kind[2]), "ran": []}
            turn += 1
        gang = open_gangs[kind]
        gang["ran"].append(max(1, int(row["deletion_time"]) - int(row["scheduled_time"])))
        if len(gang["ran"]) == gang["size"]:
            gangs.append(open_gangs.pop(kind))
    # What is left over at the end is a gang of as many tasks as came.
    gangs += open_gangs.values()
    return sorted(gangs, key=lambda g: g["at"])


def write_trace(gangs, path):
    first = gangs[0]["at"]
    with open(path, "w") as out:
        out.write("at,duration,size,cpu,memory,gpu\n")
        for gang in gangs:
            cpu, memory, gpus = gang["kind"]
            length = min(sum(gang["ran"]) // len(gang["ran"]), LONGEST)
            out.write(f"{(gang['at'] - first) / SPEED:.1f},{length},{len(gang['ran'])},{cpu}m,{memory}Mi,{gpus}\n")
    return (gangs[-1]["at"] - first) / SPEED


def scenario(days_seconds, seed, topology):
    nodes = "\n".join(
        f"- {{name: rack{rack}, count: {NODES // RACKS}, cpu: '96', memory: 768Gi, capacity: {{nvidia.com/gpu: '8'}}, "
        f"zones: [zone-a], labels: {{rack: r{rack}}}}}" for rack in range(1, RACKS + 1))
    variants = "\n".join(f"- {{name: {name}, set: {{gangs: {policy}}}}}" for name, policy in POLICIES)
    return f"""title: gangs of the openb trace
duration: {int(days_seconds) + 6 * 3600}s
seed: {seed}
nodes:
{nodes}
workloads:
- name: job
  gang: {{patience: 10m{", topology: rack" if topology else ""}}}
  keepFinished: 1m
  trace: {{file: gangs.csv, timeUnit: s}}
compare:
{variants}
"""


def plot(figures, path):
    """Bars of what the policies differ in, a row a figure, as a drawing of its own."""
    rows = [("wait of a gang, mean", "s"), ("wait of a gang, 99%", "s"), ("gpu at work in gangs", "%"), ("held for partners", "%")]
    colours, wide, out, y = ["#2f6f9f", "#b5651d", "#8a8a8a"], 420, [], 24
    for name, unit in rows:
        values = [v["mean"] for v in figures[name]["variants"]]
        most = max(values + [1e-9])
        out.append(f'<text x="8" y="{y}" font-weight="bold">{name} ({unit})</text>')
        for (policy, _), value, colour in zip(POLICIES, values, colours):
            y += 20
            shown = f"{value:,.0f}" if unit == "s" else f"{value:.1f}"
            out.append(f'<text x="160" y="{y}" text-anchor="end">{policy}</text><rect x="168" y="{y - 11}" rx="2" height="13" '
                       f'width="{max(value / most * wide, 1):.0f}" fill="{colour}"/>'
                       f'<text x="{176 + value / most * wide:.0f}" y="{y}">{shown}</text>')
        y += 32
    pathlib.Path(path).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{y - 8}" font-family="sans-serif" '
                                  f'font-size="12"><rect width="680" height="{y - 8}" fill="white"/>' + "".join(out) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser(description="Gangs made of the openb trace, under three policies.")
    parser.add_argument("pods", nargs="?", help="openb_pod_list_default.csv, plain or gzipped")
    parser.add_argument("--berth", default=str(pathlib.Path(__file__).parent.parent / "build/release/bin/berth"))
    parser.add_argument("--pages", help="a directory for the trace, the scenario, the report and its page")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topology", action="store_true", help="each gang in one rack; plain pods know none")
    parser.add_argument("--svg", help="a file for the same as bars")
    parser.add_argument("--show-rule", action="store_true", help="tell how the gangs are made, and end")
    args = parser.parse_args()
    if args.show_rule:
        print(__doc__)
        return
    if not args.pods or not pathlib.Path(args.pods).exists():
        sys.exit("the trace is not part of this repository: give openb_pod_list_default.csv (cluster-trace-gpu-v2023); --show-rule tells "
                 "what is made of it")
    with tempfile.TemporaryDirectory() as scratch:
        where = pathlib.Path(args.pages or scratch)
        where.mkdir(parents=True, exist_ok=True)
        gangs = gangs_of(args.pods)
        length = write_trace(gangs, where / "gangs.csv")
        (where / "gangs.yaml").write_text(scenario(length, args.seed, args.topology))
        sizes = {}
        for gang in gangs:
            sizes[len(gang["ran"])] = sizes.get(len(gang["ran"]), 0) + 1
        print(f"{len(gangs)} gangs of {sum(len(g['ran']) for g in gangs)} pods: " +
              ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items())), file=sys.stderr)
        subprocess.run([args.berth, "simulate", str(where / "gangs.yaml"), "-q", "--json", str(where / "report.json"), "--html",
                        str(where / "report.html")], check=True, stdout=subprocess.DEVNULL)
        figures = {f["name"]: f for f in json.loads((where / "report.json").read_text())["figures"]}
        print("| | " + " | ".join(name for name, _ in POLICIES) + " |\n|---|" + "---|" * len(POLICIES))
        for name, unit, form in ROWS:
            values = [form.format(v["mean"]) for v in figures[name]["variants"]]
            print(f"| {name}{' (' + unit + ')' if unit else ''} | " + " | ".join(values) + " |")
        if args.svg:
            plot(figures, args.svg)


if __name__ == "__main__":
    main()
