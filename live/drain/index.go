package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the cache indexes with which a reconciliation reads only the objects on its node.
const (
	IndexPodNode        = "spotter.dev/drain.pod-node"
	IndexAttachmentNode = "spotter.dev/drain.attachment-node"
)

// PodNode is the index function of [IndexPodNode].
func PodNode(o client.Object) []string {
	if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}
	}
	return nil
}

// AttachmentNode is the index function of [IndexAttachmentNode].
func AttachmentNode(o client.Object) []string {
	if a, ok := o.(*storagev1.VolumeAttachment); ok {
		return []string{a.Spec.NodeName}
	}
	return nil
}

// SetupIndexes adds the indexes to the cache of a manager. Call it once, before the manager starts.
func SetupIndexes(ctx context.Context, x client.FieldIndexer) error {
	if err := x.IndexField(ctx, &corev1.Pod{}, IndexPodNode, PodNode); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	if err := x.IndexField(ctx, &storagev1.VolumeAttachment{}, IndexAttachmentNode, AttachmentNode); err != nil {
		return fmt.Errorf("indexing volume attachments by node: %w", err)
	}
	return nil
}
