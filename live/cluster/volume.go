package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A volumeTable contains claims and the volumes bound to them, and assigns IDs to the zones with
// markets or volumes. Pods are marked to be read again when the volume of one of their claims
// changes.
type volumeTable struct {
	pods   *podSlots
	claims map[string]*corev1.PersistentVolumeClaim // by "namespace/name"
	zones  map[string]string                        // by name of the volume; empty if the volume is not zonal

	// seen contains the zones in which a volume has been observed, and zonesChanged reports whether
	// there are new ones.
	seen         map[string]bool
	zonesChanged bool

	zoneNames []string
	zoneIDs   map[string]policy.ZoneID // nil until the zones have IDs
}

// volume returns the volume of a pod's claim. own reports whether only this pod uses the claim;
// otherwise the pods of its template share it. A bound volume takes precedence over the requests of
// the claim.
func (t *volumeTable) volume(namespace, claim string, own bool) policy.Volume {
	out := policy.Volume{Zonal: true}
	if c := t.claims[namespace+"/"+claim]; c != nil {
		out = kube.Volume(&c.Spec)
		if zone, bound := t.zones[c.Spec.VolumeName]; bound {
			out.Zonal = zone != ""
		}
	}
	if !own {
		out.Claim = claim
	}
	return out
}

func (t *volumeTable) setClaim(c *corev1.PersistentVolumeClaim) {
	name := key(c)
	before := t.claims[name]
	t.claims[name] = c
	if before == nil || before.Spec.VolumeName != c.Spec.VolumeName ||
		!slices.Equal(before.Spec.AccessModes, c.Spec.AccessModes) {
		t.touchPods(name)
	}
}

func (t *volumeTable) dropClaim(c *corev1.PersistentVolumeClaim) {
	delete(t.claims, key(c))
	t.touchPods(key(c))
}

func (t *volumeTable) setVolume(p *corev1.PersistentVolume) {
	zone := kube.ZoneOf(p)
	before, known := t.zones[p.Name]
	t.zones[p.Name] = zone
	if zone != "" && !t.seen[zone] {
		t.seen[zone], t.zonesChanged = true, true
	}
	if c := p.Spec.ClaimRef; c != nil && (!known || before != zone) {
		t.touchPods(c.Namespace + "/" + c.Name)
	}
}

func (t *volumeTable) dropVolume(p *corev1.PersistentVolume) {
	delete(t.zones, p.Name)
	if c := p.Spec.ClaimRef; c != nil {
		t.touchPods(c.Namespace + "/" + c.Name)
	}
}

// touchPods marks the pods with a claim to be read again.
func (t *volumeTable) touchPods(claim string) {
	t.pods.touchWhere(func(x *podEntry) bool {
		return x.claims && slices.ContainsFunc(x.object.Spec.Volumes, func(v corev1.Volume) bool {
			name := claimOf(&v, x.object)
			return name != "" && x.object.Namespace+"/"+name == claim
		})
	})
}

// claimOf returns the name of the claim of a volume of p; empty if the volume has no claim.
func claimOf(v *corev1.Volume, p *corev1.Pod) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

func hasClaims(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return claimOf(&v, p) != "" })
}

// zoneOf returns the zone of the bound zonal volumes of a pod; None if the pod has no such volumes.
func (t *volumeTable) zoneOf(p *corev1.Pod) policy.ZoneID {
	for i := range p.Spec.Volumes {
		name := claimOf(&p.Spec.Volumes[i], p)
		if name == "" {
			continue
		}
		if c := t.claims[p.Namespace+"/"+name]; c != nil {
			if zone := t.zones[c.Spec.VolumeName]; zone != "" {
				if id, ok := t.zoneIDs[zone]; ok {
					return id
				}
			}
		}
	}
	return policy.None
}

// fillZones appends the zones with volumes to the zones with markets: a pod whose volume is in a
// zone without markets must not appear to be able to run anywhere.
func (t *volumeTable) fillZones(s *policy.Snapshot) {
	if t.zoneIDs != nil && !t.zonesChanged {
		s.Zones = t.zoneNames
		return
	}
	t.zoneIDs, t.zonesChanged = map[string]policy.ZoneID{}, false
	t.zoneNames = append([]string(nil), s.Zones...)
	for i, z := range t.zoneNames {
		t.zoneIDs[z] = policy.ZoneID(i)
	}
	for _, z := range slices.Sorted(maps.Keys(t.seen)) {
		if _, ok := t.zoneIDs[z]; !ok {
			t.zoneIDs[z] = policy.ZoneID(len(t.zoneNames))
			t.zoneNames = append(t.zoneNames, z)
		}
	}
	s.Zones = t.zoneNames
	t.pods.touchWhere(func(x *podEntry) bool { return x.claims })
}
