package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// driver attaches all volumes; storageClass binds claims as their first pod is scheduled.
const (
	driver       = "disk.example.com"
	storageClass = "disk"
)

// csiNode says how many volumes a node can attach.
func (s *State) csiNode(n *Node) *storagev1.CSINode {
	x := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: n.Name}},
	}}
	if limit := s.typ(n.Type).VolumesMax; limit > 0 {
		x.Spec.Drivers[0].Allocatable = &storagev1.VolumeNodeResources{Count: ptr(int32(limit))}
	}
	return x
}

// claimName is that of volume k of pod i.
func (s *State) claimName(i, k int) string {
	if x := &s.Workloads[s.Pods[i].Workload].Volumes[k]; x.Claim != "" {
		return x.Claim
	}
	return fmt.Sprintf("pod-%05d-%d", i, k)
}

// volumesOf returns the volumes of pod i.
func (s *State) volumesOf(i int) (list []corev1.Volume) {
	for k := range s.Workloads[s.Pods[i].Workload].Volumes {
		list = append(list, corev1.Volume{Name: fmt.Sprintf("v%d", k), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claimName(i, k)},
		}})
	}
	return list
}

// claims returns the claims of all pods with the volumes that they are bound to.
func (s *State) claims() []client.Object {
	list := []client.Object{&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: storageClass}, Provisioner: driver,
		VolumeBindingMode: ptr(storagev1.VolumeBindingWaitForFirstConsumer)}}
	made := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		for k, x := range s.Workloads[p.Workload].Volumes {
			name := s.claimName(i, k)
			if made[name] {
				continue
			}
			made[name] = true
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr(storageClass)}}
			list = append(list, claim)
			if x.Zonal && p.VolumeZone == "" {
				continue
			}
			claim.Spec.VolumeName, claim.Annotations = name, map[string]string{volume.AnnBindCompleted: "yes"}
			list = append(list, s.volume(name, x.Zonal, p.VolumeZone))
		}
	}
	return list
}

// volume returns one that is bound to a claim of its name.
func (s *State) volume(name string, zonal bool, zone string) *corev1.PersistentVolume {
	x := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
			VolumeHandle: name}},
	}}
	if zonal {
		x.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone,
				Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return x
}

// A scopingClient reads volumes whatever namespace is named, as API servers do and the client of
// tests does not.
type scopingClient struct{ client.Client }

// Get implements client.Reader.
func (c *scopingClient) Get(ctx context.Context, key client.ObjectKey, o client.Object,
	opts ...client.GetOption) error {
	if _, ok := o.(*corev1.PersistentVolume); ok {
		key.Namespace = ""
	}
	return c.Client.Get(ctx, key, o, opts...)
}
