# All targets share the environment .venv; a stamp for each requirements file records what is installed.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

.PHONY: install wheels deb debs deb-try deb-check release audit demo test nightly cluster bench-smoke lint docs site games corpus pictures tasks measures pins clean

install: .venv/.runtime .venv/.lab
demo: .venv/.runtime .venv/.lab .venv/.demo $(if $(findstring --site,$(ARGS)),.venv/.backbone .venv/.ledger .venv/.cluster)
	@$(BIN)/feltd demo $(ARGS)

test: .venv/.runtime .venv/.lab .venv/.dev .venv/.site .venv/.backbone .venv/.ledger .venv/.cluster .venv/.ansible .venv/.node-red
	@tests/need-programs
	$(BIN)/pytest -n auto --dist worksteal -rsfE $(ARGS)

# All tests at length: each `at_length` gives its second size, every fault runs over its real port. Then a long campaign,
# real kills, the tests by Python 3.13, and each mutant of rules/.
nightly: .venv/.runtime .venv/.lab .venv/.dev .venv/.site .venv/.backbone .venv/.ledger .venv/.cluster .venv/.ansible .venv/.node-red
	@tests/need-programs
	FELTD_NIGHTLY=1 $(BIN)/pytest -n auto --dist worksteal -rsfE --timeout 3600 $(ARGS)
	$(BIN)/feltd campaign --rounds 100000 --seed $$(date +%j)
	$(BIN)/feltd campaign --real --kills 100 --seed $$(date +%j)
	tests/next-python
	$(MAKE) deb-check
	$(BIN)/python -m tests.support.mutants

# A whole site on this machine: nodes, forwarder, ledger and PostgreSQL are killed in turns; journals, streams and ledger are
# then the same. Without nats-server or PostgreSQL it prints what is missing.
cluster: .venv/.runtime .venv/.lab .venv/.dev .venv/.backbone .venv/.ledger .venv/.cluster
	@tests/need-programs
	FELTD_NIGHTLY=1 $(BIN)/pytest -n 0 -rsfE --timeout 3600 tests/site $(ARGS)

# Fails where the edge is many times slower than a bridge in C that keeps its lines as well. Exit code 3: not measured here.
bench-smoke: .venv/.runtime .venv/.lab
	@tests/need-programs bench
	@$(BIN)/feltd bench --quick || { code=$$?; [ $$code = 3 ] && echo "bench-smoke: skipped"; }

lint: .venv/.runtime .venv/.lab .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/lint-imports

# The generated pages of docs/reference, from the code.
docs: .venv/.lab games
	$(BIN)/python -m simulators.lab.tools.device_lists
	$(BIN)/python -m simulators.lab.tools.device_pages
	$(BIN)/feltd schema > docs/reference/asyncapi.json
	$(BIN)/python -m tests.support.reference_pages
	PYTHONPATH=. $(BIN)/python -m tests.support.fdl_pages
	PYTHONPATH=. $(BIN)/python -m tests.support.devices_and_games

# build/site: the documents as a site that opens from a folder.
site: .venv/.site
	$(BIN)/mkdocs build -q --strict

# docs/reference/games, from the rulesets, the checklists in rules/law and the tests that prove them.
games: .venv/.runtime .venv/.lab
	$(BIN)/python -m tests.support.game_pages

# The frozen behaviour of the rulesets, tests/corpus.sha256.toml; ARGS=--check compares.
corpus: .venv/.runtime .venv/.lab
	PYTHONPATH=.:tests/support $(BIN)/python -m corpus $(ARGS)

# The pictures of docs/how-to/operate-the-console.md, the speed of the pages, and build/pictures: every page at four sizes,
# in two themes and three languages; those of a ledger, too, where PostgreSQL is installed. ARGS=sheet makes the latter alone.
pictures: .venv/.runtime .venv/.lab .venv/.dev .venv/.backbone .venv/.ledger
	@tests/need-programs
	PYTHONPATH=.:tests/support $(BIN)/python tests/support/pictures.py $(ARGS)

