package recorded

import (
	"fmt"
	"time"
)

func readSnowflake(files []*input, _ *Options) (*recording, error) {
	r := &recording{
		about:   "hourly numbers of virtual machines of four deployments of Snowflake, by region and type",
		licence: "the data set accompanies \"Shaved Ice\" (ICPE 2025) and is published as CC BY 4.0: name its authors when you pass this file on",
	}
	type key struct{ region, machine string }
	hours := map[key][]change{}
	var order []key
	for _, in := range files {
		t, err := openTable(in, FormatSnowflake)
		if err != nil {
			return nil, err
		}
		for t.next() {
			k := key{t.text("REGION_NUM"), t.text("INSTANCE_TYPE")}
			at, pods := t.instant("USAGE_HOUR"), int(t.integer("NORM_USAGE", tasksMost))
			if t.err != nil {
				break
			}
			if r.origin.IsZero() {
				r.origin = at.Truncate(24 * time.Hour)
			}
			if _, seen := hours[k]; !seen {
				order = append(order, k)
			}
			hours[k] = append(hours[k], change{at.Sub(r.origin), pods})
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	for i, k := range order {
		changes := hourly(hours[k])
		first, last := changes[0].at, changes[len(changes)-1].at
		if i == 0 {
			r.begin = first
		}
		r.begin, r.end = min(r.begin, first), max(r.end, last)
		r.services = append(r.services, service{
			shape: shape{cpu: 3500, memory: 13 << 10}, class: classNormal, name: name(fmt.Sprintf("region-%s-%s", k.region,
				k.machine)),
			startup: time.Minute, changes: changes,
		})
	}
	r.assume("One machine is one pod of 3500m CPU and 13 GiB, which fills a node of 4 vCPU and 16 GiB: the types are letters and their sizes were not published.")
	r.assume("Numbers are shares of the busiest hour of the busiest type of each region, which is 1000: give --scale to bring them to a size.")
	r.assume("Each region and type is a Deployment; an hour that is not listed had none of it. All of them run in one place. They have the priority class normal and no disruption budget.")
	return r, nil
}

// hourly returns the counts of hours as changes: an hour that is not listed has
// none. Of several counts of one hour the sum holds.
func hourly(hours []change) []change {
	all := make([][]change, 0, len(hours))
	for _, h := range hours {
		all = append(all, []change{h, {h.at + time.Hour, 0}})
	}
	return sum(all)
}
