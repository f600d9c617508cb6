package check

import (
	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
)

// classesOf returns the class of every market by its name.
func classesOf(d *measure.Depth) map[string]int {
	out := make(map[string]int, len(d.Zones))
	for i := range d.Zones {
		out[d.Zones[i].Market] = d.Zones[i].Class
	}
	return out
}

// depthFigures lists the figures of depth.
func depthFigures(d *measure.Depth) []Figure {
	share := Figure{Unit: "share", Kind: Absolute, Depth: true}
	all := []Figure{
		share.as("depth-none", "time in which none of the nodes requested came up", d.None),
		share.as("depth-some", "time in which some came up", d.Some),
		share.as("depth-all", "time in which all came up", d.All),
	}
	changes, hours := 0, 0.0
	for k := range d.Classes {
		c := &d.Classes[k]
		changes, hours = changes+c.Changes, hours+c.Hours
		if c.Markets == 0 {
			continue
		}
		class := measure.DepthClasses[k]
		f := Figure{Tolerance: tolDepthShare, Kind: Absolute, Unit: "share", Events: c.Changes, Fewest: eventsMin,
			Exposure: c.Hours, Depth: true}
		in := " in zones where " + class + " only some come up"
		all = append(all,
			f.as("depth-none-"+class, "time with none"+in, c.None),
			f.as("depth-some-"+class, "time with some"+in, c.Some),
			f.as("depth-all-"+class, "time with all"+in, c.All))
		f.Tolerance, f.Unit = tolDepthHour, ""
		all = append(all, f.as("depth-hour-"+class, "correlation of depth with that an hour later"+in, c.Hour))
	}
	hour := Figure{Tolerance: tolDepthHour, Kind: Absolute, Events: changes, Fewest: eventsMin, Exposure: hours,
		Depth: true}
	zones := hour
	zones.Tolerance = tolDepthZones
	all = append(all,
		hour.as("depth-hour", "correlation of depth with that an hour later, mean", d.Hour),
		zones.as("depth-correlation", "depths of two zones of a region, mean correlation", d.Within),
		zones.free("depth-correlation-across", "depths of two regions, mean correlation", d.Across))
	for i := range d.Zones {
		z := &d.Zones[i]
		place := Figure{Kind: Absolute, Unit: "share", Place: true, Depth: true}
		all = append(all,
			place.as("depth-some-"+z.Market, "time with some in "+z.Market, z.Some),
			place.as("depth-mean-"+z.Market, "mean share that came up in "+z.Market, z.Mean))
	}
	return all
}
