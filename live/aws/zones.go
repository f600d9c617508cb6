package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// fetchZones learns the IDs of the zones of a region, whether or not the
// account uses them. One who may not list them, or whose endpoint cannot, can
// do without: prices often bring the IDs themselves.
func (r *run) fetchZones(ctx context.Context, region string) error {
	if _, asked := r.zones[region]; asked {
		return nil
	}
	ids, err := r.session.listZones(ctx, region)
	var failed *RequestError
	switch {
	case err == nil:
		return r.keep(entry{Zones: &zonesEntry{Region: region, IDs: ids}})
	case errors.Is(err, ErrPermission), errors.Is(err, ErrRefused):
		r.config.warn("zones are not listed: %v", err)
		return r.keep(entry{Zones: &zonesEntry{Region: region}})
	case errors.As(err, &failed) && failed.Kind == nil:
		// It may be answered another time: that it was not is no entry of the
		// journal.
		r.config.warn("zones are not listed yet: %v", err)
		return nil
	}
	return err
}

// listZones returns the IDs of the zones of a region by name.
func (s *session) listZones(ctx context.Context, region string) (map[string]string, error) {
	all := true
	answer, err := s.optional[region].DescribeAvailabilityZones(ctx,
		&ec2.DescribeAvailabilityZonesInput{AllAvailabilityZones: &all})
	if err != nil {
		return nil, fault(ctx, actionZones, region, err)
	}
	ids := map[string]string{}
	for _, z := range answer.AvailabilityZones {
		if z.ZoneName != nil && z.ZoneId != nil {
			ids[*z.ZoneName] = *z.ZoneId
		}
	}
	return ids, nil
}

// A zoneName is a zone as an answer names it. Either may be missing.
type zoneName struct {
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// A naming says how the zones of a region go in the trace.
type naming struct {
	byName bool
	ids    map[string]string // by name
	names  map[string]string // by ID
}

// naming determines the names of the zones of a region in the trace, after all its prices are
// known: all by ID or all by name, whichever response arrived first. They are named by name if that
// was requested, or if the ID of one is not known and was not found by request.
func (r *run) naming(region string) (*naming, error) {
	n := &naming{byName: r.plan.ZoneNames, ids: maps.Clone(r.zones[region]), names: map[string]string{}}
	if n.ids == nil {
		n.ids = map[string]string{}
	}
	for i := range r.pages {
		if r.pages[i].Region != region {
			continue
		}
		for _, z := range r.pages[i].Zones {
			if z.Name != "" && z.ID != "" {
				n.ids[z.Name] = z.ID
			}
		}
	}
	for name, id := range n.ids {
		n.names[id] = name
	}
	missing := r.withoutID(region, n)
	if n.byName || len(missing) == 0 {
		return n, nil
	}
	if _, asked := r.zones[region]; !asked {
		return nil, fmt.Errorf("%w: the IDs of the zones %v of %s are unknown, and %s failed", ErrZones, missing, region,
			actionZones)
	}
	n.byName = true
	r.config.warn("the IDs of the zones %v are unknown: the zones of %s are identified by name, which differs between accounts", missing, region)
	return n, nil
}

// withoutID returns the names of the zones with prices whose ID is not known.
func (r *run) withoutID(region string, n *naming) []string {
	var missing []string
	for i := range r.pages {
		if r.pages[i].Region != region {
			continue
		}
		for _, z := range r.pages[i].Zones {
			if z.ID == "" && n.ids[z.Name] == "" {
				missing = append(missing, z.Name)
			}
		}
	}
	return sorted(missing)
}

// of returns how a zone goes in the trace. By name, one whose name is not known
// goes by its ID still.
func (n *naming) of(z zoneName) string {
	if n.byName {
		return cmp.Or(z.Name, n.names[z.ID], z.ID)
	}
	return cmp.Or(z.ID, n.ids[z.Name])
}

// id returns the ID of a zone of the trace, itself when it has no other.
func (n *naming) id(zone string) string {
	if n.byName {
		return cmp.Or(n.ids[zone], zone)
	}
	return zone
}

// meta is the naming as the metadata of a file has it.
func (n *naming) meta() string {
	if n.byName {
		return zonesByName
	}
	return zonesByID
}
