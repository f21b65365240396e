# berth: `make demo` and `make test` do everything, from installing what is missing on.
PRESET ?= release
BUILD  := build/$(PRESET)
JOBS   ?= 2

CHAOS_FAULTS ?= 40
.PHONY: help setup build install plugin openb demo test documents readme docs parity simulate world bench kill-test chaos overload attack vm mutants asan tsan sanitize soak fuzz check tidy package package-test clean
help:
	@sed -n 's/^## //p' Makefile

setup:
	@tools/install-deps

## make build      install what is missing, build build/release/bin/berth
build: setup
	@mkdir -p build
	@cmake --preset $(PRESET) >build/configure-$(PRESET).log 2>&1 || { cat build/configure-$(PRESET).log; exit 1; }
	@tools/compile $(BUILD) $(JOBS) build/build-$(PRESET).log berth openb
	@command -v berth >/dev/null || echo 'berth is $(BUILD)/bin/berth; to type it by its name: export PATH="$(CURDIR)/$(BUILD)/bin:$$PATH", or make install'

## make install PREFIX=DIR   berth, and what scheduler plugins are built with (docs/plugins.md): find_package(berth) finds it in DIR (/usr/local)
install: build
	@tools/compile $(BUILD) $(JOBS) build/build-sdk.log sdk
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local) >build/install.log || { tail -5 build/install.log; exit 1; }

## make plugin     build examples/plugin against an installation, as its author would, and run its test
plugin: build
	@rm -rf $(BUILD)/plugin && $(MAKE) --no-print-directory install PREFIX=$(CURDIR)/$(BUILD)/plugin/prefix
	@cmake -S examples/plugin -B $(BUILD)/plugin/build -DCMAKE_PREFIX_PATH=$(CURDIR)/$(BUILD)/plugin/prefix >build/plugin.log && cmake --build $(BUILD)/plugin/build >>build/plugin.log || { tail -20 build/plugin.log; exit 1; }
	@ctest --test-dir $(BUILD)/plugin/build --output-on-failure

## make readme, make docs   type what README.md, or all of docs/, shows, and hold what comes against it (PAGES="docs/x.md …")
readme: build
	@tests/docs/check.py $(BUILD)/bin/berth README.md
