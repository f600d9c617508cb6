#!/usr/bin/env bash
# Tells the pull request what it changes, in one comment that is brought up to
# date in place. One is begun only where the change is beyond chance; one that
# is there is corrected when it no longer is.
#
# Nothing here fails the job: a pull request from a fork has no right to write,
# and a comment is no gate.
set -euo pipefail

marker="<!-- spotter eval: $KEY -->"
max=65536 # characters that GitHub takes for a comment

if [ -z "${NUMBER:-}" ] || [ ! -s "${REPORT:-}" ] || [ "$(jq -r 'has("comparison")' "$REPORT")" != true ]; then
  echo 'no pull request, or nothing that was compared: no comment'
  exit 0
fi

answer=$(mktemp)
request=$(mktemp)
trap 'rm -f "$answer" "$request"' EXIT

# call METHOD PATH [FILE] writes what the server says to $answer and prints its
# status. The token goes in by a file, so that no list of processes shows it.
call() {
  local data=()
  if [ $# -gt 2 ]; then data=(--data-binary "@$3"); fi
  curl --silent --show-error --max-time 60 --output "$answer" --write-out '%{http_code}' --request "$1" \
    --header @<(printf 'Authorization: Bearer %s\n' "$TOKEN") --header 'Accept: application/vnd.github+json' \
    --header 'X-GitHub-Api-Version: 2022-11-28' "${data[@]}" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$2" || echo 000
}

# refused STATUS says why there is no comment, and ends.
refused() {
  if [ "$1" = 401 ] || [ "$1" = 403 ] || [ "$1" = 404 ]; then
    echo "::notice title=spotter::no comment: the token may not write comments here ($1); pull-requests: write lets it, forks have no such right"
  else
    echo "::warning title=spotter::no comment: the server answered $1"
  fi
  exit 0
}

id='' old=''
for ((page = 1; ; page++)); do
  status=$(call GET "issues/$NUMBER/comments?per_page=100&page=$page")
  if [ "$status" != 200 ]; then refused "$status"; fi
  id=$(jq -r --arg marker "$marker" 'first(.[] | select(.body | startswith($marker)) | .id) // ""' "$answer")
  if [ -n "$id" ]; then
    old=$(jq -r --argjson id "$id" '.[] | select(.id == $id) | .body' "$answer")
    break
  fi
  if [ "$(jq length "$answer")" -lt 100 ]; then break; fi
done

if [ -z "$id" ] && [ "$(jq -r .comparison.beyond_noise "$REPORT")" != true ]; then
  echo 'the change is within what chance explains: no comment'
  exit 0
fi

jq --arg marker "$marker" --rawfile text "$MARKDOWN" --argjson max "$max" '
  ($marker + "\n### " + .comparison.headline + "\n\n"
  + (if .comparison.beyond_noise then "" else "It is within what chance explains.\n\n" end)
  + "<details><summary>The whole comparison</summary>\n\n") as $head
  | "\n\n</details>" as $foot
  | {body: ($head + $text[0:($max - ($head | length) - ($foot | length))] + $foot)}' "$REPORT" >"$request"
if [ "$(jq -r .body "$request")" = "$old" ]; then
  echo 'the comment is up to date'
  exit 0
fi
if [ -n "$id" ]; then
  status=$(call PATCH "issues/comments/$id" "$request")
else
  status=$(call POST "issues/$NUMBER/comments" "$request")
fi
case $status in
  200 | 201) echo "comment written" ;;
  *) refused "$status" ;;
esac
