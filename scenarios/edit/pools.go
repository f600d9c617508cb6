package edit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// poolKinds are the kinds of pools and node classes. A folder of a repository may contain other
// kinds.
var poolKinds = []string{"NodePool", "EC2NodeClass", "NodeClass", "KWOKNodeClass", "CapacityPool", "Provisioner",
	"AWSNodeTemplate"}

// ReplacePools copies the pools and node classes of other into f: one with the same kind and name
// is replaced, another one is added. If prune is set, it removes the ones that are not in other,
// for each kind that other contains. Other objects are not copied.
func (f *File) ReplacePools(other *File, prune bool) error {
	var taken []*yaml.Node
	var kinds, seen []string
	for _, d := range other.docs {
		kind := text(d, "kind")
		if !slices.Contains(poolKinds, kind) {
			continue
		}
		key := keyOf(d)
		if slices.Contains(seen, key) {
			return fmt.Errorf("%s is listed twice", key)
		}
		taken, kinds, seen = append(taken, d), append(kinds, kind), append(seen, key)
	}
	if len(taken) == 0 {
		return errors.New("there is no " + strings.Join(poolKinds, ", no ") + " in it")
	}
	if prune {
		f.docs = slices.DeleteFunc(f.docs, func(d *yaml.Node) bool {
			return slices.Contains(kinds, text(d, "kind")) && !slices.Contains(seen, keyOf(d))
		})
	}
	for i, d := range taken {
		at := slices.IndexFunc(f.docs, func(x *yaml.Node) bool { return keyOf(x) == seen[i] })
		if at < 0 {
			f.docs = append(f.docs, d)
		} else {
			f.docs[at] = d
		}
	}
	return nil
}

// RemovePools removes the pools and node classes that are in old and not in latest, since they were
// deleted.
func (f *File) RemovePools(old, latest *File) {
	var gone, left []string
	for _, d := range latest.docs {
		left = append(left, keyOf(d))
	}
	for _, d := range old.docs {
		if key := keyOf(d); slices.Contains(poolKinds, text(d, "kind")) && !slices.Contains(left, key) {
			gone = append(gone, key)
		}
	}
	f.docs = slices.DeleteFunc(f.docs, func(d *yaml.Node) bool { return slices.Contains(gone, keyOf(d)) })
}

// Add appends the documents of other.
func (f *File) Add(other *File) { f.docs = append(f.docs, other.docs...) }

func keyOf(d *yaml.Node) string { return text(d, "kind") + " " + text(d, "metadata", "name") }

const (
	// capacityTypes is the annotation of a CapacityPool that lists the capacity types which the
	// as-is baseline buys. ownShare is the annotation with the Spot share that the pool keeps.
	capacityTypes = "spotter.dev/capacity-types"
	ownShare      = "spotter.dev/own-spot-share"

	// capacityType is the label of Karpenter for the capacity type of a node.
	capacityType = "karpenter.sh/capacity-type"
)

// AllowSpot allows every pool to buy Spot in addition to its present capacity types. It returns the
// number of pools that it changed.
func (f *File) AllowSpot() (int, error) {
	changed := 0
	for _, d := range f.docs {
		allow := map[string]func(*yaml.Node) (bool, error){"CapacityPool": allowInCapacityPool,
			"NodePool": allowInNodePool}[text(d, "kind")]
		if allow == nil {
			continue
		}
		did, err := allow(d)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", keyOf(d), err)
		}
		if did {
			changed++
		}
	}
	return changed, nil
}

// allowInCapacityPool allows the as-is baseline to buy both capacity types. It reports whether this
// changed the pool.
func allowInCapacityPool(d *yaml.Node) (bool, error) {
	types := text(d, "metadata", "annotations", capacityTypes)
	most, err := strconv.ParseFloat(text(d, "spec", "capacity", "spotShare", "max"), 64)
	closed := err == nil && most == 0
	own := text(d, "metadata", "annotations", ownShare) != ""
	if !closed && !own && (types == "" || strings.Contains(types, "spot")) {
		return false, nil
	}
	changes := []string{"metadata.annotations[" + capacityTypes + "]=spot,on-demand"}
	if closed {
		changes = append(changes, "spec.capacity.spotShare.max=1")
	}
	if own {
		changes = append(changes, "metadata.annotations["+ownShare+"]=null")
	}
	return true, change(d, changes...)
}

// allowInNodePool adds Spot to the capacity types that a NodePool allows. It reports whether this
// changed the NodePool.
func allowInNodePool(d *yaml.Node) (bool, error) {
	const labels = "spec.template.metadata.labels[" + capacityType + "]"
	labelled := text(d, "spec", "template", "metadata", "labels", capacityType)
	changed := labelled != "" && labelled != "spot"
	if changed {
		if err := change(d, labels+"=null"); err != nil {
			return false, err
		}
	}
	list := d
	for _, key := range []string{"spec", "template", "spec", "requirements"} {
		if list = child(list, key); list == nil {
			return changed, nil
		}
	}
	for i, r := range list.Content {
		values := child(r, "values")
		if text(r, "key") != capacityType || values == nil {
			continue
		}
		at := slices.IndexFunc(values.Content, func(v *yaml.Node) bool { return v.Value == "spot" })
		place := fmt.Sprintf("spec.template.spec.requirements[%d]", i)
		var err error
		switch in := text(r, "operator") == "In"; {
		case in && at < 0:
			err = change(d, fmt.Sprintf("%s.values[%d]=spot", place, len(values.Content)))
		case !in && at >= 0 && len(values.Content) == 1:
			return true, change(d, place+"=null")
		case !in && at >= 0:
			err = change(d, fmt.Sprintf("%s.values[%d]=null", place, at))
		default:
			continue
		}
		if err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// change applies changes to a document, each written path=value.
func change(d *yaml.Node, changes ...string) error {
	for _, c := range changes {
		ref, value, err := Split(c)
		if err != nil {
			return err
		}
		if err := put(d, ref, value); err != nil {
			return err
		}
	}
	return nil
}

// Commit adds a savings plan to the commitments of the scenario. Spend is in dollars per hour, and
// discount is the reduction of the on-demand price.
func (f *File) Commit(name string, spend, discount float64) error {
	i := slices.IndexFunc(f.docs, func(d *yaml.Node) bool { return text(d, "kind") == "Scenario" })
	if i < 0 {
		return errors.New("there is no Scenario")
	}
	plan := fmt.Sprintf("{name: %s, spend: %v, discount: %v}", name, spend, discount)
	if spec := child(f.docs[i], "spec"); spec != nil && child(spec, "commitments") != nil {
		return put(f.docs[i], fmt.Sprintf("spec.commitments[%d]", len(child(spec, "commitments").Content)), plan)
	}
	return put(f.docs[i], "spec.commitments", "["+plan+"]")
}
