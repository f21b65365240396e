#!/usr/bin/env python3
"""run.py BERTH: three etcd members, three API servers, writers and watches through all of them, and faults (CHAOS_FAULTS, default 40;
CHAOS_SEED). Ends with "N passed, N failed"; a failed run keeps its logs and says where."""
import os, random, shutil, signal, sys, tempfile, time
from cluster import Clock, Cluster, Networks
from components import Components
from history import History
from linear import self_test


def faults_of(cluster, dice, components):
    """Each does its worst, waits a little, and heals."""

    def member():
        return dice.choice(cluster.members)

    def server():
        return dice.choice(cluster.servers)

    def link():
        return dice.choice(cluster.links)

    def kill(process, pause):
        process.kill()
        time.sleep(pause)
        process.start()

    def freeze(process, pause):
        process.signal(signal.SIGSTOP)
        time.sleep(pause)
        process.signal(signal.SIGCONT)

    def restart(process):
        process.stop()
        process.start()

    def slow(one):
        one.delay = 0.2
        time.sleep(2)
        one.delay = 0.0

    def cut(one):
        one.is_cut = True
        time.sleep(4)
        one.is_cut = False

    def lose_answers(one):
        """The worst for who writes: all is done, and nobody is told."""
        one.is_deaf = True
        time.sleep(dice.uniform(0.05, 1.0))
        one.reset()
        one.is_deaf = False

    def unplug():
        """A member without peers and clients: it may believe that it leads for a while."""
        one = dice.randrange(len(cluster.members))
        cluster.networks.unplug(one)
        time.sleep(5)
        cluster.networks.plug(one)

    def jump_clock():
        clock = dice.choice(cluster.clocks)
        clock.jump(dice.choice((3600, 90)))
        time.sleep(3)
        clock.jump(0)

    def set_clock_back():
        """What waits for a time of day then waits an hour; connections that break meanwhile must be made again all the same."""
        clock = dice.choice(cluster.clocks)
        clock.jump(3600)
        time.sleep(dice.uniform(0.5, 1.5))
        clock.jump(0)
        time.sleep(dice.uniform(0.1, 2))
        for one in cluster.links:
            one.reset()

    def jump_components_clocks():
        components.jump_clocks(dice.choice((3600, 90)))
        time.sleep(3)
        components.jump_clocks(0)

    def move_leader():
        cluster.etcdctl("move-leader", dice.choice(cluster.etcdctl("member", "list").stdout.split("\n")).split(",")[0])

    def compact():
        revision = cluster.request(0, "GET", "/api/v1/namespaces/default/configmaps?limit=1")[1]["metadata"]["resourceVersion"]
        cluster.etcdctl("compact", revision)

    def alarm():
        """The database is full: writes are refused, nothing else, until somebody makes room."""
        cluster.raise_quota_alarm()
        time.sleep(2)
        cluster.clear_quota_alarm()

    def fill_disk():
        """A member's disk is full: etcd ends there, and is started again when there is room."""
        disk = cluster.disk
        disk.fill()
        time.sleep(4)
        disk.empty()
        cluster.members[0].kill()
        cluster.members[0].start()

    table = {} if cluster.disk is None else {"fill a member's disk": fill_disk}
    if cluster.networks.is_own:
        table["pull a member's cable"] = unplug
    if Clock.library:
        table |= {"a server's clock jumps": jump_clock, "the components' clocks jump": jump_components_clocks}
        table["a server's clock goes back and its connections break"] = set_clock_back
    return table | {
        "quota alarm": alarm,
        "kill -9 the leading scheduler": lambda: components.kill_leader("scheduler"),
        "kill -9 the leading controllers": lambda: components.kill_leader("controllers"),
        "stop the leading scheduler until another leads": lambda: components.freeze_leader("scheduler"),
        "stop the leading controllers until others lead": lambda: components.freeze_leader("controllers"),
        "kill -9 a member": lambda: kill(member(), 1),
        "kill -9 a server": lambda: kill(server(), 0.5),
        "stop a member for 5 s": lambda: freeze(member(), 5),
        "stop a server for 3 s": lambda: freeze(server(), 3),
        "end a server in order": lambda: restart(server()),
        "slow link to a member": lambda: slow(link()),
        "cut link to a member": lambda: cut(link()),
        "reset a member's connections": lambda: link().reset(),
        "lose a member's answers": lambda: lose_answers(link()),
        "lose every member's answers": lambda: [lose_answers(one) for one in cluster.links],
        "move etcd's leader": move_leader,
        "defragment all members": lambda: cluster.etcdctl("defrag"),
        "compact up to now": compact,
    }


