# SPDX-License-Identifier: LGPL-2.1-or-later
# Thin: every target is a script, or a line of Meson. PREFIX= and DESTDIR= work as everywhere.

.PHONY: build demo check check-long bench format install clean

build:
	@scripts/install-packages.sh build
	@scripts/build.sh build

demo: build
	@scripts/install-packages.sh demo
	@scripts/demo.sh build

check:
	@scripts/check.sh

check-long:
	@scripts/check.sh --long

bench:
	@scripts/bench.sh

format:
	@scripts/format.sh

install: build
	@meson install -C build

clean:
	@rm -rf build build-asan tests/clients/node_modules
