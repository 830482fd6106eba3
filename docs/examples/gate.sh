#!/usr/bin/env bash
# Compare the run of a change with a baseline, and fail where it is worse or where nobody can say.
#
#   FAIRPOOL=https://fairpool.example.org  FAIRPOOL_EVALSET=handbook  FAIRPOOL_TOKEN=…  (a lead's, from a secret)
#   gate.sh RUN_FILE RUN_NAME BASELINE MEASURE MARGIN [RELEASE]     (BASELINE: a run, or a system for its latest run)
#
# Exit status: 0 no regression beyond the margin is shown; 1 one is; 2 the comparison may not be read; 3 bad input,
# which includes a run with the very rankings of the baseline: most likely the changed retriever did not run;
# 70 a fault of the gate itself.
set -Eeuo pipefail
trap 'exit 70' ERR

if [[ $# -lt 5 || -z ${FAIRPOOL:-} || -z ${FAIRPOOL_EVALSET:-} || -z ${FAIRPOOL_TOKEN:-} ]]; then
  sed -n '3,5p' "$0" >&2
  exit 3
fi
file=$1 name=$2 baseline=$3 measure=$4 margin=$5 release=${6:-null}
api=$FAIRPOOL/api/v1/evalsets/$FAIRPOOL_EVALSET
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# field KEY [ELSE]: a value of the answer; a missing or null one is ELSE.
field() {
  python3 -c 'import json, sys
value = json.load(sys.stdin).get(sys.argv[1])
print(sys.argv[2] if value is None else value)' "$1" "${2:-}" < "$answer"
}

# call ADDRESS [OPTIONS OF CURL]: the answer goes into the file; a problem is printed and ends the gate.
call() {
  if ! curl --silent --show-error --fail-with-body --retry 3 --header "Authorization: Bearer $FAIRPOOL_TOKEN" \
    --output "$answer" "${@:2}" "$api$1"; then
    cat "$answer" >&2
    exit 3
  fi
}

# wait_for_job: where the answer is a job, waits until it has ended; the answer then is its result.
wait_for_job() {
  local job
  job=$(field id)
  while [[ ! $(field state) =~ ^(done|failed|cancelled)$ ]]; do
    sleep 1
    call "/jobs/$job"
  done
  call "/jobs/$job/result"
}

call /imports/run --form "file=@$file" --form "system=${FAIRPOOL_SYSTEM:-pull-requests}" --form "run=$name" \
  --form file_name="$name"
wait_for_job
name=$(field run "$name")  # where this very run was pushed before, the name it has

body=$(python3 -c 'import json, sys
release, a, b, measure, margin = sys.argv[1:]
print(json.dumps({"release": json.loads(release), "a": a, "b": b, "measures": [measure], "margin": float(margin)}))' \
  "$release" "$baseline" "$name" "$measure" "$margin")
call /comparisons --json "$body"
if [[ $(field state) ]]; then  # very many rankings: a job
  wait_for_job
  call "/comparisons/$(field comparisons | tr -dc 0-9)?margin=$margin"
fi

status=$(field status)
case $status in
  0) verdict="No regression beyond $margin is shown." ;;
  1) verdict="A regression beyond $margin is shown." ;;
  2) verdict="The comparison may not be read. $(field remedy 'Judge the remainder first.')" ;;
esac
printf '%s\n\n%s\n\n%s\n' "$verdict" "$(field sentence)" "$FAIRPOOL$(field page)" \
  | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
exit "$status"
