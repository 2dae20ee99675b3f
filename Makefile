# make test    installs what the tests need (Debian) and runs them: under 15 minutes on 2 cores
# make prove   the long proofs: tables of coverage, emulated machines with real md, kills at many random points,
#              fleets of many hosts, instances that are terminated in moto's EC2
# make bench   the comparisons with other tools, which print the figures of the README, and some
#              minutes of simulated races
# make fuzz    the parsers against inputs that coverage guides, for a short while (FUZZ_SECONDS)
# make static  one binary that runs on any Linux of this architecture
# make dist    tarball, .deb, .rpm, SBOM and SHA256SUMS of this commit, in target/dist; TRIPLE=aarch64-unknown-linux-gnu
# make check-dist  makes them twice, and installs, upgrades, uses and purges them in bare roots (root)
# make tour    records 'lab tour' anew, and draws it, unless the tests refuse the recording: on a quiet host
# make docs    the manual as a book, in target/book, with its links checked
# make install PREFIX=/usr/local DESTDIR=

SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
TRIPLE ?= $(shell rustc -vV | sed -n 's/^host: //p')

# What the tests use beside Rust. Where it cannot be installed, what needs it fails, since skipped is not passed;
# with DISKSMITH_TESTS=some it is skipped, and counted.
PACKAGES := chromium fio fio-examples xfsprogs btrfs-progs squashfs-tools bindfs fuse3 e2fsprogs dosfstools fdisk \
	util-linux mount procps qemu-utils qemu-system-x86 libnbd-bin sysbench bonnie++ sysstat python3 \
	openssh-server openssh-client iproute2 binutils ansible-core systemd f2fs-tools nilfs-tools reiserfsprogs \
	zsh fish jfsutils gfs2-utils exfatprogs ntfs-3g genisoimage erofs-utils cryptsetup-bin drbd-utils bcache-tools lvm2 \
	mariadb-server mariadb-client postgresql clustershell python3-jsonschema blktrace nbd-client gearman-job-server \
	gearman-tools prometheus prometheus-node-exporter victoria-metrics openssl monitoring-plugins-basic \
	kmod

# Of PyPI: the EC2 against which instances are terminated and volumes are made, the real aws, and fio-plot.
PYPI := $(abspath $(TARGET))/pypi

.PHONY: test needs pypi kafka chdb lint prove bench fuzz static dist check-dist tour docs install

test: needs
	@CARGO=$(CARGO) tests/run

needs:
	@bench/install-needs $(PACKAGES)

pypi:
	@bench/install-needs python3-venv
	@bench/install-pypi $(PYPI)

kafka:
	@bench/install-needs default-jre-headless maven
	@bench/install-kafka $(abspath $(TARGET))/kafka

chdb:
	@bench/install-needs python3-venv clickhouse-server
	@bench/install-chdb $(abspath $(TARGET))/chdb

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p disksmith --bin disksmith --no-default-features --locked -- -D warnings
	@for folder in fuzz crates/fiojob/fuzz; do \
		$(CARGO) metadata --locked --format-version 1 --manifest-path $$folder/Cargo.toml >/dev/null || exit 1; done

# Ignored tests that are no proofs: they write files of the repository anew, are run by other tests, or read images that
# nothing here installs.
NO_PROOFS = catalogues_are_written_anew schemas_are_written_anew this_schema_is_written_anew run_by_the_tests_beside_it images_of_blkids_tests

prove: needs pypi kafka chdb
	DISKSMITH_TESTS=$(or $(DISKSMITH_TESTS),all) PATH="$(PYPI)/programs:$$PATH" $(CARGO) test --workspace --locked --release --no-fail-fast -- --ignored --nocapture $(addprefix --skip ,$(NO_PROOFS))

bench: needs
	$(CARGO) build --release --locked
	bench/engine-vs-fio
	bench/disk-vs-fio
	bench/jobs-vs-fio
	bench/fio-examples --figures 3 4
	bench/suites-vs-originals
	bench/background-vs-alone
	bench/warm-vs-dd
	bench/scrub-vs-md
	bench/watch-cost
	bench/watch-latency-cost
	bench/replay-vs-fio
	bench/race-sim --case plain
	bench/replay-predicts

# Each target for so long. libFuzzer is C++.
FUZZ_SECONDS ?= 20

fuzz:
	@bench/install-needs g++
	fuzz/short $(FUZZ_SECONDS)

static:
	env -u RUSTFLAGS $(CARGO) build --release --locked --target $(TRIPLE) \
	    --config 'target.$(TRIPLE).rustflags=["-Ctarget-feature=+crt-static"]'
	@ls -l $(TARGET)/$(TRIPLE)/release/disksmith

dist:
	@packaging/dist $(TARGET)/dist

check-dist:
	@packaging/check

TOUR := crates/lab/src/command/tour/tour.cast

tour: $(TARGET)/release/disksmith
	docs/pictures/draw record $(TARGET)/tour.cast $< lab tour
	cp $(TOUR) $(TARGET)/tour.before
	cp $(TARGET)/tour.cast $(TOUR)
	$(CARGO) test -p lab --lib the_recording_is && $(CARGO) test -p disksmith --test lab the_tour_names || \
		{ cp $(TARGET)/tour.before $(TOUR); echo "The recording is refused, and left in $(TARGET)/tour.cast." >&2; exit 1; }
	docs/pictures/draw svg $(TOUR) docs/pictures/tour.svg

docs:
	@CARGO=$(CARGO) bench/install-mdbook $(abspath $(TARGET))/mdbook
	$(TARGET)/mdbook/bin/mdbook build --dest-dir $(abspath $(TARGET))/book
	@docs/check-book $(TARGET)/book

PREFIX ?= /usr/local
BINARY ?= $(TARGET)/release/disksmith

# What is compiled in. Where none of it is newer, root needs no cargo to install.
SOURCES := Cargo.toml Cargo.lock .cargo/config.toml $(wildcard crates/*/askama.toml) $(shell find crates/*/Cargo.toml crates/*/src docs/playbooks -type f)

$(TARGET)/release/disksmith: $(SOURCES)
	$(CARGO) build --release --locked -p disksmith
	@touch $@

install: $(BINARY)
	@packaging/stage $(BINARY) "$(DESTDIR)" "$(PREFIX)"