def main():
    berth, count, seed = os.path.realpath(sys.argv[1]), int(os.environ.get("CHAOS_FAULTS", "40")), int(os.environ.get("CHAOS_SEED", "1"))
    if not shutil.which("etcd") or not shutil.which("etcdctl"):
        print("etcd is not installed: apt install etcd-server etcd-client\n0 passed, 0 failed")
        return 0
    self_test()
    Networks.enter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Its processes and networks end with it.
    work = tempfile.mkdtemp(prefix="berth-chaos.")
    dice = random.Random(seed)
    cluster = components = None
    failed, began = [], time.monotonic()
    try:
        cluster = Cluster(berth, work)
        history = History(cluster)
        time.sleep(1)
        components = Components(cluster, history.fault)
        table = faults_of(cluster, dice, components)
        plan = []
        while len(plan) < count:  # Every kind before any twice.
            plan += dice.sample(sorted(table), len(table))
        for number, name in enumerate(plan[:count]):
            print(f"{time.strftime('%H:%M:%S')} {number + 1}/{count} {name}", flush=True)
            try:
                table[name]()
            except OSError:
                pass  # The server asked for was the one that a fault before had ended.
            time.sleep(dice.uniform(0.5, 1.5))
        for i in range(len(cluster.servers)):
            cluster.wait(lambda: cluster.ready(i), 30, f"server {i}")
        components.finish()
        history.finish()
        failed = history.faults
        slowest = max((one.worked for one in components.resumed), default=0)
        print(f"{components.handovers} handovers of leadership; work went on after at most {slowest:.1f} s when a leader died (Lease taken, work done, of these "
              "the machine stood still): " + ", ".join(f"{one.role} {one.taken:.1f} {one.worked:.1f} {one.still:.1f}" for one in components.resumed))
        print(f"seed {seed}: {count} faults, {history.requests} requests, {history.errors} without an answer, "
              f"{history.acknowledged} writes acknowledged, {history.refused} refused, {history.unknown} of unknown outcome; watches resumed {[w.resumed for w in history.watches]}, expired "
              f"{[len(w.gaps) for w in history.watches]}; longest time in which nobody was served {history.longest_pause:.1f} s")
        seconds = time.monotonic() - began
        print(f"the machine stood still for {cluster.metronome.stood_still():.0f} of {seconds:.0f} s: a metronome that wants a twentieth of a processor did "
              "not get it; times below are bound to 15 s and what of that fell into them")
        if history.longest_pause - history.still_in_longest_pause > 15:
            failed.append(f"nobody was served for {history.longest_pause:.1f} s, {history.still_in_longest_pause:.1f} s of which the machine stood still")
        for one in components.resumed:
            if one.worked - one.still > 15:
                failed.append(f"work of the {one.role} went on only {one.worked:.1f} s after a leader's end, its Lease taken after {one.taken:.1f} s; "
                              f"the machine stood still for {one.still:.1f} s of these")
    except RuntimeError as error:
        failed.append(str(error))
    finally:
        if components is not None:
            components.close()
        if cluster is not None:
            cluster.close()
    for line in failed[:20]:
        print("FAIL", line)
    if failed or os.environ.get("CHAOS_KEEP"):
        print(f"logs: {work}")
    else:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{0 if failed else count} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main())
