package rackspace

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// An amount is a decimal number. The API represents prices and sizes as text, older objects and the
// price feed as numbers. Text may start with a dollar sign.
type amount struct {
	text string // empty if absent
}

// UnmarshalJSON accepts text, a number or null.
func (a *amount) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	switch text[0] {
	case '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	case '{', '[', 't', 'f':
		return fmt.Errorf("%s is not a number", text)
	}
	a.text = strings.TrimPrefix(strings.TrimSpace(text), "$")
	return nil
}

// MarshalJSON returns text, as the API does.
func (a amount) MarshalJSON() ([]byte, error) { return json.Marshal(a.text) }

// money returns the amount in dollars, rounded to millionths. ok is false if the amount is empty.
func (a amount) money() (m policy.Money, ok bool, err error) {
	if a.text == "" {
		return 0, false, nil
	}
	x, err := strconv.ParseFloat(a.text, 64)
	if err != nil || !(x >= 0 && x <= dollarsMax) {
		return 0, false, fmt.Errorf("%q is not an amount of dollars", a.text)
	}
	return policy.Dollars(x), true, nil
}

// dollarsMax is more than any machine costs per hour, in dollars.
const dollarsMax = 1e6

// amountOf returns m with six decimals, without trailing zeros after the third.
func amountOf(m policy.Money) amount {
	text := strings.TrimPrefix(m.String(), "$")
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 4 {
		text = text[:len(text)-1]
	}
	return amount{text}
}

// A kind is the resource name of a kind of node pools.
type kind string

// The kinds of node pools.
const (
	spotPools     kind = "spotnodepools"
	onDemandPools kind = "ondemandnodepools"
)

// object returns the Kind of the objects.
func (k kind) object() string {
	if k == spotPools {
		return "SpotNodePool"
	}
	return "OnDemandNodePool"
}

// kindOf returns the kind of node pools that provide nodes of a capacity type.
func kindOf(c policy.CapacityType) kind {
	if c == policy.Spot {
		return spotPools
	}
	return onDemandPools
}

// apiVersion is the version of the objects that this package writes and reads.
const apiVersion = "ngpc.rxt.io/v1"

// cloudspaceLabel is the label with the cloudspace of a node pool.
const cloudspaceLabel = "ngpc.rxt.io/cloudspace"

// A nodePool is a SpotNodePool or an OnDemandNodePool with the fields that this package uses.
type nodePool struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   poolMetadata `json:"metadata"`
	Spec       poolSpec     `json:"spec"`
	Status     poolStatus   `json:"status,omitzero"`
}

type poolMetadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	Labels            map[string]string `json:"labels,omitempty"`
	CreationTimestamp time.Time         `json:"creationTimestamp,omitzero"`
}

type poolSpec struct {
	ServerClass       string            `json:"serverClass"`
	Desired           int               `json:"desired"`
	CloudSpace        string            `json:"cloudSpace"`
	BidPrice          *amount           `json:"bidPrice,omitempty"` // of Spot pools
	CustomLabels      map[string]string `json:"customLabels,omitempty"`
	CustomAnnotations map[string]string `json:"customAnnotations,omitempty"`
	CustomTaints      []corev1.Taint    `json:"customTaints,omitempty"`
	Autoscaling       autoscaling       `json:"autoscaling"`
}

type autoscaling struct {
	Enabled  bool `json:"enabled"`
	MinNodes int  `json:"minNodes,omitempty"`
	MaxNodes int  `json:"maxNodes,omitempty"`
}

type poolStatus struct {
	BidStatus      string `json:"bidStatus,omitempty"`
	WonCount       int    `json:"wonCount,omitempty"`
	ReservedStatus string `json:"reservedStatus,omitempty"`
	ReservedCount  int    `json:"reservedCount,omitempty"`
}

// given returns the number of machines that the pool has.
func (p *nodePool) given() int { return max(p.Status.WonCount, p.Status.ReservedCount) }

// A serverClass is a size of machine in one region, with its market.
type serverClass struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Category        string `json:"category"`
		FlavorType      string `json:"flavorType"`
		Region          string `json:"region"`
		MinBid          amount `json:"minBidPricePerHour"`
		OnDemandPricing struct {
			Cost     amount `json:"cost"`
			Interval string `json:"interval"`
		} `json:"onDemandPricing"`
		Resources struct {
			CPU    amount `json:"cpu"`
			Memory amount `json:"memory"`
			GPU    amount `json:"gpu"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		SpotPricing struct {
			Market amount `json:"marketPricePerHour"`
		} `json:"spotPricing"`
	} `json:"status"`
}

// A cloudSpace is a cluster at Rackspace Spot.
type cloudSpace struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Region string `json:"region"`
	} `json:"spec"`
	Status struct {
		Phase  string `json:"phase"`
		Health string `json:"health"`
		Reason string `json:"reason"`
	} `json:"status"`
}

// A page is a page of a list.
type page[T any] struct {
	Items    []T `json:"items"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
}

// organisations is the list of organisations, which has no pages.
type organisations struct {
	Organizations []struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	} `json:"organizations"`
}

// namespaceOf returns the namespace of an organisation's objects.
func namespaceOf(id string) string { return strings.ReplaceAll(strings.ToLower(id), "_", "-") }