docs: build
	@tests/docs/check.py $(BUILD)/bin/berth $(or $(PAGES),README.md $(wildcard docs/*.md))

openb: setup
	@mkdir -p build && cmake --preset $(PRESET) >build/configure-$(PRESET).log && tools/compile $(BUILD) $(JOBS) build/build-openb.log openb

## make bench      build build/release/bin/berth-bench and list its scenarios
bench: build
	@tools/compile $(BUILD) $(JOBS) build/build-bench.log berth-bench
	@$(BUILD)/bin/berth-bench --list

## make demo       build, start a control plane with simulated nodes, place examples/, show where everything went, stop
demo: build
	@examples/demo.sh $(BUILD)/bin/berth

## make test       build and run the fast suite (unit, parity subset, kubectl-driven); with ../shared also everything there
test: setup
	@tools/test $(PRESET) $(JOBS)

## make documents  types the five documents of OpenShift, section by section: some minutes
documents: build
	@code=0; for script in tests/documents/*.sh; do [ -x $$script ] || continue; echo "$$script"; $$script $(BUILD)/bin/berth || code=1; done; exit $$code

## make parity VECTORS=DIR   replay recorded decisions of kube-scheduler, kubelet, cluster-autoscaler and descheduler
parity: build
	@tools/compile $(BUILD) $(JOBS) build/build-parity.log berth-parity
	@$(BUILD)/bin/berth-parity $(VECTORS)

## make simulate SEEDS=N   from N seeds: preemption over virtual hours, then whole clusters through outages, cuts and restarts (FIRST=, STEPS= too)
simulate: build
	@BERTH_SIMULATION_SEEDS=$(or $(SEEDS),200) BERTH_SIMULATION_FIRST=$(or $(FIRST),1) BERTH_SIMULATION_STEPS=$(or $(STEPS),200) $(BUILD)/bin/test_simulation --gtest_brief=1 --gtest_filter='-*AClusterHeals*'
	@BERTH_SIMULATION_SEEDS=$(or $(SEEDS),50) BERTH_SIMULATION_FIRST=$(or $(FIRST),1) BERTH_SIMULATION_STEPS=$(or $(STEPS),60) $(BUILD)/bin/test_simulation --gtest_brief=1 --gtest_filter='*AClusterHeals*'

## make world SEEDS=N   N worlds: three API servers on one etcd and all components, in virtual time, with everything between them breaking; DISK_SEEDS=N of one server on a disk that loses its power (FIRST=, FAULTS= too; docs/testing.md)
world: setup
	@mkdir -p build && cmake --preset $(PRESET) >build/configure-$(PRESET).log && tools/compile $(BUILD) $(JOBS) build/build-world.log test_world
	@BERTH_WORLD_SEEDS=$(or $(SEEDS),100) BERTH_WORLD_DISK_SEEDS=$(or $(DISK_SEEDS),3) BERTH_WORLD_FIRST=$(or $(FIRST),1) BERTH_WORLD_FAULTS=$(or $(FAULTS),300) $(BUILD)/bin/test_world --gtest_brief=1 --gtest_filter='World*.*'

## make kill-test  200 x kill -9 under load, 200 x power loss below SQLite: every acknowledged write is there
kill-test: setup
	@mkdir -p build && cmake --preset $(PRESET) >build/configure-$(PRESET).log && ninja -C $(BUILD) -j$(JOBS) test_store test_apiserver test_integration
	@BERTH_KILL_ROUNDS=200 $(BUILD)/bin/test_store --gtest_filter='*Kill*:PowerLoss.*'
	@BERTH_KILL_ROUNDS=200 $(BUILD)/bin/test_apiserver --gtest_filter='*Kill*'
	@BERTH_KILL_ROUNDS=200 $(BUILD)/bin/test_integration --gtest_filter='*Kill*'

## make chaos      three etcd members, three API servers, faults under writers and watches (CHAOS_FAULTS=N, CHAOS_SEED=N; docs/etcd.md)
chaos: build
	@tests/chaos/etcd.sh $(BUILD)/bin/berth
	@tests/chaos/rolling.py $(BUILD)/bin/berth
	@CHAOS_FAULTS=$(CHAOS_FAULTS) tests/chaos/run.py $(BUILD)/bin/berth

## make overload   one user does his worst in six ways; what is left to the others, in figures (OVERLOAD_SECONDS=, OVERLOAD_CONNECTIONS=)
overload: build
	@tests/attack/overload.py $(BUILD)/bin/berth

## make attack     single requests as unpleasant as a body allows, sessions to nodes ended in every way, objects that become many, services that never answer: what each costs and leaves
attack: build
	@code=0; for script in one_request relays memory waiting; do tests/attack/$$script.py $(BUILD)/bin/berth || code=1; done; exit $$code

## make vm         real nodes in a virtual machine: cgroup version 2, two NUMA nodes, swap (SCRIPTS="vm/swap.sh e2e/eviction.sh"; docs/testing.md)
vm: build
	@tests/vm/run.sh $(BUILD)/bin/berth $(SCRIPTS)

## make mutants ROOM=R COUNT=N   N small faults in a room, one at a time: which of them does no test notice (SEED=, ARGS=; docs/testing.md)
mutants: setup
	@tools/mutants --room $(or $(ROOM),placement) --count $(or $(COUNT),50) --seed $(or $(SEED),1) $(ARGS)

## make package    build/package: a .deb (lintian clean), an OCI image and a tar for other distributions (docs/operations.md)
package: build
	@tools/package $(BUILD)/bin/berth build/package

## make package-test   the packages in a fresh Debian 12 and under containerd (root, some minutes)
package-test: package
	@tests/packages.sh build/package

## make asan | tsan   the unit tests under sanitizers
asan tsan: setup
	@tools/test $@ $(JOBS)

## make sanitize   every test binary and a churning `berth up` under the address, undefined and thread sanitizers: a night on two cores (SHARE=2/6)
sanitize: setup
	@tools/sanitize $(or $(SHARE),1/1)

## make soak HOURS=N   churn, day and night, on one `berth up`: memory, descriptors, threads, log and latency by the hour (8; a fraction is fine)
soak: build
	@tests/soak/soak.py $(BUILD)/bin/berth --hours $(or $(HOURS),8)

## make fuzz       build the fuzz targets (clang) and run each for FUZZ_SECONDS (default 30)
fuzz: setup
	@tools/fuzz $${FUZZ_SECONDS:-30}

## make check      layers, words banned from cores, sleeping tests, sizes, format; then clang-tidy for two minutes on what differs from main
check:
	@tools/check
	@if command -v $${CLANG_TIDY:-clang-tidy-19} >/dev/null; then tools/tidy --seconds 120; else echo "clang-tidy-19 is not there: mistakes and waste not looked for"; fi

## make tidy       clang-tidy's checks for mistakes and waste on all that differs from main (FILES="…" or FILES=--all for others; clang-tidy-19)
tidy:
	@tools/tidy $(FILES)

clean:
	rm -rf build
