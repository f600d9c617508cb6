package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// zoneKeys are the labels by which volumes name the zone that they lie in.
var zoneKeys = []string{
	corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone,
	"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone",
}

// volumes are claims and what they are bound to.
type volumes struct {
	claims map[string]*corev1.PersistentVolumeClaim // by "namespace/name"
	zones  map[string]string                        // by the name of the volume; empty where all zones reach it

	// zonesChanged says that zones were met in which no volume lay before.
	zonesChanged bool
	seen         map[string]bool
}

func newVolumes() volumes {
	return volumes{claims: map[string]*corev1.PersistentVolumeClaim{}, zones: map[string]string{}, seen: map[string]bool{}}
}

// volume returns what the claim of a pod gives: one of its own, or one that the
// pods of its template share. A volume that is there counts before what the claim
// asks for.
func (v *volumes) volume(namespace, claim string, own bool) policy.Volume {
	out := policy.Volume{Zonal: true}
	if c := v.claims[namespace+"/"+claim]; c != nil {
		out = kube.Volume(&c.Spec)
		if zone, bound := v.zones[c.Spec.VolumeName]; bound {
			out.Zonal = zone != ""
		}
	}
	if !own {
		out.Claim = claim
	}
	return out
}

func (o *Observer) setClaim(c *corev1.PersistentVolumeClaim) {
	name := key(c)
	before := o.volumes.claims[name]
	o.volumes.claims[name] = c
	if before == nil || before.Spec.VolumeName != c.Spec.VolumeName || !slices.Equal(before.Spec.AccessModes, c.Spec.AccessModes) {
		o.dirtyClaims(name)
	}
}

func (o *Observer) dropClaim(c *corev1.PersistentVolumeClaim) {
	delete(o.volumes.claims, key(c))
	o.dirtyClaims(key(c))
}

func (o *Observer) setVolume(p *corev1.PersistentVolume) {
	zone := zoneOf(p)
	before, known := o.volumes.zones[p.Name]
	o.volumes.zones[p.Name] = zone
	if zone != "" && !o.volumes.seen[zone] {
		o.volumes.seen[zone], o.volumes.zonesChanged = true, true
	}
	if c := p.Spec.ClaimRef; c != nil && (!known || before != zone) {
		o.dirtyClaims(c.Namespace + "/" + c.Name)
	}
}

func (o *Observer) dropVolume(p *corev1.PersistentVolume) {
	delete(o.volumes.zones, p.Name)
	if c := p.Spec.ClaimRef; c != nil {
		o.dirtyClaims(c.Namespace + "/" + c.Name)
	}
}

// dirtyClaims says that the pods with a claim are to be read again.
func (o *Observer) dirtyClaims(claim string) {
	o.dirtyPods(func(x *podEntry) bool {
		return x.claims && slices.ContainsFunc(x.object.Spec.Volumes, func(v corev1.Volume) bool {
			name := claimOf(&v, x.object)
			return name != "" && x.object.Namespace+"/"+name == claim
		})
	})
}

// claimOf returns the name of the claim that a volume of p stands for; empty without.
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

// zoneOf returns the one zone that a volume can be reached from; empty where there
// are several or all.
func zoneOf(p *corev1.PersistentVolume) string {
	if a := p.Spec.NodeAffinity; a != nil && a.Required != nil && len(a.Required.NodeSelectorTerms) == 1 {
		for _, e := range a.Required.NodeSelectorTerms[0].MatchExpressions {
			if slices.Contains(zoneKeys, e.Key) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
		return ""
	}
	return p.Labels[corev1.LabelTopologyZone]
}

// volumeZone returns the zone of the bound zonal volumes of a pod, or None.
func (o *Observer) volumeZone(p *corev1.Pod) policy.ZoneID {
	for i := range p.Spec.Volumes {
		name := claimOf(&p.Spec.Volumes[i], p)
		if name == "" {
			continue
		}
		if c := o.volumes.claims[p.Namespace+"/"+name]; c != nil {
			if zone := o.volumes.zones[c.Spec.VolumeName]; zone != "" {
				if id, ok := o.zoneIDs[zone]; ok {
					return id
				}
			}
		}
	}
	return policy.None
}
