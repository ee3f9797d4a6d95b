#!/usr/bin/env bash
# What every change cannot afford: far more crash states, other seeds each night, the search for every broken twin, real threads,
# real deaths and long soaks. Writes one JSON object a line to the report as it goes, and exits 1 if anything failed.
#
# A line has `step`, `seed`, `seconds`, `failed` and what the step itself says. A crash campaign also fails if it never came to a
# state that every design must come to, such as one after a split of the index. The search for the broken twins says how many
# states each conviction took.
#
#   scripts/nightly.sh                                  # all of it, some hours
#   STATES=20000 MODELS=loom_ring TWIN_STATES=2000 HISTORIES=200 OVERLAPPING=300 TRANSACTIONS=2000 ROUNDS=2 SOAK_MINUTES=0.1 VM_ROUNDS=2 SEEDS=2 SCHEDULES=200 DAMAGE_SEEDS=20 scripts/nightly.sh   # a trial
#
# SEED (default: the date) is where the seeds of this night begin, DESIGNS the designs, MODELS the models of loom, REPORT the file of
# the report, STEPS the steps: crash twins loom model contract linear isolation kill soak vm.
set -uo pipefail
cd "$(dirname "$0")/.."

night=$(date +%Y%m%d)
SEED=${SEED:-$((night * 1000))}
STATES=${STATES:-200000}
TWIN_STATES=${TWIN_STATES:-3000000}
HISTORIES=${HISTORIES:-20000}
OVERLAPPING=${OVERLAPPING:-20000}
TRANSACTIONS=${TRANSACTIONS:-1000000}
ROUNDS=${ROUNDS:-100}
SOAK_MINUTES=${SOAK_MINUTES:-5}
VM_ROUNDS=${VM_ROUNDS:-20}
SEEDS=${SEEDS:-400}
SCHEDULES=${SCHEDULES:-40000}
DAMAGE_SEEDS=${DAMAGE_SEEDS:-5000}
MODELS=${MODELS:-$(basename -s .rs crates/parts/tests/loom_*.rs)}
REPORT=${REPORT:-nightly-$night.jsonl}
STEPS=${STEPS:-crash twins loom model contract linear isolation kill soak vm}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# Writes lines of the report, STEP EXIT SECONDS: one for each JSON object that the step has printed, or one in all. Of a crash
# campaign it says which share of the states was of each kind.
note() {
  local failed=false
  [ "$2" -eq 0 ] || { failed=true; failures=$((failures + 1)); }
  python3 - "$1" "$SEED" "$3" "$failed" "$scratch" >>"$REPORT" <<'PY'
import json, sys
step, seed, seconds, failed, scratch = sys.argv[1:]
output, errors = (open(f"{scratch}/{name}", errors="replace").read() for name in ("output", "errors"))
line = {"step": step, "seed": int(seed), "seconds": int(seconds), "failed": failed == "true"}
if line["failed"]:
    line["errors"] = (errors or output)[-4000:]
said = []
for text in output.splitlines():
    try:
        said.append(json.loads(text[text.index("{"):]))
    except ValueError:
        pass
for found in said or [None]:
    if found and found.get("states") and "nested" in found:
        kinds = [name for name in found if name == "nested" or name.startswith(("during_", "after_"))]
        line["shares"] = {name: round(found[name] / found["states"], 4) for name in kinds}
    print(json.dumps({**line, "said": found} if found else line))
PY
  echo "$1: $3 s, failed: $failed"
}

# Runs a step: NAME COMMAND...
step() {
  local name=$1 begun=$SECONDS status=0
  shift
  "$@" >"$scratch/output" 2>"$scratch/errors" || status=$?
  # A filter that meets no test passes.
  if grep -q '^running 0 tests' "$scratch/output" && ! grep -q '^running [1-9]' "$scratch/output"; then status=1; fi
  note "$name" "$status" $((SECONDS - begun))
}

# A campaign that never came to a state which every design must come to.
reached() {
  python3 - "$scratch/output" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    report = json.loads(line)
    kinds = ["nested", "during_compaction", "during_recovery", "during_growth", "after_index_split", "word_keys"]
    if report["during_survey"]:  # An index in the pool is believed.
        kinds += ["during_index_split", "during_index_zone", "after_index_zone"]
    if report["ordered"]:  # There are tables, snapshots and range deletes.
        kinds += ["tables", "during_table_change", "with_snapshot", "after_range_delete"]
    missing = [name for name in kinds if not report[name]]
    if missing:
        sys.exit(f"{report['design']} never came to: {', '.join(missing)}")
PY
}

crash() {
  "$lab" crash --design "$1" --threads "$2" --states "$STATES" --seed "$SEED" --json && reached
}

