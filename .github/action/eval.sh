#!/usr/bin/env bash
# Runs spotter eval and writes what came of it to $GITHUB_OUTPUT and the comment to
# the summary of the job, which needs no token. It ends well even where a gate
# failed: the code to end the job with is the output "code", so that the comment is
# posted before.
set -euo pipefail

if [ -n "${WHATIF:-}" ]; then exec "$(dirname "$0")/whatif.sh"; fi

out=$(mktemp -d "${RUNNER_TEMP:-/tmp}/spotter-report.XXXXXX")
args=(--yes) # the time limit of the job is the one that holds
option() { # flag, value: nothing for an empty value
  if [ -n "$2" ]; then args+=("$1" "$2"); fi
}
option --seeds "${SEEDS:-}"
option --policies "${POLICIES:-}"
option --baseline "${BASELINE:-}"
option --windows "${WINDOWS:-}"
option --trace "${TRACE:-}"
option --compare "${BASE:-}"
option --compare-scenarios "${BASE_FILES:-}"
option --seeds-from "${BASE_COMMIT:-}"
while IFS= read -r gate; do
  if [ -n "${gate//[[:space:]]/}" ]; then args+=(--gate "$gate"); fi
done <<<"${GATES:-}"
args+=(--out "table=$out/spotter.txt" --out "json=$out/spotter.json" --out "markdown=$out/spotter.md"
  --out "comment=$out/comment.md" --out "junit=$out/spotter.xml"
  --report "$out/report.html")
# shellcheck disable=SC2153 # SCENARIOS is given by the step
read -r -d '' -a scenarios <<<"$SCENARIOS" || true

code=0
"$SPOTTER" eval "${args[@]}" -- "${scenarios[@]}" || code=$?

put() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }
put code "$code"
if [ ! -s "$out/spotter.json" ]; then
  put verdict error
  echo "::error title=spotter::spotter eval ended with $code and without a report"
  exit 0
fi
cat "$out/spotter.txt"
cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"

from() { jq -r "$1" "$out/spotter.json"; }
case $code in
  0) if [ "$(from '.warnings | length')" = 0 ]; then verdict=pass; else verdict=warn; fi ;;
  1) verdict=fail ;;
  *) verdict=error ;;
esac
put verdict "$verdict"
put headline "$(from '.comparison.headline // ""')"
put net-savings "$(from '.comparison.net_savings_usd_per_week // ""')"
put outages "$(from '.comparison.outage_minutes_per_week // ""')"
put folder "$out"
put html "$out/report.html"
put comment "$out/comment.md"
put json "$out/spotter.json"
put markdown "$out/spotter.md"
put junit "$out/spotter.xml"
