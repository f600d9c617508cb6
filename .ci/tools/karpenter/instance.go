package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// An instances is a client that names nodes as AWS names instances. The kwok provider
// makes nodes of other names.
type instances struct{ client.Client }

// Create implements client.Client.
func (c instances) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if n, ok := o.(*corev1.Node); ok {
		renamed := n.DeepCopy()
		renamed.Name = instanceID(n.Name)
		renamed.Spec.ProviderID = strings.TrimSuffix(n.Spec.ProviderID, n.Name) + renamed.Name
		return c.Client.Create(ctx, renamed, options...)
	}
	return c.Client.Create(ctx, o, options...)
}

// instanceID returns the ID of the instance that is made for a node of the kwok
// provider, always the same for one name.
func instanceID(node string) string {
	sum := sha256.Sum256([]byte(node))
	return "i-" + hex.EncodeToString(sum[:])[:17]
}

// rename has a claim that was launched name its node as its instance.
func rename(claim *v1.NodeClaim) {
	name := instanceID(claim.Status.NodeName)
	claim.Status.ProviderID = strings.TrimSuffix(claim.Status.ProviderID, claim.Status.NodeName) + name
	claim.Name, claim.Status.NodeName = name, name
}
