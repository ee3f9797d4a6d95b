#!/usr/bin/env bash
# The concurrency tests under ThreadSanitizer, which sees races that happen not to hurt.
#
# Needs a nightly toolchain with rust-src: the standard library is built with the sanitizer too, since it would otherwise
# report races in locks whose insides it did not see. What the sanitizer cannot see, and so cannot report: stores to
# media by inline assembly (non-temporal stores, flushes), and whether one atomic access should have been another.
#
# One test at a time: pools are unmapped by a system call that the sanitizer does not see, so a pool of one test at the
# address that one of another test had a moment ago looks like a race of the two.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
export TSAN_OPTIONS="exitcode=66 ${TSAN_OPTIONS:-}"
# In two steps: an export hides that the first has failed.
folder=$(scripts/target-folder)
export CARGO_TARGET_DIR="$folder/tsan"

run() { # run PACKAGE TEST [FILTER...]
  local package=$1 test=$2
  shift 2
  echo "== $package $test $*"
  cargo +nightly test -Zbuild-std --target "$(rustc -vV | sed -n 's/^host: //p')" -p "$package" --test "$test" -- --test-threads=1 "$@"
}

run quipu-parts it epoch:: index_threads::
run quipu-lab it on_dram on_files --skip model::
run quipu-lab it soak::every_design
