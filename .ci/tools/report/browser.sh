# shellcheck shell=bash
# Finds Chromium and Node.js, installs what a check of pages needs into the folder $out,
# and ends the script that reads this where one of them cannot be had. Its argument says what
# is then not opened.

what=$1
skip() {
  printf '%s not opened in a browser: %s\n' "$what" "$*"
  exit 0
}

browser() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  skip 'Node.js with npm is not here'
fi
if ! browser >/dev/null; then
  { [ "$(id -u)" = 0 ] && command -v apt-get && apt-get -qq update && apt-get -qq install -y chromium; } >/dev/null 2>&1 ||
    skip 'Chromium is not here and cannot be installed'
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cp .ci/tools/report/package*.json "$out"
(cd "$out" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$out/npm.log" 2>&1 ||
  skip "npm ci failed: $(tail -n 1 "$out/npm.log")"
