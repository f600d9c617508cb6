#!/usr/bin/env bash
# Runs spotter whatif in place of spotter eval: what the pools of the files $WHATIF would cost
# in each scenario, against those of the base where it has such files. It writes what came of it
# as eval.sh does, which calls it.
set -euo pipefail

out=$(mktemp -d "${RUNNER_TEMP:-/tmp}/spotter-whatif.XXXXXX")
args=(--nodepools "$WHATIF")
option() { # flag, value: nothing for an empty value
  if [ -n "$2" ]; then args+=("$1" "$2"); fi
}
option --seeds "${SEEDS:-}"
option --windows "${WINDOWS:-}"
option --trace "${TRACE:-}"
if [ -n "${BASE_FILES:-}" ] && [ -e "$BASE_FILES/$WHATIF" ]; then args+=(--as-is-nodepools "$BASE_FILES/$WHATIF"); fi
while IFS= read -r gate; do
  if [ -n "${gate//[[:space:]]/}" ]; then args+=(--gate "$gate"); fi
done <<<"${GATES:-}"
# shellcheck disable=SC2153 # SCENARIOS is given by the step
read -r -d '' -a scenarios <<<"$SCENARIOS" || true

put() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }
quiet='<!-- spotter: nothing new -->'
code=0 news=0 n=0
for scenario in "${scenarios[@]}"; do
  n=$((n + 1))
  "$SPOTTER" whatif "${args[@]}" --out "$out/$n.md" --out "$out/$n.json" --out "$out/$n.txt" -- "$scenario" || code=$?
  if [ ! -s "$out/$n.json" ]; then
    if [ "$code" = 0 ]; then code=3; fi
    put code "$code"
    put verdict error
    echo "::error title=spotter::spotter whatif ended with $code and without a report"
    exit 0
  fi
  if [ "$(head -n 1 "$out/$n.md")" != "$quiet" ]; then news=1; fi
done
if [ "$news" = 0 ]; then echo "$quiet" >"$out/comment.md"; fi
cat "$out"/[0-9]*.md | { grep -vxF "$quiet" || true; } >>"$out/comment.md"
cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"

headline=$(jq -r .headline "$out/1.json")
case $code/$headline in
  0/✓*) verdict=pass ;;
  0/*) verdict=warn ;;
  1/*) verdict=fail ;;
  *) verdict=error ;;
esac
put code "$code"
put verdict "$verdict"
put headline "$headline"
put folder "$out"
put comment "$out/comment.md"
put json "$out/1.json"
put markdown "$out/comment.md"
