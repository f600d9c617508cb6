package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A volumeKind is what claims the pods of a workload have.
type volumeKind struct {
	class  string // empty for none
	shared bool
	once   bool
}

func (g *generator) volumeKind() volumeKind {
	if !g.one(4) {
		return volumeKind{}
	}
	k := volumeKind{class: "block", shared: g.one(3), once: g.one(4)}
	if g.one(4) {
		k.class, k.once = "file", false
	}
	return k
}

// volumes gives p its claims; some are bound to a volume already.
func (g *generator) volumes(p *corev1.Pod, k volumeKind) {
	if k.class == "" {
		return
	}
	name := "data-" + p.Name
	if k.shared {
		name = "data-" + p.Name[:len(p.Name)-2]
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	for i := range g.st.Claims {
		if g.st.Claims[i].Name == name && g.st.Claims[i].Namespace == p.Namespace {
			return
		}
	}
	mode := corev1.ReadWriteOnce
	switch {
	case k.class == "file":
		mode = corev1.ReadWriteMany
	case k.once:
		mode = corev1.ReadWriteOncePod
	}
	c := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace, UID: g.uid()},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: ptr.To(k.class),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	if g.one(3) {
		v := provision(&c, pick(g, zones))
		g.st.Volumes = append(g.st.Volumes, *v)
	}
	g.st.Claims = append(g.st.Claims, c)
}

// provision binds a claim to a new volume, which those of the class "block" have in
// one zone only.
func provision(c *corev1.PersistentVolumeClaim, zone string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + c.Namespace + "-" + c.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, StorageClassName: *c.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: "handle-" + c.Namespace + "-" + c.Name,
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	if v.Spec.StorageClassName == "block" && zone != "" {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone,
				Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
	c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	return v
}

// zoneOf returns the zone of a volume, empty if all nodes reach it.
func zoneOf(v *corev1.PersistentVolume) string {
	if v.Spec.NodeAffinity == nil {
		return ""
	}
	return v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}