# What people do at the console, in a browser with presses, keys and seconds counted; it fails where a task takes too many.
tasks: .venv/.runtime .venv/.lab .venv/.dev
	@tests/need-programs
	PYTHONPATH=.:tests/support $(BIN)/python tests/support/tasks.py

# Size and shape of this checkout, or of those in ARGS: lines, machines, booleans, files for a device and a game, functions an
# event passes, rounds of stud poker that count under outages.
measures: .venv/.runtime .venv/.lab .venv/.dev
	@$(BIN)/python tests/support/measures.py $(ARGS)

# A fresh Debian has python3 without the venv module: install the package if that is allowed.
.venv/bin/python:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(SUDO) apt-get install -y -qq python3-venv \
	  || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq python3-venv; } \
	  || { echo "feltd needs Python's venv module: apt-get install python3-venv, then run make again"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.runtime: .venv/bin/python requirements/runtime.txt pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.venv/.lab: .venv/bin/python requirements/lab.txt simulators/pyproject.toml | .venv/.runtime
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/lab.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e ./simulators
	@touch $@

.venv/.%: .venv/bin/python requirements/%.txt | .venv/.runtime
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/$*.txt
	@touch $@

# Node-RED, which runs docs/examples/node-red-flow.json in a test. Without npm, or where it reaches no registry, that test
# is skipped.
.venv/.node-red: requirements/node-red/package-lock.json | .venv/bin/python
	@mkdir -p .venv/node-red && cp requirements/node-red/*.json .venv/node-red
	@if command -v npm >/dev/null && cd .venv/node-red && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; \
	  then touch ../.node-red; else echo "no Node-RED, as npm installs it: the test of its flow is skipped"; fi

# dist/: feltd for a table's computer, feltd_lab for simulations. An old build/ would end up in them.
wheels: .venv/.runtime
	rm -rf build dist && mkdir -p build/wheels
	cp -a daemon drivers protocols rules simulators pyproject.toml README.md LICENSE build/wheels && rm -rf build/wheels/simulators/build
	debian/version build/wheels
	$(BIN)/pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w dist build/wheels build/wheels/simulators

# dist/feltd_VERSION+debDEBIAN_ARCH.deb: what a table's computer installs, without the internet. The same sources give the same
# bytes. Wheels are taken and nothing is compiled, so any Debian builds for all: make deb DEBIAN=13 ARCH=arm64.
DEB_SOURCES := daemon drivers protocols rules docs systemd debian requirements pyproject.toml README.md CHANGELOG.md LICENSE
DEB_BUILD ?= build/deb
DEBIAN ?= $(shell sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)
ARCH ?= $(shell dpkg --print-architecture)
PACKAGE = $(wildcard dist/feltd_*+deb$(DEBIAN)_$(ARCH).deb)
deb:
	@debian/need-tools
	rm -rf $(DEB_BUILD) && mkdir -p $(DEB_BUILD)/feltd dist && rm -f dist/feltd_*deb$(DEBIAN)_$(ARCH).*
	cp -a $(DEB_SOURCES) $(DEB_BUILD)/feltd
	find $(DEB_BUILD)/feltd -name __pycache__ -exec rm -rf {} +
	debian/version $(DEB_BUILD)/feltd $(DEBIAN)
	cd $(DEB_BUILD)/feltd && FELTD_DEBIAN=$(DEBIAN) dpkg-buildpackage -us -uc -b -d -a$(ARCH) >../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	@grep ' binaries for ' $(DEB_BUILD)/build.log
	cp $(DEB_BUILD)/feltd_*.* dist
	@ls -1 dist/feltd_*deb$(DEBIAN)_$(ARCH).deb

# The four packages: Debian 12 and 13, amd64 and arm64.
debs:
	@for debian in 12 13; do for arch in amd64 arm64; do $(MAKE) -s deb DEBIAN=$$debian ARCH=$$arch || exit 1; done; done

# The package clean by lintian, and tried in a bare Debian of its version where this computer can make one: also as an upgrade of
# that of the commit BEFORE, which is the last one of an earlier day, or else of the same sources with a lower version.
MIDNIGHT = $$(TZ=UTC git log -1 --format=%cd --date=short-local)T00:00:00Z
BUILDS_IT := debian/$(if $(filter 12,$(DEBIAN)),control,repository)
BEFORE ?= $(shell before=$$(git rev-list -1 --before=$(MIDNIGHT) HEAD 2>&-) && git cat-file -e $$before:$(BUILDS_IT) 2>&- && echo $$before)
deb-try: .venv/.runtime .venv/.lab deb
	@if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning $(PACKAGE:.deb=.changes); \
	  else echo "lintian is not installed: skipped"; fi
	rm -rf build/before && mkdir -p build/before
	[ -z "$(BEFORE)" ] || { git archive $(BEFORE) | tar -xC build/before && $(MAKE) -s -C build/before deb DEB_BUILD=build/deb DEBIAN=$(DEBIAN); }
	debian/try $(PACKAGE) $(if $(BEFORE),build/before/dist/feltd_*.deb)

# Besides: built again in another folder to the same bytes, tried under systemd and by the attack suite; by qemu for arm64; and for
# the other Debian, under systemd, too.
OTHER = $(if $(filter 12,$(DEBIAN)),13,12)
deb-check: deb-try .venv/.dev
	mv $(PACKAGE) build/first.deb && $(MAKE) -s deb DEB_BUILD=build/again/deb && cmp build/first.deb $(PACKAGE)
	debian/try-systemd $(PACKAGE)
	debian/try-attacks $(PACKAGE)
	$(MAKE) -s deb ARCH=arm64
	debian/try-arm64 dist/feltd_*+deb$(DEBIAN)_arm64.deb
	$(MAKE) deb-try DEBIAN=$(OTHER)
	debian/try-systemd dist/feltd_*+deb$(OTHER)_$(ARCH).deb

# dist/: sources, packages, wheels and bill of materials of the last commit, with a signed list of their checksums, and dist/apt,
# a signed apt repository. KEY names a key of GnuPG; REPOSITORY is that of the release before, whose packages stay installable.
release:
	@[ -n "$(KEY)" ] || { echo "name the key of GnuPG that signs: make release KEY=release@example.org"; exit 2; }
	@[ -z "$$(git status --porcelain)" ] || { echo "commit or remove what is not committed: git status"; exit 2; }
	$(MAKE) -s wheels
	$(MAKE) -s debs
	cp $(DEB_BUILD)/feltd/debian/sbom.json dist/feltd-sbom.json
	git archive --format=tar --prefix=feltd/ HEAD | gzip -n > dist/feltd-$$(debian/version).tar.gz
	debian/sign dist "$(KEY)"
	debian/repository dist/apt "$(KEY)" $(if $(REPOSITORY),$$(find "$(REPOSITORY)/pool" -name 'feltd_*.deb')) dist/feltd_*.deb

# The pinned libraries against the known vulnerabilities of the package index.
audit: .venv/.audit
	@$(BIN)/python tests/support/audit.py $(BIN)/pip-audit requirements/runtime.txt requirements/openid.txt requirements/report.txt requirements/backbone.txt requirements/ledger.txt

# Update the pins; needs pip-tools on the PATH. The files name no registry.
pins:
	cd requirements && for f in runtime lab demo openid report backbone ledger cluster dev package site audit ansible; do CUSTOM_COMPILE_COMMAND="make pins" pip-compile -q --upgrade --generate-hashes \
	  --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras $$f.in -o $$f.txt; done

clean:
	rm -rf .venv build dist *.egg-info simulators/build simulators/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