# Transactions move amounts between accounts.
transfers() {
  "$lab" crash --design xp --transfers --threads 3 --states "$STATES" --seed "$SEED" --json
}

# Says as much as it has come to, also if the process dies.
soak() {
  local design=$1
  shift
  "$lab" soak --design "$design" --minutes "$SOAK_MINUTES" --seed "$SEED" --json "$@" | tail -n 1
}

cargo build --release -p quipu-cli -p quipu-lab-cli || exit 1
programs=$(scripts/target-folder)/release
quipu=$programs/quipu lab=$programs/quipu-lab
DESIGNS=${DESIGNS:-$("$quipu" designs --json | python3 -c 'import json, sys; print(*(json.loads(line)["name"] for line in sys.stdin))')}
: >>"$REPORT"

for what in $STEPS; do
  case $what in
  # With three, work beside the clients is a task as well.
  crash)
    for design in $DESIGNS; do
      for threads in 2 3; do step "crash $design, $threads threads" crash "$design" "$threads"; done
    done
    step "crash of transfers" transfers
    step "crash of programs" env QUIPU_SEED="$SEED" QUIPU_STATES="$((STATES / 10))" \
      cargo test --release -p quipu-crashtest --test it -- --ignored soak::
    # Not by the program: only tests are switched between two looks of a call.
    step histories env QUIPU_SEED="$SEED" QUIPU_HISTORIES="$HISTORIES" \
      cargo test --release -p quipu-lab --test it -- --ignored --nocapture crash::histories
    ;;
  twins)
    step twins env QUIPU_SEED="$SEED" QUIPU_STATES="$TWIN_STATES" \
      cargo test --release -p quipu-lab --test it -- --ignored --nocapture crash::search
    step "twins of the chain" env QUIPU_SEED="$SEED" \
      cargo test --release -p quipu-parts --test it -- --ignored --nocapture chain_crash::twins::search
    ;;
  # The models are all tests that are built with this flag; in a folder of their own, so that nothing else is built anew.
  loom)
    step loom env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(scripts/target-folder)/loom" \
      cargo test --release -p quipu-parts $(printf -- '--test %s ' $MODELS)
    ;;
  model) step model env QUIPU_MODEL_SEEDS="$SEEDS" cargo test --release -p quipu-lab --test it model:: ;;
  contract)
    step contract cargo test --release -p quipu-lab --test it on_files -- --include-ignored --skip model::
    step deletes cargo test --release -p quipu-lab --test it cleaner:: -- --ignored
    step damage env QUIPU_DAMAGE_SEEDS="$DAMAGE_SEEDS" \
      cargo test --release -p quipu-lab --test it damage:: -- --skip index_damage::
    step costs env QUIPU_UTILIZATIONS=80,90 cargo test --release -p quipu-lab --test it pacman_costs:: -- --skip viper_pacman_costs::
    ;;
  linear)
    step schedules env QUIPU_SCHEDULES="$SCHEDULES" \
      cargo test --release -p quipu-lab --test it -- elimination:: refilled:: repointing::
    for design in $DESIGNS; do
      step "linear $design" "$lab" linear --design "$design" --histories "$HISTORIES" --overlapping "$OVERLAPPING" \
        --seed "$SEED" --json
    done
    ;;
  isolation)
    step isolation "$lab" isolation --transactions "$TRANSACTIONS" --seed "$SEED" --json
    step "isolation of threads" "$lab" isolation --threads --transactions "$TRANSACTIONS" --seed "$SEED" --json
    ;;
  kill)
    for design in $DESIGNS; do
      step "kill $design" "$lab" kill "$scratch/pool" --design "$design" --rounds "$ROUNDS" --seed "$SEED" --json
      rm -f "$scratch/pool"
    done
    for design in xp quipu flatstore-h flatstore-m; do
      step "kill $design, transfers" "$lab" kill "$scratch/pool" --design "$design" --transfers --rounds "$ROUNDS" \
        --seed "$SEED" --json
      rm -f "$scratch/pool"
    done
    ;;
  soak)
    step "twins of threads" cargo test --release -p quipu-lab --test it soak:: -- --ignored --nocapture
    for design in $DESIGNS; do
      step "soak $design" soak "$design"
      step "soak $design in files" soak "$design" --folder "$scratch"
    done
    ;;
  # Needs Debian's packages, and leave to install QEMU if it is missing.
  vm) step vm scripts/vm/run --rounds "$VM_ROUNDS" --seed "$SEED" --design "$DESIGNS" ;;
  *) echo "no step is called $what" >&2; exit 2 ;;
  esac
done

echo "$failures steps failed; the report is $REPORT"
[ "$failures" -eq 0 ]
