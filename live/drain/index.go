package drain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The indexes of the cache by which a pass reads only what is on the nodes that
// it drains.
const (
	IndexPodNode        = "spotter.dev/drain.pod-node"
	IndexAttachmentNode = "spotter.dev/drain.attachment-node"
)

// PodNode is the function behind [IndexPodNode].
func PodNode(o client.Object) []string {
	if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		return []string{p.Spec.NodeName}
	}
	return nil
}

// AttachmentNode is the function behind [IndexAttachmentNode].
func AttachmentNode(o client.Object) []string {
	if a, ok := o.(*storagev1.VolumeAttachment); ok {
		return []string{a.Spec.NodeName}
	}
	return nil
}

// SetupIndexes adds the indexes to a manager's cache. It is called once, before
// the manager starts.
func SetupIndexes(ctx context.Context, x client.FieldIndexer) error {
	if err := x.IndexField(ctx, &corev1.Pod{}, IndexPodNode, PodNode); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	if err := x.IndexField(ctx, &storagev1.VolumeAttachment{}, IndexAttachmentNode, AttachmentNode); err != nil {
		return fmt.Errorf("indexing volume attachments by node: %w", err)
	}
	return nil
}
