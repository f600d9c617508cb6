#!/bin/sh
# acceptance.sh TRACE1 TRACE2 holds the policy portfolio to what is asked of it
# on recorded weeks; docs/acceptance.md says what and why. TRACE1 has 45 weeks
# and TRACE2 16, after the first week of each. The environment may set
#   SPOTTER  the program                          (spotter)
#   POLICY   the policy on trial                  (portfolio)
#   OUT      the folder that the reports go to    (a new one)
#   CHOOSE_WEEKS, CHOOSE_SEEDS  to choose the fixed mix on (1-22 and 20)
#   SEEDS    seeds to report on                   (1001-1020)
#   WEEKS    weeks of TRACE1 to report on         (26-45)
# It ends with 1 when a gate was not met, with 2 when it was called wrongly.
set -eu

if [ $# -ne 2 ] || [ -z "$1" ] || [ -z "$2" ]; then
	echo "usage: acceptance.sh TRACE1 TRACE2, as make acceptance TRACE1=us-east-1 TRACE2=us-east-2" >&2
	exit 2
fi
trace1=$1
trace2=$2
spotter=${SPOTTER:-spotter}
policy=${POLICY:-portfolio}
out=${OUT:-$(mktemp -d)}
weeks=${WEEKS:-26-45}
seeds=${SEEDS:-1001-1020}
choose_weeks=${CHOOSE_WEEKS:-1-22}
choose_seeds=${CHOOSE_SEEDS:-20}
worlds="web-week mixed-pool batch-night"
mixes="static:share=0..1/0.1"
failed=0

# check runs a comparison, keeps its report and says whether its gates held.
check() {
	name=$1
	shift
	echo "== $name" >&2
	code=0
	"$spotter" eval "$@" --yes --baseline spotvortex --every 168h --format markdown --out "$out/$name.md" || code=$?
	case $code in
	0) ;;
	1) failed=1 ;;
	*) exit "$code" ;;
	esac
	sed -n '/^## Gates/,/^## [^G]/p' "$out/$name.md" | grep '^- ' >&2 || true
}

# best prints the fixed mix that saves most in a world on the choosing half, at
# an intensity.
best() {
	"$spotter" eval "$1" --yes --trace "$trace1" --windows "$choose_weeks" --every 168h --seeds "$choose_seeds" \
		--intensity "$2" --policies "$mixes" --baseline spotvortex --format json --out "$out/choose-$1-x$2.json"
	sed -n 's/.*"best_static": "\(.*\)".*/\1/p' "$out/choose-$1-x$2.json" | head -n 1
}

for x in 1 3 10; do
	for world in $worlds; do
		mix=$(best "$world" "$x")
		echo "$world, intensity $x: the best fixed mix of the choosing half is $mix" >&2
		case $x in
		1) gate="$policy vs $mix:net_savings_delta_pct.windows_positive >= 0.9" ;;
		10) gate="$policy vs $mix:net_savings_delta_pct.median >= 3" ;;
		*) gate= ;;
		esac
		check "first-$world-x$x" "$world" --trace "$trace1" --windows "$weeks" --seeds "$seeds" --intensity "$x" \
			--policies "$policy,$policy:share=1,karpetrack,$mixes" ${gate:+--gate "$gate"}
		check "second-$world-x$x" "$world" --trace "$trace2" --windows all --seeds "$seeds" --intensity "$x" \
			--policies "$policy,$policy:share=1,karpetrack,$mixes" ${gate:+--gate "$gate"}
	done
done

# Against the mended spotvortex, and against what can be had at all.
for half in "first $trace1 $weeks" "second $trace2 all"; do
	# shellcheck disable=SC2086
	set -- $half
	# shellcheck disable=SC2086
	check "$1-profit" $worlds --trace "$2" --windows "$3" --seeds "$seeds" --policies "$policy" \
		--gate "$policy:net_profit_improvement_pct.median >= 10" \
		--gate "$policy:net_profit_improvement_pct.low > 2" \
		--gate "$policy:outage_delta.max <= 0" --gate "$policy:outage_spot_delta.max <= 0"
	check "$1-attainable" web-week --trace "$2" --windows "$3" --seeds "$seeds" --policies "$policy,karpetrack" \
		--gate "$policy:attainable_share.median >= 0.80" \
		--gate "$policy:attainable_share.window_min >= 0.65" \
		--gate "$policy:availability.window_min >= 0.999" \
		--gate "$policy:regret.median <= 0.12" \
		--gate "$policy:regret.window_max <= 0.20" \
		--gate "$policy vs karpetrack:voluntary_evictions_per_pod_day.max <= 0"
done
echo "reports: $out" >&2
exit $failed
