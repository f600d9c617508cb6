package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// fetchZones reads the IDs of the zones of a region, including zones that the account does not use.
// If AWS or another endpoint refuses the list, the recording continues: prices often include the
// IDs.
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
		// A later request may succeed, so that the journal does not record this failure.
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

// A zoneName identifies a zone in a response. Either field may be empty.
type zoneName struct {
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// A naming determines the names of a region's zones in the trace.
type naming struct {
	byName bool
	ids    map[string]string // by name
	names  map[string]string // by ID
}

// naming determines the names of the zones of a region in the trace, after all its prices are
// known: either all by ID or all by name, whichever response arrived first. Zones are identified by
// name if that was requested, or if the ID of a zone is unknown although the list of zones was
// requested.
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

// withoutID returns the names of the zones that have prices but no known ID.
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

// of returns the name of a zone in the trace. If zones are identified by name, a zone without a
// known name is still identified by its ID.
func (n *naming) of(z zoneName) string {
	if n.byName {
		return cmp.Or(z.Name, n.names[z.ID], z.ID)
	}
	return cmp.Or(z.ID, n.ids[z.Name])
}

// id returns the ID of a zone of the trace; zone itself if no other is known.
func (n *naming) id(zone string) string {
	if n.byName {
		return cmp.Or(n.ids[zone], zone)
	}
	return zone
}

// meta returns the metadata value of the naming.
func (n *naming) meta() string {
	if n.byName {
		return zonesByName
	}
	return zonesByID
}
